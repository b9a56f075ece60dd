#include "sim/topology/folded_clos.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace weft {
namespace {

using Kind = NetworkSpec::Kind;

std::uint32_t pieces_of(std::uint32_t all, std::uint32_t each) { return (all + each - 1) / each; }

std::string plural(std::uint32_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string divisors(std::uint32_t number) {
  std::string out;
  for (std::uint32_t d = 1; d <= number; ++d) {
    if (number % d == 0) out += (out.empty() ? "" : ", ") + std::to_string(d);
  }
  return out;
}

/// Works out the tiers from what the spec says and what it leaves out.
class Sizing {
 public:
  Sizing(const NetworkSpec& spec, std::uint32_t nodes, std::uint32_t nics)
      : spec_{spec}, nodes_{nodes}, nics_{nics} {}

  std::vector<NetworkTier> tiers() {
    check_ranges();
    refuse_what_does_not_belong();
    if (spec_.kind == Kind::kOneSwitch) return one_switch();
    if (!spec_.ports) refuse("a " + kind() + " network needs 'ports', the ports of each switch");
    if (nics_ == 0) refuse("no NIC of the node is cabled to it");
    size_leaves();
    if (tier_count() == 1) {
      require_fit(leaves_per_block(), "each rail is one switch; with 'tiers: 2' spines join them");
    } else if (tier_count() == 2) {
      add_spines();
    } else {
      add_pods();
    }
    return std::move(tiers_);
  }

  bool rails() const { return spec_.kind == Kind::kRailOptimised; }
  std::uint32_t nodes_per_block() const { return nodes_per_block_; }
  std::uint32_t leaves_per_block() const { return rails() ? nics_ : 1; }
  std::uint32_t blocks() const { return pieces_of(nodes_, nodes_per_block_); }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(spec_.place, spec_.name + ": " + why);
  }
  std::string kind() const { return std::string(network_kind_name(spec_.kind)); }
  std::uint32_t tier_count() const {
    if (rails()) return spec_.tiers.value_or(2);
    return spec_.kind == Kind::kFatTree ? 3 : 2;
  }
  std::uint32_t leaves() const { return blocks() * leaves_per_block(); }

  void check_ranges() const;
  std::vector<NetworkTier> one_switch();
  void refuse_what_does_not_belong() const;
  void size_leaves();
  void add_spines();
  void add_pods();
  std::uint32_t ports_up(std::uint32_t down, std::optional<double> oversubscription,
                         const std::string& down_key, const std::string& ratio_key) const;
  std::uint32_t evenly(std::uint32_t upper, std::uint32_t uplinks, const std::string& what) const;
  std::uint32_t fewest_upper(std::uint32_t uplinks, std::uint32_t lower) const;
  void require_ports(const std::string& tier, std::uint32_t down, std::uint32_t up) const;
  void require_fit(std::uint32_t most_leaves, const std::string& why) const;

  const NetworkSpec& spec_;
  std::uint32_t nodes_;
  std::uint32_t nics_;
  std::uint32_t nodes_per_block_{1};
  std::vector<NetworkTier> tiers_;
};

void Sizing::check_ranges() const {
  constexpr std::uint32_t kMostPorts = 4096;
  const auto check = [&](std::optional<std::uint32_t> count, const char* key, std::uint32_t most) {
    if (!count || (*count >= 1 && *count <= most)) return;
    refuse(std::string(key) + ": " + std::to_string(*count) + " is out of range; allowed: 1 to " +
           std::to_string(most));
  };
  check(spec_.tiers, "tiers", 3);
  check(spec_.ports, "ports", kMostPorts);
  check(spec_.leaf_down, "leaf_down", kMostPorts);
  check(spec_.leaf_up, "leaf_up", kMostPorts);
  check(spec_.spines, "spines", kMostPorts);
  check(spec_.spine_down, "spine_down", kMostPorts);
  check(spec_.spine_up, "spine_up", kMostPorts);
  check(spec_.cores, "cores", kMostPorts * kMostPorts);
  for (const std::optional<double> ratio : {spec_.oversubscription, spec_.spine_oversubscription}) {
    if (ratio && !(*ratio > 0.0)) refuse("an oversubscription is a number above 0");
  }
}

std::vector<NetworkTier> Sizing::one_switch() {
  nodes_per_block_ = nodes_;
  NetworkTier tier{.name = spec_.name};
  tier.below = tier.down = nodes_ * nics_;
  return {tier};
}

void Sizing::refuse_what_does_not_belong() const {
  const auto check = [&](bool given, const char* key, bool belongs, const char* to) {
    if (given && !belongs) refuse(std::string("'") + key + "' belongs to " + to);
  };
  const bool one = spec_.kind == Kind::kOneSwitch;
  const bool up = !one && tier_count() > 1;
  const bool pods = !one && tier_count() > 2;
  constexpr const char* kSwitches = "networks of several switches";
  constexpr const char* kSpines = "networks with spines";
  constexpr const char* kPods = "networks of three tiers";
  check(spec_.tiers.has_value(), "tiers", rails(), "rail-optimised networks");
  check(spec_.ports.has_value(), "ports", !one, kSwitches);
  check(spec_.leaf_down.has_value(), "leaf_down", !one, kSwitches);
  check(spec_.leaf_up.has_value(), "leaf_up", up, kSpines);
  check(spec_.oversubscription.has_value(), "oversubscription", up, kSpines);
  check(spec_.spines.has_value(), "spines", up, kSpines);
  check(spec_.spine_down.has_value(), "spine_down", pods, kPods);
  check(spec_.spine_up.has_value(), "spine_up", pods, kPods);
  check(spec_.spine_oversubscription.has_value(), "spine_oversubscription", pods, kPods);
  check(spec_.cores.has_value(), "cores", pods, kPods);
  if (spec_.leaf_up && spec_.oversubscription) {
    refuse("write either 'leaf_up' or 'oversubscription', not both");
  }
  if (spec_.spine_up && spec_.spine_oversubscription) {
    refuse("write either 'spine_up' or 'spine_oversubscription', not both");
  }
}

void Sizing::size_leaves() {
  const std::uint32_t ports = *spec_.ports;
  const std::uint32_t down = spec_.leaf_down.value_or(tier_count() == 1 ? ports : ports / 2);
  const std::uint32_t up = tier_count() == 1
                               ? 0
                               : spec_.leaf_up.value_or(ports_up(down, spec_.oversubscription,
                                                                 "leaf_down", "oversubscription"));
  require_ports("leaf", down, up);
  nodes_per_block_ = rails() ? down : down / nics_;
  if (nodes_per_block_ == 0) {
    refuse("a leaf's " + std::to_string(down) + " ports down cannot hold the " +
           std::to_string(nics_) + " NICs of one node; a rail-optimised network spreads them");
  }
  NetworkTier leaf{.name = "leaf", .groups = leaves(), .below = down, .down = down, .up = up};
  leaf.ports = ports;
  tiers_.push_back(leaf);
}

void Sizing::add_spines() {
  NetworkTier& leaf = tiers_.front();
  leaf.parents =
      spec_.spines ? evenly(*spec_.spines, leaf.up, "spines") : fewest_upper(leaf.up, leaves());
  const std::uint32_t links = leaf.up / leaf.parents;
  const std::uint32_t most = leaf.ports / links;
  require_fit(most, "a spine's " + std::to_string(leaf.ports) + " ports reach " +
                        std::to_string(most) + " leaves by " + plural(links, "link") + " each");
  tiers_.push_back({.name = "spine",
                    .group_size = leaf.parents,
                    .below = leaves(),
                    .down = leaves() * links,
                    .ports = leaf.ports});
}

void Sizing::add_pods() {
  NetworkTier& leaf = tiers_.front();
  leaf.parents = spec_.spines ? evenly(*spec_.spines, leaf.up, "spines") : leaf.up;
  const std::uint32_t links = leaf.up / leaf.parents;
  const std::uint32_t down = spec_.spine_down.value_or(leaf.ports / 2);
  const std::uint32_t up = spec_.spine_up.value_or(
      ports_up(down, spec_.spine_oversubscription, "spine_down", "spine_oversubscription"));
  require_ports("spine", down, up);
  const std::uint32_t in_pod = down / links / leaves_per_block() * leaves_per_block();
  if (in_pod == 0) {
    refuse("a spine's " + std::to_string(down) + " ports down cannot reach the " +
           std::to_string(leaves_per_block()) + " leaves of one node by " + plural(links, "link") +
           " each");
  }
  NetworkTier spine{.name = "spine",
                    .groups = pieces_of(leaves(), in_pod),
                    .group_size = leaf.parents,
                    .below = in_pod,
                    .down = std::min(in_pod, leaves()) * links,
                    .up = up};
  spine.ports = leaf.ports;
  if (!spec_.cores) {
    spine.parents = fewest_upper(up, spine.groups);
  } else if (*spec_.cores % spine.group_size != 0) {
    refuse("cores: " + std::to_string(*spec_.cores) + " is not a multiple of the " +
           std::to_string(spine.group_size) +
           " spines of a pod, each of which has cores of its own");
  } else {
    spine.parents = evenly(*spec_.cores / spine.group_size, up, "cores a spine");
  }
  const std::uint32_t most = leaf.ports / (up / spine.parents);
  require_fit(most * in_pod, "a core's " + std::to_string(leaf.ports) + " ports reach " +
                                 std::to_string(most) + " pods of " + std::to_string(in_pod) +
                                 " leaves");
  const std::uint32_t core_down = spine.groups * (up / spine.parents);
  const std::uint32_t cores = spine.group_size * spine.parents;
  const std::uint32_t pods = spine.groups;
  tiers_.push_back(std::move(spine));
  tiers_.push_back({.name = "core",
                    .group_size = cores,
                    .below = pods,
                    .down = core_down,
                    .ports = *spec_.ports});
}

/// As many ports up as the ratio says.
std::uint32_t Sizing::ports_up(std::uint32_t down, std::optional<double> oversubscription,
                               const std::string& down_key, const std::string& ratio_key) const {
  const double up = down / oversubscription.value_or(1.0);
  const double whole = std::round(up);
  if (whole < 1.0 || std::abs(up - whole) > 1e-6 * up) {
    refuse(ratio_key + ": " + std::to_string(down) +
           " ports down are not a whole number of ports up at this ratio; set '" + down_key +
           "' to a multiple of it");
  }
  return static_cast<std::uint32_t>(std::min(whole, 1e9));
}

/// `upper` switches share `uplinks` evenly, or it is refused.
std::uint32_t Sizing::evenly(std::uint32_t upper, std::uint32_t uplinks,
                             const std::string& what) const {
  if (uplinks % upper != 0) {
    refuse(what + ": " + std::to_string(uplinks) +
           " uplinks of a switch do not spread evenly over " + std::to_string(upper) +
           "; allowed: " + divisors(uplinks));
  }
  return upper;
}

/// The fewest upper switches that have ports for `lower` switches or pods below them; as many as
/// there are uplinks if even those have not (require_fit then says so).
std::uint32_t Sizing::fewest_upper(std::uint32_t uplinks, std::uint32_t lower) const {
  for (std::uint32_t upper = 1; upper < uplinks; ++upper) {
    if (uplinks % upper == 0 && std::uint64_t{lower} * (uplinks / upper) <= *spec_.ports) {
      return upper;
    }
  }
  return uplinks;
}

void Sizing::require_ports(const std::string& tier, std::uint32_t down, std::uint32_t up) const {
  if (std::uint64_t{down} + up <= *spec_.ports) return;
  refuse("a " + tier + "'s " + std::to_string(down) + " ports down and " + std::to_string(up) +
         " up are more than the " + std::to_string(*spec_.ports) + " ports of a switch");
}

void Sizing::require_fit(std::uint32_t most_leaves, const std::string& why) const {
  const std::uint64_t most = std::uint64_t{most_leaves / leaves_per_block()} * nodes_per_block_;
  if (nodes_ <= most) return;
  refuse(plural(nodes_, "node") + " of " + plural(nics_, "NIC") + " do not fit, at most " +
         std::to_string(most) + " do: " + why);
}

}  // namespace

