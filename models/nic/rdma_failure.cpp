// How queue pairs fail.
#include <algorithm>
#include <utility>

#include "models/nic/rdma.hpp"
#include "sim/base/error.hpp"

namespace weft {

void RdmaClient::on_error(std::uint64_t /*tag*/, RdmaStatus status) {
  throw InputError(status == RdmaStatus::kRnrRetryExceeded
                       ? "a queue pair gave up: no receive was posted for what it sent"
                       : "the network loses too many packets: a queue pair gave up retransmitting");
}

/// The queue pair goes to the error state: all that was begun and has not ended ends now.
void RdmaNics::on_failure(QueuePairId pair) {
  const auto index = static_cast<std::uint32_t>(pair.index() / 2);
  if (std::exchange(qps_[index].has_failed, true)) return;
  clear(2 * index);
  clear(2 * index + 1);
  std::vector<std::uint32_t> begun;
  for (std::uint32_t i = 0; i < messages_.size(); ++i) {
    const Message& m = messages_[i];
    if (m.qp == index && m.open > 0 && m.is_begun && !m.has_ended) begun.push_back(i);
  }
  std::sort(begun.begin(), begun.end(), [this](std::uint32_t a, std::uint32_t b) {
    return messages_[a].order < messages_[b].order;
  });
  RdmaStatus status = pairs_.error(pair) == QueuePairError::kRnrRetries
                          ? RdmaStatus::kRnrRetryExceeded
                          : RdmaStatus::kRetryExceeded;
  for (const std::uint32_t slot : begun) {
    give_up(slot, status);
    status = RdmaStatus::kFlushed;
  }
}

/// A side of a failed queue pair leaves the send buffer.
void RdmaNics::clear(std::uint32_t index) {
  Side& side = sides_[index];
  side.fetches = {};
  side.leaving = {};
  nics_[side.nic].buffered -= std::exchange(side.buffered, 0);
  fetch(side.nic);
}

/// Its place is not used again, as what is under way may still name it.
void RdmaNics::give_up(std::uint32_t slot, RdmaStatus status) {
  messages_[slot].status = status;
  write_cqe(qps_[messages_[slot].qp].from, slot, Dma::kErrorCqe);
}

void RdmaNics::on_dma_timeout(std::uint64_t /*tag*/) {
  throw InputError("a NIC's read was never completed: a root complex dropped it");
}

}  // namespace weft
