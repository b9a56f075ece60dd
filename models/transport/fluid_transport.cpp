#include "models/transport/fluid_transport.hpp"

#include <utility>

namespace weft {
namespace {

/// Kinds of event, in the low bits of `what`; the rest is the lane.
enum Kind : std::uint64_t { kHeadDone, kDeliver, kChange, kSolve };
constexpr std::uint64_t kKindBits = 2;

std::uint64_t event_code(Kind kind, std::size_t lane = 0) {
  return (static_cast<std::uint64_t>(lane) << kKindBits) | kind;
}

Duration total(const std::vector<Segment>& segments) {
  Duration sum;
  for (const Segment& s : segments) sum += s.time;
  return sum;
}

}  // namespace

FluidTransport::FluidTransport(const Machine& machine, EventQueue& events, CauseTable& causes)
    : machine_{&machine},
      events_{&events},
      causes_{&causes},
      flow_resource_(machine.server_count()) {}

ResourceIndex FluidTransport::flow_resource(ServerId server) {
  std::optional<ResourceIndex>& known = flow_resource_[server.index()];
  if (!known) {
    known = fluid_.add_resource(Bandwidth::bytes_per_s(machine_->capacity(server)));
    server_.push_back(server);
    resource_cause_.emplace_back();
  }
  return *known;
}

std::vector<Segment> FluidTransport::segments(const std::vector<LatencyPart>& parts) {
  std::vector<Segment> out;
  for (const LatencyPart& part : parts) out.push_back({causes_->intern(part.cause), part.time});
  return out;
}

WalkId FluidTransport::prepare(const Walk& walk, std::uint32_t copies) {
  const Contraction contraction = contract(*machine_, walk);
  std::vector<Use> uses;
  for (const ServerUse& u : contraction.uses)
    uses.push_back({flow_resource(u.server), copies * u.weight});
  Lane lane;
  std::optional<Bandwidth> cap;
  if (contraction.cap) {
    cap = contraction.cap->rate;
    lane.cap = causes_->intern(contraction.cap->cause);
  }
  lane.route = fluid_.add_route(uses, cap);
  lane.head = segments(contraction.head);
  lane.tail = segments(contraction.tail);
  lane.head_time = total(lane.head);
  lane.tail_time = total(lane.tail);
  lanes_.push_back(std::move(lane));
  return WalkId{lanes_.size() - 1};
}

void FluidTransport::submit(WalkId walk, Bytes bytes, std::uint64_t tag) {
  Lane& lane = lanes_[walk.index()];
  lane.heading.push({bytes, tag});
  if (lane.head_time == Duration{}) {
    head_done(walk.index());
    return;
  }
  events_->schedule_after(lane.head_time, Phase::kDeliver, *this,
                          event_code(kHeadDone, walk.index()));
}

void FluidTransport::on_event(std::uint64_t what) {
  const auto lane = static_cast<std::size_t>(what >> kKindBits);
  switch (static_cast<Kind>(what & ((1U << kKindBits) - 1))) {
    case kHeadDone:
      head_done(lane);
      return;
    case kDeliver:
      deliver(lane);
      return;
    case kChange:
      advance();
      return;
    case kSolve:
      plan_next_change();
      return;
  }
}

void FluidTransport::head_done(std::size_t index) {
  Lane& lane = lanes_[index];
  const Transfer transfer = lane.heading.pop();
  if (lane.flowing) {
    lane.waiting.push(transfer);
  } else {
    start(index, transfer, false);
  }
}

void FluidTransport::start(std::size_t index, Transfer transfer, bool queued) {
  Lane& lane = lanes_[index];
  lane.flowing = transfer;
  lane.flowing_was_queued = queued;
  if (fluid_.now() < events_->now()) sync_clock();
  fluid_.start(lane.route, transfer.bytes, index);
  plan_solve();
}

void FluidTransport::plan_next_change() {
  solve_planned_ = false;
  if (next_change_) events_->cancel(*next_change_);
  next_change_.reset();
  const std::optional<Time> next = fluid_.next_change();
  if (next) {
    next_change_ = events_->schedule_at(*next, Phase::kDeliver, *this, event_code(kChange));
  }
}

void FluidTransport::advance() {
  next_change_.reset();
  sync_clock();
  plan_solve();
}

void FluidTransport::sync_clock() {
  fluid_.advance(events_->now(), finished_);
  for (const Finished& flow : finished_) finish(flow);
}

void FluidTransport::plan_solve() {
  if (std::exchange(solve_planned_, true)) return;
  events_->schedule_after(Duration{}, Phase::kObserve, *this, event_code(kSolve));
}

void FluidTransport::finish(const Finished& flow) {
  const auto index = static_cast<std::size_t>(flow.tag);
  Lane& lane = lanes_[index];
  const Transfer transfer = *std::exchange(lane.flowing, std::nullopt);
  const bool queued = lane.flowing_was_queued;
  scratch_.clear();
  if (!queued) scratch_ = lane.head;
  for (const LimitedFor& limit : flow.limits) {
    const CauseId cause =
        limit.limiter.is_own_cap() ? *lane.cap : resource_cause(limit.limiter.resource());
    scratch_.push_back({cause, limit.duration});
  }
  if (!lane.waiting.empty()) start(index, lane.waiting.pop(), true);
  lane.tailing.push(transfer);
  sink_->on_sent(transfer.tag, queued, scratch_);
  if (lanes_[index].tail_time == Duration{}) {
    deliver(index);
  } else {
    events_->schedule_after(lanes_[index].tail_time, Phase::kDeliver, *this,
                            event_code(kDeliver, index));
  }
}

void FluidTransport::deliver(std::size_t index) {
  const Transfer transfer = lanes_[index].tailing.pop();
  sink_->on_delivered(transfer.tag, lanes_[index].tail);
}

CauseId FluidTransport::resource_cause(ResourceIndex resource) {
  std::optional<CauseId>& known = resource_cause_[resource.index()];
  if (!known) known = causes_->intern(machine_->cause(server_[resource.index()]));
  return *known;
}

}  // namespace weft
