#include "models/transport/nvlink_loads.hpp"

#include <algorithm>

namespace weft {
namespace {

// What an engine's DMA is; the rest is the loader.
enum What : std::uint64_t { kAsked, kAnswered };

}  // namespace

NvlinkLoads::NvlinkLoads(PacketHost& host, DeviceId gpu, DeviceId from, std::size_t loaders,
                         DmaClient& client)
    : events_{host.network().events()},
      memory_{host.gpu_memory(from)},
      latency_{host.machine().model(gpu).blocks->sm_load_latency},
      asks_{host.add_engine(host.sm_engine(gpu, true))},
      answers_{host.add_engine(host.sm_engine(from, true))},
      there_{host.nvlink_routes(gpu, from)},
      back_{host.nvlink_routes(from, gpu)},
      line_{host.machine().model(gpu).blocks->line},
      overhead_{host.machine().model(gpu).nvlink->overhead},
      loads_(loaders),
      client_{client} {}

void NvlinkLoads::load(std::size_t loader, Bytes bytes, std::uint64_t tag) {
  loads_[loader] = {bytes, tag};
  // As many bytes as the requests' flits, cut into packets of a line and its overhead.
  const Bytes flits = overhead_ * pieces(bytes, line_);
  const Bytes framing = overhead_ * pieces(flits, line_ + overhead_);
  asks_.submit({.routes = there_,
                .is_read = false,
                .address = 0,
                .bytes = std::max(Bytes{1}, flits - framing),
                .tag = std::uint64_t{loader} << 1 | kAsked,
                .client = this});
}

void NvlinkLoads::on_event(std::uint64_t loader) {
  answers_.submit({.routes = back_,
                   .is_read = false,
                   .address = 0,
                   .bytes = loads_[loader].bytes,
                   .tag = loader << 1 | kAnswered,
                   .client = this});
}

void NvlinkLoads::on_dma_done(std::uint64_t what) {
  const std::uint64_t loader = what >> 1;
  if ((what & 1) == kAnswered) return client_.on_dma_done(loads_[loader].tag);
  const Time served = memory_.use(loads_[loader].bytes);
  events_.schedule_at(std::max(served, events_.now() + latency_), Phase::kDeliver, *this, loader);
}

}  // namespace weft
