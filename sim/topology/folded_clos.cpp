#include "sim/topology/folded_clos.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace weft {
namespace {

using Kind = NetworkSpec::Kind;
using Inside = NetworkSpec::Inside;

std::uint32_t pieces_of(std::uint32_t all, std::uint32_t each) { return (all + each - 1) / each; }

UplinkedSwitch uplinked(std::size_t tier, std::size_t number) {
  return {static_cast<std::uint32_t>(tier), static_cast<std::uint32_t>(number)};
}

std::string divisors(std::uint32_t number) {
  std::string out;
  for (std::uint32_t d = 1; d <= number; ++d) {
    if (number % d == 0) out += (out.empty() ? "" : ", ") + std::to_string(d);
  }
  return out;
}

/// Works out the tiers from what the spec says and what it leaves out.
class Sizing : private NetworkSizing {
 public:
  using NetworkSizing::NetworkSizing;

  std::vector<NetworkTier> tiers() {
    if (spec_.kind == Kind::kOneSwitch) return one_switch();
    size_leaves();
    if (clos_tiers(spec_) == 1) {
      require_fit(cabling_.leaves_of_block,
                  "each rail is one switch; with 'tiers: 2' spines join them");
    } else if (clos_tiers(spec_) == 2) {
      add_spines();
    } else {
      add_pods();
    }
    return tiers_;
  }

  /// Precondition: the tiers are known.
  void check_failed() const;
  const Cabling& cabling() const { return cabling_; }
  LocalLinks racks() const {
    return {spec_.inside, rack_, std::size_t{cabling_.planes} * leaves() / rack_,
            spec_.locals.value_or(1)};
  }

 private:
  /// Of a plane.
  std::uint32_t leaves() const { return cabling_.leaves_of_plane; }

  std::vector<NetworkTier> one_switch();
  void size_leaves();
  void add_spines();
  void add_pods();
  std::uint32_t ports_up(std::uint32_t down, std::optional<double> oversubscription,
                         const std::string& down_key, const std::string& ratio_key) const;
  std::uint32_t evenly(std::uint32_t upper, std::uint32_t uplinks, const std::string& what) const;
  std::uint32_t fewest_upper(std::uint32_t uplinks, std::uint32_t lower) const;

