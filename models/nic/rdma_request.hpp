#pragma once

#include <cstdint>

#include "models/pcie/domain.hpp"
#include "sim/base/id.hpp"
#include "sim/base/units.hpp"

namespace weft {

using RdmaNicId = Id<struct RdmaNicTag>;
using RdmaQpId = Id<struct RdmaQpTag>;

enum class RdmaOp : std::uint8_t { kWrite, kRead, kSend };

/// Where a NIC reads or writes: the route and the address of a DMA.
struct RdmaBuffer {
  PcieRoutesId routes{};
  std::uint64_t address{0};
  Bytes page{Bytes::kib(4)};  ///< by which it is registered
};

/// How a work request ended (ibv_wc_status).
enum class RdmaStatus : std::uint8_t { kSuccess, kRetryExceeded, kRnrRetryExceeded, kFlushed };

/// Whoever posted a work request hears of it here. `tag` is that of the request.
class RdmaClient {
 public:
  /// The last packet of its payload begins to leave the requester's NIC (writes and sends).
  virtual void on_sent(std::uint64_t /*tag*/) {}
  /// The completion is in the requester's memory.
  virtual void on_completion(std::uint64_t /*tag*/) {}
  /// All data are in the target's memory (the requester's for a read).
  virtual void on_visible(std::uint64_t /*tag*/) {}
  /// The completion of a receive is in the receiver's memory.
  virtual void on_received(std::uint64_t /*tag*/) {}
  /// The queue pair has failed, and the completion that says so is in the requester's memory. The
  /// first request that had not ended has the reason, those after it were flushed.
  /// Unless it is overridden it throws InputError, from the event queue.
  virtual void on_error(std::uint64_t tag, RdmaStatus status);

 protected:
  ~RdmaClient() = default;
};

struct RdmaRequest {
  RdmaOp op{RdmaOp::kWrite};
  Bytes bytes{};
  RdmaBuffer local;   ///< of the requester's NIC: read for writes and sends, written for reads
  RdmaBuffer remote;  ///< of the other NIC
  bool is_inline{false};
  bool is_signalled{true};
  std::uint64_t tag{0};
  RdmaClient* client{nullptr};  ///< outlives the request
};

}  // namespace weft
