#include "models/nic/work_requests.hpp"

#include <algorithm>

namespace weft {

std::uint32_t WorkRequests::add(RdmaQpId qp, const RdmaRequest& request) {
  WorkRequest work{.request = request, .qp = qp, .order = posted_++};
  // The data are in memory; its turn among those that come has come; it is acknowledged or its
  // completion written; so is the receive's.
  work.open = 2 + (request.op != RdmaOp::kRead || request.is_signalled ? 1 : 0) +
              (request.op == RdmaOp::kSend ? 1 : 0);
  return slots_.add(work);
}

void WorkRequests::close(std::uint32_t slot) {
  if (slots_[slot].status != RdmaStatus::kSuccess) return;
  if (--slots_[slot].open == 0) slots_.free(slot);
}

std::vector<std::uint32_t> WorkRequests::under_way(RdmaQpId qp) const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const WorkRequest& work = slots_[slot];
    if (work.qp == qp && work.open > 0 && work.is_begun && !work.has_ended) found.push_back(slot);
  }
  std::sort(found.begin(), found.end(),
            [this](std::uint32_t a, std::uint32_t b) { return slots_[a].order < slots_[b].order; });
  return found;
}

}  // namespace weft
