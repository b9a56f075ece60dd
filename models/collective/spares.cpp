#include "models/collective/spares.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/collective/sample_network.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {
namespace {

constexpr std::array kKeys{
    SparesKey{
        "failed.nodes",
        "nodes that have failed; as many as no spare makes good are missing, the last ones of "
        "a network that stays as it was built"},
    SparesKey{
        "failed.nics",
        "NICs that have failed, each on a node of its own; one that no spare makes good takes "
        "its node out of service"},
    SparesKey{
        "failed.uplinks",
        "links from leaves to spines that have failed; those that no spare makes good are "
        "missing of one leaf after the other, as network.failed_uplinks has it; spines' links "
        "to cores: network.failed_uplinks alone"},
    SparesKey{"spare.nodes",
              "nodes that lie ready: they count in the price, with a network that "
              "holds them, and take the place of failed ones"},
    SparesKey{"spare.nics", "NICs that lie ready, likewise"},
    SparesKey{"spare.uplinks", "cables from leaves to spines that lie ready, likewise"}};

/// "2", "2 %".
struct Amount {
  std::optional<double> number;
  bool is_share;  ///< in per cent
};

Amount parsed(std::string text) {
  const bool is_share = text.ends_with('%');
  if (is_share) text = std::string(trimmed(text.substr(0, text.size() - 1)));
  return {parse_number(text), is_share};
}

/// A number, or a share of `all_of()`, rounded up.
template <class All>
std::uint64_t amount_of(const ScenarioSetting& setting, All all_of) {
  const auto [number, is_share] = parsed(setting.value);
  if (number && *number == 0) return 0;  // of whatever there is
  const double all = all_of();
  const double most = is_share ? 100 : all;
  if (!number || *number < 0 || *number > most || (!is_share && std::floor(*number) != *number)) {
    throw InputError(setting.place,
                     fmt::format("{}: '{}' is not a whole number from 0 to {:.0f}, all that there "
                                 "are, or a share of them such as 2 %",
                                 setting.key, setting.value, all));
  }
  constexpr double kRounding = 1e-9;  // 2 % of 50 is 1
  const double count = is_share ? std::ceil(*number / 100 * all - kRounding) : *number;
  return static_cast<std::uint64_t>(count);
}

/// Of leaves below spines, and how many links to these each has.
struct Uplinks {
  std::uint32_t leaves{0};
  std::uint32_t of_each{0};

  double all() const { return static_cast<double>(leaves) * of_each; }
};

Uplinks uplinks_of(const TopologySpec& spec) {
  const Fabric fabric(spec, spec.nodes);
  if (!has_leaves_below_spines(fabric)) return {};
  const NetworkTier& leaf = fabric.network_tiers().front();
  return {leaf.switches(), leaf.up};
}

std::uint64_t nics_of_node(const TopologySpec& spec) {
  return static_cast<std::uint64_t>(std::ranges::count_if(spec.node.devices, [](const auto& d) {
    return d.kind == DeviceKind::kNic && d.network != "none" && d.port_of.empty();
  }));
}

}  // namespace

std::span<const SparesKey> spares_keys() { return kKeys; }

bool is_spares_key(std::string_view key) {
  return std::ranges::any_of(kKeys, [&](const SparesKey& known) { return known.key == key; });
}

bool says_none(const ScenarioSetting& setting) { return parsed(setting.value).number == 0; }

bool has_leaves_below_spines(const Fabric& fabric) {
  const NetworkSpec::Kind kind = fabric.spec().network.kind;
  const std::vector<NetworkTier>& tiers = fabric.network_tiers();
  return kind != NetworkSpec::Kind::kDragonflyPlus && tiers.size() > 1 &&
         tiers.front().switches() > 1;
}

void erase_spares(std::vector<ScenarioSetting>& settings) {
  std::erase_if(settings, [](const ScenarioSetting& s) { return is_spares_key(s.key); });
}

void refuse_spares(const std::vector<ScenarioSetting>& settings) {
  for (const ScenarioSetting& s : settings) {
    if (!is_spares_key(s.key)) continue;
    throw InputError(s.place, s.key + ": is of NCCL's operations on whole clusters (weft run)");
  }
}

