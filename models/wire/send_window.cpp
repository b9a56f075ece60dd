#include "models/wire/send_window.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace weft {

const SendWindow::Message& SendWindow::append(Bytes bytes, std::uint64_t tag, std::uint32_t mtu) {
  const std::int64_t packets = std::max<std::int64_t>(1, pieces(bytes, Bytes{mtu}));
  if (packets > std::numeric_limits<std::uint32_t>::max() - end_) {
    throw std::logic_error("QueuePairs: more than 2^32 packets on one queue pair");
  }
  const auto count = static_cast<std::uint32_t>(packets);
  messages_.push({end_, count, bytes.count(), tag});
  end_ += count;
  return messages_.at(messages_.size() - 1);
}

SendWindow::Piece SendWindow::take_next(std::uint32_t mtu) {
  const bool is_alone = has_repeat();
  const std::uint32_t number = is_alone ? repeats_.pop() : next_;
  const Message& message = messages_.at(is_alone ? message_of(messages_, number) : sending_);
  const std::uint32_t place = number - message.first;
  const bool is_last = place + 1 == message.packets;
  const Piece piece{.number = number,
                    .place = place,
                    .payload = is_last ? message.bytes - std::int64_t{place} * mtu : mtu,
                    .tag = message.tag,
                    .is_last = is_last,
                    .is_repeated = number < furthest_};
  if (!is_alone) {
    ++next_;
    furthest_ = std::max(furthest_, next_);
    if (is_last) ++sending_;
  }
  return piece;
}

bool SendWindow::acknowledge(std::uint32_t number) {
  if (number <= acknowledged_) return false;
  acknowledged_ = number;
  if (next_ < number) go_back(number);  // it had gone too far back
  return true;
}

std::optional<SendWindow::Message> SendWindow::take_done() {
  if (messages_.empty()) return std::nullopt;
  const Message& oldest = messages_.front();
  if (oldest.first + oldest.packets > acknowledged_) return std::nullopt;
  if (sending_ > 0) --sending_;
  return messages_.pop();
}

void SendWindow::go_back(std::uint32_t number) {
  next_ = number;
  sending_ = 0;
  while (sending_ < messages_.size()) {
    const Message& message = messages_.at(sending_);
    if (number < message.first + message.packets) break;
    ++sending_;
  }
}

void SendWindow::stop() {
  next_ = provided_ = end_;
  repeats_ = {};
}

}  // namespace weft
