#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "sim/engine/event_queue.hpp"
#include "sim/run/transport.hpp"

namespace weft {

/// A transport without sharing: a walk of k legs moves a byte in k ns and delivers 100 ns later. So
/// does a queue pair of number k; completions take 40 ns more, of receives 40 ns too.
class FixedRates final : public Transport, private EventTarget {
 public:
  FixedRates(EventQueue& events, CauseTable& causes)
      : events_{events},
        moving_{causes.intern({"moving", ""})},
        flying_{causes.intern({"flying", ""})},
        completing_{causes.intern({"completing", ""})},
        waiting_{causes.intern({"waiting for a receive", ""})} {}

  static constexpr Duration kFlight = Duration::ns(100);
  static constexpr Duration kCompletion = Duration::ns(40);

  WalkId prepare(const Walk& walk, const Mover& /*mover*/) override {
    return WalkId{add_lane(static_cast<std::int64_t>(walk.size()))};
  }
  void submit(WalkId walk, Bytes bytes, std::uint64_t tag) override {
    begin(lanes_[walk.index()], {.bytes = bytes, .is_signalled = false, .tag = tag}, events_.now());
  }

  QpHandle open(const QueuePair& queue_pair) override {
    const std::size_t lane = add_lane(queue_pair.number);
    lanes_[lane].tells = queue_pair.send_cq != kNoIndex;
    return QpHandle{lane};
  }
  void post(QpHandle queue_pair, std::span<const VerbRequest> requests) override {
    Lane& lane = lanes_[queue_pair.index()];
    for (const VerbRequest& request : requests) lane.held.push_back({request, events_.now()});
    begin_held(lane);
  }
  void post_receives(QpHandle queue_pair, std::uint32_t count) override {
    Lane& lane = lanes_[queue_pair.index()];
    lane.receives = lane.receives.value_or(0) + count;
    begin_held(lane);
  }
  void set_sink(TransportSink& sink) override { sink_ = &sink; }

 private:
  enum class What { kSent, kDelivered, kReceived, kCompleted };
  struct Call {
    What what;
    bool queued;
    std::uint64_t tag;
    Duration time;
    Duration held;
  };
  struct Held {
    VerbRequest request;
    Time since;
  };
  struct Lane {
    Duration per_byte;
    bool tells{false};
    Time free_at{};
    std::optional<std::uint32_t> receives{};
    std::deque<Held> held{};
  };

  std::size_t add_lane(std::int64_t ns_a_byte) {
    lanes_.push_back({.per_byte = Duration::ns(ns_a_byte)});
    return lanes_.size() - 1;
  }
  void begin_held(Lane& lane) {
    while (!lane.held.empty()) {
      const Held& first = lane.held.front();
      if (first.request.verb == Verb::kSend && lane.receives) {
        if (*lane.receives == 0) return;
        --*lane.receives;
      }
      begin(lane, first.request, first.since);
      lane.held.pop_front();
    }
  }
  void begin(Lane& lane, const VerbRequest& request, Time since) {
    const bool queued = lane.free_at > events_.now();
    const Duration time = lane.per_byte * request.bytes.count();
    const Duration held = queued ? Duration{} : events_.now() - since;
    lane.free_at = std::max(lane.free_at, events_.now()) + time;
    at(lane.free_at, {What::kSent, queued, request.tag, time, held});
    at(lane.free_at + kFlight, {What::kDelivered, false, request.tag, {}, {}});
    const Time later = lane.free_at + kFlight + kCompletion;
    if (request.verb == Verb::kSend) at(later, {What::kReceived, false, request.tag, {}, {}});
    if (request.is_signalled && lane.tells)
      at(later, {What::kCompleted, false, request.tag, {}, {}});
  }

  void at(Time when, const Call& call) {
    std::size_t slot = calls_.size();
    if (free_.empty()) {
      calls_.push_back(call);
    } else {
      slot = free_.back();
      free_.pop_back();
      calls_[slot] = call;
    }
    events_.schedule_at(when, Phase::kDeliver, *this, slot);
  }
  void on_event(std::uint64_t slot) override {
    const Call call = calls_[slot];
    free_.push_back(slot);
    const Segment moved[]{{waiting_, call.held}, {moving_, call.time}};
    const Segment flown[]{{flying_, kFlight}, {completing_, kCompletion}};
    switch (call.what) {
      case What::kSent:
        return sink_->on_sent(call.tag, call.queued, moved);
      case What::kDelivered:
        return sink_->on_delivered(call.tag, std::span{flown}.first(1));
      case What::kReceived:
        return sink_->on_received(call.tag, flown);
      case What::kCompleted:
        return sink_->on_completed(call.tag, flown);
    }
  }

  EventQueue& events_;
  CauseId moving_;
  CauseId flying_;
  CauseId completing_;
  CauseId waiting_;
  TransportSink* sink_{nullptr};
  std::deque<Lane> lanes_;
  std::vector<Call> calls_;
  std::vector<std::size_t> free_;
};

}  // namespace weft
