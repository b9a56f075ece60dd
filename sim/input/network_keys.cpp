#include "sim/input/network_keys.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "sim/base/quantity.hpp"

namespace weft {
namespace {

using Kind = NetworkSpec::Kind;
using Placement = NetworkSpec::Placement;
using Count = std::optional<std::uint32_t> NetworkSpec::*;
using Ratio = std::optional<double> NetworkSpec::*;

constexpr std::array kKinds{std::pair{std::string_view("one-switch"), Kind::kOneSwitch},
                            std::pair{std::string_view("leaf-spine"), Kind::kLeafSpine},
                            std::pair{std::string_view("rail-optimised"), Kind::kRailOptimised},
                            std::pair{std::string_view("fat-tree"), Kind::kFatTree}};
constexpr std::array kPlacements{
    std::pair{std::string_view("packed"), Placement::kPacked},
    std::pair{std::string_view("round-robin"), Placement::kRoundRobin}};
constexpr std::array kCounts{
    std::pair<std::string_view, Count>{"tiers", &NetworkSpec::tiers},
    std::pair<std::string_view, Count>{"ports", &NetworkSpec::ports},
    std::pair<std::string_view, Count>{"leaf_down", &NetworkSpec::leaf_down},
    std::pair<std::string_view, Count>{"leaf_up", &NetworkSpec::leaf_up},
    std::pair<std::string_view, Count>{"spines", &NetworkSpec::spines},
    std::pair<std::string_view, Count>{"spine_down", &NetworkSpec::spine_down},
    std::pair<std::string_view, Count>{"spine_up", &NetworkSpec::spine_up},
    std::pair<std::string_view, Count>{"cores", &NetworkSpec::cores}};
constexpr std::array kRatios{
    std::pair<std::string_view, Ratio>{"oversubscription", &NetworkSpec::oversubscription},
    std::pair<std::string_view, Ratio>{"spine_oversubscription",
                                       &NetworkSpec::spine_oversubscription}};

constexpr std::array kKindWords = words_of(kKinds);
constexpr std::array kPlacementWords = words_of(kPlacements);
constexpr std::int64_t kMostSwitchPorts = 4096;
constexpr std::string_view kRatioForm = "number above 0";

constexpr KeySpec count_key(std::string_view name, std::string_view fallback,
                            std::string_view meaning, std::int64_t most = kMostSwitchPorts) {
  return {name, "whole number", fallback, meaning, {}, 1, most};
}

// The kind first: it drops what does not belong to it.
constexpr std::array kNetworkKeys{
    KeySpec{"kind", "one of", kRequired,
            "one crossbar switch of any size, or a folded Clos: all NICs of a node on one leaf "
            "(leaf-spine), the i-th NIC of each node on the leaf of rail i, three tiers (fat-tree)",
            kKindWords},
    KeySpec{"placement", "one of", "packed",
            "which leaves node after node is cabled to: one filled before the next, or all in turn",
            kPlacementWords},
    count_key("tiers", "2", "tiers of switches, of a rail-optimised network", 3),
    count_key("ports", "none: a folded Clos needs it", "ports of each switch"),
    count_key("leaf_down", "half the ports, all where there is one tier",
              "ports of a leaf for NICs"),
    count_key("leaf_up", "what `oversubscription` says", "ports of a leaf for uplinks"),
    count_key("spines", "as few as hold all uplinks; of three tiers, one an uplink of a leaf",
              "spines; in three tiers those of each pod"),
    count_key("spine_down", "half the ports", "ports of a spine for leaves, in three tiers"),
    count_key("spine_up", "what `spine_oversubscription` says",
              "ports of a spine for cores, in three tiers"),
    count_key("cores", "as few as hold all uplinks", "core switches, in three tiers",
              kMostSwitchPorts* kMostSwitchPorts),
    KeySpec{"oversubscription", kRatioForm, "1", "ports of a leaf down for each port up"},
    KeySpec{"spine_oversubscription", kRatioForm, "1",
            "ports of a spine down for each port up, in three tiers"}};

/// The meaning of one of a few words; throws with the words there are.
template <class Words>
auto word(const Words& words, const std::string& text, const std::string& what) {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : words) {
    if (name == text) return meaning;
    names.emplace_back(name);
  }
  throw InputError("'" + text + "' is not a kind of " + what + "; known: " + known_names(names));
}

std::uint32_t count_of(const KeySpec& key, const std::string& text) {
  const std::optional<double> number = parse_number(text);
  if (!number || std::floor(*number) != *number) {
    throw InputError("'" + text + "' is not a whole number");
  }
  if (*number < static_cast<double>(key.min) || *number > static_cast<double>(key.max)) {
    throw InputError("'" + text + "' is out of range; allowed: " + std::to_string(key.min) +
                     " to " + std::to_string(key.max));
  }
  return static_cast<std::uint32_t>(*number);
}

double ratio_of(const std::string& text) {
  const std::optional<double> number = parse_number(text);
  if (number && *number > 0) return *number;
  throw InputError("'" + text + "' is not a number above 0, such as 2 for two ports down each up");
}

/// Forgets what `kind` cannot be told.
void drop_what_does_not_belong(NetworkSpec& network) {
  const Kind kind = network.kind;
  if (kind == Kind::kOneSwitch) {
    for (const auto& [key, count] : kCounts) (network.*count).reset();
    network.oversubscription.reset();
  }
  if (kind != Kind::kRailOptimised) network.tiers.reset();
  const bool pods = kind == Kind::kFatTree || (kind == Kind::kRailOptimised && network.tiers == 3U);
  if (pods) return;
  for (const Count count : {&NetworkSpec::spine_down, &NetworkSpec::spine_up, &NetworkSpec::cores})
    (network.*count).reset();
  network.spine_oversubscription.reset();
}

}  // namespace

std::span<const KeySpec> network_keys() { return kNetworkKeys; }

void set_network(NetworkSpec& network, std::string_view key, const std::string& text) {
  if (key == "kind") {
    network.kind = word(kKinds, text, "network");
    drop_what_does_not_belong(network);
    return;
  }
  if (key == "placement") {
    network.placement = word(kPlacements, text, "placement");
    return;
  }
  for (const auto& [name, count] : kCounts) {
    if (name == key) {
      network.*count = count_of(key_of(kNetworkKeys, key), text);
      if (key == "leaf_up") network.oversubscription.reset();
      if (key == "spine_up") network.spine_oversubscription.reset();
      return;
    }
  }
  for (const auto& [name, ratio] : kRatios) {
    if (name == key) {
      network.*ratio = ratio_of(text);
      (name == "oversubscription" ? network.leaf_up : network.spine_up).reset();
      return;
    }
  }
  std::vector<std::string> names;
  for (const KeySpec& known : kNetworkKeys) names.emplace_back(known.name);
  throw InputError("no setting '" + std::string(key) +
                   "' of a network; known: " + known_names(names));
}

}  // namespace weft
