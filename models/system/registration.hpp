#pragma once

#include <cstdint>
#include <string>

#include "models/nic/registration.hpp"
#include "models/system/machine.hpp"

namespace weft {

/// What ibv_reg_mr, or ibv_reg_dmabuf_mr, says to a buffer.
struct Registration {
  Bytes bytes;  ///< with what rounds it up to whole pages
  Bytes page;
  std::int64_t pages{0};
  Duration time;
  Bytes bar1_used;    ///< of a GPU, with this buffer
  std::string error;  ///< "ENOMEM"; "" if it succeeds
  std::string why;    ///< of the error
};

/// Registers a buffer in the memory of a GPU, or of a CPU's socket, with a NIC of its node. The
/// buffer begins at a page.
/// Errors: EFAULT where nobody tells the kernel that the address is a GPU's (no peer memory
/// client), EOPNOTSUPP without DMA-BUF in the GPU's or the NIC's driver, ENOMEM where BAR1 or the
/// limit of locked memory is full.
Registration register_memory(const Machine& machine, DeviceId memory, DeviceId nic, Bytes bytes);

}  // namespace weft
