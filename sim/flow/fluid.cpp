#include "sim/flow/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/flow/common.hpp"

namespace weft {
namespace {

using flow::require;

Time at_ps(std::int64_t ps) { return Time{} + Duration::ps(ps); }
std::int64_t to_ps(Time t) { return t.since_start().count_ps(); }

}  // namespace

FlowServerIndex FluidSystem::add_server(Bandwidth capacity) {
  clocks_.emplace_back();
  return FlowServerIndex{solver_.add_server(capacity.as_bytes_per_s())};
}

void FluidSystem::require_server(FlowServerIndex server) const {
  require(server.index() < solver_.server_count(), "FluidSystem: unknown server");
}

RouteIndex FluidSystem::add_route(std::span<const Use> uses, std::optional<Bandwidth> cap,
                                  double share) {
  require(!uses.empty() || cap, "FluidSystem: a route with neither uses nor cap");
  require(share > 0.0 && std::isfinite(share), "FluidSystem: share must be positive");
  std::vector<IncrementalMaxMin::RouteUse> merged;
  for (const Use& use : uses) {
    require_server(use.server);
    require(use.weight > 0.0 && std::isfinite(use.weight), "FluidSystem: weight must be positive");
    const auto same = std::find_if(merged.begin(), merged.end(),
                                   [&](const auto& m) { return m.server == use.server.value; });
    if (same == merged.end()) {
      merged.push_back({.server = use.server.value, .weight = use.weight});
    } else {
      same->weight += use.weight;
    }
  }
  const double cap_bytes_per_s =
      cap ? cap->as_bytes_per_s() : std::numeric_limits<double>::infinity();
  finished_bytes_.push_back(0.0);
  return RouteIndex{solver_.add_route(merged, cap_bytes_per_s, share)};
}

void FluidSystem::start(RouteIndex route, Bytes bytes, std::uint64_t tag) {
  require(route.index() < solver_.route_count(), "FluidSystem: unknown route");
  require(bytes >= Bytes{0}, "FluidSystem: negative bytes");
  const std::uint64_t sequence = next_sequence_++;
  ++in_progress_;
  if (bytes == Bytes{0}) {
    empty_.push_back({.tag = tag, .sequence = sequence});
    return;
  }
  const std::uint32_t slot = solver_.add_flow(route.value);
  if (slot >= flows_.size()) {
    flows_.resize(std::size_t{slot} + 1);
    places_.resize(std::size_t{slot} + 1);
  }
  flows_[slot] = {.tag = tag,
                  .sequence = sequence,
                  .start = now_,
                  .bytes = bytes.as_double(),
                  .remaining = bytes.as_double(),
                  .rate = 0,
                  .updated = now_,
                  .limited_since = now_};
}

void FluidSystem::set_capacity(FlowServerIndex server, Bandwidth capacity) {
  require_server(server);
  solver_.set_capacity(server.value, capacity.as_bytes_per_s());
}

double FluidSystem::remaining_at(std::uint32_t slot, Time t) const {
  const Flow& flow = flows_[slot];
  if (!flow.limiter.is_own_cap()) {
    const ServiceClock& clock = clocks_[flow.limiter.server().index()];
    return clock.remaining(slot, t, places_) * solver_.share(slot);
  }
  const auto elapsed_ps = static_cast<double>((t - flow.updated).count_ps());
  return std::max(0.0, flow.remaining - flow.rate * (elapsed_ps * 1e-12));
}

void FluidSystem::change_limiter(Flow& flow, Limiter limiter) {
  if (flow.limiter == limiter) return;
  const std::uint32_t latest = flow.history;
  if (now_ > flow.limited_since) {
    flow.history = take_node();
    nodes_[flow.history] = {.limited = {flow.limiter, now_ - flow.limited_since}, .next = latest};
    flow.limited_since = now_;
  } else if (latest != kNone && nodes_[latest].limited.limiter == limiter) {
    // Back within the same instant: the other limiter never held it.
    flow.limited_since = now_ + (Duration{} - nodes_[latest].limited.duration);
    flow.history = nodes_[latest].next;
    give_node(latest);
  }
  flow.limiter = limiter;
}

std::uint32_t FluidSystem::take_node() {
  if (free_node_ == kNone) {
    nodes_.push_back({.limited = {Limiter::own_cap(), Duration{}}, .next = kNone});
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  return std::exchange(free_node_, nodes_[free_node_].next);
}

void FluidSystem::give_node(std::uint32_t node) {
  nodes_[node].next = std::exchange(free_node_, node);
}

void FluidSystem::touch(std::uint32_t server) { touched_.push_back(server); }

// Takes a flow out of the queue it is in; what is left of it is to be known before.
void FluidSystem::leave(std::uint32_t slot) {
  const Flow& flow = flows_[slot];
  if (!flow.limiter.is_own_cap()) {
    const std::uint32_t server = flow.limiter.server().value;
    clocks_[server].leave(slot, places_);
    touch(server);
  } else if (flow.rate > 0.0) {
    capped_finishes_.set(slot, MinTree::kNone);
  }
}

void FluidSystem::detach(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  flow.remaining = remaining_at(slot, now_);
  flow.updated = now_;
  leave(slot);
}

void FluidSystem::attach(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  change_limiter(flow, Limiter{solver_.limiter(slot)});
  if (flow.limiter.is_own_cap()) {
    flow.rate = solver_.rate(slot);
    capped_finishes_.set(slot, finish_ps(flow.remaining, flow.rate, now_));
    return;
  }
  const std::uint32_t server = flow.limiter.server().value;
  clocks_[server].join(slot, flow.remaining / solver_.share(slot), now_, places_);
  touch(server);
}

void FluidSystem::resolve() {
  solver_.solve();
  // A flow that moves leaves its old clock at the old level and joins the new one at the new level.
  for (const std::uint32_t slot : solver_.moved()) detach(slot);
  for (const std::uint32_t server : solver_.shifted()) {
    clocks_[server].set_level(solver_.level(server), now_);
    touch(server);
  }
  for (const std::uint32_t slot : solver_.moved()) attach(slot);
  for (const std::uint32_t server : touched_) {
    const ServiceClock& clock = clocks_[server];
    clock_finishes_.set(server, clock.is_empty() ? MinTree::kNone : clock.first_finish_ps());
  }
  touched_.clear();
}

std::optional<Time> FluidSystem::next_change() {
  resolve();
  if (!empty_.empty()) return now_;
  const std::int64_t ps = std::min(clock_finishes_.min(), capped_finishes_.min());
  if (ps == MinTree::kNone) return std::nullopt;
  return at_ps(ps);
}

void FluidSystem::write_limits(const Flow& flow) {
  const std::size_t begin = limits_.size();
  if (now_ > flow.limited_since) limits_.push_back({flow.limiter, now_ - flow.limited_since});
  for (std::uint32_t node = flow.history; node != kNone;) {
    const std::uint32_t next = nodes_[node].next;
    limits_.push_back(nodes_[node].limited);
    give_node(node);
    node = next;
  }
  std::reverse(limits_.begin() + static_cast<std::ptrdiff_t>(begin), limits_.end());
}

void FluidSystem::finish(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  const auto begin = static_cast<std::uint32_t>(limits_.size());
  leave(slot);
  write_limits(flow);
  done_.push_back({.sequence = flow.sequence,
                   .tag = flow.tag,
                   .start = flow.start,
                   .limits_begin = begin,
                   .limits_end = static_cast<std::uint32_t>(limits_.size())});
  finished_bytes_[solver_.route(slot)] += flow.bytes;
  solver_.remove_flow(slot);
  flow.sequence = kDone;
}

void FluidSystem::advance(Time t, std::vector<Finished>& finished) {
  require(t >= now_, "FluidSystem: advance into the past");
  const std::optional<Time> next = next_change();
  require(!next || t <= *next, "FluidSystem: advance beyond the next change");
  now_ = t;
  due_.clear();
  done_.clear();
  limits_.clear();
  finished.clear();
  if (!next || t < *next) return;
  clock_finishes_.collect(to_ps(t), due_);
  for (const std::uint32_t server : due_) {
    const ServiceClock& clock = clocks_[server];
    do {
      finish(clock.first_slot());
    } while (!clock.is_empty() && clock.first_finish_ps() <= to_ps(t));
  }
  due_.clear();
  capped_finishes_.collect(to_ps(t), due_);
  for (const std::uint32_t slot : due_) finish(slot);
  for (const Empty& e : empty_) {
    done_.push_back(
        {.sequence = e.sequence, .tag = e.tag, .start = t, .limits_begin = 0, .limits_end = 0});
  }
  empty_.clear();
  std::sort(done_.begin(), done_.end(),
            [](const Done& a, const Done& b) { return a.sequence < b.sequence; });
  in_progress_ -= done_.size();
  for (const Done& d : done_) {
    finished.push_back({.tag = d.tag,
                        .start = d.start,
                        .finish = t,
                        .limits = std::span<const LimitedFor>{limits_}.subspan(
                            d.limits_begin, d.limits_end - d.limits_begin)});
  }
}

double FluidSystem::utilisation(FlowServerIndex server) {
  require_server(server);
  resolve();
  double used = 0;
  solver_.for_each_user(server.value, [&](std::uint32_t slot, double weight) {
    used += solver_.rate(slot) * weight;
  });
  return used / solver_.capacity(server.value);
}

double FluidSystem::used_bytes(FlowServerIndex server) const {
  require_server(server);
  double used = 0;
  for (std::uint32_t route = 0; route < solver_.route_count(); ++route) {
    for (const auto& use : solver_.uses(route)) {
      if (use.server == server.value) used += finished_bytes_[route] * use.weight;
    }
  }
  solver_.for_each_user(server.value, [&](std::uint32_t slot, double weight) {
    used += (flows_[slot].bytes - remaining_at(slot, now_)) * weight;
  });
  return used;
}

std::vector<double> FluidSystem::seconds_used(Time t) const {
  std::vector<double> used(server_count());
  for (std::uint32_t route = 0; route < solver_.route_count(); ++route) {
    for (const auto& use : solver_.uses(route)) {
      used[use.server] += finished_bytes_[route] * use.weight;
    }
  }
  for (std::uint32_t server = 0; server < used.size(); ++server) {
    solver_.for_each_user(server, [&](std::uint32_t slot, double weight) {
      used[server] += (flows_[slot].bytes - remaining_at(slot, t)) * weight;
    });
    used[server] /= solver_.capacity(server);
  }
  return used;
}

std::vector<FlowInProgress> FluidSystem::in_progress() {
  resolve();
  std::vector<std::uint32_t> slots;
  for (std::uint32_t slot = 0; slot < flows_.size(); ++slot) {
    if (flows_[slot].sequence != kDone) slots.push_back(slot);
  }
  std::sort(slots.begin(), slots.end(), [this](std::uint32_t a, std::uint32_t b) {
    return flows_[a].sequence < flows_[b].sequence;
  });
  std::vector<FlowInProgress> result;
  for (const std::uint32_t slot : slots) {
    const Flow& flow = flows_[slot];
    result.push_back({.tag = flow.tag,
                      .rate_bytes_per_s = solver_.rate(slot),
                      .limiter = flow.limiter,
                      .remaining_bytes = remaining_at(slot, now_)});
  }
  return result;
}

}  // namespace weft
