#include "sim/flow/incremental_maxmin.hpp"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

// A resource is full when less than this fraction of its capacity is left, and levels this close
// are one: some thousand times what double arithmetic loses (maxmin.cpp has the same).
constexpr double kTie = 1e-13;
// Levels further apart than this are surely different; between the two we look more closely.
constexpr double kSurelyBelow = 1.0 - 1e-9;
// Seeds may come early but never late; this covers the rounding in a resource's summed load.
constexpr double kEarly = 1.0 - 1e-6;
// Sums of what flows could take are whole bytes/s, so that they do not drift. A flow counts at most
// this much (8.8e12), which leaves room for a million flows on a resource.
constexpr double kMostBytesPerS = 8796093022208.0;

void rise_to(double level, double load, double& left, double& measured_at) {
  left -= (level - measured_at) * load;
  measured_at = level;
}

}  // namespace

bool IncrementalMaxMin::later(const Event& a, const Event& b) {
  if (a.level != b.level) return a.level > b.level;
  if (a.kind != b.kind) return a.kind > b.kind;
  return a.index > b.index;
}

IncrementalMaxMin::State IncrementalMaxMin::state(const Hot& flow) const {
  return (flow.stamp >> 2) == solve_ ? static_cast<State>(flow.stamp & 3U) : State::kAsBefore;
}

void IncrementalMaxMin::set_state(Hot& flow, State state) const {
  flow.stamp = (solve_ << 2) | static_cast<std::uint32_t>(state);
}

std::uint32_t IncrementalMaxMin::add_resource(double capacity) {
  Resource& r = resources_.emplace_back();
  r.capacity = capacity;
  r.fills_above = static_cast<std::int64_t>(std::min(capacity, kMostBytesPerS - 1.0));
  return static_cast<std::uint32_t>(resources_.size() - 1);
}

std::uint32_t IncrementalMaxMin::add_route(std::span<const RouteUse> uses, double cap,
                                           double share) {
  Route route{.begin = static_cast<std::uint32_t>(route_uses_.size()),
              .count = static_cast<std::uint32_t>(uses.size()),
              .share = share,
              .cap_level = cap / share,
              .bound_level = 0,
              .bound_limiter = kOwnCap};
  for (const RouteUse& use : uses) {
    route_uses_.push_back(use);
    route_loads_.push_back({.per_level = use.weight * share, .at_bound = 0});
  }
  find_bound(route);
  routes_.push_back(route);
  return static_cast<std::uint32_t>(routes_.size() - 1);
}

void IncrementalMaxMin::find_bound(Route& route) {
  route.bound_level = route.cap_level;
  route.bound_limiter = kOwnCap;
  for (std::uint32_t i = route.begin; i < route.begin + route.count; ++i) {
    const std::uint32_t resource = route_uses_[i].resource;
    const double level = resources_[resource].capacity / route_loads_[i].per_level;
    if (level < route.bound_level) {
      route.bound_level = level;
      route.bound_limiter = resource;
    }
  }
  for (std::uint32_t i = route.begin; i < route.begin + route.count; ++i) {
    // The factor takes back what multiplying and dividing by a weight may have added, so that a
    // flow alone never counts as more than its resource.
    const double bound = route_loads_[i].per_level * route.bound_level * (1.0 - 1e-13);
    route_loads_[i].at_bound =
        static_cast<std::int64_t>(std::ceil(std::min(bound, kMostBytesPerS)));
  }
}

void IncrementalMaxMin::refresh_bounds() {
  for (Route& route : routes_) find_bound(route);
  for (Resource& r : resources_) {
    r.at_bound = 0;
    for (const User& u : r.users) {
      r.at_bound += route_loads_[routes_[cold_[u.slot].route].begin + u.use].at_bound;
    }
  }
}

std::uint32_t IncrementalMaxMin::take_positions(std::uint32_t count) {
  if (free_positions_.size() <= count) free_positions_.resize(count + 1);
  if (free_positions_[count].empty()) {
    positions_.resize(positions_.size() + count);
    return static_cast<std::uint32_t>(positions_.size() - count);
  }
  const std::uint32_t begin = free_positions_[count].back();
  free_positions_[count].pop_back();
  return begin;
}

