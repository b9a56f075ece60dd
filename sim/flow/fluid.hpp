#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/id.hpp"
#include "sim/base/units.hpp"
#include "sim/flow/incremental_maxmin.hpp"
#include "sim/flow/min_tree.hpp"
#include "sim/flow/service_clock.hpp"

namespace weft {

using FlowServerIndex = Id<struct FlowServerTag>;
using RouteIndex = Id<struct FluidRouteTag>;

/// A flow's use of one server. `weight`: server bytes a flow byte (framing, two passes, ...).
struct Use {
  FlowServerIndex server;
  double weight{1.0};
};

/// What holds a flow's rate where it is: one of its servers, or its own cap.
class Limiter {
 public:
  static constexpr Limiter own_cap() { return Limiter{kOwnCap}; }
  explicit constexpr Limiter(FlowServerIndex server) : value_{server.value} {}

  constexpr bool is_own_cap() const { return value_ == kOwnCap; }
  /// Precondition: not the own cap.
  constexpr FlowServerIndex server() const { return FlowServerIndex{value_}; }
  friend constexpr bool operator==(Limiter, Limiter) = default;

 private:
  friend class FluidSystem;
  explicit constexpr Limiter(std::uint32_t value) : value_{value} {}
  std::uint32_t value_;
};

/// For how long one limiter held a flow.
struct LimitedFor {
  Limiter limiter;
  Duration duration;
};

/// A flow that is done.
struct Finished {
  std::uint64_t tag;
  Time start;
  Time finish;
  /// In order of time, neighbours distinct, summing exactly to finish - start; empty if that is 0.
  /// Valid until the system's next advance().
  std::span<const LimitedFor> limits;
};

/// A flow in progress, for probes and tests.
struct FlowInProgress {
  std::uint64_t tag;
  double rate_bytes_per_s;
  Limiter limiter;
  double remaining_bytes;
};

/// Flows in progress that share servers max-min fairly. Passive: whoever owns the clock asks for
/// next_change() and calls advance().
///
/// Model: a flow is a fluid; at each instant the rates are those of maxmin_rates. A flow finishes
/// when its bytes are through, rounded up to a picosecond (what exceeds a whole picosecond by less
/// than a thousandth counts as rounding). Not modelled: latency, packets, start-up.
/// All changes of one instant are solved together, when next_change() is called; a change re-solves
/// only what it can touch (IncrementalMaxMin), and flows that one server limits share a clock, so
/// that only those with a new limiter are touched one by one (ServiceClock). Flows with equal
/// histories finish at the same picosecond. Memory is linear in servers, routes and flows in
/// progress.
class FluidSystem {
 public:
  FlowServerIndex add_server(Bandwidth capacity);

  /// Servers that flows cross, and what they take of each. Uses of one server add up. Among flows
  /// that compete, rates are in proportion to `share`. Throws std::logic_error: neither uses nor
  /// cap, an unknown server, a weight or share that is not positive and finite.
  RouteIndex add_route(std::span<const Use> uses, std::optional<Bandwidth> cap = std::nullopt,
                       double share = 1.0);

  /// Starts a flow at now(); `tag` comes back in Finished. With 0 bytes it is done at now().
  /// Throws std::logic_error: unknown route, negative bytes.
  void start(RouteIndex route, Bytes bytes, std::uint64_t tag);

  /// From now() on. Throws std::logic_error for an unknown server.
  void set_capacity(FlowServerIndex server, Bandwidth capacity);

  Time now() const { return now_; }

  /// When the next flow finishes if nothing else happens, at or after now(). None if no flow is in
  /// progress, or only flows that would last beyond the clock's 106 days. Re-solves what changed.
  std::optional<Time> next_change();

  /// Moves the clock to `t` and puts the flows done at `t` into `finished`, replacing what it held,
  /// in the order they were started. Throws std::logic_error: t before now() or after
  /// next_change().
  void advance(Time t, std::vector<Finished>& finished);

  std::size_t server_count() const { return solver_.server_count(); }
  std::size_t in_progress_count() const { return in_progress_; }

  /// Fraction of the capacity in use now (0 to 1). O(flows on the server). Re-solves what
  /// changed.
  double utilisation(FlowServerIndex server);
  /// Bytes that crossed the server up to now(), weights included. O(routes and flows).
  double used_bytes(FlowServerIndex server) const;
  /// The same of every server up to `t`, over its capacity: seconds at full use. Precondition: t is
  /// not before now(), nothing changes before it, and no capacity was set. O(routes and flows).
  std::vector<double> seconds_used(Time t) const;
  /// All flows in progress in the order they were started, but for those of 0 bytes. Re-solves.
  std::vector<FlowInProgress> in_progress();

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  struct Flow {
    std::uint64_t tag;
    std::uint64_t sequence{kDone};  // of the start
    Time start;
    double bytes;
    // What is left and how fast that shrinks, unless a server limits the flow: its clock knows.
    double remaining;  // bytes at `updated`
    double rate;       // bytes/s since `updated`; 0 before the first solve
    Time updated;
    Time limited_since;
    Limiter limiter{Limiter::own_cap()};
    std::uint32_t history{kNone};  // limits before the present one, latest first; into nodes_
  };
  static constexpr std::uint64_t kDone = 0xFFFFFFFFFFFFFFFF;  // sequence of a vacant slot

  struct HistoryNode {
    LimitedFor limited;
    std::uint32_t next;
  };
  struct Empty {
    std::uint64_t tag;
    std::uint64_t sequence;
  };

  void require_server(FlowServerIndex server) const;
  void resolve();
  double remaining_at(std::uint32_t slot, Time t) const;
  void leave(std::uint32_t slot);
  void detach(std::uint32_t slot);
  void attach(std::uint32_t slot);
  void touch(std::uint32_t server);
  void change_limiter(Flow& flow, Limiter limiter);
  std::uint32_t take_node();
  void give_node(std::uint32_t node);
  void finish(std::uint32_t slot);
  void write_limits(const Flow& flow);

  IncrementalMaxMin solver_;
  std::vector<ServiceClock> clocks_;    // by server: the flows it limits
  ServiceClock::Places places_;         // by slot
  std::vector<std::uint32_t> touched_;  // servers whose clock's first finish may have changed
  MinTree clock_finishes_;              // by server: of the first flow it limits, ps
  MinTree capped_finishes_;             // by slot: of flows at their own cap, ps
  std::vector<Flow> flows_;             // by slot
  std::vector<Empty> empty_;            // 0-byte flows started at now_
  std::vector<double> finished_bytes_;  // by route, of flows that are done
  std::vector<HistoryNode> nodes_;
  std::uint32_t free_node_{kNone};
  Time now_;
  std::uint64_t next_sequence_{0};
  std::size_t in_progress_{0};

  // What the last advance() yielded.
  struct Done {
    std::uint64_t sequence;
    std::uint64_t tag;
    Time start;
    std::uint32_t limits_begin;
    std::uint32_t limits_end;
  };
  std::vector<std::uint32_t> due_;
  std::vector<Done> done_;
  std::vector<LimitedFor> limits_;
};

}  // namespace weft
