#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "models/nic/rdma_nic.hpp"
#include "models/nic/rdma_params.hpp"
#include "models/nic/rdma_request.hpp"
#include "models/nic/receive_stream.hpp"
#include "models/nic/send_queue.hpp"
#include "models/nic/send_stream.hpp"
#include "models/wire/queue_pairs.hpp"

namespace weft {

/// NICs with queue pairs: from a doorbell to a completion.
///
/// A work request passes, in this order, its queue pair's SendQueue (doorbell, element, server,
/// context), a SendStream (payload, packets), the wire (QueuePairs), a ReceiveStream (packets,
/// memory) and the Completions of its NIC. A read is a request packet; the other NIC's SendStream
/// sends the payload. This class holds them together.
///
/// Each of them is a state machine, not a coroutine: a step that need not wait goes on at once,
/// where a process that is woken takes an event of the queue, one more for each packet.
///
/// A queue pair whose retries are exhausted fails: what was posted to it completes with an error,
/// and so does what is posted later.
///
/// An element, a packet that came and payload to be read need the queue pair's context and the
/// page's translation. What the NIC's cache does not hold it reads from host memory, and the queue
/// pair waits; others go on.
///
/// Not modelled: memory keys and completion queues in that cache; contexts for ACKs; retransmitted
/// payload is not read again; responses of reads are acknowledged like messages; atomics.
class RdmaNics final : private QueuePairSink {
 public:
  using Settings = RdmaNicSettings;
  using Host = RdmaNicHost;

  RdmaNics(PacketNetwork& network, const WirePackets& packets)
      : pairs_{network, packets, *this}, network_{network, pairs_, packets.mtu} {}

  RdmaNicId add_nic();
  PacketEndpoint& endpoint(RdmaNicId nic) { return pairs_.endpoint(nics_[nic.index()].port); }
  /// Before its first queue pair is used.
  void attach(RdmaNicId nic, Settings settings, const Host& host);
  /// A queue pair whose requests `from` posts, by the routes from it and back.
  RdmaQpId connect(RdmaNicId from, RdmaNicId to, const PacketRoute& there, const PacketRoute& back);
  /// The software has rung the doorbell. Throws InputError later, from the event queue, if the
  /// network loses packets for good or nobody answers a DMA read.
  void post(RdmaQpId qp, const RdmaRequest& request) { post(qp, std::span{&request, 1}); }
  /// The same for several requests and one doorbell: their elements are read together.
  void post(RdmaQpId qp, std::span<const RdmaRequest> requests) {
    qps_[qp.index()].queue.post(requests);
  }
  /// The queue pair's elements are read from there and its requests' completions written there, not
  /// where the NIC's host has them. Its doorbells bring no element with them.
  void place_queues(RdmaQpId qp, const RdmaBuffer& wqes, const RdmaBuffer& cqes) {
    qps_[qp.index()].queue.place(wqes, cqes);
  }
  /// A doorbell has just reached the NIC, as a store of whoever posts these; their elements are in
  /// the queue's memory.
  void rang(RdmaQpId qp, std::span<const RdmaRequest> requests) {
    qps_[qp.index()].queue.rang(requests);
  }
  /// The other side posts receives: its NIC knows of them at once, and reads their elements ahead
  /// of need. From the first time on each send takes one; before, one is always at hand.
  void post_receives(RdmaQpId qp, std::uint32_t count) {
    qps_[qp.index()].requests_in.post_receives(count);
  }

  const std::string& name(RdmaNicId nic) const { return nics_[nic.index()].settings.name; }
  /// Contexts and translations that were not in the NIC's cache.
  std::uint64_t icm_misses(RdmaNicId nic) const { return nics_[nic.index()].icm.misses(); }
  /// How long something has waited for a context or a translation.
  Duration icm_waited(RdmaNicId nic) const { return nics_[nic.index()].icm.waited(); }
  /// Payload that came over the network to the NIC and is in memory.
  Bytes landed(RdmaNicId nic) const { return nics_[nic.index()].landed; }
  /// Receives that were posted and not taken. Precondition: some were posted.
  std::uint32_t receives(RdmaQpId qp) const { return qps_[qp.index()].requests_in.receives(); }
  /// The wire's half of a queue pair, from the poster or back.
  QueuePairCounters counters(RdmaQpId qp, bool back = false) const {
    return pairs_.counters(pair_of(qp, back));
  }
  /// The sum over everything that a NIC sends.
  QueuePairCounters sent_by(RdmaNicId nic) const;
  /// For what a NIC's queue pairs have stood still: on average over those that have sent.
  QueuePairs::Waits waits(RdmaNicId nic) const;
  /// For what its reads have waited that max_reads kept back: on average over the queue pairs that
  /// it posts on.
  Duration waited_for_reads(RdmaNicId nic) const;
  QueuePairs::Waits waits(RdmaQpId qp) const { return pairs_.waits(pair_of(qp, false)); }

 private:
  /// A queue pair: where its work requests are posted, and both ends of either direction.
  struct Qp {
    Qp(RdmaNetwork& network, RdmaQpId id, RdmaNicId poster, RdmaNic& from, RdmaNicId target,
       RdmaNic& to);
    RdmaNicId from;
    RdmaNicId to;
    SendQueue queue;
    SendStream requests_out;
    ReceiveStream requests_in;
    SendStream answers_out;
    ReceiveStream answers_in;
  };

  // The wire's pairs are numbered 2 x qp from the poster, 2 x qp + 1 back.
  static QueuePairId pair_of(RdmaQpId qp, bool back) {
    return QueuePairId{2 * qp.index() + (back ? 1 : 0)};
  }
  static bool is_back(QueuePairId pair) { return pair.index() % 2 == 1; }
  Qp& qp_of(QueuePairId pair) { return qps_[pair.index() / 2]; }
  SendStream& sender(QueuePairId pair) {
    return is_back(pair) ? qp_of(pair).answers_out : qp_of(pair).requests_out;
  }
  ReceiveStream& receiver(QueuePairId pair) {
    return is_back(pair) ? qp_of(pair).answers_in : qp_of(pair).requests_in;
  }
  template <class Call>
  void for_each_sent_by(RdmaNicId nic, Call call) const;

  void on_delivered(QueuePairId /*pair*/, std::uint64_t /*tag*/) override {}
  void on_acknowledged(QueuePairId pair, std::uint64_t tag) override;
  void on_failure(QueuePairId pair) override;
  void on_sent(QueuePairId pair, Bytes payload) override { sender(pair).on_sent(payload); }
  bool keeps(const Arrival& arrival, Packet& packet) override {
    return receiver(arrival.pair).keeps(arrival, packet);
  }
  bool is_ready(QueuePairId pair, std::uint64_t tag) override {
    return receiver(pair).is_ready(WorkRequests::slot_of(tag));
  }

  QueuePairs pairs_;
  RdmaNetwork network_;
  std::deque<RdmaNic> nics_;  ///< deques, as others hold their addresses
  std::deque<Qp> qps_;
};

}  // namespace weft
