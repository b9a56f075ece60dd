#pragma once

#include <array>
#include <optional>

#include "models/pcie/acs.hpp"
#include "models/pcie/sizes.hpp"
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
    ParamSpec{"cpu.p2p_port_writes", Unit::kBytes, 0, 0, 1e9, Origin::kAssumed,
              "no limit unless the part has a measured one",
              "data of peers' writes that one root port holds at a time; 0: its link is the limit"},
    ParamSpec{"cpu.p2p_port_reads", Unit::kBytes, 0, 0, 1e9, Origin::kAssumed,
              "no limit unless the part has a measured one",
              "data of peers' reads that one root port waits for at a time; 0: its link is the "
              "limit"},
    ParamSpec{"cpu.p2p_writes", Unit::kBytes, 0, 0, 1e9, Origin::kAssumed,
              "no limit unless the part has a measured one",
              "the same of all root ports of a socket, writes; 0: no limit"},
    ParamSpec{"cpu.p2p_reads", Unit::kBytes, 0, 0, 1e9, Origin::kAssumed,
              "no limit unless the part has a measured one",
              "the same of all root ports of a socket, reads; 0: no limit"},
    ParamSpec{"cpu.strict_write_time", Unit::kNanoseconds, 0, 0, 1000, Origin::kAssumed,
              "strict writes to memory keep up unless the part says otherwise",
              "time between the commits of two 64 B lines that a NIC writes to memory without "
              "relaxed ordering, at one root port; 0: they overlap"},
    ParamSpec{"cpu.strict_peer_write_time", Unit::kNanoseconds, 0, 0, 1000, Origin::kAssumed,
              "strict writes to peers keep up unless the part says otherwise",
              "the same for writes to a peer through the root complex"},
    ParamSpec{"cpu.acs", Unit::kFlags, acs::kUpstreamForwarding, 0, kAcsAll, Origin::kAssumed,
              "root ports turn around what a switch redirects; read it with lspci -vv (ACSCtl)",
              "ACS control bits of its root ports", kAcsWords},
    ParamSpec{"cpu.mps", Unit::kBytes, 256, 128, 4096, Origin::kAssumed,
              "firmware sets 256 B on most servers, what GPUs and root ports have in common; read "
              "it with lspci -vv (DevCtl)",
              "Max_Payload_Size as set on its root ports; a route has the smallest of its devices",
              "", kPcieSizes},
};
static_assert(every_param_is_sourced(kRootComplexParams));

/// Data of a CPU's store to a device, or of one commit of a write to memory.
inline constexpr double kCacheLine = 64;

/// Completions of memory end on its multiples. PCIe Base 2.3.1.1: a root complex may have 64 B.
inline constexpr std::int64_t kRootCompletionBoundary = 64;

/// What strictly ordered writes reach: a root port commits one 64 B line after another, each `each`
/// after the one before. nullopt if they overlap (`each` is 0).
inline std::optional<Bandwidth> strict_write_rate(Duration each) {
  if (each == Duration{}) return std::nullopt;
  return Bandwidth::bytes_per_s(kCacheLine / each.as_s());
}

}  // namespace weft
