#pragma once

#include <cstdint>
#include <optional>

#include "models/nic/rdma_nic.hpp"

namespace weft {

class SendQueue;
class SendStream;

/// One direction of a queue pair at the NIC where its packets arrive: from a packet to memory.
///
/// A packet goes through it from top to bottom:
///   is_ready  as a send's first packet comes: a receive is there, and is taken
///   keeps     the packet stays in the port's receive buffer; `latency` later it is inside
///   arrive    in order, as soon as the queue pair's context and the page's translation are there
///   land      its payload is written; as the last TLP has left the NIC, the port's room is free
///   end       of a message: in order, completions are written, or a read is answered
class ReceiveStream final : private EventTarget, private IcmWaiter, private NicDma {
 public:
  /// `queue`: the queue pair's, which posted all that comes by this stream. `answers`: where this
  /// stream brings work requests, the one by which reads are answered; where it brings those
  /// answers, null. All that it refers to outlives it.
  ReceiveStream(RdmaNetwork& network, RdmaNic& nic, SendQueue& queue, SendStream* answers)
      : network_{network}, nic_{nic}, queue_{queue}, answers_{answers} {}
  ReceiveStream(const ReceiveStream&) = delete;
  ReceiveStream& operator=(const ReceiveStream&) = delete;

  /// A message sets out to here; they end in this order.
  void expect(std::uint32_t slot);
  /// From the first time on each send takes a receive; before, one is always at hand.
  void post_receives(std::uint32_t count);
  /// Receives that were posted and not taken. Precondition: some were posted.
  std::uint32_t receives() const { return *receives_; }

  bool is_ready(std::uint32_t slot);
  bool keeps(const QueuePairSink::Arrival& arrival, Packet& packet);

 private:
  struct Arriving {
    std::uint64_t tag;
    std::int64_t payload;
    bool is_last;
    Packet* packet;  ///< none if it had no payload
  };
  struct Landing {
    std::uint32_t slot;
    std::int64_t bytes;
    Packet* packet;
  };

  void on_event(std::uint64_t what) override;
  void on_icm() override { arrive(); }
  void on_dma_sent(std::uint64_t tag) override;
  void on_dma_done(std::uint64_t tag) override;

  RdmaBuffer target_of(const Arriving& item) const;
  void arrive();
  void land(const Arriving& item);
  void end(std::uint32_t slot);
  void landed(std::uint32_t slot, std::int64_t bytes);

  RdmaNetwork& network_;
  RdmaNic& nic_;
  SendQueue& queue_;
  SendStream* answers_;
  std::optional<std::uint32_t> receives_{};  ///< none: always enough
  Fifo<Arriving> passing_;                   ///< in the NIC's latency
  Fifo<Arriving> arrived_;
  bool has_context_{false};  ///< of the first that arrived
  Slots<Landing> landings_;
  Fifo<std::uint32_t> expected_;
};

}  // namespace weft
