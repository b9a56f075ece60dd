#include "sim/topology/dragonfly.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace weft {
namespace {

using Kind = NetworkSpec::Kind;
using Inside = NetworkSpec::Inside;

/// Works out the groups from what the spec says and what it leaves out.
class Sizing : private NetworkSizing {
 public:
  Sizing(const NetworkSpec& spec, std::uint32_t nodes, std::uint32_t nics)
      : NetworkSizing{spec, nodes, nics} {
    if (spec.kind == Kind::kDragonflyPlus) {
      size_plus();
    } else {
      size_plain();
    }
    cable(leaf.down);
    count_groups();
  }

  NetworkTier leaf{.name = "leaf"};
  NetworkTier spine{.name = "spine"};
  std::uint32_t groups{1};
  std::uint32_t leaves{1};
  std::uint32_t owners{1};
  std::uint32_t links{1};
  const Cabling& cabling() const { return cabling_; }

 private:
  void size_plain() {
    const std::uint32_t balanced = std::max<std::uint32_t>((*spec_.ports + 1) / 4, 1);
    leaf.down = spec_.leaf_down.value_or(balanced);
    leaf.up = spec_.globals.value_or(balanced);
    leaves = owners = spec_.group_leaves.value_or(2 * balanced);
    links = spec_.locals.value_or(1);
    leaf.local = static_cast<std::uint32_t>(LocalLinks(Inside::kClique, leaves, 1, links).ports());
    leaf.ports = *spec_.ports;
    require_ports("leaf", leaf);
  }

  void size_plus() {
    const std::uint32_t ports = *spec_.ports;
    leaf.ports = spine.ports = ports;
    leaf.down = spec_.leaf_down.value_or(ports / 2);
    const double up = leaf.down / spec_.oversubscription.value_or(1.0);
    if (up < 1 || std::abs(up - std::round(up)) > 1e-6 * up) {
      refuse("oversubscription: " + std::to_string(leaf.down) +
             " ports down are not a whole number of ports up at this ratio");
    }
    leaf.up = spec_.leaf_up.value_or(static_cast<std::uint32_t>(std::min(std::round(up), 1e9)));
    require_ports("leaf", leaf);
    owners = leaf.parents = spec_.spines.value_or(leaf.up);
    if (leaf.up % owners != 0) {
      refuse("spines: " + std::to_string(leaf.up) +
             " uplinks of a leaf do not spread evenly over " + std::to_string(owners));
    }
    links = leaf.up / owners;
    leaves = spec_.group_leaves.value_or(std::max<std::uint32_t>(ports / 2 / links, 1));
    spine.down = leaves * links;
    spine.up = spec_.globals.value_or(ports > spine.down ? ports - spine.down : 0);
    require_ports("spine", spine);
  }

  void count_groups() {
    const std::uint64_t per_group = leaves;
    const std::uint64_t needed = (cabling_.leaves_of_plane + per_group - 1) / per_group;
    const std::uint32_t globals = leaf.parents == 0 ? leaf.up : spine.up;
    const std::uint64_t ports = std::uint64_t{owners} * globals;
    groups = spec_.groups.value_or(static_cast<std::uint32_t>(needed));
    require_fit(std::min<std::uint64_t>(ports + 1, spec_.groups.value_or(1U << 24)) * per_group,
                "a group's " + std::to_string(ports) + " global ports reach as many other groups");
    if (groups > ports + 1) {
      refuse("groups: " + std::to_string(groups) + "; a group's " + std::to_string(ports) +
             " global ports reach as many other groups");
    }
  }
};

}  // namespace

Dragonfly::Dragonfly(const NetworkSpec& spec, std::uint32_t nodes, std::uint32_t nics_per_node)
    : plus_{spec.kind == Kind::kDragonflyPlus},
      valiant_{spec.paths == NetworkSpec::Paths::kValiant},
      locals_{Inside::kTree, 1, 0, 1} {
  const Sizing sizing(spec, nodes, nics_per_node);
  groups_ = sizing.groups;
  leaves_ = sizing.leaves;
  owners_ = sizing.owners;
  each_ = sizing.links;
  locals_ = {plus_ ? Inside::kTree : Inside::kClique, leaves_, groups_, each_};
  std::vector<NetworkTier> tiers;
  NetworkTier leaf = sizing.leaf;
  leaf.below = leaf.down;
  if (plus_) {
    leaf.groups = sizing.groups * sizing.leaves;
    NetworkTier spine = sizing.spine;
    spine.groups = sizing.groups;
    spine.group_size = sizing.owners;
    spine.below = sizing.leaves;
    tiers = {leaf, spine};
  } else {
    leaf.groups = sizing.groups;
    leaf.group_size = sizing.leaves;
    tiers = {leaf};
  }
  if (groups_ > 1) {
    between_ = owners_ * tiers.back().up / (groups_ - 1);
    used_ports_ = between_ * (groups_ - 1);
  }
  set(std::move(tiers), sizing.cabling());
}

