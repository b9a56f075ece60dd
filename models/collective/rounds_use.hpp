#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "models/machine/machine.hpp"
#include "models/nccl/schedule.hpp"
#include "sim/base/stop.hpp"

namespace weft {

/// What an all-to-all takes of the links between switches round by round, where racks' leaves are
/// joined side by side. There the sum of all that crosses a link (NetworkUse) does not tell: what
/// stays in a rack does so in few of NCCL's rounds, and in one round it crosses many links of a
/// ring, in another few.
///
/// So the rounds are gone through in NCCL's order, those of one distance in nodes together, with as
/// many distances under way as NCCL's blocks run sends at once. These share the links, and what
/// nodes can send, max-min fairly, each at one rate for all nodes; when one has ended, the one that
/// has its place in the blocks begins.
///
/// All racks (of three tiers: pods) do as one does: what its nodes send others and are sent tells
/// all.
/// Not modelled: nodes whose sends of a distance cross no full link go ahead of the others.
class RoundsUse {
 public:
  /// nullopt but for two full racks and more, each with its nodes' NICs on its leaves in one order;
  /// where two nodes have no route, or more than kMostPairs pairs of nodes are to be looked at.
  /// Preconditions: folded Clos, load is spread, GPUs have NICs. The machine must outlive it.
  /// Throws Stopped soon after `stop` asks for it.
  static std::optional<RoundsUse> of_all_to_all(const Machine& machine, const Schedule& schedule,
                                                const Stop* stop = nullptr);
  static constexpr std::uint64_t kMostPairs = 4'000'000;  ///< some seconds

  struct Taken {
    Duration time;
    std::optional<Cause> full{};  ///< the link that is full longest; none: no link ever is
  };
  /// What all rounds take if each GPU sends `each` to each other, `at_once` distances at a time,
  /// and they would take `free` if no link between switches were ever full.
  Taken takes(Bytes each, std::uint32_t at_once, Duration free) const;
  /// Of nodes, so many.
  std::size_t distances() const { return distances_.size(); }

  /// What the sends of one distance take of a link, each link once, if each GPU sends a byte to
  /// each of the other node.
  struct Share {
    std::size_t link;  ///< by its place among all that are crossed
    double seconds;
  };

 private:
  RoundsUse(const Machine& machine, std::vector<ServerId> links,
            std::vector<std::vector<Share>> distances)
      : machine_{&machine}, links_{std::move(links)}, distances_{std::move(distances)} {}

  const Machine* machine_;
  std::vector<ServerId> links_;                // by their places
  std::vector<std::vector<Share>> distances_;  // in NCCL's order, without 0
};

/// After how many nodes a network with racks repeats itself: those of a full rack, of three tiers
/// of a full pod; nullopt where nodes are dealt out in turn or uplinks have failed.
std::optional<std::uint32_t> nodes_of_a_rack(const Machine& machine);

}  // namespace weft
