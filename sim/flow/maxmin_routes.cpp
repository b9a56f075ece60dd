// Of IncrementalMaxMin what is added once: servers, routes, and the bundles of these, which say
// what could fill a server.
#include <algorithm>
#include <cmath>

#include "sim/flow/incremental_maxmin.hpp"

namespace weft {
namespace {

// Levels no further apart than this may be the same.
constexpr double kMaybeSame = 1.0 + 1e-6;
// Takes back what multiplying and dividing by a weight may have added.
constexpr double kRounded = 1.0 - 1e-13;
// Sums of what flows could take are whole bytes/s, so that they do not drift. A flow counts at most
// this much (8.8e12), which leaves room for a million flows on a server.
constexpr double kMostBytesPerS = 8796093022208.0;

std::int64_t whole_bytes_per_s(double rate) {
  return static_cast<std::int64_t>(std::ceil(std::min(rate * kRounded, kMostBytesPerS)));
}

std::int64_t fills_above(double capacity) {
  return static_cast<std::int64_t>(std::min(capacity, kMostBytesPerS - 1.0));
}

}  // namespace

std::uint32_t IncrementalMaxMin::add_server(double capacity) {
  waters_.emplace_back();
  levels_.push_back(0.0);
  Server& s = servers_.emplace_back();
  s.capacity = capacity;
  s.fills_above = fills_above(capacity);
  bundles_on_.emplace_back();
  return static_cast<std::uint32_t>(servers_.size() - 1);
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
  for (std::uint32_t i = 0; i < route.count; ++i) route_bundles_.push_back(bundle_of(route, i));
  routes_.push_back(route);
  return static_cast<std::uint32_t>(routes_.size() - 1);
}

void IncrementalMaxMin::find_bound(Route& route) {
  route.bound_level = route.cap_level;
  route.bound_limiter = kOwnCap;
  for (std::uint32_t i = route.begin; i < route.begin + route.count; ++i) {
    const std::uint32_t server = route_uses_[i].server;
    const double level = servers_[server].capacity / route_loads_[i].per_level;
    if (level < route.bound_level) {
      route.bound_level = level;
      route.bound_limiter = server;
    }
  }
  for (std::uint32_t i = route.begin; i < route.begin + route.count; ++i) {
    // Rounded so that a flow alone never counts as more than its server.
    route_loads_[i].at_bound = whole_bytes_per_s(route_loads_[i].per_level * route.bound_level);
  }
}

// Of the other servers that a route crosses the one that would be full first; of several the
// nearest. Of a trunk the nearest branch, though what a route answers might hold it to less: in its
// branch an answer shares the room of all that goes its way. kNone: there is none.
std::uint32_t IncrementalMaxMin::neck(const Route& route, std::uint32_t use) const {
  const auto load = [&](std::uint32_t i) { return route_loads_[route.begin + i].per_level; };
  const auto level = [&](std::uint32_t i) {
    return servers_[route_uses_[route.begin + i].server].capacity / load(i);
  };
  const auto is_branch = [&](std::uint32_t i) {
    const bool is_like = load(i) < 2 * load(use) && load(use) < 2 * load(i);
    return is_like && 2 * level(i) < level(use);
  };
  const auto distance = [use](std::uint32_t i) { return i < use ? use - i : i - use; };
  const auto is_better = [&](std::uint32_t i, std::uint32_t than) {
    if (is_branch(i) != is_branch(than)) return is_branch(i);
    const bool is_nearer = distance(i) < distance(than);
    if (is_branch(i)) return is_nearer;
    return level(i) * kMaybeSame < level(than) ||
           (is_nearer && level(i) < level(than) * kMaybeSame);
  };
  std::uint32_t best = kNone;
  for (std::uint32_t i = 0; i < route.count; ++i) {
    if (i != use && (best == kNone || is_better(i, best))) best = i;
  }
  return best;
}

// The bundle to which flows of a route belong on its server number `use`.
std::uint32_t IncrementalMaxMin::bundle_of(const Route& route, std::uint32_t use) {
  const std::uint32_t server = route_uses_[route.begin + use].server;
  const std::uint32_t narrow = neck(route, use);
  std::uint32_t by = kNone;
  double ratio = 0;
  if (narrow != kNone) {
    by = route_uses_[route.begin + narrow].server;
    ratio =
        route_loads_[route.begin + use].per_level / route_loads_[route.begin + narrow].per_level;
  }
  std::vector<std::uint32_t>& known = bundles_on_[server];
  const auto same = std::find_if(known.begin(), known.end(),
                                 [&](std::uint32_t b) { return bundles_[b].neck == by; });
  const bool is_new = same == known.end();
  const auto index = is_new ? static_cast<std::uint32_t>(bundles_.size()) : *same;
  if (is_new) {
    bundles_.push_back({.server = server, .neck = by});
    known.push_back(index);
  }
  Bundle& bundle = bundles_[index];
  const std::int64_t before = bundle.most();
  bundle.ratio = std::max(bundle.ratio, ratio);
  find_most(bundle);
  servers_[server].at_most += bundle.most() - before;
  return index;
}

// Servers that keep each other from being full might else none of them be followed. So a neck
// counts as a bit wider, unless its capacity is smaller: of those there is no circle.
void IncrementalMaxMin::find_most(Bundle& bundle) const {
  if (bundle.neck == kNone) return;
  const double capacity = servers_[bundle.neck].capacity;
  const double margin = capacity < servers_[bundle.server].capacity ? 1.0 : kMaybeSame;
  bundle.through_neck = whole_bytes_per_s(bundle.ratio * capacity * margin);
}

void IncrementalMaxMin::set_capacity(std::uint32_t server, double capacity) {
  Server& s = servers_[server];
  if (s.capacity == capacity) return;
  s.capacity = capacity;
  s.fills_above = fills_above(capacity);
  capacity_changed_.push_back(server);
}

void IncrementalMaxMin::refresh_bounds() {
  for (Route& route : routes_) find_bound(route);
  for (Bundle& bundle : bundles_) {
    bundle.at_bound = servers_[bundle.server].at_most = 0;
    find_most(bundle);
  }
  for (Bound& bound : bounds_) {
    bound.level = routes_[bound.route].bound_level;
    bound.limiter = routes_[bound.route].bound_limiter;
  }
  for (const Server& s : servers_) {
    for (const User& u : s.users) {
      const std::uint32_t use = routes_[bounds_[u.slot].route].begin + u.use;
      add_to_bundle(route_bundles_[use], route_loads_[use].at_bound);
    }
  }
}

}  // namespace weft
