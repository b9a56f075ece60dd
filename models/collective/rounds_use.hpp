#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/machine/machine.hpp"
#include "models/nccl/execute/p2p_plan.hpp"
#include "models/nccl/schedule.hpp"
#include "sim/base/stop.hpp"

namespace weft {

/// What an all-to-all takes of the links between switches round by round, where racks' leaves are
/// joined side by side. There the sum of all that crosses a link (NetworkUse) does not tell: what
/// stays in a rack does so in few of NCCL's rounds, and in one round it crosses many links of a
/// ring, in another few.
///
/// So the rounds are gone through in NCCL's order, those of one distance in nodes together, as
/// NCCL's blocks put them through (P2pPlaces). Those under way share the links, and what nodes can
/// send, max-min fairly, each at one rate for all nodes.
///
/// All racks (of three tiers: pods) do as one does: what its nodes send others and are sent tells
/// all.
/// Not modelled: nodes whose sends of a distance cross no full link go ahead of the others.
class RoundsUse {
 public:
  /// nullopt but for two full racks and more, each with its nodes' NICs on its leaves in one order;
  /// where two nodes have no route, or looking at what each node of a rack sends any other one
  /// would take over kMostSeconds, about, of one core.
  /// Preconditions: folded Clos, load is spread, GPUs have NICs. The machine and `stop` must
  /// outlive it. Throws Stopped soon after `stop` asks for it; takes() does too. `tell` hears
  /// beforehand how long it takes, if that is kLongRun or more.
  static std::optional<RoundsUse> of_all_to_all(
      const Machine& machine, const Schedule& schedule, const Stop* stop = nullptr,
      const std::function<void(const std::string&, double)>& tell = {});
  static constexpr double kMostSeconds = 30;

  struct Taken {
    Duration time;
    /// The links that are full, by what they are named, and for how long in all; longest first.
    std::vector<std::pair<Cause, double>> full_s{};
  };
  /// What all rounds take if each GPU sends `each` to each other, and they would take `free` if no
  /// link between switches were ever full.
  Taken takes(Bytes each, const P2pPlaces& places, Duration free) const;
  /// Of nodes, so many.
  std::size_t distances() const { return kind_of_.size(); }

  /// What the sends of one distance take of a link, each link once, if each GPU sends a byte to
  /// each of the other node.
  struct Share {
    std::size_t link;  ///< by its place among all that are crossed
    double seconds;
  };

 private:
  RoundsUse(const Machine& machine, const Stop* stop) : machine_{&machine}, stop_{stop} {}

  const Machine* machine_;
  const Stop* stop_;
  std::vector<ServerId> links_;            // by their places
  std::vector<std::vector<Share>> kinds_;  // of distances: those of one kind cross the same
  std::vector<std::size_t> kind_of_;       // of each distance, in NCCL's order, without 0
};

/// After how many nodes a network with racks repeats itself: those of a full rack, of three tiers
/// of a full pod; nullopt where it does not: nodes are dealt out in turn, uplinks have failed, or
/// racks end within the leaves of a node.
std::optional<std::uint32_t> nodes_of_rack_or_pod(const Machine& machine);

}  // namespace weft