  std::uint32_t rack_{1};  // leaves
  std::vector<NetworkTier> tiers_;
};

std::vector<NetworkTier> Sizing::one_switch() {
  cabling_.nodes_of_block = nodes_;
  NetworkTier tier{.name = spec_.name};
  tier.below = tier.down = nodes_ * nics_;
  return {tier};
}

void Sizing::size_leaves() {
  const std::uint32_t ports = *spec_.ports;
  const bool alone = clos_tiers(spec_) == 1;
  NetworkTier leaf{.name = "leaf"};
  leaf.down = leaf.below = spec_.leaf_down.value_or(alone ? ports : ports / 2);
  leaf.up = alone ? 0
                  : spec_.leaf_up.value_or(ports_up(leaf.down, spec_.oversubscription, "leaf_down",
                                                    "oversubscription"));
  leaf.ports = ports;
  if (spec_.inside != Inside::kTree) {
    if (!spec_.rack_leaves) refuse("'inside' needs 'rack_leaves', the leaves that it joins");
    rack_ = *spec_.rack_leaves;
    const std::uint64_t local =
        LocalLinks(spec_.inside, rack_, 1, spec_.locals.value_or(1)).ports();
    leaf.local = static_cast<std::uint32_t>(local);
  }
  require_ports("leaf", leaf);
  cable(leaf.down);
  cabling_.leaves_of_plane = pieces_of(leaves(), rack_) * rack_;
  leaf.groups = cabling_.planes * leaves();
  tiers_.push_back(leaf);
}

void Sizing::add_spines() {
  NetworkTier& leaf = tiers_.front();
  leaf.parents =
      spec_.spines ? evenly(*spec_.spines, leaf.up, "spines") : fewest_upper(leaf.up, leaves());
  const std::uint32_t links = leaf.up / leaf.parents;
  const std::uint32_t most = leaf.ports / links;
  require_fit(most - most % rack_,
              "a spine's " + std::to_string(leaf.ports) + " ports reach " + std::to_string(most) +
                  " leaves by " + plural(links, "link") + " each" +
                  (spec_.kind == Kind::kRailOptimised ? "; with 'tiers: 3' cores join more"
                                                      : "; a fat-tree joins more"));
  tiers_.push_back({.name = "spine",
                    .groups = cabling_.planes,
                    .group_size = leaf.parents,
                    .below = leaves(),
                    .down = leaves() * links,
                    .ports = leaf.ports});
}

void Sizing::add_pods() {
  NetworkTier& leaf = tiers_.front();
  leaf.parents = spec_.spines ? evenly(*spec_.spines, leaf.up, "spines") : leaf.up;
  const std::uint32_t links = leaf.up / leaf.parents;
  const std::uint32_t of_block = cabling_.leaves_of_block;
  const std::uint32_t down = spec_.spine_down.value_or(leaf.ports / 2);
  NetworkTier spine{.name = "spine"};
  spine.up = spec_.spine_up.value_or(
      ports_up(down, spec_.spine_oversubscription, "spine_down", "spine_oversubscription"));
  spine.down = down;
  require_ports("spine", spine);
  const std::uint32_t in_pod = down / links / of_block * of_block;
  if (in_pod == 0) {
    refuse("a spine's " + std::to_string(down) + " ports down cannot reach the " +
           std::to_string(of_block) + " leaves of one node by " + plural(links, "link") + " each");
  }
  if (in_pod % rack_ != 0) {
    refuse("rack_leaves: " + std::to_string(rack_) + " do not divide the " +
           std::to_string(in_pod) + " leaves of a pod");
  }
  const std::uint32_t pods = pieces_of(leaves(), in_pod);
  spine.groups = cabling_.planes * pods;
  spine.group_size = leaf.parents;
  spine.below = in_pod;
  spine.down = std::min(in_pod, leaves()) * links;
  spine.ports = leaf.ports;
  if (!spec_.cores) {
    spine.parents = fewest_upper(spine.up, pods);
  } else if (*spec_.cores % spine.group_size != 0) {
    refuse("cores: " + std::to_string(*spec_.cores) + " is not a multiple of the " +
           std::to_string(spine.group_size) +
           " spines of a pod, each of which has cores of its own");
  } else {
    spine.parents = evenly(*spec_.cores / spine.group_size, spine.up, "cores a spine");
  }
  const std::uint32_t most = leaf.ports / (spine.up / spine.parents);
  require_fit(std::uint64_t{most} * in_pod, "a core's " + std::to_string(leaf.ports) +
                                                " ports reach " + std::to_string(most) +
                                                " pods of " + std::to_string(in_pod) + " leaves");
  const std::uint32_t core_down = pods * (spine.up / spine.parents);
  const std::uint32_t cores = spine.group_size * spine.parents;
  tiers_.push_back(std::move(spine));
  tiers_.push_back({.name = "core",
                    .groups = cabling_.planes,
                    .group_size = cores,
                    .below = pods,
                    .down = core_down,
                    .ports = *spec_.ports});
}

/// Each switch keeps an uplink.
void Sizing::check_failed() const {
  for (const auto& [at, failed] : spec_.failed_uplinks) {
    const NetworkTier& tier = tiers_[at.tier];
    if (at.number >= tier.switches()) {
      const UplinkedSwitch first{at.tier, 0};
      const UplinkedSwitch last{at.tier, tier.switches() - 1};
      refuse("failed_uplinks: there is no " + at.name() + "; the " +
             (at.tier == 0 ? "leaves" : "spines") + " are " + first.name() + " to " + last.name());
    }
    if (failed < tier.up) continue;
    refuse("failed_uplinks: " + std::to_string(failed) + " of the " + plural(tier.up, "uplink") +
           " of " + at.name() + "; one has to be left");
  }
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

}  // namespace

bool is_clos(const NetworkSpec& spec) {
  using Kind = NetworkSpec::Kind;
  return spec.kind == Kind::kLeafSpine || spec.kind == Kind::kRailOptimised ||
         spec.kind == Kind::kFatTree;
}

std::uint32_t clos_tiers(const NetworkSpec& spec) {
  if (spec.kind == Kind::kRailOptimised) return spec.tiers.value_or(2);
  return spec.kind == Kind::kFatTree ? 3 : 2;
}

FoldedClos::FoldedClos(const NetworkSpec& spec, std::uint32_t nodes, std::uint32_t nics_per_node)
    : link_base_{0}, planes_{1}, racks_{Inside::kTree, 1, 0, 1}, failed_{spec.failed_uplinks} {
  Sizing sizing(spec, nodes, nics_per_node);
  const std::vector<NetworkTier> tiers = sizing.tiers();
  sizing.check_failed();
  set(tiers, sizing.cabling());
  planes_ = sizing.cabling().planes;
  racks_ = sizing.racks();
  for (const NetworkTier& tier : tiers) {
    const std::size_t switches = std::size_t{tier.groups} * tier.group_size;
    link_base_.push_back(link_base_.back() + switches * tier.up);
  }
}

std::size_t FoldedClos::tier_of_link(std::size_t link) const {
  std::size_t tier = 0;
  while (link >= link_base_[tier + 1]) ++tier;
  return tier;
}

std::size_t FoldedClos::group_above(std::size_t tier, std::size_t group) const {
  const std::size_t here = tiers()[tier].groups / planes_;  // in a plane
  const std::size_t above = tiers()[tier + 1].groups / planes_;
  return group / here * above + group % here / tiers()[tier + 1].below;
}

/// The number, in its tier, of the switch that an uplink leads to: uplinks go to the parents in
/// turn, and each switch of a group has parents of its own.
std::size_t FoldedClos::parent_of(std::size_t tier, std::size_t number, std::size_t uplink) const {
  const NetworkTier& t = tiers()[tier];
  const std::size_t group = group_above(tier, number / t.group_size);
  const std::size_t in_group = number % t.group_size * t.parents + uplink % t.parents;
  return group * tiers()[tier + 1].group_size + in_group;
}

SwitchEnds FoldedClos::ends(std::size_t link) const {
  if (link >= link_base_.back()) return racks_.ends(link - link_base_.back());
  const std::size_t tier = tier_of_link(link);
  const std::size_t in_tier = link - link_base_[tier];
  const std::size_t up = tiers()[tier].up;
  const std::size_t number = in_tier / up;
  return {first_of_tier(tier) + number,
          first_of_tier(tier + 1) + parent_of(tier, number, in_tier % up)};
}

Trunk FoldedClos::trunk(std::size_t link) const {
  if (link >= link_base_.back()) {
    const Trunk local = racks_.trunk(link - link_base_.back());
    return {LinkId{link_base_.back() + local.first.index()}, local.count};
  }
  const std::size_t tier = tier_of_link(link);
  const std::size_t size = tiers()[tier].group_size;
  const std::size_t all = size * tiers()[tier].up;
  const std::size_t group = (link - link_base_[tier]) / all;
  std::size_t down = 0;
  const auto end = failed_.lower_bound(uplinked(tier, (group + 1) * size));
  for (auto at = failed_.lower_bound(uplinked(tier, group * size)); at != end; ++at) {
    down += at->second;
  }
  return {LinkId{link_base_[tier] + group * all}, all - down};
}

std::size_t FoldedClos::uplinks(std::size_t tier, std::size_t number) const {
  const std::size_t all = tiers()[tier].up;
  if (failed_.empty()) return all;
  const auto at = failed_.find(uplinked(tier, number));
  return at == failed_.end() ? all : all - at->second;
}

bool FoldedClos::is_down(std::size_t link) const {
  if (failed_.empty() || link >= link_base_.back()) return false;
  const std::size_t tier = tier_of_link(link);
  const std::size_t in_tier = link - link_base_[tier];
  const std::size_t up = tiers()[tier].up;
  return in_tier % up >= uplinks(tier, in_tier / up);
}

/// A switch's last uplinks lead to its last parents, so those that reach it are its first ones, and
/// of each switch the first uplink stays.
std::size_t FoldedClos::uplink_towards(std::size_t tier, std::size_t from, std::size_t to,
                                       std::uint64_t& pick) const {
  const std::size_t parents = tiers()[tier].parents;
  const std::size_t up = uplinks(tier, from);
  const std::size_t reaching = std::min(parents, uplinks(tier, to));
  const std::size_t choices = up / parents * reaching + std::min(up % parents, reaching);
  const std::size_t choice = take_choice(pick, choices);
  return choice / reaching * parents + choice % reaching;
}

bool FoldedClos::has_equal_routes() const {
  return racks_.has_equal_routes() ||
         std::any_of(tiers().begin(), tiers().end(), [](const NetworkTier& tier) {
           return std::size_t{tier.group_size} * tier.up > 1;
         });
}

std::uint64_t FoldedClos::ways(std::size_t from, std::size_t to) const {
  if (racks_.joins(from, to)) return racks_.ways(from, to);
  std::size_t a = from;
  std::size_t b = to;
  for (std::size_t tier = 0; a != b && tier + 1 < tiers().size(); ++tier) {
    a = group_above(tier, a);
    b = group_above(tier, b);
  }
  return a == b ? 1 : 0;
}

std::optional<NetworkSteps> FoldedClos::route(std::size_t from, std::size_t to,
                                              std::uint64_t pick) const {
  NetworkSteps steps;
  if (racks_.joins(from, to)) {
    const std::uint64_t way = racks_.take_way(from, to, pick);
    racks_.add_route(from, to, way, pick, steps);
    for (NetworkStep& step : steps) step.link += link_base_.back();
    return steps;
  }
  // Up from `at`, a number in its tier, until the same group is above both.
  std::size_t tier = 0;
  std::size_t at = from;
  std::vector<std::size_t> way_to{to};  // the groups of each tier that `to` is in or below
  while (at / tiers()[tier].group_size != way_to.back()) {
    if (tier + 1 == tiers().size()) return std::nullopt;
    const NetworkTier& t = tiers()[tier];
    // A message comes down where it went up: the cores above one spine are above the spines of
    // that place in the other pods, so the spine there is known.
    const std::size_t mirrored = way_to.back() * t.group_size + at % t.group_size;
    const std::size_t uplink = uplink_towards(tier, at, mirrored, pick);
    steps.push_back({link_base_[tier] + at * t.up + uplink, true});
    at = parent_of(tier, at, uplink);
    way_to.push_back(group_above(tier, way_to.back()));
    ++tier;
  }
  // Down: the switch to go to is given; which of the links to it, if there are several, is not.
  while (tier > 0) {
    const NetworkTier& t = tiers()[--tier];
    const std::size_t in_group = at % tiers()[tier + 1].group_size;
    way_to.pop_back();
    at = way_to.back() * t.group_size + in_group / t.parents;
    const std::size_t parent = in_group % t.parents;
    const std::size_t links = (uplinks(tier, at) - parent + t.parents - 1) / t.parents;
    const std::size_t uplink = parent + t.parents * take_choice(pick, links);
    steps.push_back({link_base_[tier] + at * t.up + uplink, false});
  }
  return steps;
}

}  // namespace weft
