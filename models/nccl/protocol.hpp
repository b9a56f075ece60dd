#pragma once

#include <array>
#include <string_view>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of NCCL's kernels, buffers and proxy; the page is models/nccl/README.md.
/// Version: NCCL 2.28.9 unless the source says otherwise.
inline constexpr std::array kNcclParams{
    ParamSpec{"nccl.algo", Unit::kChoice, 0, 0, 0, Origin::kAssumed, "only Ring is executed so far",
              "algorithm", "Ring"},
    ParamSpec{"nccl.proto", Unit::kChoice, 0, 0, 3, Origin::kAssumed,
              "auto: by size, see nccl.ll_max and nccl.ll128_max", "protocol",
              "auto Simple LL LL128"},
    ParamSpec{"nccl.ll_max", Unit::kBytes, 256.0 * 1024, 0, 1e15, Origin::kMeasured,
              "H200, NCCL 2.28.9, case pix.2x2.gdr1 of data/h200: LL up to 256 KiB",
              "largest all-reduce that proto=auto runs with LL"},
    ParamSpec{"nccl.ll128_max", Unit::kBytes, 16.0 * 1024 * 1024, 0, 1e15, Origin::kMeasured,
              "H200, NCCL 2.28.9, case pix.2x2.gdr1 of data/h200: LL128 from 1 to 16 MiB",
              "largest all-reduce that proto=auto runs with LL128"},
    ParamSpec{
        "nccl.channels", Unit::kCount, 0, 0, 64, Origin::kAssumed,
        "0: nccl.channels_per_nic for each NIC of a node, nccl.local_channels inside one node",
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
    ParamSpec{"nccl.steps", Unit::kCount, 8, 2, 64, Origin::kPublished,
              "NCCL src/include/device.h: NCCL_STEPS 8",
              "steps that a connection's FIFO is cut into"},
    ParamSpec{"nccl.chunk_steps", Unit::kCount, 4, 1, 8, Origin::kPublished,
              "NCCL src/include/collectives.h: ALLREDUCE_CHUNKSTEPS = NCCL_STEPS/2",
              "steps of one chunk, Simple ring"},
    ParamSpec{"nccl.slice_steps", Unit::kCount, 2, 1, 8, Origin::kPublished,
              "NCCL src/include/collectives.h: ALLREDUCE_SLICESTEPS = NCCL_STEPS/4",
              "steps of one slice, Simple ring"},
    ParamSpec{"nccl.launch_ll", Unit::kNanoseconds, 6600, 0, 1e6, Origin::kPublished,
              "NCCL src/graph/tuning.cc baseLat, Ring LL: 6.6 us", "launch of a collective, LL"},
    ParamSpec{"nccl.launch_ll128", Unit::kNanoseconds, 14'000, 0, 1e6, Origin::kPublished,
              "NCCL src/graph/tuning.cc baseLat, Ring LL128: 14 us",
              "launch of a collective, LL128"},
    ParamSpec{"nccl.launch_simple", Unit::kNanoseconds, 8400, 0, 1e6, Origin::kPublished,
              "NCCL src/graph/tuning.cc baseLat, Ring Simple: 8.4 us",
              "launch of a collective, Simple"},
    ParamSpec{"nccl.sync_ll", Unit::kNanoseconds, 100, 0, 1e6, Origin::kPublished,
              "NCCL src/graph/tuning.cc hwLat, NVLink Ring LL 0.6 us a step, less 0.5 us of NVLink",
              "the kernels' part of handing a slice over, LL: flags come with the data"},
    ParamSpec{
        "nccl.sync_ll128", Unit::kNanoseconds, 1400, 0, 1e6, Origin::kPublished,
        "NCCL src/graph/tuning.cc hwLat, NVLink Ring LL128 1.9 us a step, less 0.5 us of NVLink",
        "the kernels' part of handing a slice over, LL128"},
    ParamSpec{
        "nccl.sync_simple", Unit::kNanoseconds, 2900, 0, 1e6, Origin::kPublished,
        "NCCL src/graph/tuning.cc hwLat, NVLink Ring Simple 3.4 us a step, less 0.5 us of NVLink",
        "the kernels' part of handing a slice over, Simple: barrier, fence, flag, poll"},
    ParamSpec{"nccl.proxy_poll", Unit::kNanoseconds, 300, 0, 1e6, Origin::kAssumed,
              "half a round of the progress loop over a few connections",
              "until the proxy thread notices a flag or a completion"},
    ParamSpec{
        "nccl.net_simple_extra", Unit::kNanoseconds, 7600, 0, 1e6, Origin::kPublished,
        "NCCL src/graph/tuning.cc hwLat, NET Ring Simple 14 us a step, less what this model "
        "derives for kernels, proxies, NICs and wire (6.4 us); 10-12 us seen on 2 x 8 H100 "
        "(nccl#2409)",
        "further handshakes of a Simple slice over the network, hidden while slices pipeline"},
};
static_assert(every_param_is_sourced(kNcclParams));

/// How a kernel hands data over: NCCL's three protocols.
struct Protocol {
  std::string_view name;  ///< "Simple", "LL", "LL128"
  double data_fraction;   ///< data bytes per byte that crosses a connection
  Bytes chunk;            ///< data bytes that a rank sends before it turns to the next chunk
  std::int64_t slices;    ///< a chunk is handed over in so many slices
  Bytes min_slice;        ///< but none smaller than this
  std::uint32_t slots;    ///< slices that a connection's FIFO holds
  Duration launch;
  Duration sync;
  Duration net_extra;
  std::int64_t bytes_per_thread;  ///< NCCL drops channels below this much work for a thread
};

/// Simple: 1/1, chunk = chunk_steps x buffer / steps. LL: 8 of 16 bytes are data, step 32 KiB of
/// data. LL128: 120 of 128, step 576,000 B of data. NCCL src/include/device.h, src/enqueue.cc.
/// Precondition: `name` is one of the three.
Protocol make_protocol(Params& params, std::string_view name, std::uint32_t ranks);

/// The protocol for an all-reduce of `bytes`: nccl.proto, or by size. LL128 needs stores of 128 B
/// to stay whole, so never through host memory.
std::string_view choose_protocol(Params& params, Bytes bytes, bool through_host_memory);

}  // namespace weft
