#include "models/nic/rdma.hpp"

#include <utility>

#include "sim/base/error.hpp"

namespace weft {

void RdmaClient::on_error(std::uint64_t /*tag*/, RdmaStatus status) {
  throw InputError(status == RdmaStatus::kRnrRetryExceeded
                       ? "a queue pair gave up: no receive was posted for what it sent"
                       : "the network loses too many packets: a queue pair gave up retransmitting");
}

RdmaNics::Qp::Qp(RdmaNetwork& network, RdmaQpId id, RdmaNicId poster, RdmaNic& from_nic,
                 RdmaNicId target, RdmaNic& to_nic)
    : from{poster},
      to{target},
      queue{network, from_nic, id, requests_out},
      requests_out{network, from_nic, pair_of(id, false), SendStream::Carries::kRequests,
                   requests_in},
      requests_in{network, to_nic, queue, &answers_out},
      answers_out{network, to_nic, pair_of(id, true), SendStream::Carries::kAnswers, answers_in},
      answers_in{network, from_nic, queue, nullptr} {}

RdmaNicId RdmaNics::add_nic() {
  nics_.emplace_back(network_, pairs_.add_port());
  return RdmaNicId{nics_.size() - 1};
}

void RdmaNics::attach(RdmaNicId nic, Settings settings, const Host& host) {
  RdmaNic& attached = nics_[nic.index()];
  attached.settings = std::move(settings);
  attached.host = host;
  attached.icm.attach();
}

RdmaQpId RdmaNics::connect(RdmaNicId from, RdmaNicId to, const PacketRoute& there,
                           const PacketRoute& back) {
  RdmaNic& poster = nics_[from.index()];
  RdmaNic& target = nics_[to.index()];
  pairs_.connect(poster.port, there, back);
  pairs_.connect(target.port, back, there);
  const RdmaQpId id{qps_.size()};
  qps_.emplace_back(network_, id, from, poster, to, target);
  return id;
}

/// A read completes with its data, not with their acknowledgement or that of its request.
void RdmaNics::on_acknowledged(QueuePairId pair, std::uint64_t tag) {
  if (is_back(pair) || WorkRequests::is_read_request(tag)) return;
  qp_of(pair).queue.acknowledged(WorkRequests::slot_of(tag));
}

/// The queue pair goes to the error state, with both its directions.
void RdmaNics::on_failure(QueuePairId pair) {
  Qp& qp = qp_of(pair);
  if (qp.queue.has_failed()) return;
  qp.requests_out.fail();
  qp.answers_out.fail();
  qp.queue.fail(pairs_.error(pair) == QueuePairError::kRnrRetries ? RdmaStatus::kRnrRetryExceeded
                                                                  : RdmaStatus::kRetryExceeded);
}

/// Every wire's pair by which a NIC sends.
template <class Call>
void RdmaNics::for_each_sent_by(RdmaNicId nic, Call call) const {
  for (std::size_t i = 0; i < qps_.size(); ++i) {
    if (qps_[i].from == nic) call(pair_of(RdmaQpId{i}, false));
    if (qps_[i].to == nic) call(pair_of(RdmaQpId{i}, true));
  }
}

QueuePairCounters RdmaNics::sent_by(RdmaNicId nic) const {
  QueuePairCounters out;
  for_each_sent_by(nic, [&](QueuePairId pair) {
    const QueuePairCounters c = pairs_.counters(pair);
    out.packets += c.packets;
    out.repeated += c.repeated;
    out.acks += c.acks;
    out.naks += c.naks;
    out.rnr_naks += c.rnr_naks;
    out.timeouts += c.timeouts;
    out.cnps += c.cnps;
  });
  return out;
}

QueuePairs::Waits RdmaNics::waits(RdmaNicId nic) const {
  QueuePairs::Waits sum{};
  std::int64_t senders = 0;
  for_each_sent_by(nic, [&](QueuePairId pair) {
    if (pairs_.counters(pair).packets == 0) return;
    const QueuePairs::Waits each = pairs_.waits(pair);
    sum.receives += each.receives;
    sum.timeouts += each.timeouts;
    sum.pacing += each.pacing;
    ++senders;
  });
  if (senders == 0) return sum;
  const auto mean = [senders](Duration all) { return Duration::ps(all.count_ps() / senders); };
  return {mean(sum.receives), mean(sum.timeouts), mean(sum.pacing)};
}

Duration RdmaNics::waited_for_reads(RdmaNicId nic) const {
  Duration sum{};
  std::int64_t count = 0;
  for (const Qp& qp : qps_) {
    if (qp.from != nic) continue;
    sum += qp.queue.waited_for_reads();
    ++count;
  }
  return count == 0 ? sum : Duration::ps(sum.count_ps() / count);
}

}  // namespace weft
