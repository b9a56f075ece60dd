#pragma once

#include <optional>
#include <string_view>

namespace weft {

/// Whether verbs of such a release of Linux register DMA-BUF: from 5.12 on (ibv_reg_dmabuf_mr).
/// nullopt of an older one of a distribution that puts newer kernels' drivers into its own, and of
/// what is no release.
std::optional<bool> registers_dma_buf(std::string_view linux_release);

}  // namespace weft