FoldedClos::FoldedClos(const NetworkSpec& spec, std::uint32_t nodes, std::uint32_t nics_per_node)
    : round_robin_{spec.placement == NetworkSpec::Placement::kRoundRobin} {
  Sizing sizing(spec, nodes, nics_per_node);
  tiers_ = sizing.tiers();
  nodes_per_block_ = sizing.nodes_per_block();
  leaves_per_block_ = sizing.leaves_per_block();
  blocks_ = sizing.blocks();
  rails_ = sizing.rails();
  switch_base_ = {0};
  link_base_ = {0};
  for (const NetworkTier& tier : tiers_) {
    const std::size_t switches = std::size_t{tier.groups} * tier.group_size;
    switch_base_.push_back(switch_base_.back() + switches);
    link_base_.push_back(link_base_.back() + switches * tier.up);
  }
}

std::size_t FoldedClos::tier_of_switch(std::size_t index) const {
  std::size_t tier = 0;
  while (index >= switch_base_[tier + 1]) ++tier;
  return tier;
}

std::size_t FoldedClos::number_in_tier(std::size_t index) const {
  return index - switch_base_[tier_of_switch(index)];
}

std::size_t FoldedClos::tier_of_link(std::size_t link) const {
  std::size_t tier = 0;
  while (link >= link_base_[tier + 1]) ++tier;
  return tier;
}

