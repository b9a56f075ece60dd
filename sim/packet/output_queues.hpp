#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/packet/packet.hpp"

namespace weft {

/// The queues of packets that wait for links: one for each virtual lane of a link and each input of
/// the link's sender. Those with packets take turns, one packet a turn.
class OutputQueues {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// The queues of one virtual lane that have packets, in order of turn.
  struct Turns {
    std::uint32_t first{kNone};
    std::uint32_t last{kNone};
  };

  void resize(std::size_t count) { queues_.resize(count); }
  void set_vl(std::size_t queue, std::uint32_t vl) { queues_[queue].vl = vl; }

  Packet* front(std::size_t queue) const { return queues_[queue].first; }
  std::uint32_t vl(std::size_t queue) const { return queues_[queue].vl; }
  /// Whose turn is next after this queue's.
  std::uint32_t after(std::uint32_t queue) const { return queues_[queue].next_turn; }
  /// Where it is, to be fetched before it is needed.
  const void* address(std::size_t queue) const { return &queues_[queue]; }

  /// A packet joins a queue; its `due_ps_` is its order among all.
  void push(Turns& turns, std::uint32_t queue, Packet& packet) {
    Queue& q = queues_[queue];
    packet.next_ = nullptr;
    packet.due_ps_ = arrivals_++;
    if (q.first != nullptr) {
      q.last->next_ = &packet;
    } else {
      q.first = &packet;
      append(turns, queue);
    }
    q.last = &packet;
  }

  /// Takes a queue's first packet; its next turn is after all others'. `before`: whose turn is
  /// before it, or kNone.
  Packet& pop(Turns& turns, std::uint32_t before, std::uint32_t queue) {
    Queue& q = queues_[queue];
    Packet& packet = *q.first;
    q.first = packet.next_;
    __builtin_prefetch(q.first);  // whose turn comes when this one is sent
    if (turns.last != queue || q.first == nullptr) {
      (before == kNone ? turns.first : queues_[before].next_turn) = q.next_turn;
      if (turns.last == queue) turns.last = before;
      if (q.first != nullptr) append(turns, queue);
    }
    return packet;
  }

 private:
  struct Queue {
    Packet* first{nullptr};
    Packet* last{nullptr};
    std::uint32_t next_turn{kNone};
    std::uint32_t vl{0};
  };

  void append(Turns& turns, std::uint32_t queue) {
    queues_[queue].next_turn = kNone;
    (turns.last == kNone ? turns.first : queues_[turns.last].next_turn) = queue;
    turns.last = queue;
  }

  std::vector<Queue> queues_;
  std::int64_t arrivals_{0};
};

}  // namespace weft
