#include "sim/input/network_keys.hpp"

#include <array>
#include <cmath>
#include <limits>
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

std::uint32_t count_of(const std::string& text) {
  const std::optional<double> number = parse_number(text);
  if (number && *number >= 0 && *number <= std::numeric_limits<std::int32_t>::max() &&
      std::floor(*number) == *number) {
    return static_cast<std::uint32_t>(*number);
  }
  throw InputError("'" + text + "' is not a whole number");
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

std::span<const std::string_view> network_keys() {
  static constexpr std::array<std::string_view, 12> kKeys{
      "kind",   "placement",  "tiers",    "ports", "leaf_down",        "leaf_up",
      "spines", "spine_down", "spine_up", "cores", "oversubscription", "spine_oversubscription"};
  return kKeys;
}

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
      network.*count = count_of(text);
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
  throw InputError("no setting '" + std::string(key) + "' of a network; known: " +
                   known_names({network_keys().begin(), network_keys().end()}));
}

}  // namespace weft
