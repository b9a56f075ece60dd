#include "models/nccl/execute/protocol.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "models/gpu/sm_copy.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

/// Steps of a ring's chunk and of its slices. Each rank of a ring sends a chunk before it takes
/// one, and hands on a slice only when there is room for it: the FIFO must hold a slice more.
struct RingSteps {
  std::int64_t chunk;
  std::int64_t slice;
};

RingSteps ring_steps(const Params& params, std::int64_t steps) {
  const RingSteps out{std::llround(params.number("nccl.chunk_steps")),
                      std::llround(params.number("nccl.slice_steps"))};
  if (out.chunk % out.slice != 0) {
    throw InputError(fmt::format("nccl.chunk_steps={}: must be a multiple of nccl.slice_steps={}",
                                 out.chunk, out.slice));
  }
  if (out.chunk + out.slice > steps) {
    throw InputError(fmt::format(
        "nccl.chunk_steps={} and nccl.slice_steps={} are together more than nccl.steps={}: the "
        "ranks of a ring would wait for each other for ever",
        out.chunk, out.slice, steps));
  }
  return out;
}

}  // namespace

Protocol make_protocol(const Params& params, std::string_view name, KernelShape shape,
                       std::uint32_t ranks) {
  const bool tree = shape == KernelShape::kTree;
  const auto steps = std::llround(params.number("nccl.steps"));
  const auto slots = static_cast<std::uint32_t>(steps);
  if (name == "LL") {
    return {.name = "LL",
            .flags = Leg::Flags::kEachWord,
            .chunk = Bytes{params.bytes("nccl.ll_buffer_size").count() / steps / 2},
            .slices = 1,
            .min_slice = Bytes{1},
            .slots = slots,
            .threads = 512,  // device.h: NCCL_LL_MAX_NTHREADS
            .trip = trip_of_thread(Leg::Flags::kEachWord) * 512,
            .launch = params.duration("nccl.launch_ll"),
            .work = params.duration("nccl.work_ll"),
            .sync = params.duration("nccl.sync_ll"),
            .bytes_per_thread = tree ? 8 : 8LL * ranks};
  }
  if (name == "LL128") {
    return {.name = "LL128",
            .flags = Leg::Flags::kEachLine,
            .chunk = Bytes{params.bytes("nccl.ll128_buffer_size").count() / steps / 16 * 15},
            .slices = 1,
            .min_slice = Bytes{1},
            .slots = slots,
            .threads = 640,  // device.h: NCCL_LL128_MAX_NTHREADS
            .trip = trip_of_thread(Leg::Flags::kEachLine) * 640,
            .launch = params.duration("nccl.launch_ll128"),
            .work = params.duration("nccl.work_ll128"),
            .sync = params.duration("nccl.sync_ll128"),
            .bytes_per_thread = 8};
  }
  if (name != "Simple") throw std::logic_error("make_protocol: no protocol " + std::string(name));
  const RingSteps of_shape =
      shape == KernelShape::kRing ? ring_steps(params, steps) : RingSteps{1, 1};
  const std::int64_t step = params.bytes("nccl.buffer_size").count() / steps;
  return {
      .name = "Simple",
      .chunk = Bytes{step * of_shape.chunk},
      .slices = of_shape.chunk / of_shape.slice,
      .min_slice = Bytes{step * of_shape.slice / 32},  // prims_simple.h: sliceSize is no smaller
      .slots = static_cast<std::uint32_t>(steps / of_shape.slice),
      .threads = 512,  // device.h: NCCL_SIMPLE_MAX_NTHREADS
      .trip = Bytes{0},
      .launch = params.duration("nccl.launch_simple"),
      .work = params.duration("nccl.work_simple"),
      .sync = params.duration("nccl.sync_simple"),
      .bytes_per_thread = 64};
}

Protocol Protocol::of_block(const Params& params, std::uint32_t block) const {
  if (block >= threads) return *this;
  Protocol out = of(block);
  out.threads = block;
  if (flags == Leg::Flags::kNone) {
    const std::int64_t missing = (threads - block) / kWarp;
    const auto less = [&](Duration all, const char* of_a_warp) {
      return std::max(Duration{}, all - params.duration(of_a_warp) * missing);
    };
    out.launch = less(launch, "nccl.warp_launch");
    out.work = less(work, "nccl.warp_work");
  }
  return out;
}

Protocol make_p2p_protocol(const Params& params, Bytes bytes, std::uint32_t channels, Bytes chunk,
                           bool network) {
  if (!network && bytes <= params.bytes("nccl.p2p_ll_threshold") * channels) {
    return make_protocol(params, "LL", KernelShape::kChain, 1);
  }
  Protocol protocol = make_protocol(params, "Simple", KernelShape::kChain, 1);
  protocol.chunk = chunk;
  return protocol;
}

std::string_view choose_protocol(const Params& params, Bytes bytes, bool through_host_memory) {
  const std::string_view asked = params.choice("nccl.proto");
  if (asked != "auto") return asked;
  if (bytes <= params.bytes("nccl.ll_max")) return "LL";
  if (bytes <= params.bytes("nccl.ll128_max") && !through_host_memory) return "LL128";
  return "Simple";
}

}  // namespace weft
