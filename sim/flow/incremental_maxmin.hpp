#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/flow/maxmin.hpp"

namespace weft {

/// Max-min fair rates kept up to date while flows come and go and capacities change.
///
/// A change re-solves only what it can touch. Think of progressive filling as a sweep of the level
/// (rate per share) from zero: below the level at which a changed flow's servers can first fill,
/// nothing differs from before. From there on the sweep follows only *disturbed* servers: those
/// that a changed flow crosses and that either limited flows before (these may now get more) or
/// could be filled by what its flows could take at most (`could_fill`): a trunk is not followed
/// while what fits through its branches cannot fill it. A flow whose limiter is
/// undisturbed is frozen where it was; a flow whose rate comes out as before disturbs nothing
/// further. The result is that of maxmin_rates, to a relative 1e-11.
///
/// Of servers that fill at one level the first on a flow's route is its limiter.
///
/// All flows that one server limits run at one level, the same to the bit. So what a solve
/// changed is told by server, level(), but for the few flows that another limiter holds than
/// before.
///
/// Indices are dense and count from 0; flow slots are reused after remove_flow. Capacities,
/// weights, caps and shares are positive (the caller's contract; not checked here).
class IncrementalMaxMin {
 public:
  struct RouteUse {
    std::uint32_t server;
    double weight;  ///< server bytes a flow byte
  };

  std::uint32_t add_server(double capacity);
  /// What many flows have in common. Servers must be distinct. `cap` may be infinite if `uses` is
  /// not empty.
  std::uint32_t add_route(std::span<const RouteUse> uses, double cap, double share);
  std::uint32_t add_flow(std::uint32_t route);
  void remove_flow(std::uint32_t slot);
  void set_capacity(std::uint32_t server, double capacity);

  bool is_stale() const {
    return !started_.empty() || !disturbed_.empty() || !capacity_changed_.empty();
  }
  /// Brings the rates up to date.
  void solve();
  /// What the last solve() changed: the slots with another limiter, new flows among them, each
  /// once.
  std::span<const std::uint32_t> moved() const { return moved_; }
  /// And the servers at which the flows that they limit run at another level.
  std::span<const std::uint32_t> shifted() const { return shifted_; }

  /// As of the last solve(). Bytes/s; 0 for a flow that solve() has not yet seen.
  double rate(std::uint32_t slot) const { return flows_[slot].level * bounds_[slot].share; }
  std::uint32_t limiter(std::uint32_t slot) const { return flows_[slot].limiter; }
  double share(std::uint32_t slot) const { return bounds_[slot].share; }
  /// Rate a share of the flows that the server limits; meaningless if there are none.
  double level(std::uint32_t server) const { return levels_[server]; }

  std::uint32_t route(std::uint32_t slot) const { return bounds_[slot].route; }
  std::span<const RouteUse> uses(std::uint32_t route) const {
    return {route_uses_.data() + routes_[route].begin, routes_[route].count};
  }
  std::size_t server_count() const { return servers_.size(); }
  std::size_t route_count() const { return routes_.size(); }
  std::size_t slot_count() const { return flows_.size(); }
  double capacity(std::uint32_t server) const { return servers_[server].capacity; }

  /// Calls visit(slot, weight) for every flow on a server, in no particular but reproducible
  /// order.
  template <class Visit>
  void for_each_user(std::uint32_t server, Visit visit) const {
    for (const User& u : servers_[server].users) {
      visit(u.slot, route_uses_[routes_[bounds_[u.slot].route].begin + u.use].weight);
    }
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr std::uint32_t kNoLimiter = kOwnCap - 1;  // not yet solved
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  static constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

  struct Route {
    std::uint32_t begin;  // into route_uses_, route_loads_
    std::uint32_t count;
    double share;
    double cap_level;
    // The level that the route could reach were it alone, and what would stop it there.
    double bound_level;
    std::uint32_t bound_limiter;
  };
  // Beside each RouteUse: server bytes/s a unit of level, and at the route's bound_level.
  struct Load {
    double per_level;
    std::int64_t at_bound;
  };

  // A flow in the sweep: grows as before, grows freely (new, or let go by its old limiter), or has
  // its rate of this solve.
  enum class State : std::uint32_t { kAsBefore, kFree, kFixed };
  // A flow on a server: `position` is its place in the server's users.
  struct Link {
    double load;
    std::uint32_t server;
    std::uint32_t position;
  };
  // All that a sweep needs of most flows, in one cache line.
  static constexpr std::uint32_t kFewLinks = 2;
  struct alignas(64) Flow {
    double level;
    std::uint32_t limiter;
    std::uint32_t stamp;  // solve_ * 4 + State; an older solve's stamp means kAsBefore
    std::uint32_t link_count;
    std::uint32_t more_links;  // into links_, if there are more than kFewLinks
    std::uint32_t open_at;     // the last disturbed server where it is open; into opens_
    Link few_links[kFewLinks];
  };
  static_assert(sizeof(Flow) == 64);
  struct Bound {
    double level;
    double share;
    std::uint32_t limiter;
    std::uint32_t route;
  };

  struct User {
    std::uint32_t slot;
    std::uint32_t use;
    double load;
  };
  // A flow that is open on a disturbed server.
  struct Open {
    double load;
    std::uint32_t slot;
    std::uint32_t server;
    std::uint32_t next;  // where else the flow is open
  };
  // What is left of a disturbed server when its open flows run at `level` (see maxmin.cpp).
  struct Water {
    double left{0};
    double load{0};
    double level{0};
    double released_at{kInfinity};  // where its flows were held before; infinity once let go
    double fills_at{0};             // as of the last next_level()
    std::uint32_t open{0};
    std::uint32_t open_begin{0};  // the flows that were open at first; into opens_
    std::uint32_t open_end{0};
    std::uint32_t disturbed_in{0};  // the solve in which this is valid
    std::uint32_t watched_in{0};
    std::uint32_t limits{0};  // how many flows the server limited in the last solve
  };
  static_assert(sizeof(Water) == 64);
  struct Server {
    double capacity;
    double load{0};           // of all users; only a hint (sums in changing order)
    std::int64_t at_most{0};  // what its users could take, bundle by bundle
    std::int64_t fills_above{0};
    double seed{kInfinity};  // level from which it is disturbed in the next solve
    std::vector<User> users;
  };

  // Flows on a server that all cross one other, the neck, as well: together they take what fits
  // through that at most.
  struct Bundle {
    std::uint32_t server;
    std::uint32_t neck;               // kNone: they cross no other
    double ratio{0};                  // of a byte on the server to one in the neck, at most
    std::int64_t through_neck{kAny};  // bytes/s of the server
    std::int64_t at_bound{0};         // if each flow had its bound_level
    std::int64_t most() const { return std::min(at_bound, through_neck); }
  };

  enum class Kind : std::uint32_t { kSeed, kWatch, kDisturbed, kBound };
  struct Event {
    double level;
    std::uint32_t index;  // a server; a flow for kBound
    Kind kind;
  };
  // Heaps keep the largest on top. Equal events are interchangeable, so the order is total. Without
  // short cuts, since the outcomes are hard to predict.
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      const auto order = [](const Event& e) {
        return (static_cast<std::uint64_t>(e.kind) << 32) | e.index;
      };
      return (a.level > b.level) | ((a.level == b.level) & (order(a) > order(b)));
    }
  };

