#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of a root complex: where PCIe meets memory, and PCIe meets PCIe (peer to peer).
inline constexpr std::array kRootComplexParams{
    ParamSpec{"cpu.root_latency", Unit::kNanoseconds, 200, 0, 10'000, Origin::kAssumed,
              "about half of the 547 ns round trip that pcie-bench (SIGCOMM 2018) has for 64 B on "
              "Haswell, less DRAM",
              "crossing the root complex, one way"},
    ParamSpec{"cpu.completion_payload", Unit::kBytes, 256, 64, 4096, Origin::kAssumed,
              "recent Xeon and EPYC merge cache lines up to the MPS",
              "data per completion when a device reads host memory"},
    ParamSpec{
        "cpu.p2p_payload", Unit::kBytes, 4096, 64, 4096, Origin::kAssumed,
        "no cut unless the part says so; Intel: 64 B (NCCL src/graph/topo.h INTEL_P2P_OVERHEAD)",
        "data per TLP that the root complex issues towards a GPU for another device"},
    ParamSpec{
        "cpu.p2p", Unit::kChoice, 1, 0, 2, Origin::kPublished,
        "Linux drivers/pci/p2pdma.c: Intel Xeon from Haswell and AMD Zen forward peer traffic",
        "which peer-to-peer requests the root complex forwards between its ports",
        "none full writes-only"},
};
static_assert(every_param_is_sourced(kRootComplexParams));

}  // namespace weft
