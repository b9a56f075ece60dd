#include "models/collective/spares.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {
namespace {

constexpr std::array kKeys{
    SparesKey{"failed.nodes", "nodes that have failed; those that no spare makes good are missing"},
    SparesKey{"failed.nics",
              "NICs that have failed; each that no spare makes good takes its node "
              "out of service"},
    SparesKey{"failed.uplinks",
              "links from leaves to spines that have failed; those that no spare makes good are "
              "missing of one leaf after the other, as network.failed_uplinks has it"},
    SparesKey{"spare.nodes",
              "nodes that lie ready: they count in the price, with a network that "
              "holds them, and take the place of failed ones"},
    SparesKey{"spare.nics", "NICs that lie ready, likewise"},
    SparesKey{"spare.uplinks", "cables from leaves to spines that lie ready, likewise"}};

/// A number, or a share of `all_of()`, rounded up.
template <class All>
std::uint64_t amount_of(const ScenarioSetting& setting, All all_of) {
  std::string text = setting.value;
  const bool is_share = text.ends_with('%');
  if (is_share) text = std::string(trimmed(text.substr(0, text.size() - 1)));
  const std::optional<double> number = parse_number(text);
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

/// Of leaves, and how many links to spines each has.
struct Uplinks {
  std::uint32_t leaves{0};
  std::uint32_t of_each{0};

  double all() const { return static_cast<double>(leaves) * of_each; }
};

Uplinks uplinks_of(const TopologySpec& spec) {
  const Fabric fabric(spec, spec.nodes);
  if (fabric.network_tiers().size() < 2) return {};
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

void take_out_missing(const Spares& spares, TopologySpec& spec) {
  const std::uint64_t nodes = spares.missing_nodes();
  if (nodes >= spec.nodes) {
    throw InputError(
        fmt::format("failed.nodes, failed.nics: {} of {} nodes are out of service; "
                    "one has to be left",
                    nodes, spec.nodes));
  }
  if (nodes > 0) {
    spec.notes.push_back(
        fmt::format("{} of {} nodes are out of service: the others run ({} nodes and {} NICs have "
                    "failed, {} and "
                    "{} lie ready)",
                    nodes, spec.nodes, spares.nodes.failed, spares.nics.failed, spares.nodes.spare,
                    spares.nics.spare));
    spec.nodes -= static_cast<std::uint32_t>(nodes);
  }
  const std::uint64_t links = spares.uplinks.missing();
  if (links == 0) return;
  const Uplinks all = uplinks_of(spec);
  for (std::uint32_t leaf = 0; leaf < all.leaves; ++leaf) {
    const auto down =
        static_cast<std::uint32_t>(links / all.leaves + (leaf < links % all.leaves ? 1 : 0));
    if (down > 0) spec.network.failed_uplinks[leaf] += down;
  }
  spec.notes.push_back(
      fmt::format("{} of {:.0f} links from leaves to spines have failed and are "
                  "not made good: missing of one leaf after the other",
                  links, all.all()));
}

}  // namespace weft