  std::span<Link> links(Flow& flow) {
    Link* const first =
        flow.link_count <= kFewLinks ? flow.few_links : links_.data() + flow.more_links;
    return {first, flow.link_count};
  }
  State state(const Flow& flow) const {
    return (flow.stamp >> 2) == solve_ ? static_cast<State>(flow.stamp & 3U) : State::kAsBefore;
  }
  void set_state(Flow& flow, State state) const { flow.stamp = stamp(state); }
  std::uint32_t stamp(State state) const {
    return (solve_ << 2) | static_cast<std::uint32_t>(state);
  }
  void set_free(Flow& flow) const {
    set_state(flow, State::kFree);
    flow.level = kInfinity;
  }
  bool could_fill(const Server& s) const { return s.at_most > s.fills_above; }
  bool is_disturbed(const Water& w) const { return w.disturbed_in == solve_; }

  void find_bound(Route& route);
  std::uint32_t neck(const Route& route, std::uint32_t use) const;
  std::uint32_t bundle_of(const Route& route, std::uint32_t use);
  void find_most(Bundle& bundle) const;
  void add_to_bundle(std::uint32_t index, std::int64_t at_bound);
  void refresh_bounds();
  void seed(std::uint32_t server, double level);
  void seed_changes();
  void begin(std::uint32_t slot);
  Event pop();
  void push(double level, Kind kind, std::uint32_t index);
  void handle(const Event& event);
  void disturb(std::uint32_t server);
  void watch(std::uint32_t slot, const Flow& flow);
  void confirm_users(std::uint32_t server);
  void reach_bound(std::uint32_t slot);
  double next_level(std::uint32_t server);
  bool advance_top();
  void delay_top(double level);
  void release_users(std::uint32_t server);
  void release(std::uint32_t slot, std::uint32_t from);
  void push_bound(std::uint32_t slot);
  void close(std::uint32_t server);
  void stop_at(std::uint32_t slot, std::uint32_t server, double level);
  std::uint32_t first_full(Flow& flow, std::uint32_t server);
  double level_of(std::uint32_t server, double level) const;
  void settle(Flow& flow, std::uint32_t except, bool disturb_limiting);
  void change(std::uint32_t slot, double level, std::uint32_t limiter);
  std::uint32_t take_slot();
  std::uint32_t take_links(std::uint32_t count);

  std::vector<Server> servers_;
  std::vector<Water> waters_;   // by server
  std::vector<double> levels_;  // by server: of the flows it limits
  std::vector<Route> routes_;
  std::vector<RouteUse> route_uses_;
  std::vector<Load> route_loads_;
  std::vector<std::uint32_t> route_bundles_;
  std::vector<Bundle> bundles_;
  std::vector<std::vector<std::uint32_t>> bundles_on_;  // by server

  std::vector<Flow> flows_;    // by slot
  std::vector<Bound> bounds_;  // by slot: the route's
  std::vector<std::uint32_t> free_slots_;
  std::vector<Link> links_;
  std::vector<std::vector<std::uint32_t>> free_links_;  // by length

  std::vector<std::uint32_t> started_;           // slots new since the last solve
  std::vector<std::uint32_t> disturbed_;         // servers with a seed
  std::vector<std::uint32_t> capacity_changed_;  // servers

  std::uint32_t solve_{0};
  double level_{0};  // of the sweep
  /// Seeds in the heap and disturbed servers with open flows: the sweep ends when there are none.
  std::uint32_t unsettled_{0};
  std::vector<Event> heap_;
  std::vector<Open> opens_;
  std::uint32_t opens_end_{0};
  std::vector<std::uint32_t> moved_;    // slots
  std::vector<std::uint32_t> shifted_;  // servers
};

}  // namespace weft
