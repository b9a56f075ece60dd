#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "models/nic/rdma_request.hpp"
#include "models/nic/slots.hpp"

namespace weft {

/// A work request from its post until nothing more will happen for it.
struct WorkRequest {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  RdmaRequest request;
  RdmaQpId qp;
  std::uint32_t next{kNone};  ///< posted with the same doorbell
  std::int64_t arrived{0};    ///< bytes that left the receiving port's buffer for memory
  std::int64_t landed{0};     ///< bytes in memory
  std::uint64_t order{0};     ///< in which it was posted
  bool is_begun{false};       ///< by the NIC
  bool has_come{false};       ///< all of it, or of its request, as long as that is under way
  bool has_ended{false};      ///< for the requester
  RdmaStatus status{RdmaStatus::kSuccess};
  std::uint32_t open{0};  ///< what is still to happen
};

/// The work requests of all NICs, by number. On the wire a message's tag names its work request,
/// and tells the request of a read from the data that answer it.
class WorkRequests {
 public:
  static std::uint64_t tag_of(std::uint32_t slot, bool is_read_request) {
    return std::uint64_t{slot} * 2 + (is_read_request ? 1 : 0);
  }
  static std::uint32_t slot_of(std::uint64_t tag) { return static_cast<std::uint32_t>(tag / 2); }
  static bool is_read_request(std::uint64_t tag) { return tag % 2 == 1; }

  std::uint32_t add(RdmaQpId qp, const RdmaRequest& request);
  WorkRequest& operator[](std::uint32_t slot) { return slots_[slot]; }
  const WorkRequest& operator[](std::uint32_t slot) const { return slots_[slot]; }

  /// One thing that was still to happen has happened; after the last one the number is free. Not of
  /// one that failed: what is under way may still name it.
  void close(std::uint32_t slot);
  /// The queue pair's that were begun and have not ended, in the order of their posts.
  std::vector<std::uint32_t> under_way(RdmaQpId qp) const;

 private:
  Slots<WorkRequest> slots_;
  std::uint64_t posted_{0};
};

}  // namespace weft
