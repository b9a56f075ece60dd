#include "models/nic/receive_stream.hpp"

#include <limits>

#include "models/nic/send_queue.hpp"
#include "models/nic/send_stream.hpp"

namespace weft {
namespace {

/// rdma-core providers/mlx5: a receive of one buffer is one data segment.
constexpr std::int64_t kReceiveElement = 16;
/// The tag of a DMA that reads such elements; others are landings.
constexpr std::uint64_t kReceiveElements = std::numeric_limits<std::uint64_t>::max();

}  // namespace

void ReceiveStream::expect(std::uint32_t slot) {
  expected_.push(slot);
  network_.requests[slot].has_come = false;
}

void ReceiveStream::post_receives(std::uint32_t count) {
  receives_ = receives_.value_or(0) + count;
  submit(*nic_.host.queues, true, nic_.host.wqes, count * kReceiveElement, kReceiveElements);
}

bool ReceiveStream::is_ready(std::uint32_t slot) {
  if (!receives_ || network_.requests[slot].request.op != RdmaOp::kSend) return true;
  if (*receives_ == 0) return false;
  --*receives_;
  return true;
}

bool ReceiveStream::keeps(const QueuePairSink::Arrival& arrival, Packet& packet) {
  const bool has_payload = arrival.payload > Bytes{0};
  passing_.push({.tag = arrival.tag,
                 .payload = arrival.payload.count(),
                 .is_last = arrival.is_last,
                 .packet = has_payload ? &packet : nullptr});
  network_.events().schedule_at(network_.now() + nic_.settings.latency, Phase::kDeliver, *this);
  return has_payload;
}

void ReceiveStream::on_event(std::uint64_t /*what*/) {
  arrived_.push(passing_.pop());
  if (arrived_.size() == 1) arrive();  // else the first one waits
}

/// Packets in order, as far as what they need is there.
void ReceiveStream::arrive() {
  while (!arrived_.empty()) {
    const Arriving& item = arrived_.front();
    if (!has_context_ && !nic_.icm.has_context(queue_.id(), *this)) return;
    has_context_ = true;
    if (item.packet != nullptr && !nic_.icm.has_page(target_of(item), *this)) return;
    has_context_ = false;
    land(arrived_.pop());
  }
}

/// Where a packet's payload goes.
RdmaBuffer ReceiveStream::target_of(const Arriving& item) const {
  const WorkRequest& work = network_.requests[WorkRequests::slot_of(item.tag)];
  const bool is_read = work.request.op == RdmaOp::kRead;
  RdmaBuffer to = is_read ? work.request.local : work.request.remote;
  to.address += static_cast<std::uint64_t>(work.arrived);
  return to;
}

void ReceiveStream::land(const Arriving& item) {
  const std::uint32_t slot = WorkRequests::slot_of(item.tag);
  WorkRequest& work = network_.requests[slot];
  if (work.status != RdmaStatus::kSuccess && !WorkRequests::is_read_request(item.tag)) {
    if (item.packet != nullptr) network_.packets.release(*item.packet);
    return;
  }
  const RdmaBuffer to = target_of(item);
  work.arrived += item.payload;
  if (item.packet != nullptr) {
    submit(*nic_.host.data, false, to, item.payload,
           landings_.add({slot, item.payload, item.packet}));
  }
  if (!item.is_last) return;
  work.has_come = true;
  // A message that overtook others, where the network lets it, takes its turn after them.
  while (!expected_.empty() && network_.requests[expected_.front()].has_come) end(expected_.pop());
}

/// All of a message has come, and of those before it.
void ReceiveStream::end(std::uint32_t slot) {
  const WorkRequest& work = network_.requests[slot];
  if (work.status != RdmaStatus::kSuccess) return;
  const RdmaOp op = work.request.op;
  if (op == RdmaOp::kRead && answers_ != nullptr) {
    answers_->send(slot, false);
    return;
  }
  const bool is_empty = work.request.bytes == Bytes{0};
  if (op == RdmaOp::kSend) {
    nic_.completions.write(slot, Completions::Kind::kReceive, nic_.host.cqes);
  }
  if (op == RdmaOp::kRead) queue_.have_read(slot);
  network_.requests.close(slot);
  if (is_empty) landed(slot, 0);
}

void ReceiveStream::on_dma_sent(std::uint64_t tag) {
  network_.packets.release(*landings_[static_cast<std::uint32_t>(tag)].packet);
}

void ReceiveStream::on_dma_done(std::uint64_t tag) {
  if (tag == kReceiveElements) return;
  const auto index = static_cast<std::uint32_t>(tag);
  const Landing landing = landings_[index];
  landings_.free(index);
  nic_.landed += Bytes{landing.bytes};
  landed(landing.slot, landing.bytes);
}

void ReceiveStream::landed(std::uint32_t slot, std::int64_t bytes) {
  WorkRequest& work = network_.requests[slot];
  if (work.status != RdmaStatus::kSuccess) return;
  work.landed += bytes;
  if (work.landed < work.request.bytes.count()) return;
  RdmaClient* client = work.request.client;
  const std::uint64_t tag = work.request.tag;
  network_.requests.close(slot);
  client->on_visible(tag);
}

}  // namespace weft
