#include "sim/flow/incremental_maxmin.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "sim/flow/common.hpp"

namespace weft {
namespace {

using flow::kTie;
// Levels further apart than this are surely different; between the two we look more closely.
constexpr double kSurelyBelow = 1.0 - 1e-9;
// Seeds may come early but never late; this covers the rounding in a server's summed load.
constexpr double kEarly = 1.0 - 1e-6;
// Of false and true: what to multiply with, or to add, to keep a number if true.
constexpr double kFactor[] = {0.0, 1.0};
constexpr double kGap[] = {std::numeric_limits<double>::infinity(), 0.0};

void rise_to(double level, double load, double& left, double& measured_at) {
  left -= (level - measured_at) * load;
  measured_at = level;
}

}  // namespace

void IncrementalMaxMin::add_to_bundle(std::uint32_t index, std::int64_t at_bound) {
  Bundle& bundle = bundles_[index];
  const std::int64_t before = bundle.most();
  bundle.at_bound += at_bound;
  servers_[bundle.server].at_most += bundle.most() - before;
}

std::uint32_t IncrementalMaxMin::take_links(std::uint32_t count) {
  if (count <= kFewLinks) return 0;
  if (free_links_.size() <= count) free_links_.resize(std::size_t{count} + 1);
  if (free_links_[count].empty()) {
    links_.resize(links_.size() + count);
    return static_cast<std::uint32_t>(links_.size() - count);
  }
  const std::uint32_t begin = free_links_[count].back();
  free_links_[count].pop_back();
  return begin;
}

std::uint32_t IncrementalMaxMin::take_slot() {
  if (free_slots_.empty()) {
    flows_.emplace_back();
    bounds_.emplace_back();
    return static_cast<std::uint32_t>(flows_.size() - 1);
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

std::uint32_t IncrementalMaxMin::add_flow(std::uint32_t route_index) {
  const Route& route = routes_[route_index];
  const std::uint32_t slot = take_slot();
  bounds_[slot] = {.level = route.bound_level,
                   .share = route.share,
                   .limiter = route.bound_limiter,
                   .route = route_index};
  Flow& flow = flows_[slot];
  flow = {.level = 0,
          .limiter = kNoLimiter,
          .stamp = 0,
          .link_count = route.count,
          .more_links = take_links(route.count),
          .open_at = kNone,
          .few_links = {}};
  std::uint32_t use = 0;
  for (Link& link : links(flow)) {
    const Load& load = route_loads_[route.begin + use];
    const std::uint32_t server = route_uses_[route.begin + use].server;
    Server& s = servers_[server];
    link = {.load = load.per_level,
            .server = server,
            .position = static_cast<std::uint32_t>(s.users.size())};
    s.users.push_back({.slot = slot, .use = use, .load = load.per_level});
    s.load += load.per_level;
    add_to_bundle(route_bundles_[route.begin + use], load.at_bound);
    ++use;
  }
  started_.push_back(slot);
  return slot;
}

void IncrementalMaxMin::remove_flow(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  std::uint32_t use = routes_[bounds_[slot].route].begin;
  if (flow.limiter < kNoLimiter) --waters_[flow.limiter].limits;
  if (flow.limiter == kNoLimiter) std::erase(started_, slot);
  for (const Link& link : links(flow)) {
    Server& s = servers_[link.server];
    const User moved = s.users.back();
    s.users[link.position] = moved;
    links(flows_[moved.slot])[moved.use].position = link.position;
    s.users.pop_back();
    s.load = s.users.empty() ? 0.0 : s.load - link.load;
    add_to_bundle(route_bundles_[use], -route_loads_[use].at_bound);
    ++use;
    // Where nobody was limited, nobody can gain.
    if (waters_[link.server].limits > 0) seed(link.server, flow.level);
  }
  if (flow.link_count > kFewLinks) free_links_[flow.link_count].push_back(flow.more_links);
  free_slots_.push_back(slot);
}

void IncrementalMaxMin::seed(std::uint32_t server, double level) {
  Server& s = servers_[server];
  if (s.seed == kInfinity) disturbed_.push_back(server);
  s.seed = std::min(s.seed, level * kEarly);
}

void IncrementalMaxMin::seed_changes() {
  if (!capacity_changed_.empty()) refresh_bounds();
  for (const std::uint32_t server : capacity_changed_) {
    const Server& s = servers_[server];
    if (s.users.empty()) continue;
    double level = s.capacity / s.load;
    for (const User& u : s.users) {
      if (flows_[u.slot].limiter == server) level = std::min(level, flows_[u.slot].level);
    }
    seed(server, level);
  }
  capacity_changed_.clear();
  for (const std::uint32_t slot : started_) begin(slot);
  started_.clear();
  for (const std::uint32_t server : disturbed_) {
    Server& s = servers_[server];
    if (!s.users.empty()) {
      push(s.seed, Kind::kSeed, server);
      ++unsettled_;
    }
    s.seed = kInfinity;
  }
  disturbed_.clear();
}

void IncrementalMaxMin::begin(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  bool alone = true;
  for (const Link& link : links(flow)) {
    const Server& s = servers_[link.server];
    if (!could_fill(s)) continue;
    alone = false;
    seed(link.server, s.capacity / s.load);
  }
  if (alone) {
    set_state(flow, State::kFixed);
    change(slot, bounds_[slot].level, bounds_[slot].limiter);
    return;
  }
  set_free(flow);
  push_bound(slot);
}

// Notes where a free flow stops unless a disturbed server stops it before: at its own cap, or at
// the capacity of a server that it cannot fill together with others.
void IncrementalMaxMin::push_bound(std::uint32_t slot) {
  const Bound& bound = bounds_[slot];
  if (bound.limiter == kOwnCap || !could_fill(servers_[bound.limiter])) {
    push(bound.level, Kind::kBound, slot);
  }
}

void IncrementalMaxMin::push(double level, Kind kind, std::uint32_t index) {
  heap_.push_back({.level = level, .index = index, .kind = kind});
  std::push_heap(heap_.begin(), heap_.end(), Later{});
}

IncrementalMaxMin::Event IncrementalMaxMin::pop() {
  if (heap_.empty()) throw std::logic_error("IncrementalMaxMin: nothing settles what is left");
  std::pop_heap(heap_.begin(), heap_.end(), Later{});
  const Event event = heap_.back();
  heap_.pop_back();
  return event;
}

void IncrementalMaxMin::solve() {
  moved_.clear();
  shifted_.clear();
  if (!is_stale()) return;
  if (++solve_ == (1U << 30)) {  // the stamps are about to wrap
    solve_ = 1;
    for (Flow& flow : flows_) flow.stamp = 0;
    for (Water& w : waters_) w.disturbed_in = w.watched_in = 0;
  }
  level_ = 0;
  opens_end_ = 0;
  seed_changes();
  while (unsettled_ > 0) {
    if (!advance_top()) handle(pop());
  }
  heap_.clear();  // notes of where flows would have stopped that stopped before
}

void IncrementalMaxMin::handle(const Event& event) {
  switch (event.kind) {
    case Kind::kSeed:
      --unsettled_;
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
      close(event.index);
      return;
    case Kind::kBound:
      if (state(flows_[event.index]) == State::kFixed) return;
      level_ = std::max(level_, event.level);
      reach_bound(event.index);
      return;
  }
}

// From here on the sweep keeps this server's water. Every flow on it that is not yet fixed counts
// as open, and each has an event ahead that will fix it: its limiter's, its own cap's, or this
// one's.
void IncrementalMaxMin::disturb(std::uint32_t server) {
  const Server& s = servers_[server];
  Water& w = waters_[server];
  w.disturbed_in = w.watched_in = solve_;
  w.level = level_;
  w.open_begin = opens_end_;
  if (opens_.size() < opens_end_ + s.users.size()) {
    opens_.resize(2 * (opens_end_ + s.users.size()));
  }
  double used = 0;
  double load = 0;
  double held_at = kInfinity;
  const double surely_below = level_ * kSurelyBelow;
  const std::uint32_t fixed_stamp = stamp(State::kFixed);
  std::uint32_t end = opens_end_;
  // Copies of members, which the compiler would else read again after each write to opens_.
  Flow* const flows = flows_.data();
  Open* const opens = opens_.data();
  const double level = level_;
  // The hottest loop of all. Which flows are open is as good as random, so it has no branches. A
  // fixed flow's level is at most level_, an open one's (infinite if free) at least about level_.
  for (const User& u : s.users) {
    const Flow& flow = flows[u.slot];
    const bool open = (flow.level >= surely_below) & (flow.stamp != fixed_stamp);
    used += u.load * std::min(flow.level, level);
    load += u.load * kFactor[open];
    held_at = std::min(held_at, flow.level + kGap[open & (flow.limiter == server)]);
    opens[end].load = u.load;
    opens[end].slot = u.slot;
    end += open ? 1U : 0U;
  }
  opens_end_ = w.open_end = end;
  w.open = w.open_end - w.open_begin;
  w.load = load;
  w.left = s.capacity - used;
  w.released_at = held_at;
  if (w.open == 0) return;
  ++unsettled_;
  const std::uint32_t free_stamp = stamp(State::kFree);
  const std::uint32_t solve = solve_;
  const Water* const waters = waters_.data();
  for (std::uint32_t i = w.open_begin; i != end; ++i) {
    Open& open = opens[i];
    Flow& flow = flows[open.slot];
    open.server = server;
    open.next = std::exchange(flow.open_at, i);
    if (flow.stamp == free_stamp) continue;
    if (flow.limiter == kOwnCap || waters[flow.limiter].watched_in != solve) watch(open.slot, flow);
  }
  const double fills_at = w.level + std::max(0.0, w.left) / w.load;
  push(std::min(fills_at, w.released_at), Kind::kDisturbed, server);
}

// A flow on a disturbed server, held elsewhere: note when it stops growing as it did before.
void IncrementalMaxMin::watch(std::uint32_t slot, const Flow& flow) {
  if (flow.limiter == kOwnCap) {
    push(flow.level, Kind::kBound, slot);
    return;
  }
  Water& limiter = waters_[flow.limiter];
  if (limiter.watched_in == solve_) return;
  limiter.watched_in = solve_;
  push(flow.level, Kind::kWatch, flow.limiter);
}

// The sweep reaches the level of an undisturbed server: the flows it limits are as before.
void IncrementalMaxMin::confirm_users(std::uint32_t server) {
  for (const User& u : servers_[server].users) {
    Flow& flow = flows_[u.slot];
    if (flow.limiter != server || state(flow) != State::kAsBefore) continue;
    set_state(flow, State::kFixed);
    settle(flow, server, false);
  }
}

void IncrementalMaxMin::reach_bound(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  const State before = state(flow);
  set_state(flow, State::kFixed);
  settle(flow, kOwnCap, false);
  if (before == State::kAsBefore) return;
  change(slot, bounds_[slot].level, bounds_[slot].limiter);
}

// Where a disturbed server fills or, if that is lower, lets its flows go.
double IncrementalMaxMin::next_level(std::uint32_t server) {
  Water& w = waters_[server];
  rise_to(level_, w.load, w.left, w.level);
  const double slack = kTie * servers_[server].capacity;
  double fills_at = level_ + std::max(0.0, w.left) / w.load;
  if ((fills_at - level_) * w.load <= slack) fills_at = level_;
  if (std::abs(fills_at - w.released_at) * w.load <= slack) fills_at = w.released_at;
  w.fills_at = fills_at;
  return std::min(fills_at, w.released_at);
}

// Handles the first event if it is a disturbed server's that stays in the queue, at a later
// place; cheaper than taking it out and putting it back. The event may come too early, since after
// it was noted flows stopped elsewhere; or it is the server letting its flows go. False if there
// is nothing left but to take the event out.
bool IncrementalMaxMin::advance_top() {
  const Event event = heap_.front();
  if (event.kind != Kind::kDisturbed) return false;
  Water& w = waters_[event.index];
  if (w.open == 0) return false;
  // Nothing else happens below the smallest key, even where it proves to be too low.
  level_ = std::max(level_, event.level);
  const double next = next_level(event.index);
  double following = heap_.size() > 1 ? heap_[1].level : kInfinity;
  if (heap_.size() > 2) following = std::min(following, heap_[2].level);
  if (next > level_ && next > following) {
    delay_top(next);
    return true;
  }
  level_ = std::max(level_, next);
  if (!(w.released_at < w.fills_at)) return false;
  w.released_at = kInfinity;
  delay_top(std::max(w.fills_at, level_));
  release_users(event.index);
  return true;
}

void IncrementalMaxMin::delay_top(double level) {
  Event event = heap_.front();
  event.level = level;
  const Later later;
  std::size_t hole = 0;
  for (std::size_t child = 1; child < heap_.size(); child = 2 * hole + 1) {
    child += (child + 1 < heap_.size() && later(heap_[child], heap_[child + 1])) ? 1U : 0U;
    if (!later(event, heap_[child])) break;
    heap_[hole] = heap_[child];
    hole = child;
  }
  heap_[hole] = event;
}

// The server is not full at the level at which it was before: its flows may grow on.
void IncrementalMaxMin::release_users(std::uint32_t server) {
  const Water w = waters_[server];
  for (std::uint32_t i = w.open_begin; i < w.open_end; ++i) {
    const std::uint32_t slot = opens_[i].slot;
    const Flow& flow = flows_[slot];
    if (flow.limiter == server && state(flow) == State::kAsBefore) release(slot, server);
  }
}

void IncrementalMaxMin::release(std::uint32_t slot, std::uint32_t from) {
  Flow& flow = flows_[slot];
  set_free(flow);
  for (const Link& link : links(flow)) {
    const std::uint32_t server = link.server;
    if (server == from || is_disturbed(waters_[server])) continue;
    if (could_fill(servers_[server])) disturb(server);
  }
  push_bound(slot);
}

// The server is full at this level: all its open flows stop here. Those that it limited before
// keep their level if it is the same but for rounding, and others join them.
void IncrementalMaxMin::close(std::uint32_t server) {
  Water& w = waters_[server];
  if (w.open == 0) return;
  w.open = 0;
  --unsettled_;
  const double level = level_of(server, level_);
  for (std::uint32_t i = w.open_begin; i < w.open_end; ++i) {
    const std::uint32_t slot = opens_[i].slot;
    if (state(flows_[slot]) != State::kFixed) stop_at(slot, server, level);
  }
}

void IncrementalMaxMin::stop_at(std::uint32_t slot, std::uint32_t server, double level) {
  Flow& flow = flows_[slot];
  const bool as_before = state(flow) == State::kAsBefore;
  set_state(flow, State::kFixed);
  const std::uint32_t by = first_full(flow, server);
  if (by != server) level = level_of(by, level);
  if (as_before && std::abs(flow.level - level) <= kTie * level) {
    // The same rate; the same limiter too, where that still stands.
    const bool limiter_stands =
        flow.limiter == by || flow.limiter == kOwnCap || !is_disturbed(waters_[flow.limiter]);
    settle(flow, server, false);
    if (!limiter_stands) change(slot, level, by);
    return;
  }
  change(slot, level, by);
  settle(flow, server, as_before);
}

// Of the servers that fill at this level, this one among them, the first on the flow's way: which
// is handled first is a matter of rounding.
std::uint32_t IncrementalMaxMin::first_full(Flow& flow, std::uint32_t server) {
  if (opens_[flow.open_at].next == kNone) return server;  // it is open nowhere else
  for (const Link& link : links(flow)) {
    if (link.server == server) break;
    const Water& w = waters_[link.server];
    if (!is_disturbed(w) || w.open == 0) continue;
    if (w.left - (level_ - w.level) * w.load <= kTie * level_ * w.load) return link.server;
  }
  return server;
}

// Where a server is full: at the level of the flows that it limits already, if that is the same but
// for rounding.
double IncrementalMaxMin::level_of(std::uint32_t server, double level) const {
  const Water& w = waters_[server];
  const double before = levels_[server];
  const double apart = std::abs(before - level);
  const bool same = w.limits > 0 && apart <= (1.0 - kSurelyBelow) * level &&
                    apart * w.load <= 4 * kTie * servers_[server].capacity;
  return same ? before : level;
}

// Takes a flow just fixed off the water of the servers where it was open. A flow that got less than
// before leaves something to the flows that its other servers limited.
void IncrementalMaxMin::settle(Flow& flow, std::uint32_t except, bool disturb_limiting) {
  for (std::uint32_t i = std::exchange(flow.open_at, kNone); i != kNone; i = opens_[i].next) {
    const Open& open = opens_[i];
    if (open.server == except) continue;
    Water& w = waters_[open.server];
    rise_to(level_, w.load, w.left, w.level);
    w.load -= open.load;
    if (--w.open == 0) --unsettled_;
  }
  if (!disturb_limiting) return;
  for (const Link& link : links(flow)) {
    const Water& w = waters_[link.server];
    if (link.server != except && !is_disturbed(w) && w.limits > 0) disturb(link.server);
  }
}

void IncrementalMaxMin::change(std::uint32_t slot, double level, std::uint32_t limiter) {
  Flow& flow = flows_[slot];
  if (flow.limiter != limiter) {
    if (flow.limiter < kNoLimiter) --waters_[flow.limiter].limits;
    if (limiter < kNoLimiter) ++waters_[limiter].limits;
    flow.limiter = limiter;
    moved_.push_back(slot);
  }
  flow.level = level;
  if (limiter == kOwnCap || levels_[limiter] == level) return;
  levels_[limiter] = level;
  shifted_.push_back(limiter);
}

}  // namespace weft
