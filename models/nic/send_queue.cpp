#include "models/nic/send_queue.hpp"

#include <algorithm>

#include "models/nic/send_stream.hpp"

namespace weft {
namespace {

constexpr unsigned kSendQueueEventBits =
    2;  // of an event's number; the others are the work request's

}  // namespace

void SendQueue::schedule(Time at, Event event, std::uint32_t slot) {
  network_.events().schedule_at(
      at, Phase::kDeliver, *this,
      std::uint64_t{slot} << kSendQueueEventBits | static_cast<unsigned>(event));
}

void SendQueue::on_event(std::uint64_t what) {
  const auto slot = static_cast<std::uint32_t>(what >> kSendQueueEventBits);
  switch (static_cast<Event>(what & ((1U << kSendQueueEventBits) - 1))) {
    case Event::kDoorbell:
      ring(slot);
      return;
    case Event::kBegin:
      serve(slot);
      return;
    case Event::kServed:
      served(slot);
      return;
  }
}

void SendQueue::post(std::span<const RdmaRequest> requests) {
  Time let_through = network_.now();
  if (SerialServer* doorbells = nic_.host.doorbells; doorbells != nullptr) {
    let_through = doorbells->begin(let_through);
    doorbells->pass(let_through, nic_.settings.doorbell_gap);
  }
  schedule(let_through + nic_.settings.doorbell, Event::kDoorbell, enqueue(requests));
}

/// Gives the first; the others follow it.
std::uint32_t SendQueue::enqueue(std::span<const RdmaRequest> requests) {
  std::uint32_t first = WorkRequest::kNone;
  std::uint32_t last = WorkRequest::kNone;
  for (const RdmaRequest& request : requests) {
    const std::uint32_t slot = network_.requests.add(id_, request);
    (first == WorkRequest::kNone ? first : network_.requests[last].next) = slot;
    last = slot;
  }
  return first;
}

/// A doorbell is at the NIC: the elements are with it, or are read.
void SendQueue::ring(std::uint32_t first) {
  const WorkRequests& requests = network_.requests;
  if (nic_.settings.blueflame && requests[first].next == WorkRequest::kNone && !places_) {
    begin(first);
    return;
  }
  std::int64_t elements = 0;
  for (std::uint32_t i = first; i != WorkRequest::kNone; i = requests[i].next) ++elements;
  submit(*nic_.host.queues, true, places_ ? places_->wqes : nic_.host.wqes,
         elements * nic_.settings.wqe.count(), first);
}

/// Elements that came together are begun one after another.
void SendQueue::take(std::uint32_t first) {
  for (std::uint32_t slot = first; slot != WorkRequest::kNone;) {
    const std::uint32_t next = network_.requests[slot].next;
    begin(slot);
    slot = next;
  }
}

void SendQueue::begin(std::uint32_t slot) {
  const Time at = std::max(next_begin_, network_.now());
  next_begin_ = at + nic_.settings.qp_wqe_time;
  if (at > network_.now()) {
    schedule(at, Event::kBegin, slot);
  } else {
    serve(slot);
  }
}

void SendQueue::serve(std::uint32_t slot) {
  schedule(nic_.host.elements->pass(network_.now(), nic_.settings.wqe_time), Event::kServed, slot);
}

void SendQueue::served(std::uint32_t slot) {
  served_.push(slot);
  if (served_.size() == 1) work();  // else the first one waits
}

/// Elements in order, as far as the context is there.
void SendQueue::work() {
  while (!served_.empty()) {
    if (!nic_.icm.has_context(id_, *this)) return;
    start(served_.pop());
  }
}

void SendQueue::start(std::uint32_t slot) {
  if (has_failed_) {
    give_up(slot, RdmaStatus::kFlushed);
    return;
  }
  network_.requests[slot].is_begun = true;
  if (network_.requests[slot].request.op != RdmaOp::kRead) {
    stream_.send(slot, false);
  } else if (reads_ == nic_.settings.max_reads || !waiting_reads_.empty()) {
    if (waiting_reads_.empty()) waits_since_ = network_.now();
    waiting_reads_.push(slot);
  } else {
    request_read(slot);
  }
}

void SendQueue::request_read(std::uint32_t slot) {
  ++reads_;
  stream_.send(slot, true);
}

void SendQueue::acknowledged(std::uint32_t slot) {
  network_.requests[slot].has_ended = true;
  if (network_.requests[slot].request.is_signalled) {
    complete(slot, Completions::Kind::kRequest);
  } else {
    network_.requests.close(slot);
  }
}

void SendQueue::have_read(std::uint32_t slot) {
  network_.requests[slot].has_ended = true;
  if (network_.requests[slot].request.is_signalled) complete(slot, Completions::Kind::kRequest);
  --reads_;
  if (waiting_reads_.empty()) return;
  request_read(waiting_reads_.pop());
  if (waiting_reads_.empty()) waited_ += network_.now() - waits_since_;
}

void SendQueue::complete(std::uint32_t slot, Completions::Kind kind) {
  nic_.completions.write(slot, kind, places_ ? places_->cqes : nic_.host.cqes);
}

void SendQueue::fail(RdmaStatus status) {
  has_failed_ = true;
  for (const std::uint32_t slot : network_.requests.under_way(id_)) {
    give_up(slot, status);
    status = RdmaStatus::kFlushed;
  }
}

/// Its number is not used again, as what is under way may still name it.
void SendQueue::give_up(std::uint32_t slot, RdmaStatus status) {
  network_.requests[slot].status = status;
  complete(slot, Completions::Kind::kError);
}

}  // namespace weft
