#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/packet/packet.hpp"

namespace weft {

/// The parts of which a PacketNetwork is made, as its builder states them.

inline constexpr std::uint32_t kUnlimited = std::numeric_limits<std::uint32_t>::max();
/// Virtual lanes (InfiniBand's, priorities, PCIe's kinds of TLP) that a link can have.
inline constexpr std::size_t kMaxVls = 8;

/// Flow control by credits: the receiver has room for so many packets and so many units of data,
/// and the sender sends only what fits. PCIe: header and data credits (16 B of payload).
/// InfiniBand: no limit on packets, units of 64 B.
///
/// Room counts as free when the packet begins to leave it (or an endpoint releases it). The
/// receiver says so after every `packets_per_update` packets, or `update_timeout` after the first
/// unsaid one; the word reaches the sender `return_delay` later plus what the other direction
/// takes: its delay and, if an update has bytes, its turn on the wire, ahead of waiting packets.
struct CreditPool {
  std::uint32_t packets{kUnlimited};
  std::uint32_t units{kUnlimited};
  Bytes unit{64};
  Duration return_delay{};
  Bytes update_bytes{0};  ///< an UpdateFC, framing included; 0: updates take no room
  std::uint32_t packets_per_update{1};
  Duration update_timeout{};  ///< needed where several packets share an update
};

/// Flow control by pause (IEEE 802.1Qbb): the receiver sends a pause frame when a virtual lane's
/// buffer holds `xoff` or more, and a resume frame when it is back at `xon` or less. What comes on
/// top of `capacity` is lost. Headroom is capacity - xoff. A pause stops decisions: what a sending
/// forwarder has decided on, within its latency, still comes. It lasts until the resume frame:
/// refresh frames are not modelled.
///
/// Dynamic thresholds (`share` > 0, where the receiver is a forwarder with a shared buffer): a
/// virtual lane is paused when it holds `share` of what is free of the shared buffer, and resumed
/// when it holds xoff - xon less than that then is, or nothing. What comes while it is paused has
/// room of its own, the headroom. A virtual lane that never pauses loses what exceeds its share.
struct PauseBuffer {
  Bytes capacity{};
  Bytes xoff{};           ///< above the capacity: never pauses
  Bytes xon{};            ///< below xoff
  Bytes frame_bytes{84};  ///< a pause frame on the wire: 64 B, preamble 8, gap 12
  Duration response{};    ///< from the frame's arrival until the sender obeys it
  double share{0};        ///< 0: xoff is the threshold
};

/// The receiver takes everything.
struct Unlimited {};

/// A virtual lane with a queue of its own but the room of another: relaxed-ordered beside strict
/// writes.
struct SharesRoomOf {
  std::uint8_t vl{0};
};

using VlControl = std::variant<Unlimited, CreditPool, PauseBuffer, SharesRoomOf>;

/// Which virtual lane may send next: each in turn, or the lowest that can.
enum class VlOrder : std::uint8_t { kRoundRobin, kLowestFirst };
/// Of one virtual lane, which packet: from each input in turn, or that which came first.
enum class InputOrder : std::uint8_t { kRoundRobin, kOldestFirst };

/// Marks packets as they join a queue (RED on the instantaneous length, as DCQCN asks): never up to
/// `min`, always above `max`, and with a chance growing to `max_chance` between.
struct EcnMarking {
  Bytes min{};
  Bytes max{};
  double max_chance{0};
};

/// One direction of a link: a serial server.
///
/// A packet of n bytes takes (n + framing) / rate; its last byte is there `delay` later. Its queue
/// is at the sender: one for each virtual lane and each of the sender's inputs.
struct LinkSpec {
  std::string name;
  PacketNodeId from{};
  PacketNodeId to{};
  Bandwidth rate{Bandwidth::gigabits_per_s(100)};
  Duration delay{};
  Bytes framing{0};  ///< of every packet
  std::vector<VlControl> vls{Unlimited{}};
  VlOrder vl_order{VlOrder::kRoundRobin};
  InputOrder input_order{InputOrder::kRoundRobin};
  /// Ordering: bit b of may_pass[a] is set where a packet of virtual lane a may leave before one of
  /// virtual lane b that came earlier from the same input. (Within a virtual lane none passes.)
  std::array<std::uint8_t, kMaxVls> may_pass{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  std::optional<EcnMarking> ecn{};
};

/// Says where a packet goes next. May look at the network (queues) and change the packet's route
/// and virtual lane. Must return a link that leaves the forwarder.
class PacketRouter {
 public:
  virtual PacketLinkId next(Packet& packet, PacketLinkId came_by) = 0;
  /// Where the link that next() will return is written, if it is known before: a hint.
  virtual const PacketLinkId* next_hop(const Packet& /*packet*/) const { return nullptr; }

 protected:
  ~PacketRouter() = default;
};

/// A switch, a root complex: input-buffered, never idle while a packet and its output could go.
/// Packets for different outputs do not wait for each other, but share the room of their input.
struct ForwarderSpec {
  std::string name;
  Duration latency{};  ///< from the decision to the first bit out
  /// Cut-through: so many bytes must be there to decide. None: the whole packet.
  std::optional<Bytes> cut_through{};
  PacketRouter* router{nullptr};  ///< not owned
  Bytes shared_buffer{};          ///< for virtual lanes with dynamic thresholds
};

/// Where packets begin and end, and what does more than forward (splits, delays, answers).
class PacketEndpoint {
 public:
  /// It is here, whole, and fills its receive buffer until PacketNetwork::release or ::forward.
  virtual void on_packet(Packet& packet) = 0;
  /// A packet given to send or forward begins to leave by `link`: time to offer the next.
  virtual void on_departure(const Packet& packet, PacketLinkId link) = 0;

 protected:
  ~PacketEndpoint() = default;
};

}  // namespace weft
