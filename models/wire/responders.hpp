#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "models/wire/packets.hpp"
#include "models/wire/queue_pair.hpp"
#include "models/wire/send_window.hpp"
#include "sim/engine/fifo.hpp"
#include "sim/packet/network.hpp"
#include "sim/packet/source_routes.hpp"

namespace weft {

/// The halves of queue pairs that receive (IBTA: responders): which packets they take, and what
/// they answer.
///
/// In order: a responder takes the packet that it expects, names that one in a NAK after a gap, and
/// drops all until it comes. In any order (where routes are spread, or repeats are selective): it
/// takes what comes, completes messages in order and, where a gap is a loss, names each missing
/// packet once. With DCQCN it is the notification point: a CNP for a marked packet, unless one was
/// sent a moment ago.
class Responders {
 public:
  Responders(PacketNetwork& network, const WirePackets& packets, QueuePairSink& sink)
      : network_{network}, packets_{packets}, sink_{sink} {}

  /// One that answers by `route`.
  void add(const PacketRoute& route, std::uint8_t vl);
  /// A message was posted to the requester: where packets come in any order, this half must know
  /// where each message begins (on a real wire their headers say what a message is).
  void expect(QueuePairId pair, const SendWindow::Message& message);
  /// A data packet has come: it is released, or the sink keeps it.
  void take(Packet& packet);

  /// ACKs, NAKs and CNPs.
  const QueuePairCounters& counters(QueuePairId pair) const {
    return pairs_[pair.index()].counters;
  }

 private:
  static constexpr std::uint32_t kNoNumber = std::numeric_limits<std::uint32_t>::max();

  struct Responder {
    PacketRoute route;
    std::uint32_t expected{0};
    std::uint8_t vl;
    bool nak_sent{false};  ///< in order: for the packet that it expects
    std::int64_t cnp_ps{std::numeric_limits<std::int64_t>::min() / 2};  ///< the last
    QueuePairCounters counters{};
  };
  /// What a responder that takes packets in any order knows besides.
  struct AnyOrder {
    struct Message {
      std::uint32_t first;
      std::uint32_t packets;
      std::uint32_t left;  ///< still to come
      std::uint64_t tag;
      bool is_taken{false};
    };
    Fifo<Message> messages{};          ///< not delivered
    Fifo<char> come{};                 ///< of the packets from `expected` on
    std::uint32_t said{0};             ///< the number that the last ACK gave
    std::uint32_t seen{0};             ///< those below came or were asked for
    std::uint32_t refused{kNoNumber};  ///< was answered with an RNR NAK, and is still to come
  };

  void take_in_order(Packet& packet);
  void take_in_any_order(Packet& packet);
  bool is_new(std::uint32_t index, std::uint32_t number) const;
  bool admits(std::uint32_t index, std::size_t message, std::uint32_t number);
  void note(std::uint32_t index, std::uint32_t number);
  bool deliver(std::uint32_t index);
  void notify(std::uint32_t index);
  void answer(std::uint32_t index, queue_pair_packet::Kind kind, std::uint32_t number);

  PacketNetwork& network_;
  const WirePackets& packets_;
  QueuePairSink& sink_;
  std::vector<Responder> pairs_;
  std::vector<AnyOrder> any_order_;  ///< of each, if they take packets in any order
};

}  // namespace weft
