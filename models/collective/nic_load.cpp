#include "models/collective/nic_load.hpp"

#include <algorithm>
#include <map>

namespace weft {

Bytes most_sent_by_a_nic(const Plan& plan) {
  std::map<DeviceId, std::int64_t> sent;
  for_each_message(plan, [&](QueuePairIndex pair, Bytes bytes, std::uint64_t times) {
    sent[plan.queue_pairs[pair].nic] += bytes.count() * static_cast<std::int64_t>(times);
  });
  std::int64_t most = 0;
  for (const auto& [nic, bytes] : sent) most = std::max(most, bytes);
  return Bytes{most};
}

}  // namespace weft
