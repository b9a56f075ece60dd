#include "models/transport/copier.hpp"

namespace weft {
namespace {

// What an engine's DMA is for.
constexpr std::uint64_t kToHost = 0;
constexpr std::uint64_t kFromHost = 1;
constexpr std::uint64_t kFlush = 2;
constexpr Bytes kFlushed{4};

}  // namespace

Copier::Copier(PacketHost& host, DeviceId gpu)
    : events_{host.network().events()},
      memory_{PacketHost::memory_at(host.machine().fabric().root_cpu(gpu))},
      engines_{{{.dma = &host.add_engine(host.copy_engine(gpu)),
                 .routes = host.routes(gpu, host.machine().fabric().root_cpu(gpu), false),
                 .start = host.machine().model(gpu).copies->start +
                          host.machine().model(gpu).blocks->load_latency},
                {.dma = &host.add_engine(host.copy_engine(gpu)),
                 .routes = host.routes(gpu, host.machine().fabric().root_cpu(gpu), true),
                 .start = host.machine().model(gpu).copies->start}}} {}

void Copier::copy(bool from_host, const Copy& copy) {
  Fifo<Copy>& copies = engines_.at(from_host).copies;
  copies.push(copy);
  if (copies.size() == 1) begin(from_host);
}

void Copier::begin(bool from_host) {
  events_.schedule_after(engines_.at(from_host).start, Phase::kCompute, *this,
                         from_host ? kFromHost : kToHost);
}

void Copier::on_event(std::uint64_t what) {
  const bool from_host = what == kFromHost;
  Engine& engine = engines_.at(from_host);
  engine.dma->submit({.routes = engine.routes,
                      .is_read = from_host,
                      .address = memory_ + engine.copies.front().offset,
                      .bytes = engine.copies.front().bytes,
                      .tag = what,
                      .client = this});
}

void Copier::flush(bool from_host) {
  flushes_.push(from_host ? kFromHost : kToHost);
  if (flushes_.size() == 1) offer_flush();
}

void Copier::offer_flush() {
  const Engine& engine = engines_.at(flushes_.front());
  engine.dma->submit({.routes = engines_.at(kFromHost).routes,
                      .is_read = true,
                      .address = memory_ + engine.copies.front().offset,
                      .bytes = kFlushed,
                      .tag = kFlush,
                      .client = this});
}

void Copier::on_dma_sent(std::uint64_t /*what*/) { flush(false); }

void Copier::on_dma_done(std::uint64_t what) {
  if (what == kToHost) return;  // its flush tells
  if (what == kFromHost) {
    flush(true);
    return;
  }
  const bool from_host = flushes_.pop() == kFromHost;
  if (!flushes_.empty()) offer_flush();
  const Copy done = engines_.at(from_host).copies.pop();
  if (!engines_.at(from_host).copies.empty()) begin(from_host);
  done.client->on_copied(done.tag);
}

}  // namespace weft
