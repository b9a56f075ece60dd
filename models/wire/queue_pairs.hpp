#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "models/wire/dcqcn.hpp"
#include "models/wire/packets.hpp"
#include "sim/base/id.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/fifo.hpp"
#include "sim/packet/network.hpp"

namespace weft {

using QueuePairId = Id<struct QueuePairTag>;
using WirePortId = Id<struct WirePortTag>;

enum class QueuePairError : std::uint8_t { kNone, kRetries, kRnrRetries };

/// Whoever posts messages hears of them here.
class QueuePairSink {
 public:
  /// The last byte of a message is at the receiver.
  virtual void on_delivered(QueuePairId pair, std::uint64_t tag) = 0;
  /// The sender knows it.
  virtual void on_acknowledged(QueuePairId pair, std::uint64_t tag) = 0;
  /// The sender has tried as often as it may (QueuePairs::error); what it had posted is lost.
  virtual void on_failure(QueuePairId pair) = 0;

  /// A data packet begins to leave, with so much payload; repeated ones are not told of.
  virtual void on_sent(QueuePairId /*pair*/, Bytes /*payload*/) {}
  /// What came of a message, each packet once, before on_delivered; in order, unless the network
  /// spreads packets over several ways.
  struct Arrival {
    QueuePairId pair;
    std::uint64_t tag;
    Bytes payload;
    bool is_last;  ///< of its message to come
  };
  /// At the receiver, as a message begins to come: whether it can be taken, which takes what was
  /// there for it. Asked until it can; the sender is told to wait (RNR NAK).
  virtual bool is_ready(QueuePairId /*pair*/, std::uint64_t /*tag*/) { return true; }
  /// Whether the sink keeps the packet, so that it fills the port's receive buffer until the sink
  /// gives it to PacketNetwork::release.
  virtual bool keeps(const Arrival& /*arrival*/, Packet& /*packet*/) { return false; }

 protected:
  ~QueuePairSink() = default;
};

/// What a queue pair has done so far.
struct QueuePairCounters {
  std::uint64_t packets{0};  ///< sent, repeated ones too
  std::uint64_t repeated{0};
  std::uint64_t acks{0};
  std::uint64_t naks{0};
  std::uint64_t rnr_naks{0};
  std::uint64_t cnps{0};
  std::uint64_t timeouts{0};
};

/// Reliable connections (IBTA vol. 1 ch. 9.7) between ports of a PacketNetwork, one way each: the
/// sender's and the receiver's half.
///
/// A message is cut into packets of the MTU, numbered on from the last one's. The receiver takes
/// them in order and acknowledges where the sender asks it to: every `packets_per_ack` packets of a
/// message and with its last. A gap makes it send one NAK with the number it waits for; the sender
/// goes back to that number. With selective repeat the receiver takes what comes and names each
/// missing packet once, and the sender sends those again. Where the network spreads packets over
/// several ways (adaptive routing) the receiver takes them in any order, as data has its address;
/// it sends no NAK, and completes messages in order. A message that its receiver is not ready for
/// is answered with an RNR NAK: the sender sends it again after `rnr_time`. Without progress for
/// the timeout the sender goes back to the oldest unacknowledged packet, and gives up after
/// `retry_count` times.
///
/// A port sends its queue pairs' packets in turn, one packet a turn. With DCQCN a packet of a
/// limited queue pair follows the one before it no sooner than that one takes at the queue pair's
/// rate.
///
/// Not modelled: numbers of 24 bits (here 32), selective repeat among spread packets (a loss costs
/// the timeout), reads and atomics; the timer of real NICs, which may run up to four times as long.
class QueuePairs final : private EventTarget {
 public:
  QueuePairs(PacketNetwork& network, const WirePackets& packets, QueuePairSink& sink);
  QueuePairs(const QueuePairs&) = delete;
  QueuePairs& operator=(const QueuePairs&) = delete;

  WirePortId add_port();
  PacketEndpoint& endpoint(WirePortId port);

  /// What joins two ports: the first link of each way, and its other links in the routes.
  struct Ways {
    PacketLinkId there;
    std::uint32_t rest_there;
    PacketLinkId back;
    std::uint32_t rest_back;
  };
  QueuePairId connect(WirePortId from, WirePortId to, const Ways& ways, std::uint8_t lane = 0);

  /// Sends a message after those posted before. A message of no bytes is one packet.
  void post(QueuePairId pair, Bytes bytes, std::uint64_t tag);
  /// The same, but its payload is still to come: each packet waits for its `provide`. Queue pairs
  /// take one kind of post or the other.
  void announce(QueuePairId pair, Bytes bytes, std::uint64_t tag);
  /// The payload of the next announced packet is here. Precondition: there is one.
  void provide(QueuePairId pair);

  const QueuePairCounters& counters(QueuePairId pair) const {
    return pairs_[pair.index()].counters;
  }
  QueuePairError error(QueuePairId pair) const { return pairs_[pair.index()].error; }
  /// For what a queue pair's sender has stood still.
  struct Waits {
    Duration receives;  ///< after RNR NAKs
    Duration timeouts;  ///< until it sent again what nobody had acknowledged
    Duration pacing;    ///< DCQCN's rate
  };
  Waits waits(QueuePairId pair) const;
  /// Messages posted and not acknowledged.
  std::size_t outstanding(QueuePairId pair) const;

