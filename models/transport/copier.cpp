#include "models/transport/copier.hpp"

#include <algorithm>

#include "sim/base/error.hpp"

namespace weft {
namespace {

// What an event or an engine's DMA is for; the rest is the number of the engine.
enum What : std::uint64_t { kBegin, kData, kFlush, kAnswered };
constexpr std::uint64_t kWhatBits = 2;
constexpr Bytes kFlushed{4};

std::uint64_t code(What what, std::size_t engine) {
  return std::uint64_t{engine} << kWhatBits | what;
}
What what_of(std::uint64_t code) { return static_cast<What>(code & ((1U << kWhatBits) - 1)); }
std::size_t engine_of(std::uint64_t code) { return code >> kWhatBits; }

}  // namespace

std::size_t Copier::engine(const Leg& leg) {
  const DeviceId memory = leg.kind == Leg::Kind::kRead ? leg.source : leg.sink;
  const auto [at, is_new] = engine_of_.try_emplace({memory, leg.kind}, engines_.size());
  if (is_new) {
    engines_.push_back(leg.medium == Leg::Medium::kNvlink ? over_nvlink(leg) : over_pcie(leg));
  }
  return at->second;
}

Copier::Engine Copier::over_pcie(const Leg& leg) {
  const DeviceModel& m = host_.machine().model(gpu_);
  const bool is_read = leg.kind == Leg::Kind::kRead;
  const DeviceId memory = is_read ? leg.source : leg.sink;
  return {.dma = &host_.add_engine(host_.copy_engine(gpu_, memory)),
          .routes = host_.routes(gpu_, memory, is_read),
          .flush = host_.routes(gpu_, memory, true),
          .memory = PacketHost::memory_at(memory),
          .start = m.copies->start + (is_read ? Duration{} : m.blocks->load_latency),
          .is_read = is_read};
}

/// The source sends, whoever asked for it.
Copier::Engine Copier::over_nvlink(const Leg& leg) {
  const DeviceModel& m = host_.machine().model(gpu_);
  const bool is_read = leg.kind == Leg::Kind::kRead;
  const Duration latency = m.nvlink->latency;
  return {.dma = &host_.add_engine(host_.nvlink_engine(leg.source)),
          .routes = host_.nvlink_routes(leg.source, leg.sink),
          .memory = PacketHost::memory_at(leg.sink),
          .start = m.copies->start + (is_read ? latency : m.blocks->load_latency),
          .is_read = false,
          .last_answer = is_read ? latency * 2 : latency};
}

void Copier::copy(std::size_t engine, const Copy& copy) {
  Fifo<Copy>& copies = engines_[engine].copies;
  copies.push(copy);
  if (copies.size() == 1) begin(engine);
}

void Copier::begin(std::size_t engine) {
  host_.network().events().schedule_after(engines_[engine].start, Phase::kCompute, *this,
                                          code(kBegin, engine));
}

void Copier::on_event(std::uint64_t what) {
  const Engine& engine = engines_[engine_of(what)];
  if (what_of(what) == kAnswered) return end(engine_of(what));
  engine.dma->submit({.routes = engine.routes,
                      .is_read = engine.is_read,
                      .address = engine.memory + engine.copies.front().offset,
                      .bytes = engine.copies.front().bytes,
                      .tag = code(kData, engine_of(what)),
                      .client = this});
}

void Copier::flush(std::size_t engine) {
  flushes_.push(engine);
  if (flushes_.size() == 1) offer_flush();
}

void Copier::offer_flush() {
  const Engine& engine = engines_[flushes_.front()];
  engine.dma->submit({.routes = engine.flush,
                      .is_read = true,
                      .address = engine.memory + engine.copies.front().offset,
                      .bytes = kFlushed,
                      .tag = code(kFlush, flushes_.front()),
                      .client = this});
}

void Copier::on_dma_sent(std::uint64_t what) {
  if (engines_[engine_of(what)].last_answer == Duration{}) flush(engine_of(what));
}

void Copier::on_dma_done(std::uint64_t what) {
  const std::size_t index = engine_of(what);
  if (what_of(what) == kFlush) {
    flushes_.pop();
    if (!flushes_.empty()) offer_flush();
    end(index);
  } else if (const Engine& engine = engines_[index]; engine.last_answer > Duration{}) {
    host_.network().events().schedule_after(engine.last_answer, Phase::kCompute, *this,
                                            code(kAnswered, index));
  } else if (engine.is_read) {
    flush(index);
  }
  // Of data that were written over PCIe the flush tells.
}

void Copier::on_dma_timeout(std::uint64_t /*what*/) {
  throw InputError("a copy engine's read was never completed: a root complex dropped it");
}

void Copier::end(std::size_t engine) {
  const Copy done = engines_[engine].copies.pop();
  if (!engines_[engine].copies.empty()) begin(engine);
  done.client->on_copied(done.tag);
}

}  // namespace weft
