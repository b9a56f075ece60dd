#include "models/pcie/memory.hpp"

#include <algorithm>
#include <cmath>

#include "models/pcie/dma_engine.hpp"

namespace weft {

void PcieMemory::take(Packet& tlp) {
  if (PcieDomain::kind(tlp) == TlpKind::kRead) {
    if (settings_.reads > 0 && reads_ == settings_.reads) {
      if (waiting_reads_.empty()) waits_since_ = domain_.network().now();
      waiting_reads_.push(&tlp);
      return;
    }
    ++reads_;
  }
  enter(tlp);
}

Duration PcieMemory::stalled_for_reads() const {
  return waited_ + (waiting_reads_.empty() ? Duration{} : domain_.network().now() - waits_since_);
}

void PcieMemory::enter(Packet& tlp) {
  EventQueue& events = domain_.network().events();
  if (waiting_.empty() && free_at_ <= events.now()) {
    serve(tlp);
    return;
  }
  if (waiting_.empty()) events.schedule_at(free_at_, Phase::kCompute, *this, kServe);
  waiting_.push(&tlp);
}

Time PcieMemory::use(Bytes bytes) {
  free_at_ = std::max(free_at_, domain_.network().now());
  if (!settings_.rate || bytes == Bytes{0}) return free_at_;
  const Duration takes = serialization_time(bytes, *settings_.rate);
  free_at_ = free_at_ + takes;
  busy_ += takes;
  return free_at_;
}

void PcieMemory::serve(Packet& tlp) {
  EventQueue& events = domain_.network().events();
  const bool is_write = PcieDomain::kind(tlp) == TlpKind::kWrite;
  const double weight = is_write ? settings_.write_weight : settings_.weight;
  const Bytes bytes{std::llround(tlp.sequence * weight)};
  const Duration takes =
      settings_.rate && bytes > Bytes{0} ? serialization_time(bytes, *settings_.rate) : Duration{};
  free_at_ = events.now() + takes;
  busy_ += takes;
  if (is_write) {
    PcieDomain::Transaction& write = domain_.transaction(tlp.flow);
    write.left -= tlp.sequence;
    const bool all = write.left == 0;
    const std::uint32_t transaction = tlp.flow;
    const Duration latency =
        domain_.routes(write.routes).write_latency.value_or(settings_.write_latency);
    domain_.network().release(tlp);
    if (all) write.engine->written(transaction, latency + takes);
    return;
  }
  const Answer answer{free_at_ + settings_.read_latency, tlp.flow, tlp.tag, tlp.sequence};
  if (answers_.empty()) events.schedule_at(answer.at, Phase::kCompute, *this, kAnswer);
  answers_.push(answer);
  domain_.network().release(tlp);
}

void PcieMemory::on_event(std::uint64_t what) {
  EventQueue& events = domain_.network().events();
  if (what == kServe) {
    if (free_at_ <= events.now()) serve(*waiting_.pop());
    if (!waiting_.empty()) events.schedule_at(free_at_, Phase::kCompute, *this, kServe);
    return;
  }
  answer(answers_.pop());
  if (!answers_.empty()) events.schedule_at(answers_.front().at, Phase::kCompute, *this, kAnswer);
  if (waiting_reads_.empty()) {
    --reads_;
    return;
  }
  Packet& next = *waiting_reads_.pop();
  if (waiting_reads_.empty()) waited_ += events.now() - waits_since_;
  enter(next);
}

void PcieMemory::answer(const Answer& answer) {
  const PcieRoutes& routes = domain_.routes(domain_.transaction(answer.transaction).routes);
  std::uint64_t address = answer.address;
  for (std::int64_t left = answer.bytes; left > 0;) {
    const std::int64_t bytes =
        next_completion(address, left, routes.completion_payload, routes.completion_boundary);
    Packet& tlp = domain_.make({.kind = TlpKind::kCompletion,
                                .transaction = answer.transaction,
                                .address = address,
                                .bytes = bytes,
                                .route = routes.completion});
    address += static_cast<std::uint64_t>(bytes);
    left -= bytes;
    domain_.network().send(tlp, routes.completion.first);
  }
}

}  // namespace weft
