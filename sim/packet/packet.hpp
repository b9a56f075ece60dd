#pragma once

#include <cstdint>
#include <limits>

#include "sim/base/id.hpp"

namespace weft {

using PacketNodeId = Id<struct PacketNodeTag>;
/// One direction of a link: from its sender to its receiver.
using PacketLinkId = Id<struct PacketLinkTag>;

inline constexpr PacketLinkId kNoPacketLink{std::numeric_limits<std::uint32_t>::max()};

/// One packet (TLP, InfiniBand packet, Ethernet frame) on its way. The first part is the model's to
/// fill in before PacketNetwork::send and to read on arrival; the engine reads what it says it does
/// and changes none of it. Lives in its network's pool, at one address until released.
class alignas(64) Packet {
 public:
  std::uint64_t tag{0};           ///< the model's: a transaction, an address
  std::uint32_t route{0};         ///< the router's: where it goes, or where on its way it is
  std::uint32_t flow{0};          ///< the model's: a queue pair, a requester
  std::uint32_t sequence{0};      ///< the model's: a packet sequence number, a length
  std::uint32_t link_bytes{0};    ///< on a link, headers included, without the link's own framing
  std::uint32_t buffer_bytes{0};  ///< what it fills of a receive buffer: data credits, pause
  std::uint8_t vl{0};          ///< its queue and flow control on every link; a router may change it
  std::uint8_t kind{0};        ///< the model's
  bool marked{false};          ///< congestion experienced (ECN); the engine sets it
  std::uint8_t attributes{0};  ///< the model's

 private:
  friend class OutputQueues;
  friend class PacketNetwork;
  friend class PacketPool;

  Packet* next_{nullptr};    ///< behind it: in flight, in a queue, or free
  std::int64_t due_ps_{0};   ///< in flight: when the one behind it arrives; in a queue: its order
  std::int64_t tail_ps_{0};  ///< when its last byte is there
  PacketLinkId holds_{kNoPacketLink};  ///< the link whose receive buffer it is in
  std::uint8_t holds_vl_{0};           ///< the virtual lane with the room
};
static_assert(sizeof(Packet) == 64);

}  // namespace weft
