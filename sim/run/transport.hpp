#pragma once

#include <cstdint>
#include <span>

#include "sim/base/id.hpp"
#include "sim/base/units.hpp"
#include "sim/plan/walk.hpp"
#include "sim/run/cause.hpp"

namespace weft {

using WalkId = Id<struct WalkTag>;

/// Some time and what it went to.
struct Segment {
  CauseId cause;
  Duration time;
};

/// Whoever submits transfers hears of them here, at the simulated instant at which it happens.
class TransportSink {
 public:
  /// The last byte has left the source, and whoever moves the data may turn to the next transfer.
  /// `queued`: it had to wait for the transfer before it on the same walk; then the segments cover
  /// the time since that one was sent, else since it was submitted.
  virtual void on_sent(std::uint64_t tag, bool queued, std::span<const Segment> segments) = 0;
  /// The last byte is visible at the sink; the segments cover the time since it was sent.
  virtual void on_delivered(std::uint64_t tag, std::span<const Segment> segments) = 0;

 protected:
  ~TransportSink() = default;
};

/// What carries bytes along walks in simulated time. Both transports, fluid and packet, are this.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Makes a walk ready for use; each call makes one lane of its own (a queue pair, a thread
  /// block), on which transfers go one after the other in the order submitted. Throws InputError if
  /// the fabric has no way for a leg. `copies`: the lane stands for so many that do the same at the
  /// same time; the bytes of a transfer are those of one.
  virtual WalkId prepare(const Walk& walk, std::uint32_t copies) = 0;
  /// Begins a transfer now. The sink hears on_sent and on_delivered once each, in this order.
  virtual void submit(WalkId walk, Bytes bytes, std::uint64_t tag) = 0;
  virtual void set_sink(TransportSink& sink) = 0;
};

}  // namespace weft
