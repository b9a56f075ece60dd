#pragma once

#include <array>
#include <string>

#include "models/device/device.hpp"

namespace weft {

/// Parameters of BAR1, the window through which PCIe peers reach a GPU's memory, and of who maps
/// it.
inline constexpr std::array kBar1Params{
    ParamSpec{"gpu.bar1_size", Unit::kBytes, 128.0 * 1024 * 1024 * 1024, 0, 1e15, Origin::kAssumed,
              "data-centre GPUs: all of the memory, up to the next power of two (80 GB: 128 GiB); "
              "GeForce without Resizable BAR, T4, RTX A4000: 256 MiB. nvidia-smi -q -d MEMORY",
              "size of BAR1"},
    ParamSpec{"gpu.bar1_used", Unit::kBytes, 2.0 * 1024 * 1024, 0, 1e15, Origin::kAssumed,
              "1 MiB on idle H200 (data/h200), 2-6 MiB seen elsewhere",
              "what the driver and others hold of BAR1"},
    ParamSpec{"gpu.peer_mapping", Unit::kChoice, 1, 0, 3, Origin::kAssumed,
              "the module that comes with the driver; NCCL tries DMA-BUF first",
              "who maps the GPU's memory for NICs", "none nvidia-peermem dma-buf nv_peer_mem"},
    ParamSpec{"gpu.kernel_modules", Unit::kChoice, 0, 0, 1, Origin::kAssumed,
              "NVIDIA's default for Turing and later from driver 560",
              "which of NVIDIA's kernel modules are loaded", "open proprietary"},
    ParamSpec{"gpu.dma_page", Unit::kBytes, 2.0 * 1024 * 1024, 4096, 1024.0 * 1024 * 1024,
              Origin::kAssumed, "cudaMalloc hands out physical blocks of 2 MiB",
              "page by which an IOMMU maps the GPU's memory for peers"},
};
static_assert(every_param_is_sourced(kBar1Params));

/// Pins take BAR1 in units of this size, aligned to it. NVIDIA nv-p2p.h.
inline constexpr Bytes kBar1Page = Bytes::kib(64);

/// GPU memory that someone wants to pin for a NIC, and how it adds up, for people.
struct PinnedMemory {
  Bytes bytes;
  std::string sum;  ///< "2 channels x (4 MiB + ...) = 18.4 MiB"
};

/// Why `pinned` does not fit into the GPU's BAR1, with the arithmetic; "" if it fits.
std::string bar1_shortage(const Bar1& bar1, const PinnedMemory& pinned);

}  // namespace weft
