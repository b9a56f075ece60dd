#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "models/wire/packets.hpp"
#include "models/wire/queue_pair.hpp"
#include "models/wire/requesters.hpp"
#include "models/wire/responders.hpp"
#include "sim/packet/network.hpp"
#include "sim/packet/source_routes.hpp"

namespace weft {

/// Reliable connections (IBTA vol. 1 ch. 9.7) between ports of a PacketNetwork, one way each: a
/// requester and a responder.
///
/// A message is cut into packets of the MTU, numbered on from the last one's. The receiver takes
/// them in order and acknowledges where the sender asks it to: every `packets_per_ack` packets of a
/// message and with its last. A gap makes it send one NAK with the number it waits for; the sender
/// goes back to that number. With selective repeat the receiver takes what comes and names each
/// missing packet once, and the sender sends those again. Where the network spreads packets over
/// several routes (adaptive routing) the receiver takes them in any order, as data has its address;
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
class QueuePairs final {
 public:
  using Waits = Requesters::Waits;

  QueuePairs(PacketNetwork& network, const WirePackets& packets, QueuePairSink& sink)
      : packets_{packets},
        requesters_{network, packets_, sink},
        responders_{network, packets_, sink} {}
  QueuePairs(const QueuePairs&) = delete;
  QueuePairs& operator=(const QueuePairs&) = delete;

  WirePortId add_port();
  PacketEndpoint& endpoint(WirePortId port) { return ports_[port.index()]; }

  /// From a port to the other end of `there`, which answers by `back`.
  QueuePairId connect(WirePortId from, const PacketRoute& there, const PacketRoute& back,
                      std::uint8_t vl = 0);

  /// Sends a message after those posted before. A message of no bytes is one packet.
  void post(QueuePairId pair, Bytes bytes, std::uint64_t tag) {
    announce(pair, bytes, tag);
    requesters_.provide_all(pair);
  }
  /// The same, but its payload is still to come: each packet waits for its `provide`. Queue pairs
  /// take one kind of post or the other.
  void announce(QueuePairId pair, Bytes bytes, std::uint64_t tag) {
    responders_.expect(pair, requesters_.append(pair, bytes, tag));
  }
  /// The payload of the next announced packet is here. Precondition: there is one.
  void provide(QueuePairId pair) { requesters_.provide(pair); }

  QueuePairCounters counters(QueuePairId pair) const;
  QueuePairError error(QueuePairId pair) const { return requesters_.error(pair); }
  /// For what a queue pair's sender has stood still.
  Waits waits(QueuePairId pair) const { return requesters_.waits(pair); }
  /// Messages posted and not acknowledged.
  std::size_t outstanding(QueuePairId pair) const { return requesters_.outstanding(pair); }

 private:
  class Port final : public PacketEndpoint {
   public:
    explicit Port(QueuePairs& owner) : owner_{owner} {}
    void on_packet(Packet& packet) override;
    void on_departure(const Packet& packet, PacketLinkId link) override;

   private:
    QueuePairs& owner_;
  };

  WirePackets packets_;
  Requesters requesters_;
  Responders responders_;
  std::deque<Port> ports_;  ///< a deque, as the network holds their addresses
  std::size_t pairs_{0};
};

}  // namespace weft