 private:
  enum class Kind : std::uint8_t { kData, kAck, kNak, kCnp, kRnr };
  enum class Timer : std::uint8_t { kRetry, kPacing, kRnr };
  /// Packet::attributes of data.
  static constexpr std::uint8_t kLast = 1;
  static constexpr std::uint8_t kAckRequest = 2;
  static constexpr std::uint8_t kFirst = 4;
  static constexpr std::uint8_t kRepeated = 8;

  struct Message {
    std::uint32_t first;    ///< number of its first packet
    std::uint32_t packets;  ///< at least one
    std::int64_t bytes;
    std::uint64_t tag;
  };

  static constexpr std::uint32_t kNoNumber = std::numeric_limits<std::uint32_t>::max();

  struct Pair {
    std::uint32_t source;
    std::uint32_t sink;
    Ways ways;
    std::uint8_t lane;
    bool in_turn{false};  ///< waits for its source's next turn
    bool has_timer{false};
    QueuePairError error{QueuePairError::kNone};
    // Sender. Packets below `acknowledged` are done, those below `next` were sent.
    std::uint32_t acknowledged{0};
    std::uint32_t next{0};
    std::uint32_t provided{0};  ///< those below have their payload
    std::uint32_t end{0};
    std::uint32_t furthest{0};  ///< the highest number ever sent, and one
    std::uint32_t retries{0};
    std::uint32_t rnr_retries{0};
    std::int64_t progress_ps{0};
    std::int64_t waits_until_ps{0};  ///< after an RNR NAK
    std::size_t sending{0};          ///< the message of packet `next`, counted from the oldest
    Fifo<Message> messages;          ///< not acknowledged
    // Receiver.
    std::uint32_t expected{0};
    std::uint32_t refused{kNoNumber};  ///< was answered with an RNR NAK, and is still to come
    bool nak_sent{false};
    QueuePairCounters counters;
    std::int64_t refused_ps{0};  ///< what all waits after RNR NAKs take, the last to its end
  };

  /// DCQCN's part of a queue pair, at both ends.
  struct Pacing {
    DcqcnRate rate;
    Time sent{};  ///< the last packet, and its bytes
    Bytes bytes{};
    bool waits{false};  ///< an event will give it a turn
    Time waits_since{};
    Duration waited{};
    std::int64_t cnp_ps{std::numeric_limits<std::int64_t>::min() / 2};  ///< the receiver's last
  };

  /// What both halves know beside where packets are taken in any order.
  struct AnyOrder {
    struct Open {
      std::uint32_t first;
      std::uint32_t packets;
      std::uint32_t left;  ///< still to come
      std::uint64_t tag;
      bool is_taken{false};
    };
    Fifo<std::uint32_t> repeats;  ///< the sender's: to be sent again
    Fifo<Open> messages;          ///< not delivered
    Fifo<char> come;              ///< of the packets from `expected` on
    std::uint32_t said{0};        ///< the number that the last ACK gave
    std::uint32_t seen{0};        ///< those below came or were asked for
  };

  class Port final : public PacketEndpoint {
   public:
    explicit Port(QueuePairs& owner) : owner_{owner} {}
    void on_packet(Packet& packet) override { owner_.take(packet); }
    void on_departure(const Packet& packet, PacketLinkId link) override;

   private:
    friend class QueuePairs;
    QueuePairs& owner_;
    Fifo<std::uint32_t> turns_;  ///< pairs with packets to send
    bool has_offered_{false};    ///< a data packet waits in the link's queue
  };

  void on_event(std::uint64_t what) override;
  std::int64_t now_ps() const { return network_.now().since_start().count_ps(); }
  bool may_send(std::uint32_t index);
  bool has_repeat(std::uint32_t index);
  bool must_wait(std::uint32_t index);
  void append(std::uint32_t index, Bytes bytes, std::uint64_t tag);
  Bytes payload_of(const Packet& packet) const;
  void wake(std::uint32_t index);
  void offer(Port& port);
  Packet& next_packet(std::uint32_t index);
  void take(Packet& packet);
  void take_data(Packet& packet);
  void take_in_order(Packet& packet);
  void take_in_any_order(Packet& packet);
  void take_ack(Packet& packet);
  void answer(std::uint32_t index, Kind kind, std::uint32_t number);
  /// Which of the messages a packet is of: the last that begins at or before it.
  template <class M>
  static std::size_t place_of(const Fifo<M>& messages, std::uint32_t number) {
    std::size_t low = 0;
    for (std::size_t high = messages.size(); high - low > 1;) {
      const std::size_t middle = low + (high - low) / 2;
      (messages.at(middle).first <= number ? low : high) = middle;
    }
    return low;
  }
  void notify(std::uint32_t index);
  void go_back(Pair& pair, std::uint32_t number);
  void wait(std::uint32_t index);
  void fail(std::uint32_t index, QueuePairError error);
  void schedule(Time at, std::uint32_t index, Timer timer);
  void arm_timer(std::uint32_t index);

  PacketNetwork& network_;
  WirePackets packets_;
  QueuePairSink& sink_;
  std::deque<Port> ports_;  ///< a deque, as the network holds their addresses
  std::vector<Pair> pairs_;
  std::vector<Pacing> pacing_;       ///< of each pair, with DCQCN
  std::vector<AnyOrder> any_order_;  ///< of each pair, where the network spreads packets
};

}  // namespace weft
