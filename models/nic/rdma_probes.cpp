// What the probes read of NICs.
#include "models/nic/rdma.hpp"

namespace weft {

QueuePairCounters RdmaNics::sent_by(RdmaNicId nic) const {
  QueuePairCounters out;
  for (std::size_t side = 0; side < sides_.size(); ++side) {
    if (sides_[side].nic != nic.value) continue;
    const QueuePairCounters& c = pairs_.counters(QueuePairId{side});
    out.packets += c.packets;
    out.repeated += c.repeated;
    out.acks += c.acks;
    out.naks += c.naks;
    out.rnr_naks += c.rnr_naks;
    out.timeouts += c.timeouts;
    out.cnps += c.cnps;
  }
  return out;
}

QueuePairs::Waits RdmaNics::waits(RdmaNicId nic) const {
  QueuePairs::Waits sum{};
  std::int64_t senders = 0;
  for (std::size_t side = 0; side < sides_.size(); ++side) {
    const QueuePairId pair{side};
    if (sides_[side].nic != nic.value || pairs_.counters(pair).packets == 0) continue;
    const QueuePairs::Waits each = pairs_.waits(pair);
    sum.receives += each.receives;
    sum.timeouts += each.timeouts;
    sum.pacing += each.pacing;
    ++senders;
  }
  if (senders == 0) return sum;
  const auto mean = [senders](Duration all) { return Duration::ps(all.count_ps() / senders); };
  return {mean(sum.receives), mean(sum.timeouts), mean(sum.pacing)};
}

Duration RdmaNics::icm_waited(RdmaNicId id) const {
  const Nic& nic = nics_[id.index()];
  return nic.icm_waited + (nic.missing.empty() ? Duration{} : network_.now() - nic.icm_waits_since);
}

}  // namespace weft
