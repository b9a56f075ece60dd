#include "models/nic/send_stream.hpp"

#include <algorithm>
#include <utility>

#include "models/nic/receive_stream.hpp"

namespace weft {

void SendBuffer::fill() {
  if (std::exchange(is_filling_, true)) return;  // what it does may come back here
  while (!turns_.empty()) {
    const SendStream::Fetched fetched = turns_.front()->fetch();
    if (fetched == SendStream::Fetched::kNoRoom) break;
    SendStream& stream = *turns_.pop();
    if (fetched == SendStream::Fetched::kWaits) continue;  // its turn comes with the translation
    if (stream.wants_turn()) turns_.push(&stream);
  }
  is_filling_ = false;
}

void SendStream::send(std::uint32_t slot, bool is_request) {
  if (has_failed_) return;
  const RdmaRequest& request = network_.requests[slot].request;
  const Bytes bytes = is_request ? Bytes{0} : request.bytes;
  network_.pairs.announce(pair_, bytes, WorkRequests::tag_of(slot, is_request));
  receiver_.expect(slot);
  messages_.push({slot, is_request});
  leaving_.push(
      {bytes.count(), request.tag, request.op == RdmaOp::kRead ? nullptr : request.client});
  if (!std::exchange(is_in_turn_, true)) nic_.buffer.add_turn(*this);
  nic_.buffer.fill();
}

SendStream::Fetched SendStream::fetch() {
  if (messages_.empty()) return Fetched::kYes;  // it has failed
  const Message item = messages_.front();
  const RdmaRequest& request = network_.requests[item.slot].request;
  const std::int64_t left = item.is_request ? 0 : request.bytes.count() - fetched_;
  const std::int64_t payload = std::min(left, network_.mtu);
  if (payload > 0 && !nic_.buffer.has_room(payload)) return Fetched::kNoRoom;
  RdmaBuffer from = carries_ == Carries::kAnswers ? request.remote : request.local;
  from.address += static_cast<std::uint64_t>(fetched_);
  const bool is_read = payload > 0 && !request.is_inline;
  if (is_read && !has_page_ && !nic_.icm.has_page(from, *this)) return Fetched::kWaits;
  has_page_ = false;
  nic_.buffer.take(payload);
  buffered_ += payload;
  const std::uint32_t number = asked_++;
  is_here_.push_back(false);
  fetched_ += payload;
  if (payload == left) {
    messages_.pop();
    fetched_ = 0;
  }
  if (is_read) {
    submit(*nic_.host.data, true, from, payload, number);
  } else {
    provide_later(number);
  }
  return Fetched::kYes;
}

/// The translation has come: it is this stream's turn.
void SendStream::on_icm() {
  has_page_ = true;
  nic_.buffer.add_turn(*this);
  nic_.buffer.fill();
}

void SendStream::provide_later(std::uint64_t number) {
  network_.events().schedule_at(network_.now() + nic_.settings.latency, Phase::kDeliver, *this,
                                number);
}

/// Payload may come out of order; packets go in order.
void SendStream::provide(std::uint32_t number) {
  if (has_failed_) return;
  is_here_[number - first_] = true;
  while (!is_here_.empty() && is_here_.front()) {
    is_here_.pop_front();
    ++first_;
    network_.pairs.provide(pair_);
  }
}

void SendStream::on_sent(Bytes payload) {
  if (has_failed_) return;  // what it had was given back
  nic_.buffer.give_back(payload.count());
  buffered_ -= payload.count();
  Leaving& leaving = leaving_.at(0);
  leaving.left -= payload.count();
  const Leaving done = leaving.left > 0 ? Leaving{} : leaving_.pop();
  nic_.buffer.fill();
  if (done.client != nullptr) done.client->on_sent(done.tag);
}

void SendStream::fail() {
  has_failed_ = true;
  messages_ = {};
  leaving_ = {};
  nic_.buffer.give_back(std::exchange(buffered_, 0));
  nic_.buffer.fill();
}

}  // namespace weft
