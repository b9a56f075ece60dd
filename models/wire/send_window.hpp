#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/base/units.hpp"
#include "sim/engine/fifo.hpp"

namespace weft {

/// The messages of one requester and the numbers of their packets: which to send next, which are
/// acknowledged, which to send again.
///
///     acknowledged <= next <= provided <= end
///
/// Packets below `acknowledged` are done, those below `next` were sent (or will be again), those
/// below `provided` have their payload.
class SendWindow {
 public:
  struct Message {
    std::uint32_t first;    ///< number of its first packet
    std::uint32_t packets;  ///< at least one
    std::int64_t bytes;
    std::uint64_t tag;
  };
  /// A packet to send.
  struct Piece {
    std::uint32_t number;
    std::uint32_t place;  ///< among its message's packets
    std::int64_t payload;
    std::uint64_t tag;
    bool is_last;
    bool is_repeated;
  };

  /// One more message, cut into packets of at most `mtu`. Throws std::logic_error beyond 2^32
  /// packets.
  const Message& append(Bytes bytes, std::uint64_t tag, std::uint32_t mtu);
  void provide() { ++provided_; }
  void provide_all() { provided_ = end_; }

  /// Whether there is a packet to send while at most `most` are unacknowledged; 0: any number.
  bool has_next(std::uint32_t most) {
    if (has_repeat()) return true;
    if (next_ >= provided_) return false;
    return most == 0 || next_ - acknowledged_ < most;
  }
  /// Takes the packet that is to be sent next. Precondition: has_next.
  Piece take_next(std::uint32_t mtu);

  std::uint32_t acknowledged() const { return acknowledged_; }
  std::uint32_t next() const { return next_; }
  /// Whether nothing that was ever sent is unacknowledged.
  bool is_all_acknowledged() const { return acknowledged_ == furthest_; }
  /// The receiver has all packets below `number`. Whether that was not known.
  bool acknowledge(std::uint32_t number);
  /// Takes the oldest message if all its packets are acknowledged.
  std::optional<Message> take_done();

  /// Sends on from that packet.
  void go_back(std::uint32_t number);
  /// Sends that packet alone again.
  void repeat(std::uint32_t number) { repeats_.push(number); }
  /// Sends nothing any more.
  void stop();
  /// Messages that are not acknowledged.
  std::size_t outstanding() const { return messages_.size(); }

 private:
  /// Whether a packet is to be sent again by itself.
  bool has_repeat() {
    while (!repeats_.empty() && repeats_.front() < acknowledged_) repeats_.pop();
    return !repeats_.empty();
  }

  std::uint32_t acknowledged_{0};
  std::uint32_t next_{0};
  std::uint32_t provided_{0};
  std::uint32_t end_{0};
  std::uint32_t furthest_{0};  ///< the highest number ever sent, and one
  std::size_t sending_{0};     ///< the message of packet `next`, counted from the oldest
  Fifo<Message> messages_;     ///< not acknowledged
  Fifo<std::uint32_t> repeats_;
};

/// Which of the messages a packet is of: the last that begins at or before it.
template <class M>
std::size_t message_of(const Fifo<M>& messages, std::uint32_t number) {
  std::size_t low = 0;
  for (std::size_t high = messages.size(); high - low > 1;) {
    const std::size_t middle = low + (high - low) / 2;
    (messages.at(middle).first <= number ? low : high) = middle;
  }
  return low;
}

}  // namespace weft
