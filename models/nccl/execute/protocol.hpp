#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "sim/base/params.hpp"
#include "sim/plan/walk.hpp"

namespace weft {

/// Where the times of a kernel are from.
inline constexpr const char* kKernelFit =
    "tests/data/h200/blocks.csv: H200, NCCL 2.28.9, fitted together with gpu.sm_* on 496 rows of "
    "CUDA graphs, 2 and 4 GPUs, 1 to 16 channels";

/// Where the times of a warp are from.
inline constexpr const char* kWarpSource =
    "H200, NCCL 2.28.9: ring all-reduce, Simple, 16 KiB on 2 GPUs with NCCL_NTHREADS=64 and 512, "
    "18.0 and 20.4 us in CUDA graphs; 4 KiB on 4 GPUs, 4 us less than with all threads";

/// Parameters of NCCL's kernels, buffers and proxy; the page is models/nccl/README.md.
/// Version: NCCL 2.28.9 unless the source says otherwise.
inline constexpr std::array kNcclParams{
    ParamSpec{
        "nccl.decisions", Unit::kChoice, 0, 0, 1, Origin::kAssumed,
        "nccl: what NCCL 2.28.9 decides on this machine; simple: first rules for rings, trees "
        "and protocols, for machines that NCCL does not know",
        "who chooses rings, trees, channels, algorithm and protocol", "nccl simple"},
    ParamSpec{
        "nccl.algo", Unit::kChoice, 0, 0, 5, Origin::kAssumed,
        "auto: NCCL's choice by size (simple: Ring); Tree and NVLSTree run allreduce only, PAT "
        "allgather and reducescatter with one GPU a node",
        "algorithm of a collective", "auto Ring Tree NVLS NVLSTree PAT"},
    ParamSpec{"nccl.proto", Unit::kChoice, 0, 0, 3, Origin::kAssumed,
              "auto: NCCL's choice by size (simple: see nccl.ll_max and nccl.ll128_max)",
              "protocol", "auto Simple LL LL128"},
    ParamSpec{"nccl.ll_max", Unit::kBytes, 256.0 * 1024, 0, 1e15, Origin::kMeasured,
              "H200, NCCL 2.28.9, case pix.2x2.gdr1 of data/h200: LL up to 256 KiB",
              "largest all-reduce that proto=auto runs with LL"},
    ParamSpec{"nccl.ll128_max", Unit::kBytes, 16.0 * 1024 * 1024, 0, 1e15, Origin::kMeasured,
              "H200, NCCL 2.28.9, case pix.2x2.gdr1 of data/h200: LL128 from 1 to 16 MiB",
              "largest all-reduce that proto=auto runs with LL128"},
    ParamSpec{"nccl.channels", Unit::kCount, 0, 0, 64, Origin::kAssumed,
              "0: NCCL's choice (simple: nccl.channels_per_nic for each NIC of a node, "
              "nccl.local_channels inside one node)",
              "channels of a large collective"},
    ParamSpec{"nccl.channels_per_nic", Unit::kCount, 2, 1, 32, Origin::kMeasured,
              "H200, NCCL 2.28.9, data/h200: 2 NICs a node make 4 channels in the search, 8 after "
              "connection; 8 x 400 Gb/s make 16 (NCCL logs)",
              "channels for each NIC of a node"},
    ParamSpec{"nccl.local_channels", Unit::kCount, 16, 1, 64, Origin::kAssumed,
              "16 on 8 GPUs with NVSwitch (NCCL logs of HGX H100)",
              "channels of a collective inside one node"},
    ParamSpec{"nccl.buffer_size", Unit::kBytes, 4.0 * 1024 * 1024, 65'536, 1e9, Origin::kPublished,
              "NCCL src/include/comm.h: NCCL_BUFFSIZE 4 MiB", "FIFO of one Simple connection"},
    ParamSpec{
        "nccl.ll_buffer_size", Unit::kBytes, 524'288, 8192, 1e9, Origin::kPublished,
        "NCCL src/include/device.h: 8 lines of 16 B for each of 512 threads, NCCL_STEPS of them",
        "FIFO of one LL connection, half of it flags"},
    ParamSpec{"nccl.ll128_buffer_size", Unit::kBytes, 4'915'200, 8192, 1e9, Origin::kPublished,
              "NCCL src/include/device.h: 120 elements of 8 B for each of 640 threads, NCCL_STEPS "
              "of them",
              "FIFO of one LL128 connection, a sixteenth of it flags"},
    ParamSpec{"nccl.steps", Unit::kCount, 8, 2, 64, Origin::kPublished,
              "NCCL src/include/device.h: NCCL_STEPS 8",
              "steps that a connection's FIFO is cut into"},
    ParamSpec{"nccl.chunk_steps", Unit::kCount, 4, 1, 8, Origin::kPublished,
              "NCCL src/include/collectives.h: ALLREDUCE_CHUNKSTEPS = NCCL_STEPS/2",
              "steps of one chunk, Simple ring"},
    ParamSpec{"nccl.slice_steps", Unit::kCount, 2, 1, 8, Origin::kPublished,
              "NCCL src/include/collectives.h: ALLREDUCE_SLICESTEPS = NCCL_STEPS/4",
              "steps of one slice, Simple ring"},
    ParamSpec{"nccl.launch_ll", Unit::kNanoseconds, 4400, 0, 1e6, Origin::kFitted, kKernelFit,
              "from one kernel's begin to the next one's, but for what moves data, LL"},
    ParamSpec{"nccl.launch_ll128", Unit::kNanoseconds, 8600, 0, 1e6, Origin::kFitted, kKernelFit,
              "from one kernel's begin to the next one's, but for what moves data, LL128"},
    ParamSpec{"nccl.launch_simple", Unit::kNanoseconds, 8700, 0, 1e6, Origin::kFitted, kKernelFit,
              "from one kernel's begin to the next one's, but for what moves data, Simple"},
    ParamSpec{"nccl.work_ll", Unit::kNanoseconds, 0, 0, 1e6, Origin::kFitted, kKernelFit,
              "what a block does for each slice before its bytes, LL"},
    ParamSpec{"nccl.work_ll128", Unit::kNanoseconds, 1440, 0, 1e6, Origin::kFitted, kKernelFit,
              "what a block does for each slice before its bytes, LL128: barriers"},
    ParamSpec{"nccl.work_simple", Unit::kNanoseconds, 1600, 0, 1e6, Origin::kFitted, kKernelFit,
              "what a block does for each slice before its bytes, Simple: polls, barriers"},
    ParamSpec{"nccl.sync_ll", Unit::kNanoseconds, 0, 0, 1e6, Origin::kFitted, kKernelFit,
              "from a slice's arrival until the other block sees it, LL: flags come with the data"},
    ParamSpec{"nccl.sync_ll128", Unit::kNanoseconds, 170, 0, 1e6, Origin::kFitted, kKernelFit,
              "from a slice's arrival until the other block sees it, LL128"},
    ParamSpec{"nccl.sync_simple", Unit::kNanoseconds, 1180, 0, 1e6, Origin::kFitted, kKernelFit,
              "from a slice's arrival until the other block sees it, Simple: fence, flag, poll"},
    ParamSpec{"nccl.warp_launch", Unit::kNanoseconds, 85, 0, 1e6, Origin::kMeasured, kWarpSource,
              "of nccl.launch_simple, each warp of a ring's block of 17"},
    ParamSpec{"nccl.warp_work", Unit::kNanoseconds, 28, 0, 1e6, Origin::kMeasured, kWarpSource,
              "of nccl.work_simple, likewise: barriers"},
    ParamSpec{"nccl.p2p_ll_threshold", Unit::kBytes, 16'384, 0, 1e9, Origin::kPublished,
              "NCCL src/enqueue.cc: NCCL_P2P_LL_THRESHOLD",
              "a send of at most so many bytes on each of its channels goes by LL"},
    ParamSpec{"nccl.p2p_net_chunk", Unit::kBytes, 131'072, 1, 1e9, Origin::kPublished,
              "NCCL src/init.cc: NCCL_P2P_NET_CHUNKSIZE 128 KiB",
              "chunk of a send where there are several nodes"},
    ParamSpec{"nccl.p2p_nvl_chunk", Unit::kBytes, 524'288, 1, 1e9, Origin::kPublished,
              "NCCL src/init.cc: NCCL_P2P_NVL_CHUNKSIZE 512 KiB",
              "chunk of a send inside one node whose GPUs are all joined by NVLink"},
    ParamSpec{"nccl.p2p_pci_chunk", Unit::kBytes, 131'072, 1, 1e9, Origin::kPublished,
              "NCCL src/init.cc: NCCL_P2P_PCI_CHUNKSIZE 128 KiB",
              "chunk of a send inside one node, else"},
    ParamSpec{"nccl.p2p_channels_per_peer", Unit::kCount, 0, 0, 64, Origin::kAssumed,
              "0: 2 between nodes and over PCIe, 2 for each NVLink of a pair inside one node, "
              "rounded up to a power of two (NCCL 2.28, src/graph/paths.cc)",
              "most channels that the send to one peer is split over"},
    ParamSpec{"nccl.nvls_chunk", Unit::kBytes, 131'072, 16'384, 1e9, Origin::kPublished,
              "NCCL src/transport/nvls.cc: NCCL_NVLS_CHUNKSIZE 128 KiB",
              "most that a head of NVLS takes of a channel at once; NVLSTree on 4 nodes or more: "
              "64 KiB"},
    ParamSpec{"nccl.proxy_poll", Unit::kNanoseconds, 300, 0, 1e6, Origin::kAssumed,
              "a verbs post takes 75 ns, its doorbell 40 (UCX), and NCCL's own work as much again",
              "the proxy thread's work for each send, completion, flush or receive"},
    ParamSpec{"nccl.proxy_look", Unit::kNanoseconds, 50, 0, 1e6, Origin::kAssumed,
              "no measurement found: some loads, and an ibv_poll_cq that finds nothing",
              "the proxy thread's look at each of its operations, in every round (src/proxy.cc, "
              "progressOps)"},
};
static_assert(every_param_is_sourced(kNcclParams));

/// How a kernel goes through its buffer; decides the chunks.
enum class KernelShape : std::uint8_t {
  kRing,   ///< all-reduce, all-gather, reduce-scatter: a chunk a rank and loop
  kChain,  ///< broadcast and reduce along a ring
  kTree    ///< a chunk is one slice; NVLS and PAT too
};

/// How a kernel hands data over: NCCL's three protocols.
struct Protocol {
  std::string_view name;  ///< "Simple", "LL", "LL128"
  Leg::Flags flags{Leg::Flags::kNone};
  Bytes chunk;            ///< data bytes that a rank sends before it turns to the next chunk
  std::int64_t slices;    ///< a chunk is handed over in so many slices
  Bytes min_slice;        ///< but none smaller than this
  std::uint32_t slots;    ///< slices that a connection's FIFO holds
  std::uint32_t threads;  ///< of a block at most
  /// Bytes that cross a connection and are handed over at once inside a node: what these threads
  /// take in one trip, where flags come with the data. 0: a slice.
  Bytes trip;
  Duration launch;
  Duration work;                  ///< of a block, for each slice
  Duration sync;                  ///< from a slice's arrival until the other side sees it
  std::int64_t bytes_per_thread;  ///< NCCL drops channels below this much work for a thread