Spares spares_of(const std::vector<ScenarioSetting>& settings, const TopologySpec& spec) {
  Spares out;
  for (const ScenarioSetting& s : settings) {
    if (!is_spares_key(s.key)) continue;
    const bool is_failed = is_failed_key(s.key);
    const std::string what = s.key.substr(s.key.find('.') + 1);
    FailedAndSpare& of = what == "nodes" ? out.nodes : what == "nics" ? out.nics : out.uplinks;
    const auto all_of = [&] {
      return what == "nodes"  ? spec.nodes
             : what == "nics" ? static_cast<double>(spec.nodes * nics_of_node(spec))
                              : uplinks_of(spec).all();
    };
    (is_failed ? of.failed : of.spare) = amount_of(s, all_of);
  }
  return out;
}

namespace {

/// The leaves of a node, by their numbers.
std::set<std::size_t> leaf_numbers(const Fabric& fabric, std::uint32_t node) {
  std::set<std::size_t> out;
  for (const DeviceId leaf : leaves_of(fabric, node)) {
    out.insert(leaf.index() - fabric.nodes() * fabric.devices_per_node());
  }
  return out;
}

bool is_cabled_alike(const Fabric& built, const Fabric& left) {
  const auto switches = [](const Fabric& fabric) {
    std::vector<std::uint32_t> out;
    for (const NetworkTier& tier : fabric.network_tiers()) out.push_back(tier.switches());
    return out;
  };
  if (switches(built) != switches(left)) return false;
  for (std::uint32_t node = 0; node < left.nodes(); ++node) {
    if (leaf_numbers(built, node) != leaf_numbers(left, node)) return false;
  }
  return true;
}

/// Leaves out the nodes behind the first `nodes`; the network stays as it was built.
void keep_first(std::uint32_t nodes, TopologySpec& spec) {
  const Fabric built(spec, spec.nodes);
  spec.nodes = nodes;
  if (built.network_tiers().empty()) return;
  using Kind = NetworkSpec::Kind;
  NetworkSpec& network = spec.network;
  const std::uint32_t groups = built.network_tiers().back().groups;
  if (network.kind == Kind::kDragonfly || network.kind == Kind::kDragonflyPlus) {
    network.groups = groups;
  } else if (network.kind != Kind::kOneSwitch && network.kind != Kind::kTorus) {
    network.groups = built.network_tiers().front().groups /
                     static_cast<std::uint32_t>(leaf_numbers(built, 0).size());
  }
  if (is_cabled_alike(built, Fabric(spec, nodes))) return;
  const bool is_packed = network.placement == NetworkSpec::Placement::kPacked;
  throw InputError(std::string("failed.nodes, failed.nics: this network cables fewer nodes ") +
                   (is_packed ? "otherwise" : "otherwise; take placement=packed"));
}

void take_out_nodes(const Spares& spares, TopologySpec& spec) {
  const std::uint64_t nodes = spares.missing_nodes();
  if (nodes == 0) return;
  const std::string why = fmt::format(
      "{} node{} and {} NIC{} (each taken to be on a node of its own) have failed, {} and {} lie "
      "ready",
      spares.nodes.failed, spares.nodes.failed == 1 ? "" : "s", spares.nics.failed,
      spares.nics.failed == 1 ? "" : "s", spares.nodes.spare, spares.nics.spare);
  if (nodes >= spec.nodes) {
    throw InputError(
        fmt::format("failed.nodes, failed.nics: no node is left of {}: {}", spec.nodes, why));
  }
  spec.notes.push_back(
      fmt::format("{} of {} nodes {} out of service, the others run on the network as it was "
                  "built: {}",
                  nodes, spec.nodes, nodes == 1 ? "is" : "are", why));
  keep_first(spec.nodes - static_cast<std::uint32_t>(nodes), spec);
}

void take_out_uplinks(std::uint64_t links, TopologySpec& spec) {
  if (links == 0) return;
  const Uplinks all = uplinks_of(spec);
  for (std::uint32_t leaf = 0; leaf < all.leaves; ++leaf) {
    const auto more =
        static_cast<std::uint32_t>(links / all.leaves + (leaf < links % all.leaves ? 1 : 0));
    if (more == 0) break;
    std::uint32_t& down = spec.network.failed_uplinks[{0, leaf}];
    down += more;
    if (down < all.of_each) continue;
    throw InputError(fmt::format(
        "failed.uplinks: {} missing of {} leaves with {} links to spines each leave leaf{} none",
        links, all.leaves, all.of_each, leaf));
  }
  spec.notes.push_back(
      fmt::format("{} of {:.0f} links from leaves to spines have failed and are "
                  "not made good: missing of one leaf after the other",
                  links, all.all()));
}

}  // namespace

void take_out_missing(const Spares& spares, TopologySpec& spec) {
  take_out_uplinks(spares.uplinks.missing(), spec);
  take_out_nodes(spares, spec);
}

}  // namespace weft
