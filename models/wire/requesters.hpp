#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/wire/pacing.hpp"
#include "models/wire/packets.hpp"
#include "models/wire/queue_pair.hpp"
#include "models/wire/retries.hpp"
#include "models/wire/send_window.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/fifo.hpp"
#include "sim/packet/network.hpp"
#include "sim/packet/source_routes.hpp"

namespace weft {

/// The halves of queue pairs that send (IBTA: requesters), and the ports where they take turns, one
/// packet a turn.
///
/// A requester may send when its SendWindow has a packet, its Retries do not make it wait and, with
/// DCQCN, its Pacing lets it. Then it waits for its port's turn; the port has one packet in the
/// link's queue at a time.
class Requesters final : private EventTarget {
 public:
  /// For what a requester has stood still.
  struct Waits {
    Duration receives;  ///< after RNR NAKs
    Duration timeouts;  ///< until it sent again what nobody had acknowledged
    Duration pacing;    ///< DCQCN's rate
  };

  Requesters(PacketNetwork& network, const WirePackets& packets, QueuePairSink& sink)
      : network_{network}, packets_{packets}, sink_{sink} {}
  Requesters(const Requesters&) = delete;
  Requesters& operator=(const Requesters&) = delete;

  void add_port() { ports_.emplace_back(); }
  /// One that sends from a port.
  void add(WirePortId port, const PacketRoute& route, std::uint8_t vl);

  /// One more message, whose payload is still to come.
  const SendWindow::Message& append(QueuePairId pair, Bytes bytes, std::uint64_t tag);
  /// Payload of one packet, or of all, is here.
  void provide(QueuePairId pair);
  void provide_all(QueuePairId pair);

  /// A data packet leaves its port.
  void on_departure(const Packet& packet);
  /// An ACK, a NAK or a CNP has come; the packet is released.
  void take_answer(Packet& packet);

  /// Packets, repeated ones among them, and timeouts.
  QueuePairCounters counters(QueuePairId pair) const;
  QueuePairError error(QueuePairId pair) const { return pairs_[pair.index()].error; }
  Waits waits(QueuePairId pair) const;
  /// Messages posted and not acknowledged.
  std::size_t outstanding(QueuePairId pair) const {
    return pairs_[pair.index()].window.outstanding();
  }

 private:
  enum class Timer : std::uint8_t { kRetry, kPacing, kRnr };

  struct Requester {
    PacketRoute route;
    std::uint32_t port;
    std::uint8_t vl;
    bool in_turn{false};  ///< waits for its port's next turn
    bool has_timer{false};
    QueuePairError error{QueuePairError::kNone};
    SendWindow window{};
    Retries retries{};
    std::uint64_t packets{0};
    std::uint64_t repeated{0};
  };
  struct Port {
    Fifo<std::uint32_t> turns{};  ///< requesters with packets to send
    bool has_offered{false};      ///< a data packet waits in the link's queue
  };

  bool may_send(Requester& requester) {
    return !requester.retries.is_refused(network_.now()) &&
           requester.window.has_next(packets_.window);
  }
  void wake(std::uint32_t index);
  void offer(std::uint32_t port);
  bool must_wait(std::uint32_t index);
  Packet& next_packet(std::uint32_t index);
  void acknowledge(std::uint32_t index, std::uint32_t expected);
  void wait(std::uint32_t index);
  void fail(std::uint32_t index, QueuePairError error);
  void schedule(Time at, std::uint32_t index, Timer timer);
  void arm_timer(std::uint32_t index);
  void on_event(std::uint64_t what) override;
  void time_out(std::uint32_t index);

  PacketNetwork& network_;
  const WirePackets& packets_;
  QueuePairSink& sink_;
  std::vector<Port> ports_;
  std::vector<Requester> pairs_;
  std::vector<Pacing> pacing_;  ///< of each, with DCQCN
};

}  // namespace weft
