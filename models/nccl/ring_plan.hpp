#pragma once

#include "models/nccl/protocol.hpp"
#include "models/params/device_params.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// How data crosses between nodes.
enum class MemoryPath { kGdr, kHostStaged };
/// "gdr", "host-staged".
std::string_view memory_path_name(MemoryPath path);
/// Throws InputError with the known names.
MemoryPath parse_memory_path(std::string_view text);

/// Channels of a collective of `bytes`: nccl.channels (or the default for the fabric), fewer while
/// a thread would have less than the protocol's `bytes_per_thread` (NCCL src/enqueue.cc).
std::uint32_t channel_count(DeviceParams& devices, const Protocol& protocol, Bytes bytes);

/// Ring all-reduce of `bytes` over every GPU of the fabric as NCCL runs it: per channel and loop
/// each rank sends n-1 chunks that it has reduced (reduce-scatter) and n-1 finished ones
/// (all-gather), 2(n-1) steps in all (Patarasuk and Yuan, JPDC 69(2), 2009), chunks cut into
/// slices, FIFOs of a few slices between neighbours. Hops: NVLink if there is, else PCIe peer
/// writes up to PXB, else through host memory; between nodes over the NICs of the ring by `path`.
/// Throws InputError if two neighbours of a ring cannot reach each other.
Plan ring_all_reduce(DeviceParams& devices, Bytes bytes, MemoryPath path);

}  // namespace weft