  /// The same for a group of so many of the block's threads.
  Protocol of(std::uint32_t group) const {
    Protocol out = *this;
    out.trip = Bytes{trip.count() * group / threads};
    return out;
  }
  /// The same where the whole block has so many threads, those that only wait left out: Simple's
  /// barriers and launch take less.
  Protocol of_block(const Params& params, std::uint32_t block) const;

  /// Data bytes per byte that crosses a connection.
  double data_fraction() const { return weft::data_fraction(flags); }
  /// What crosses a connection for so much data.
  Bytes on_wire(Bytes data) const {
    return Bytes{std::llround(std::ceil(data.as_double() / data_fraction()))};
  }
  std::int64_t trips_of(Bytes data) const { return trips(on_wire(data)); }
  std::int64_t trips(Bytes on_wire) const {
    return trip == Bytes{0} ? 1 : std::max<std::int64_t>(1, pieces(on_wire, trip));
  }
};

/// Simple: 1/1; a step is buffer / steps; ring chunks have chunk_steps of them in slices of
/// slice_steps, all others one. LL: 8 of 16 bytes are data, step 32 KiB of data. LL128: 120 of 128,
/// step 576,000 B of data. NCCL src/include/{device,collectives}.h, src/enqueue.cc.
/// Throws InputError: chunk_steps is no multiple of slice_steps, or leaves no room for a slice.
/// Precondition: `name` is one of the three.
Protocol make_protocol(const Params& params, std::string_view name, KernelShape shape,
                       std::uint32_t ranks);

/// The protocol of a send of `bytes` over `channels` of its own: LL up to nccl.p2p_ll_threshold a
/// channel, else Simple, in chunks of `chunk` (NCCL src/enqueue.cc, addP2pToPlan). Over the network
/// Simple: sends share buffers there, which LL has none of (src/transport/net.cc).
Protocol make_p2p_protocol(const Params& params, Bytes bytes, std::uint32_t channels, Bytes chunk,
                           bool network);

/// The protocol for a collective of `bytes`: nccl.proto, or by size. LL128 needs stores of 128 B
/// to stay whole, so never through host memory.
std::string_view choose_protocol(const Params& params, Bytes bytes, bool through_host_memory);

}  // namespace weft
