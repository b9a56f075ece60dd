#pragma once

#include <cstdint>

#include "models/wire/packets.hpp"
#include "sim/base/id.hpp"
#include "sim/base/units.hpp"
#include "sim/packet/packet.hpp"

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
  /// spreads packets over several routes.
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

/// How queue pairs use a Packet: `flow` is the pair, `sequence` the packet's number, or the one
/// that an answer names; `kind` and `attributes` are these.
namespace queue_pair_packet {

enum class Kind : std::uint8_t { kData, kAck, kNak, kCnp, kRnrNak };

inline constexpr std::uint8_t kLast = 1;
inline constexpr std::uint8_t kAckRequest = 2;
inline constexpr std::uint8_t kFirst = 4;
inline constexpr std::uint8_t kRepeated = 8;

inline bool is(const Packet& packet, Kind kind) {
  return packet.kind == static_cast<std::uint8_t>(kind);
}
inline bool has(const Packet& packet, std::uint8_t attribute) {
  return (packet.attributes & attribute) != 0;
}
/// Of data.
inline Bytes payload(const Packet& packet, const WirePackets& packets) {
  return Bytes{std::int64_t{packet.link_bytes} - packets.data_bytes(0, has(packet, kFirst))};
}

}  // namespace queue_pair_packet

}  // namespace weft