std::size_t FoldedClos::leaf_of(std::uint32_t node, std::size_t nic) const {
  const std::size_t block = round_robin_ ? node % blocks_ : node / nodes_per_block_;
  return block * leaves_per_block_ + (rails_ ? nic : 0);
}

/// The number, in its tier, of the switch that an uplink leads to: uplinks go to the parents in
/// turn, and each switch of a group has parents of its own.
std::size_t FoldedClos::parent_of(std::size_t tier, std::size_t number, std::size_t uplink) const {
  const NetworkTier& t = tiers_[tier];
  const std::size_t group = number / t.group_size / tiers_[tier + 1].below;
  const std::size_t in_group = number % t.group_size * t.parents + uplink % t.parents;
  return group * tiers_[tier + 1].group_size + in_group;
}

FoldedClos::Ends FoldedClos::ends(std::size_t link) const {
  const std::size_t tier = tier_of_link(link);
  const std::size_t in_tier = link - link_base_[tier];
  const std::size_t number = in_tier / tiers_[tier].up;
  return {switch_base_[tier] + number,
          switch_base_[tier + 1] + parent_of(tier, number, in_tier % tiers_[tier].up)};
}

Trunk FoldedClos::trunk(std::size_t link) const {
  const std::size_t tier = tier_of_link(link);
  const std::size_t count = std::size_t{tiers_[tier].group_size} * tiers_[tier].up;
  const std::size_t in_tier = link - link_base_[tier];
  return {LinkId{link_base_[tier] + in_tier / count * count}, count};
}