std::size_t Dragonfly::local_links() const {
  return plus_ ? groups_ * leaves_ * owners_ * each_ : locals_.count();
}

std::size_t Dragonfly::link_count() const {
  return local_links() + groups_ * (groups_ - 1) / 2 * between_;
}

/// Ports are dealt out in order: each switch has as many as the next, or one more.
std::size_t Dragonfly::owner(std::size_t group, std::size_t port) const {
  return group * owners_ + port * owners_ / used_ports_;
}

std::size_t Dragonfly::gateway(std::size_t from_group, std::size_t to_group, std::size_t j) const {
  const std::size_t ahead = (to_group + groups_ - from_group) % groups_;
  return owner(from_group, ahead - 1 + j * (groups_ - 1));
}

SwitchEnds Dragonfly::ends(std::size_t link) const {
  const std::size_t owners = plus_ ? first_of_tier(1) : 0;
  if (link >= local_links()) {
    const std::size_t global = link - local_links();
    const auto [low, high] = pair_of(global / between_);
    const std::size_t j = global % between_;
    return {owners + gateway(low, high, j), owners + gateway(high, low, j)};
  }
  if (!plus_) return locals_.ends(link);
  const std::size_t leaf = link / each_ / owners_;
  return {leaf, owners + leaf / leaves_ * owners_ + link / each_ % owners_};
}

Trunk Dragonfly::trunk(std::size_t link) const {
  if (link >= local_links()) return {LinkId{link}, 1};
  return {LinkId{link - link % each_}, each_};
}

bool Dragonfly::has_equal_routes() const {
  return each_ > 1 || between_ > 1 || (plus_ && owners_ > 1) || (valiant_ && groups_ > 2);
}

std::uint64_t Dragonfly::ways(std::size_t from, std::size_t to) const {
  const std::size_t a = from / leaves_;
  const std::size_t b = to / leaves_;
  if (a == b) return plus_ && from != to ? owners_ : 1;
  if (!goes_round(a, b)) return between_;
  return between_ * (groups_ - 2) * (plus_ ? leaves_ : 1);
}

void Dragonfly::climb(std::size_t leaf, std::size_t spine, bool up, std::uint64_t& pick,
                      NetworkSteps& steps) const {
  const std::size_t parallel = take_choice(pick, each_);
  steps.push_back({(leaf * owners_ + spine % owners_) * each_ + parallel, up});
}

std::size_t Dragonfly::cross(std::size_t from_group, std::size_t to_group, std::size_t j,
                             NetworkSteps& steps) const {
  const bool forward = from_group < to_group;
  const std::size_t pair =
      pair_number(std::min(from_group, to_group), std::max(from_group, to_group));
  steps.push_back({local_links() + pair * between_ + j, forward});
  return gateway(to_group, from_group, j);
}

void Dragonfly::cross_group(std::size_t from, std::size_t to, std::size_t leaf, std::uint64_t& pick,
                            NetworkSteps& steps) const {
  if (from == to) return;
  if (!plus_) {
    locals_.add_route(from, to, 0, pick, steps);
    return;
  }
  climb(leaf, from, false, pick, steps);
  climb(leaf, to, true, pick, steps);
}

std::optional<NetworkSteps> Dragonfly::route(std::size_t from, std::size_t to,
                                             std::uint64_t pick) const {
  NetworkSteps steps;
  if (from == to) return steps;
  steps.reserve(6);  // more have only those of Valiant's
  const std::size_t a = from / leaves_;
  const std::size_t b = to / leaves_;
  if (a == b) {
    if (!plus_) {
      locals_.add_route(from, to, 0, pick, steps);
      return steps;
    }
    const std::size_t spine = take_choice(pick, owners_);
    climb(from, spine, true, pick, steps);
    climb(to, spine, false, pick, steps);
    return steps;
  }
  const std::size_t j = take_choice(pick, between_);
  std::size_t third = b;
  std::size_t third_leaf = 0;
  if (goes_round(a, b)) {
    third = take_choice(pick, groups_ - 2);
    if (third >= std::min(a, b)) ++third;
    if (third >= std::max(a, b)) ++third;
    if (plus_) third_leaf = third * leaves_ + take_choice(pick, leaves_);
  }
  const std::size_t out = gateway(a, third, j);
  if (plus_) {
    climb(from, out, true, pick, steps);
  } else {
    cross_group(from, out, 0, pick, steps);
  }
  std::size_t at = cross(a, third, j, steps);
  if (third != b) {
    cross_group(at, gateway(third, b, j), third_leaf, pick, steps);
    at = cross(third, b, j, steps);
  }
  if (plus_) {
    climb(to, at, false, pick, steps);
  } else {
    cross_group(at, to, 0, pick, steps);
  }
  return steps;
}

}  // namespace weft