std::uint32_t IncrementalMaxMin::add_flow(std::uint32_t route_index) {
  const Route& route = routes_[route_index];
  auto slot = static_cast<std::uint32_t>(hot_.size());
  if (free_slots_.empty()) {
    hot_.emplace_back();
    cold_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  hot_[slot] = {.level = 0, .limiter = kNoLimiter, .stamp = 0};
  cold_[slot] = {.route = route_index, .positions = take_positions(route.count)};
  for (std::uint32_t use = 0; use < route.count; ++use) {
    const Load& load = route_loads_[route.begin + use];
    Resource& r = resources_[route_uses_[route.begin + use].resource];
    positions_[cold_[slot].positions + use] = static_cast<std::uint32_t>(r.users.size());
    r.users.push_back({.slot = slot, .use = use, .load = load.per_level});
    r.load += load.per_level;
    r.at_bound += load.at_bound;
  }
  started_.push_back(slot);
  return slot;
}

void IncrementalMaxMin::remove_flow(std::uint32_t slot) {
  const Route& route = routes_[cold_[slot].route];
  const Hot flow = hot_[slot];
  if (flow.limiter < kNoLimiter) --resources_[flow.limiter].limits;
  if (flow.limiter == kNoLimiter) std::erase(started_, slot);
  const std::uint32_t begin = cold_[slot].positions;
  for (std::uint32_t use = 0; use < route.count; ++use) {
    const std::uint32_t resource = route_uses_[route.begin + use].resource;
    Resource& r = resources_[resource];
    const User moved = r.users.back();
    const std::uint32_t position = positions_[begin + use];
    r.users[position] = moved;
    positions_[cold_[moved.slot].positions + moved.use] = position;
    r.users.pop_back();
    r.load = r.users.empty() ? 0.0 : r.load - route_loads_[route.begin + use].per_level;
    r.at_bound -= route_loads_[route.begin + use].at_bound;
    // Where nobody was limited, nobody can gain.
    if (r.limits > 0) seed(resource, flow.level);
  }
  free_positions_[route.count].push_back(begin);
  free_slots_.push_back(slot);
}

void IncrementalMaxMin::set_capacity(std::uint32_t resource, double capacity) {
  Resource& r = resources_[resource];
  if (r.capacity == capacity) return;
  r.capacity = capacity;
  r.fills_above = static_cast<std::int64_t>(std::min(capacity, kMostBytesPerS - 1.0));
  capacity_changed_.push_back(resource);
}

void IncrementalMaxMin::seed(std::uint32_t resource, double level) {
  Resource& r = resources_[resource];
  if (r.seed == kInfinity) disturbed_.push_back(resource);
  r.seed = std::min(r.seed, level * kEarly);
}

void IncrementalMaxMin::seed_changes() {
  if (!capacity_changed_.empty()) refresh_bounds();
  for (const std::uint32_t resource : capacity_changed_) {
    const Resource& r = resources_[resource];
    if (r.users.empty()) continue;
    double level = r.capacity / r.load;
    for (const User& u : r.users) {
      if (hot_[u.slot].limiter == resource) level = std::min(level, hot_[u.slot].level);
    }
    seed(resource, level);
  }
  capacity_changed_.clear();
  for (const std::uint32_t slot : started_) begin(slot);
  started_.clear();
  for (const std::uint32_t resource : disturbed_) {
    Resource& r = resources_[resource];
    if (!r.users.empty()) push(r.seed, Kind::kSeed, resource);
    r.seed = kInfinity;
  }
  disturbed_.clear();
}

void IncrementalMaxMin::begin(std::uint32_t slot) {
  const Route& route = routes_[cold_[slot].route];
  bool alone = true;
  for (std::uint32_t i = route.begin; i < route.begin + route.count; ++i) {
    const Resource& r = resources_[route_uses_[i].resource];
    if (!could_fill(r)) continue;
    alone = false;
    seed(route_uses_[i].resource, r.capacity / r.load);
  }
  if (alone) {
    set_state(hot_[slot], State::kFixed);
    change(slot, route.bound_level, route.bound_limiter);
    return;
  }
  set_state(hot_[slot], State::kFree);
  if (route.bound_limiter == kOwnCap || !could_fill(resources_[route.bound_limiter])) {
    push(route.bound_level, Kind::kBound, slot);
  }
}

void IncrementalMaxMin::push(double level, Kind kind, std::uint32_t index) {
  heap_.push_back({.level = level, .kind = kind, .index = index});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

std::span<const std::uint32_t> IncrementalMaxMin::solve() {
  changed_.clear();
  if (!is_stale()) return {};
  if (++solve_ == (1U << 30)) {  // the stamps are about to wrap
    solve_ = 1;
    for (Hot& flow : hot_) flow.stamp = 0;
    for (Resource& r : resources_) r.water.disturbed_in = r.water.watched_in = 0;
  }
  level_ = 0;
  seed_changes();
  while (!heap_.empty()) {
    const Event event = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
    handle(event);
  }
  return changed_;
}

void IncrementalMaxMin::handle(const Event& event) {
  switch (event.kind) {
    case Kind::kSeed:
      if (is_disturbed(resources_[event.index])) return;
      level_ = std::max(level_, event.level);
      disturb(event.index);
      return;
    case Kind::kWatch:
      if (is_disturbed(resources_[event.index])) return;
      level_ = std::max(level_, event.level);
      confirm_users(event.index);
      return;
    case Kind::kDisturbed:
      advance_disturbed(event.index, event.level);
      return;
    case Kind::kBound:
      if (state(hot_[event.index]) == State::kFixed) return;
      level_ = std::max(level_, event.level);
      reach_bound(event.index);
      return;
  }
}

// From here on the sweep keeps this resource's water. Every flow on it that is not yet fixed counts
// as open, and each has an event ahead that will fix it: its limiter's, its own cap's, or this
// one's.
void IncrementalMaxMin::disturb(std::uint32_t resource) {
  Resource& r = resources_[resource];
  Water& w = r.water;
  w.disturbed_in = solve_;
  w.load = 0;
  w.level = level_;
  w.released_at = kInfinity;
  w.open = 0;
  double fixed = 0;
  const double surely_below = level_ * kSurelyBelow;
  for (const User& u : r.users) {
    const Hot& flow = hot_[u.slot];
    const State s = state(flow);
    if (s == State::kFixed || (s == State::kAsBefore && flow.level < surely_below)) {
      fixed += u.load * flow.level;
      continue;
    }
    w.load += u.load;
    ++w.open;
    if (s != State::kAsBefore) continue;
    if (flow.limiter == resource) {
      w.released_at = std::min(w.released_at, flow.level);
    } else {
      watch(u.slot, flow);
    }
  }
  w.left = r.capacity - fixed - level_ * w.load;
  if (w.open == 0) return;
  const double fills_at = w.level + std::max(0.0, w.left) / w.load;
  push(std::min(fills_at, w.released_at), Kind::kDisturbed, resource);
}

// A flow on a disturbed resource, held elsewhere: note when it stops growing as it did before.
void IncrementalMaxMin::watch(std::uint32_t slot, const Hot& flow) {
  if (flow.limiter == kOwnCap) {
    push(flow.level, Kind::kBound, slot);
    return;
  }
  Resource& limiter = resources_[flow.limiter];
  if (is_disturbed(limiter) || limiter.water.watched_in == solve_) return;
  limiter.water.watched_in = solve_;
  push(flow.level, Kind::kWatch, flow.limiter);
}

// The sweep reaches the level of an undisturbed resource: the flows it limits are as before.
void IncrementalMaxMin::confirm_users(std::uint32_t resource) {
  for (const User& u : resources_[resource].users) {
    Hot& flow = hot_[u.slot];
    if (flow.limiter != resource || state(flow) != State::kAsBefore) continue;
    set_state(flow, State::kFixed);
    settle(u.slot, resource, false);
  }
}

void IncrementalMaxMin::reach_bound(std::uint32_t slot) {
  Hot& flow = hot_[slot];
  const State before = state(flow);
  set_state(flow, State::kFixed);
  settle(slot, kOwnCap, false);
  if (before == State::kAsBefore) return;
  const Route& route = routes_[cold_[slot].route];
  change(slot, route.bound_level, route.bound_limiter);
}

void IncrementalMaxMin::advance_disturbed(std::uint32_t resource, double key) {
  Water& w = resources_[resource].water;
  if (w.open == 0) return;
  // Nothing else happens below the smallest key, even where it proves to be too low.
  level_ = std::max(level_, key);
  rise_to(level_, w.load, w.left, w.level);
  const double slack = kTie * resources_[resource].capacity;
  double fills_at = level_ + std::max(0.0, w.left) / w.load;
  if ((fills_at - level_) * w.load <= slack) fills_at = level_;
  if (std::abs(fills_at - w.released_at) * w.load <= slack) fills_at = w.released_at;
  const double next = std::min(fills_at, w.released_at);
  if (next > level_ && !heap_.empty() && next > heap_.front().level) {
    push(next, Kind::kDisturbed, resource);
    return;
  }
  level_ = std::max(level_, next);
  if (w.released_at < fills_at) {
    w.released_at = kInfinity;
    release_users(resource);
    push(std::max(fills_at, level_), Kind::kDisturbed, resource);
  } else {
    close(resource);
  }
}

// The resource is not full at the level at which it was before: its flows may grow on.
void IncrementalMaxMin::release_users(std::uint32_t resource) {
  for (const User& u : resources_[resource].users) {
    const Hot& flow = hot_[u.slot];
    if (flow.limiter == resource && state(flow) == State::kAsBefore) release(u.slot, resource);
  }
}

void IncrementalMaxMin::release(std::uint32_t slot, std::uint32_t from) {
  set_state(hot_[slot], State::kFree);
  const Route& route = routes_[cold_[slot].route];
  for (std::uint32_t i = route.begin; i < route.begin + route.count; ++i) {
    const std::uint32_t resource = route_uses_[i].resource;
    const Resource& r = resources_[resource];
    if (resource != from && !is_disturbed(r) && could_fill(r)) disturb(resource);
  }
  if (route.bound_limiter == kOwnCap || !could_fill(resources_[route.bound_limiter])) {
    push(route.bound_level, Kind::kBound, slot);
  }
}

// The resource is full at this level: all its open flows stop here.
void IncrementalMaxMin::close(std::uint32_t resource) {
  Resource& r = resources_[resource];
  r.water.open = 0;
  const double surely_below = level_ * kSurelyBelow;
  for (const User& u : r.users) {
    const Hot& flow = hot_[u.slot];
    const State s = state(flow);
    if (s == State::kFixed || (s == State::kAsBefore && flow.level < surely_below)) continue;
    stop_at(u.slot, resource);
  }
}

void IncrementalMaxMin::stop_at(std::uint32_t slot, std::uint32_t resource) {
  Hot& flow = hot_[slot];
  const bool as_before = state(flow) == State::kAsBefore;
  set_state(flow, State::kFixed);
  if (as_before && std::abs(flow.level - level_) <= kTie * level_) {
    // The same rate; the same limiter too, where that still stands.
    const bool limiter_stands = flow.limiter == resource || flow.limiter == kOwnCap ||
                                !is_disturbed(resources_[flow.limiter]);
    settle(slot, resource, false);
    if (!limiter_stands) change(slot, flow.level, resource);
    return;
  }
  change(slot, level_, resource);
  settle(slot, resource, as_before);
}

// Takes a flow just fixed off the water of its resources. A flow that got less than before leaves
// something to the flows that its other resources limited.
void IncrementalMaxMin::settle(std::uint32_t slot, std::uint32_t except, bool disturb_limiting) {
  const Route& route = routes_[cold_[slot].route];
  for (std::uint32_t i = route.begin; i < route.begin + route.count; ++i) {
    const std::uint32_t resource = route_uses_[i].resource;
    if (resource == except) continue;
    Resource& r = resources_[resource];
    if (is_disturbed(r)) {
      rise_to(level_, r.water.load, r.water.left, r.water.level);
      r.water.load -= route_loads_[i].per_level;
      --r.water.open;
    } else if (disturb_limiting && r.limits > 0) {
      disturb(resource);
    }
  }
}

void IncrementalMaxMin::change(std::uint32_t slot, double level, std::uint32_t limiter) {
  Hot& flow = hot_[slot];
  if (flow.limiter < kNoLimiter) --resources_[flow.limiter].limits;
  if (limiter < kNoLimiter) ++resources_[limiter].limits;
  flow.level = level;
  flow.limiter = limiter;
  changed_.push_back(slot);
}

}  // namespace weft
