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

std::uint32_t IncrementalMaxMin::add_resource(double capacity) {
  waters_.emplace_back();
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
  for (Flow& flow : flows_) {
    flow.bound_level = routes_[flow.route].bound_level;
    flow.bound_limiter = routes_[flow.route].bound_limiter;
  }
  for (Resource& r : resources_) {
    r.at_bound = 0;
    for (const User& u : r.users) {
      r.at_bound += route_loads_[routes_[flows_[u.slot].route].begin + u.use].at_bound;
    }
  }
}

std::uint32_t IncrementalMaxMin::take_links(std::uint32_t count) {
  if (free_links_.size() <= count) free_links_.resize(std::size_t{count} + 1);
  if (free_links_[count].empty()) {
    links_.resize(links_.size() + count);
    return static_cast<std::uint32_t>(links_.size() - count);
  }
  const std::uint32_t begin = free_links_[count].back();
  free_links_[count].pop_back();
  return begin;
}

std::uint32_t IncrementalMaxMin::add_flow(std::uint32_t route_index) {
  const Route& route = routes_[route_index];
  auto slot = static_cast<std::uint32_t>(flows_.size());
  if (free_slots_.empty()) {
    flows_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  const std::uint32_t links = take_links(route.count);
  flows_[slot] = {.level = 0,
                  .limiter = kNoLimiter,
                  .stamp = 0,
                  .links = links,
                  .link_count = route.count,
                  .route = route_index,
                  .bound_limiter = route.bound_limiter,
                  .bound_level = route.bound_level,
                  .share = route.share};
  for (std::uint32_t use = 0; use < route.count; ++use) {
    const Load& load = route_loads_[route.begin + use];
    const std::uint32_t resource = route_uses_[route.begin + use].resource;
    Resource& r = resources_[resource];
    links_[links + use] = {.load = load.per_level,
                           .resource = resource,
                           .position = static_cast<std::uint32_t>(r.users.size())};
    r.users.push_back({.slot = slot, .use = use, .load = load.per_level});
    r.load += load.per_level;
    r.at_bound += load.at_bound;
  }
  started_.push_back(slot);
  return slot;
}

void IncrementalMaxMin::remove_flow(std::uint32_t slot) {
  const Flow flow = flows_[slot];
  const std::uint32_t route_begin = routes_[flow.route].begin;
  if (flow.limiter < kNoLimiter) --waters_[flow.limiter].limits;
  if (flow.limiter == kNoLimiter) std::erase(started_, slot);
  for (std::uint32_t use = 0; use < flow.link_count; ++use) {
    const Link& link = links_[flow.links + use];
    Resource& r = resources_[link.resource];
    const User moved = r.users.back();
    r.users[link.position] = moved;
    links_[flows_[moved.slot].links + moved.use].position = link.position;
    r.users.pop_back();
    r.load = r.users.empty() ? 0.0 : r.load - link.load;
    r.at_bound -= route_loads_[route_begin + use].at_bound;
    // Where nobody was limited, nobody can gain.
    if (waters_[link.resource].limits > 0) seed(link.resource, flow.level);
  }
  free_links_[flow.link_count].push_back(flow.links);
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
      if (flows_[u.slot].limiter == resource) level = std::min(level, flows_[u.slot].level);
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
  Flow& flow = flows_[slot];
  bool alone = true;
  for (std::uint32_t i = flow.links; i < flow.links + flow.link_count; ++i) {
    const Resource& r = resources_[links_[i].resource];
    if (!could_fill(r)) continue;
    alone = false;
    seed(links_[i].resource, r.capacity / r.load);
  }
  if (alone) {
    set_state(flow, State::kFixed);
    change(slot, flow.bound_level, flow.bound_limiter);
    return;
  }
  set_state(flow, State::kFree);
  push_bound(slot);
}

// Notes where a free flow stops unless a disturbed resource stops it before: at its own cap, or at
// the capacity of a resource that it cannot fill together with others.
void IncrementalMaxMin::push_bound(std::uint32_t slot) {
  const Flow& flow = flows_[slot];
  if (flow.bound_limiter == kOwnCap || !could_fill(resources_[flow.bound_limiter])) {
    push(flow.bound_level, Kind::kBound, slot);
  }
}

void IncrementalMaxMin::push(double level, Kind kind, std::uint32_t index) {
  heap_.push_back({.level = level, .kind = kind, .index = index});
  std::push_heap(heap_.begin(), heap_.end(), Later{});
}

std::span<const std::uint32_t> IncrementalMaxMin::solve() {
  changed_.clear();
  if (!is_stale()) return {};
  if (++solve_ == (1U << 30)) {  // the stamps are about to wrap
    solve_ = 1;
    for (Flow& flow : flows_) flow.stamp = 0;
    for (Water& w : waters_) w.disturbed_in = w.watched_in = 0;
  }
  level_ = 0;
  seed_changes();
  while (!heap_.empty()) {
    const Event event = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    heap_.pop_back();
    handle(event);
  }
  return changed_;
}

void IncrementalMaxMin::handle(const Event& event) {
  switch (event.kind) {
    case Kind::kSeed:
      if (is_disturbed(waters_[event.index])) return;
      level_ = std::max(level_, event.level);
      disturb(event.index);
      return;
    case Kind::kWatch:
      if (is_disturbed(waters_[event.index])) return;
      level_ = std::max(level_, event.level);
      confirm_users(event.index);
      return;
    case Kind::kDisturbed:
      advance_disturbed(event.index, event.level);
      return;
    case Kind::kBound:
      if (state(flows_[event.index]) == State::kFixed) return;
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
  Water& w = waters_[resource];
  w.disturbed_in = solve_;
  w.level = level_;
  w.open = 0;
  double fixed = 0;
  double load = 0;
  double held_at = kInfinity;
  const double surely_below = level_ * kSurelyBelow;
  // This loop is the hottest of all; selections instead of branches, as they are hard to predict.
  for (const User& u : r.users) {
    const Flow& flow = flows_[u.slot];
    const State s = state(flow);
    const bool as_before = s == State::kAsBefore;
    const bool frozen = s == State::kFixed || (as_before & (flow.level < surely_below));
    const bool held_here = as_before & !frozen & (flow.limiter == resource);
    fixed += frozen ? u.load * flow.level : 0.0;
    load += frozen ? 0.0 : u.load;
    w.open += frozen ? 0U : 1U;
    held_at = std::min(held_at, held_here ? flow.level : kInfinity);
    if (as_before && !frozen) watch(u.slot, flow);
  }
  w.load = load;
  w.released_at = held_at;
  w.left = r.capacity - fixed - level_ * w.load;
  if (w.open == 0) return;
  const double fills_at = w.level + std::max(0.0, w.left) / w.load;
  push(std::min(fills_at, w.released_at), Kind::kDisturbed, resource);
}

// A flow on a disturbed resource, held elsewhere: note when it stops growing as it did before.
void IncrementalMaxMin::watch(std::uint32_t slot, const Flow& flow) {
  if (flow.limiter == kOwnCap) {
    push(flow.level, Kind::kBound, slot);
    return;
  }
  Water& limiter = waters_[flow.limiter];
  if (is_disturbed(limiter) || limiter.watched_in == solve_) return;
  limiter.watched_in = solve_;
  push(flow.level, Kind::kWatch, flow.limiter);
}

// The sweep reaches the level of an undisturbed resource: the flows it limits are as before.
void IncrementalMaxMin::confirm_users(std::uint32_t resource) {
  for (const User& u : resources_[resource].users) {
    Flow& flow = flows_[u.slot];
    if (flow.limiter != resource || state(flow) != State::kAsBefore) continue;
    set_state(flow, State::kFixed);
    settle(u.slot, resource, false);
  }
}

void IncrementalMaxMin::reach_bound(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  const State before = state(flow);
  set_state(flow, State::kFixed);
  settle(slot, kOwnCap, false);
  if (before == State::kAsBefore) return;
  change(slot, flow.bound_level, flow.bound_limiter);
}

void IncrementalMaxMin::advance_disturbed(std::uint32_t resource, double key) {
  Water& w = waters_[resource];
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
    const Flow& flow = flows_[u.slot];
    if (flow.limiter == resource && state(flow) == State::kAsBefore) release(u.slot, resource);
  }
}

void IncrementalMaxMin::release(std::uint32_t slot, std::uint32_t from) {
  Flow& flow = flows_[slot];
  set_state(flow, State::kFree);
  for (std::uint32_t i = flow.links; i < flow.links + flow.link_count; ++i) {
    const std::uint32_t resource = links_[i].resource;
    if (resource == from || is_disturbed(waters_[resource])) continue;
    if (could_fill(resources_[resource])) disturb(resource);
  }
  push_bound(slot);
}

// The resource is full at this level: all its open flows stop here.
void IncrementalMaxMin::close(std::uint32_t resource) {
  const Resource& r = resources_[resource];
  waters_[resource].open = 0;
  const double surely_below = level_ * kSurelyBelow;
  for (const User& u : r.users) {
    const Flow& flow = flows_[u.slot];
    const State s = state(flow);
    if (s == State::kFixed || (s == State::kAsBefore && flow.level < surely_below)) continue;
    stop_at(u.slot, resource);
  }
}

void IncrementalMaxMin::stop_at(std::uint32_t slot, std::uint32_t resource) {
  Flow& flow = flows_[slot];
  const bool as_before = state(flow) == State::kAsBefore;
  set_state(flow, State::kFixed);
  if (as_before && std::abs(flow.level - level_) <= kTie * level_) {
    // The same rate; the same limiter too, where that still stands.
    const bool limiter_stands =
        flow.limiter == resource || flow.limiter == kOwnCap || !is_disturbed(waters_[flow.limiter]);
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
  const Flow& flow = flows_[slot];
  for (std::uint32_t i = flow.links; i < flow.links + flow.link_count; ++i) {
    const Link& link = links_[i];
    if (link.resource == except) continue;
    Water& w = waters_[link.resource];
    if (is_disturbed(w)) {
      rise_to(level_, w.load, w.left, w.level);
      w.load -= link.load;
      --w.open;
    } else if (disturb_limiting && w.limits > 0) {
      disturb(link.resource);
    }
  }
}

void IncrementalMaxMin::change(std::uint32_t slot, double level, std::uint32_t limiter) {
  Flow& flow = flows_[slot];
  if (flow.limiter < kNoLimiter) --waters_[flow.limiter].limits;
  if (limiter < kNoLimiter) ++waters_[limiter].limits;
  flow.level = level;
  flow.limiter = limiter;
  changed_.push_back(slot);
}

}  // namespace weft
