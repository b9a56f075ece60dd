#include "sim/input/network_keys.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "sim/base/quantity.hpp"
#include "sim/topology/network_shape.hpp"

namespace weft {
namespace {

using Kind = NetworkSpec::Kind;
using Placement = NetworkSpec::Placement;
using Count = std::optional<std::uint32_t> NetworkSpec::*;
using Inside = NetworkSpec::Inside;
using Paths = NetworkSpec::Paths;
using Ratio = std::optional<double> NetworkSpec::*;

constexpr std::array kKinds{std::pair{std::string_view("one-switch"), Kind::kOneSwitch},
                            std::pair{std::string_view("leaf-spine"), Kind::kLeafSpine},
                            std::pair{std::string_view("rail-optimised"), Kind::kRailOptimised},
                            std::pair{std::string_view("fat-tree"), Kind::kFatTree},
                            std::pair{std::string_view("dragonfly"), Kind::kDragonfly},
                            std::pair{std::string_view("dragonfly-plus"), Kind::kDragonflyPlus},
                            std::pair{std::string_view("torus"), Kind::kTorus}};
constexpr std::array kPlacements{
    std::pair{std::string_view("packed"), Placement::kPacked},
    std::pair{std::string_view("round-robin"), Placement::kRoundRobin}};
constexpr std::array kInsides{std::pair{std::string_view("tree"), Inside::kTree},
                              std::pair{std::string_view("ring"), Inside::kRing},
                              std::pair{std::string_view("clique"), Inside::kClique}};
constexpr std::array kPaths{std::pair{std::string_view("minimal"), Paths::kMinimal},
                            std::pair{std::string_view("valiant"), Paths::kValiant}};
constexpr std::array kCounts{
    std::pair<std::string_view, Count>{"tiers", &NetworkSpec::tiers},
    std::pair<std::string_view, Count>{"ports", &NetworkSpec::ports},
    std::pair<std::string_view, Count>{"leaf_down", &NetworkSpec::leaf_down},
    std::pair<std::string_view, Count>{"leaf_up", &NetworkSpec::leaf_up},
    std::pair<std::string_view, Count>{"spines", &NetworkSpec::spines},
    std::pair<std::string_view, Count>{"spine_down", &NetworkSpec::spine_down},
    std::pair<std::string_view, Count>{"spine_up", &NetworkSpec::spine_up},
    std::pair<std::string_view, Count>{"cores", &NetworkSpec::cores},
    std::pair<std::string_view, Count>{"planes", &NetworkSpec::planes},
    std::pair<std::string_view, Count>{"node_leaves", &NetworkSpec::node_leaves},
    std::pair<std::string_view, Count>{"rack_leaves", &NetworkSpec::rack_leaves},
    std::pair<std::string_view, Count>{"group_leaves", &NetworkSpec::group_leaves},
    std::pair<std::string_view, Count>{"groups", &NetworkSpec::groups},
    std::pair<std::string_view, Count>{"locals", &NetworkSpec::locals},
    std::pair<std::string_view, Count>{"globals", &NetworkSpec::globals}};
constexpr std::array kRatios{
    std::pair<std::string_view, Ratio>{"oversubscription", &NetworkSpec::oversubscription},
    std::pair<std::string_view, Ratio>{"spine_oversubscription",
                                       &NetworkSpec::spine_oversubscription}};

constexpr std::array kKindWords = words_of(kKinds);
constexpr std::array kPlacementWords = words_of(kPlacements);
constexpr std::array kInsideWords = words_of(kInsides);
constexpr std::array kPathWords = words_of(kPaths);
constexpr std::int64_t kMostSwitchPorts = 4096;
constexpr std::string_view kRatioForm = "number above 0";
constexpr std::string_view kFailedForm = "SWITCH:LINKS, several joined by +, or none";
constexpr std::string_view kNoneFailed = "none";
constexpr std::string_view kNeeded = "none: a torus needs it, such as 8x8x8";

constexpr KeySpec count_key(std::string_view name, std::string_view fallback,
                            std::string_view meaning, std::int64_t most = kMostSwitchPorts) {
  return {name, "whole number", fallback, meaning, {}, 1, most};
}

// The kind first: it drops what does not belong to it.
constexpr std::array kNetworkKeys{
    KeySpec{"kind", "one of", kRequired,
            "one crossbar switch of any size; a folded Clos: all NICs of a node on one leaf "
            "(leaf-spine), the i-th NIC of each node on the leaf of rail i, three tiers "
            "(fat-tree); groups of leaves, or of leaves and spines, joined all to all (dragonfly, "
            "dragonfly-plus); a grid closed to rings (torus)",
            kKindWords},
    KeySpec{"placement", "one of", "packed",
            "which leaves node after node is cabled to: one filled before the next, or all in turn",
            kPlacementWords},
    count_key("tiers", "2", "tiers of switches, of a rail-optimised network", 3),
    count_key("ports", "none: all but one-switch need it", "ports of each switch"),
    count_key("leaf_down",
              "half the ports, all where there is one tier; dragonfly: a quarter; torus: all that "
              "the rings leave",
              "ports of a leaf for NICs"),
    count_key("leaf_up", "what `oversubscription` says", "ports of a leaf for uplinks"),
    count_key("spines", "as few as hold all uplinks; of three tiers, one an uplink of a leaf",
              "spines, of a plane; in three tiers of each pod, in a dragonfly-plus of each group"),
    count_key("spine_down", "half the ports", "ports of a spine for leaves, in three tiers"),
    count_key("spine_up", "what `spine_oversubscription` says",
              "ports of a spine for cores, in three tiers"),
    count_key("cores", "as few as hold all uplinks", "core switches of a plane, in three tiers",
              kMostSwitchPorts* kMostSwitchPorts),
    KeySpec{"oversubscription", kRatioForm, "1", "ports of a leaf down for each port up"},
    KeySpec{"spine_oversubscription", kRatioForm, "1",
            "ports of a spine down for each port up, in three tiers"},
    count_key("planes", "1",
              "networks that nothing joins, alike: the NICs of a node go to them in turn, the "
              "ports of one NIC (`port_of`) one after the other",
              64),
    count_key("node_leaves", "1; rail-optimised: one a NIC",
              "leaves that a node's NICs of a plane go to in turn; 2 with NICs of two ports: "
              "dual-ToR"),
    KeySpec{"inside", "one of", "tree",
            "what joins the leaves of a rack, besides the tiers above: nothing more, a ring, or "
            "links from each to each; messages inside a rack take them, and no others",
            kInsideWords},
    count_key("rack_leaves", "none: ring and clique need it", "leaves of a rack"),
    count_key("locals", "1",
              "parallel links between two leaves that are joined, in a rack, dragonfly or torus"),
    count_key("group_leaves",
              "dragonfly: half the ports; dragonfly-plus: as many as half a spine's ports reach",
              "leaves of a dragonfly's group"),
    count_key("groups", "as many as the nodes need",
              "groups of a dragonfly; of a folded Clos those of leaves that share nodes (one leaf, "
              "node_leaves, a leaf a rail), of each plane: more stand ready where they are built",
              kMostSwitchPorts* kMostSwitchPorts),
    count_key("globals", "dragonfly: a quarter of the ports; dragonfly-plus: those left",
              "ports of a leaf (dragonfly-plus: of a spine) for other groups"),
    KeySpec{"paths", "one of", "minimal",
            "a dragonfly's routes between groups: over one global link, or over a third group "
            "each, chosen as equal routes are",
            kPathWords},
    KeySpec{"dims", "numbers joined by x", kNeeded, "leaves along each dimension of a torus"},
    KeySpec{"failed_uplinks", kFailedForm, kNoneFailed,
            "how many uplinks are down, of leaves and in three tiers of spines, by their number "
            "(leaf3:2+spine5:1); what they carried is spread over the others"}};

/// The word of a meaning, of the first one "": it is the fallback.
template <class Words, class Meaning>
std::string text_of(const Words& words, Meaning meaning) {
  for (const auto& [name, known] : words) {
    if (known == meaning && known != words.front().second) return std::string(name);
  }
  return "";
}

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

/// "8x8x8".
std::vector<std::uint32_t> dims_of(const std::string& text) {
  constexpr KeySpec kDim = count_key("dims", "", "", 1 << 20);
  std::vector<std::uint32_t> dims;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    dims.push_back(count_of(kDim, text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return dims;
}

/// "leaf3", "spine5"; nullopt: neither.
std::optional<UplinkedSwitch> uplinked_switch_of(const std::string& text) {
  constexpr KeySpec kNumber{"failed_uplinks", "", "", "", {}, 0, (1 << 24) - 1};
  for (std::uint32_t tier = 0; tier < kTiersWithUplinks.size(); ++tier) {
    const std::string_view name = kTiersWithUplinks[tier];
    if (text.starts_with(name)) {
      return UplinkedSwitch{tier, count_of(kNumber, text.substr(name.size()))};
    }
  }
  return std::nullopt;
}

/// "leaf3:2+spine5:1".
FailedUplinks failed_uplinks_of(const std::string& text) {
  FailedUplinks out;
  if (text == kNoneFailed) return out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    const std::size_t colon = std::min(one.find(':'), one.size());
    constexpr KeySpec kLinks = count_key("failed_uplinks", "", "");
    try {
      const std::optional<UplinkedSwitch> at = uplinked_switch_of(one.substr(0, colon));
      if (!at || colon == one.size()) {
        throw InputError(
            "not a leaf or a spine and how many of its uplinks are down, such as leaf3:2");
      }
      if (!out.emplace(*at, count_of(kLinks, one.substr(colon + 1))).second) {
        throw InputError(at->name() + " stands there twice");
      }
    } catch (const InputError& e) {
      throw InputError("failed_uplinks: '" + one + "': " + e.what());
    }
    begin = end + 1;
  }
  return out;
}

[[noreturn]] void refuse_key(std::string_view key) {
  std::vector<std::string> names;
  for (const KeySpec& known : kNetworkKeys) names.emplace_back(known.name);
  throw InputError("no setting '" + std::string(key) + "' of a network" + did_you_mean(key, names) +
                   "; known: " + known_names(names));
}

}  // namespace

std::span<const KeySpec> network_keys() { return kNetworkKeys; }

void set_network(NetworkSpec& network, std::string_view key, const std::string& text) {
  if (key == "kind") {
    network.kind = word(kKinds, text, "network");
    forget_what_does_not_belong(network);
    return;
  }
  if (key == "inside") {
    network.inside = word(kInsides, text, "rack");
    if (network.inside != NetworkSpec::Inside::kTree) return;
    network.rack_leaves.reset();  // what only racks could be told
    const bool has_locals =
        network.kind == NetworkSpec::Kind::kDragonfly || network.kind == NetworkSpec::Kind::kTorus;
    if (!has_locals) network.locals.reset();
    return;
  }
  if (key == "paths") {
    network.paths = word(kPaths, text, "paths");
    return;
  }
  if (key == "dims") {
    network.dims = dims_of(text);
    return;
  }
  if (key == "failed_uplinks") {
    network.failed_uplinks = failed_uplinks_of(text);
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
  refuse_key(key);
}

std::string network_text(const NetworkSpec& network, std::string_view key) {
  if (key == "kind") return std::string(network_kind_name(network.kind));
  if (key == "inside") return text_of(kInsides, network.inside);
  if (key == "paths") return text_of(kPaths, network.paths);
  if (key == "placement") return text_of(kPlacements, network.placement);
  if (key == "dims") return fmt::format("{}", fmt::join(network.dims, "x"));
  if (key == "failed_uplinks") {
    std::string out;
    for (const auto& [at, links] : network.failed_uplinks) {
      out += fmt::format("{}{}:{}", out.empty() ? "" : "+", at.name(), links);
    }
    return out;
  }
  for (const auto& [name, count] : kCounts) {
    if (name == key) return network.*count ? std::to_string(*(network.*count)) : "";
  }
  for (const auto& [name, ratio] : kRatios) {
    if (name == key) return network.*ratio ? format_number(*(network.*ratio)) : "";
  }
  refuse_key(key);
}

}  // namespace weft
