#pragma once

#include <cstdint>
#include <span>

#include "sim/base/id.hpp"
#include "sim/base/units.hpp"
#include "sim/plan/queue_pair.hpp"
#include "sim/plan/walk.hpp"
#include "sim/run/cause.hpp"

namespace weft {

using WalkId = Id<struct WalkTag>;
using QpHandle = Id<struct QpHandleTag>;

/// Some time and what it went to.
struct Segment {
  CauseId cause;
  Duration time;
};

/// A request on a queue pair.
struct VerbRequest {
  Verb verb{Verb::kWrite};
  Bytes bytes;
  bool is_inline{false};
  bool is_signalled{false};
  std::uint64_t tag{0};
};

/// Whoever submits transfers hears of them here, at the simulated instant at which it happens.
class TransportSink {
 public:
  /// The last byte has left the source, and whoever moves the data may turn to the next transfer.
  /// `queued`: it had to wait for the transfer before it on the same walk; then the segments cover
  /// the time since that one was sent, else since it was submitted. Of reads it may not be told.
  virtual void on_sent(std::uint64_t tag, bool queued, std::span<const Segment> segments) = 0;
  /// The last byte is visible at the sink; the segments cover the time since it was sent, or, if
  /// that was not told, since it was posted.
  virtual void on_delivered(std::uint64_t tag, std::span<const Segment> segments) = 0;
  /// The completion of a signalled request is in the poster's memory, if its queue pair has a
  /// send_cq. Segments as of on_delivered.
  virtual void on_completed(std::uint64_t tag, std::span<const Segment> segments) = 0;
  /// The completion of a send's receive is in the receiver's memory. Segments as of on_delivered.
  virtual void on_received(std::uint64_t tag, std::span<const Segment> segments) = 0;

 protected:
  ~TransportSink() = default;
};

/// Who moves bytes along a walk.
struct Mover {
  std::uint32_t copies{1};  ///< it stands for so many that do the same at the same time
  std::uint32_t number{0};  ///< Actor::number
};

/// What carries bytes along walks, and by verbs, in simulated time. Both transports, fluid and
/// packet, are this.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Makes a walk ready for use; each call opens one of its own (a thread block), on which
  /// transfers go one after the other in the order submitted. Throws InputError if the fabric has
  /// no way for a leg. The bytes of a transfer are those of one copy.
  virtual WalkId prepare(const Walk& walk, const Mover& mover) = 0;
  /// Begins a transfer now. The sink hears on_sent and on_delivered once each, in this order, the
  /// first perhaps inside this call: a store may leave at once.
  /// Throws std::logic_error, on packets, if the transfer before it on this walk was not sent.
  virtual void submit(WalkId walk, Bytes bytes, std::uint64_t tag) = 0;

  /// Makes a queue pair ready for use. Throws InputError if the NICs cannot reach each other or the
  /// memory.
  virtual QpHandle open(const QueuePair& queue_pair) = 0;
  /// The poster has just rung the doorbell for these. Each is heard of as sent (but a read), as
  /// delivered, and as completed and received where that is to be told.
  virtual void post(QpHandle queue_pair, std::span<const VerbRequest> requests) = 0;
  /// The other end has just posted receives. From the first time on each send takes one, and waits
  /// for it; before, one is always at hand.
  virtual void post_receives(QpHandle queue_pair, std::uint32_t count) = 0;

  virtual void set_sink(TransportSink& sink) = 0;
};

}  // namespace weft