std::optional<std::vector<FoldedClos::Step>> FoldedClos::route(std::size_t from, std::size_t to,
                                                               std::uint64_t pick) const {
  const auto take = [&pick](std::uint64_t ways) { return std::exchange(pick, pick / ways) % ways; };
  std::vector<Step> steps;
  // Up from `at`, a number in its tier, until the same group is above both.
  std::size_t tier = 0;
  std::size_t at = from;
  std::vector<std::size_t> way_to{to};  // the groups of each tier that `to` is in or below
  while (at / tiers_[tier].group_size != way_to.back()) {
    if (tier + 1 == tiers_.size()) return std::nullopt;
    const NetworkTier& t = tiers_[tier];
    const std::size_t uplink = take(t.up);
    steps.push_back({link_base_[tier] + at * t.up + uplink, true});
    at = parent_of(tier, at, uplink);
    way_to.push_back(way_to.back() / tiers_[++tier].below);
  }
  // Down: the switch to go to is given; which of the links to it, if there are several, is not.
  while (tier > 0) {
    const NetworkTier& t = tiers_[--tier];
    const std::size_t in_group = at % tiers_[tier + 1].group_size;
    way_to.pop_back();
    at = way_to.back() * t.group_size + in_group / t.parents;
    const std::size_t uplink = in_group % t.parents + t.parents * take(t.up / t.parents);
    steps.push_back({link_base_[tier] + at * t.up + uplink, false});
  }
  return steps;
}

}  // namespace weft
