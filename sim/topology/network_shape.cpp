#include "sim/topology/network_shape.hpp"

#include <algorithm>
#include <array>

#include "sim/topology/dragonfly.hpp"
#include "sim/topology/folded_clos.hpp"
#include "sim/topology/torus.hpp"

namespace weft {
namespace {

using Kind = NetworkSpec::Kind;
using Inside = NetworkSpec::Inside;

bool is_dragonfly(const NetworkSpec& spec) {
  return spec.kind == Kind::kDragonfly || spec.kind == Kind::kDragonflyPlus;
}
bool has_spines(const NetworkSpec& spec) {
  return spec.kind == Kind::kDragonflyPlus || (is_clos(spec) && clos_tiers(spec) > 1);
}
bool has_pods(const NetworkSpec& spec) { return is_clos(spec) && clos_tiers(spec) > 2; }
bool has_switches(const NetworkSpec& spec) { return spec.kind > Kind::kOneSwitch; }
bool has_racks(const NetworkSpec& spec) { return is_clos(spec) && spec.inside != Inside::kTree; }
bool has_locals(const NetworkSpec& spec) {
  return has_racks(spec) || spec.kind == Kind::kDragonfly || spec.kind == Kind::kTorus;
}

bool is_above_leaves(const FailedUplinks::value_type& failed) { return failed.first.tier > 0; }

constexpr std::uint32_t kMostPorts = 4096;
constexpr std::uint32_t kMostCores = kMostPorts * kMostPorts;

/// A count that a spec may hold, and the networks that it belongs to.
struct CountRule {
  std::string_view key;
  std::optional<std::uint32_t> NetworkSpec::*count;
  std::uint32_t most;
  bool (*belongs)(const NetworkSpec&);
  std::string_view to;
};
constexpr std::string_view kSwitches = "networks of several switches";
constexpr std::string_view kSpines = "networks with spines";
constexpr std::string_view kPods = "networks of three tiers";
constexpr std::string_view kClos = "leaf-spine, rail-optimised and fat-tree networks";
constexpr std::string_view kGroups = "dragonfly and dragonfly-plus networks";

constexpr std::array kCounts{
    CountRule{"tiers", &NetworkSpec::tiers, 3,
              [](const NetworkSpec& spec) { return spec.kind == Kind::kRailOptimised; },
              "rail-optimised networks"},
    CountRule{"ports", &NetworkSpec::ports, kMostPorts, has_switches, kSwitches},
    CountRule{"leaf_down", &NetworkSpec::leaf_down, kMostPorts, has_switches, kSwitches},
    CountRule{"leaf_up", &NetworkSpec::leaf_up, kMostPorts, has_spines, kSpines},
    CountRule{"spines", &NetworkSpec::spines, kMostPorts, has_spines, kSpines},
    CountRule{"spine_down", &NetworkSpec::spine_down, kMostPorts, has_pods, kPods},
    CountRule{"spine_up", &NetworkSpec::spine_up, kMostPorts, has_pods, kPods},
    CountRule{"cores", &NetworkSpec::cores, kMostCores, has_pods, kPods},
    CountRule{"planes", &NetworkSpec::planes, 64, is_clos, kClos},
    CountRule{"node_leaves", &NetworkSpec::node_leaves, kMostPorts,
              [](const NetworkSpec& spec) {
                return has_switches(spec) && spec.kind != Kind::kRailOptimised;
              },
              "networks of several switches but rail-optimised ones, which have a leaf a NIC"},
    CountRule{"rack_leaves", &NetworkSpec::rack_leaves, kMostPorts, has_racks,
              "networks with racks that 'inside: ring' or 'inside: clique' joins"},
    CountRule{"group_leaves", &NetworkSpec::group_leaves, kMostPorts, is_dragonfly, kGroups},
    CountRule{"groups", &NetworkSpec::groups, kMostCores,
              [](const NetworkSpec& spec) { return is_dragonfly(spec) || is_clos(spec); },
              "leaf-spine, rail-optimised, fat-tree, dragonfly and dragonfly-plus networks"},
    CountRule{"locals", &NetworkSpec::locals, kMostPorts, has_locals,
              "dragonfly and torus networks, and racks with 'inside: ring' or 'inside: clique'"},
    CountRule{"globals", &NetworkSpec::globals, kMostPorts, is_dragonfly, kGroups}};

/// What is said in other forms than a count.
struct OtherRule {
  std::string_view key;
  bool (*given)(const NetworkSpec&);
  void (*forget)(NetworkSpec&);  ///< null: a network of another kind is refused
  bool (*belongs)(const NetworkSpec&);
  std::string_view to;
};
constexpr std::array kOthers{
    OtherRule{"oversubscription",
              [](const NetworkSpec& spec) { return spec.oversubscription.has_value(); },
              [](NetworkSpec& spec) { spec.oversubscription.reset(); }, has_spines, kSpines},
    OtherRule{"spine_oversubscription",
              [](const NetworkSpec& spec) { return spec.spine_oversubscription.has_value(); },
              [](NetworkSpec& spec) { spec.spine_oversubscription.reset(); }, has_pods, kPods},
    OtherRule{"inside", [](const NetworkSpec& spec) { return spec.inside != Inside::kTree; },
              [](NetworkSpec& spec) { spec.inside = Inside::kTree; }, is_clos, kClos},
    OtherRule{"paths",
              [](const NetworkSpec& spec) { return spec.paths != NetworkSpec::Paths::kMinimal; },
              [](NetworkSpec& spec) { spec.paths = NetworkSpec::Paths::kMinimal; }, is_dragonfly,
              kGroups},
    OtherRule{"failed_uplinks",
              [](const NetworkSpec& spec) { return !spec.failed_uplinks.empty(); }, nullptr,
              [](const NetworkSpec& spec) { return is_clos(spec) && has_spines(spec); },
              "leaf-spine, rail-optimised and fat-tree networks with spines"},
    OtherRule{"failed_uplinks of spines",
              [](const NetworkSpec& spec) {
                return std::ranges::any_of(spec.failed_uplinks, is_above_leaves);
              },
              nullptr, has_pods, kPods},
    OtherRule{"dims", [](const NetworkSpec& spec) { return !spec.dims.empty(); },
              [](NetworkSpec& spec) { spec.dims.clear(); },
              [](const NetworkSpec& spec) { return spec.kind == Kind::kTorus; }, "torus networks"}};

[[noreturn]] void refuse_at(const NetworkSpec& spec, const std::string& why) {
  throw InputError(spec.place, spec.name + ": " + why);
}

void check_spec(const NetworkSpec& spec) {
  for (const CountRule& rule : kCounts) {
    const auto& count = spec.*rule.count;
    if (!count || (*count >= 1 && *count <= rule.most)) continue;
    refuse_at(spec, std::string(rule.key) + ": " + std::to_string(*count) +
                        " is out of range; allowed: 1 to " + std::to_string(rule.most));
  }
  for (const std::optional<double> ratio : {spec.oversubscription, spec.spine_oversubscription}) {
    if (ratio && !(*ratio > 0.0)) refuse_at(spec, "an oversubscription is a number above 0");
  }
  const auto belongs = [&spec](bool given, const auto& rule) {
    if (!given || rule.belongs(spec)) return;
    refuse_at(spec, "'" + std::string(rule.key) + "' belongs to " + std::string(rule.to));
  };
  for (const CountRule& rule : kCounts) belongs((spec.*rule.count).has_value(), rule);
  for (const OtherRule& rule : kOthers) belongs(rule.given(spec), rule);
  if (spec.leaf_up && spec.oversubscription) {
    refuse_at(spec, "write either 'leaf_up' or 'oversubscription', not both");
  }
  if (spec.spine_up && spec.spine_oversubscription) {
    refuse_at(spec, "write either 'spine_up' or 'spine_oversubscription', not both");
  }
}

}  // namespace

void forget_what_does_not_belong(NetworkSpec& spec) {
  for (const OtherRule& rule : kOthers) {
    if (rule.forget != nullptr && !rule.belongs(spec)) rule.forget(spec);
  }
  for (const CountRule& rule : kCounts) {
    if (!rule.belongs(spec)) (spec.*rule.count).reset();
  }
}

bool has_tier(const NetworkSpec& spec, std::string_view tier) {
  if (tier == "leaf") return spec.kind != Kind::kNone;
  return tier == "spine" ? has_spines(spec) : has_pods(spec);
}

std::unique_ptr<NetworkShape> make_network(const NetworkSpec& spec, std::uint32_t nodes,
                                           std::uint32_t nics_per_node) {
  check_spec(spec);
  if (has_switches(spec)) {
    if (!spec.ports) {
      refuse_at(spec, "a " + std::string(network_kind_name(spec.kind)) +
                          " network needs 'ports', the ports of each switch");
    }
    if (nics_per_node == 0) refuse_at(spec, "no NIC of the node is cabled to it");
  }
  if (is_dragonfly(spec)) return std::make_unique<Dragonfly>(spec, nodes, nics_per_node);
  if (spec.kind == Kind::kTorus) return std::make_unique<Torus>(spec, nodes, nics_per_node);
  return std::make_unique<FoldedClos>(spec, nodes, nics_per_node);
}

std::string plural(std::uint64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

void NetworkShape::set(std::vector<NetworkTier> tiers, const Cabling& cabling) {
  tiers_ = std::move(tiers);
  cabling_ = cabling;
  for (const NetworkTier& tier : tiers_) {
    switch_base_.push_back(switch_base_.back() + std::size_t{tier.groups} * tier.group_size);
  }
}

std::size_t NetworkShape::tier_of_switch(std::size_t index) const {
  std::size_t tier = 0;
  while (index >= switch_base_[tier + 1]) ++tier;
  return tier;
}

std::size_t NetworkShape::number_in_tier(std::size_t index) const {
  return index - switch_base_[tier_of_switch(index)];
}

void NetworkSizing::refuse(const std::string& why) const { refuse_at(spec_, why); }

void NetworkSizing::cable(std::uint32_t down) {
  const auto evenly = [this](std::uint32_t nics, std::uint32_t over, const std::string& what) {
    if (nics % over == 0) return nics / over;
    refuse(what + ": " + plural(nics, "NIC") + " of a node do not spread evenly over " +
           std::to_string(over));
  };
  cabling_.round_robin = spec_.placement == NetworkSpec::Placement::kRoundRobin;
  cabling_.planes = spec_.planes.value_or(1);
  const std::uint32_t in_plane = evenly(nics_, cabling_.planes, "planes");
  const bool rails = spec_.kind == Kind::kRailOptimised;
  cabling_.leaves_of_block = rails ? in_plane : spec_.node_leaves.value_or(1);
  const std::uint32_t on_leaf = evenly(in_plane, cabling_.leaves_of_block, "node_leaves");
  cabling_.nodes_of_block = down / on_leaf;
  if (cabling_.nodes_of_block == 0) {
    std::uint32_t over = cabling_.leaves_of_block;
    while (over < in_plane && (in_plane % over != 0 || in_plane / over > down)) ++over;
    refuse("a leaf's " + std::to_string(down) + " ports down cannot hold the " +
           std::to_string(on_leaf) + " NICs of one node" +
           (down == 0 ? "" : "; 'node_leaves: " + std::to_string(over) + "' spreads them"));
  }
  cabling_.blocks = (nodes_ + cabling_.nodes_of_block - 1) / cabling_.nodes_of_block;
  if (is_clos(spec_) && spec_.groups) {
    if (*spec_.groups < cabling_.blocks) {
      refuse("groups: " + std::to_string(*spec_.groups) + "; " + plural(nodes_, "node") + " need " +
             std::to_string(cabling_.blocks));
    }
    cabling_.blocks = *spec_.groups;
  }
  cabling_.leaves_of_plane = cabling_.blocks * cabling_.leaves_of_block;
}

void NetworkSizing::require_ports(const std::string& tier, const NetworkTier& said) const {
  if (std::uint64_t{said.down} + said.up + said.local <= *spec_.ports) return;
  const std::string beside =
      said.local == 0 ? "" : ", " + std::to_string(said.local) + " to switches beside it";
  refuse("a " + tier + "'s " + std::to_string(said.down) + " ports down" + beside + " and " +
         std::to_string(said.up) + " up are more than the " + std::to_string(*spec_.ports) +
         " ports of a switch");
}

void NetworkSizing::require_fit(std::uint64_t most_leaves, const std::string& why) const {
  const std::uint64_t most = most_leaves / cabling_.leaves_of_block * cabling_.nodes_of_block;
  if (nodes_ <= most) return;
  refuse(plural(nodes_, "node") + " of " + plural(nics_, "NIC") + " do not fit, at most " +
         std::to_string(most) + " do" +
         (most > 0 || cabling_.leaves_of_block == 1
              ? ""
              : ", as each is cabled to " + std::to_string(cabling_.leaves_of_block) + " leaves") +
         ": " + why);
}

}  // namespace weft
