#include "models/collective/scale_note.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/operation.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// What each note has.
constexpr std::string_view kOfTwoNodes = "is asked of two nodes";

/// Whether a parameter says what NICs there are, what each carries, or what joins them. (Of some
/// NICs alone, "nic3.trained_width", it is a fault that a machine has.)
bool is_of_scale(std::string_view key) {
  return key == "nic.count" || key == "nic.rate" || key == "nic.part" ||
         key.starts_with("nic.pcie_") || key.starts_with("nic.trained_") ||
         key.starts_with("network.") || key == "wire.rate";
}

bool has_few_gpus(const ResultRow& row) { return row.ranks < 4 * row.nodes; }

/// What more nodes change for what runs, in a clause each.
std::vector<std::string> what_more_change(std::string_view key,
                                          const std::vector<ResultRow>& rows) {
  const auto any = [&rows](const auto& holds) { return std::ranges::any_of(rows, holds); };
  std::vector<std::string> out;
  if (any([](const ResultRow& row) { return row.algo.ends_with("Tree"); })) {
    out.emplace_back(
        "between two a tree sends each byte out of a node once, but a node inside a larger tree "
        "sends it to two children and a parent, so that each NIC carries twice as much and the "
        "network decides sooner");
  }
  if (any([](const ResultRow& row) {
        return row.op == op_name(Op::kAllToAll) && row.ranks > row.nodes;
      })) {
    out.emplace_back(
        "between two about half of an all-to-all's bytes stay inside a node, between many hardly "
        "any, so that each NIC carries nearly twice as much");
  }
  if (any([](const ResultRow& row) { return row.algo == "Ring" && has_few_gpus(row); })) {
    out.emplace_back(
        "a ring of R ranks sends (R - 1) / R of what it does between many out of each node, and "
        "takes fewer steps, whose latencies add up");
  }
  if (any([](const ResultRow& row) { return row.algo == "Ring" && !has_few_gpus(row); })) {
    out.emplace_back(
        "a ring asks about as much of each NIC between more nodes, but takes more steps, whose "
        "latencies add up");
  }
  if (key.starts_with("network.")) {
    out.emplace_back("two nodes load few of the links that more of them share");
  }
  return out;
}

}  // namespace

std::uint32_t nodes_of(const Scenario& scenario, const std::vector<ScenarioSetting>& settings,
                       std::uint32_t fallback) {
  std::uint32_t nodes = scenario.nodes.value_or(fallback);
  for (const ScenarioSetting& s : settings) {
    const auto number = s.key == "nodes" ? parse_number(s.value) : std::nullopt;
    if (number && *number >= 1) nodes = static_cast<std::uint32_t>(*number);
  }
  return nodes;
}

std::string scale_note(const std::vector<std::string>& keys, const std::vector<ResultRow>& rows) {
  const auto is_of_two = [](const ResultRow& row) { return row.nodes == 2; };
  if (rows.empty() || !std::ranges::all_of(rows, is_of_two)) return "";
  const auto key = std::ranges::find_if(keys, is_of_scale);
  if (key == keys.end()) return "";
  const std::vector<std::string> changes = what_more_change(*key, rows);
  if (changes.empty()) return "";
  return fmt::format("{} {}, which say little of more: {}; ask with --set nodes=4 or more", *key,
                     kOfTwoNodes, fmt::join(changes, "; "));
}

bool is_scale_note(std::string_view note) {
  return note.find(kOfTwoNodes) != std::string_view::npos;
}

std::vector<std::string> setting_keys(const std::vector<ScenarioSetting>& settings) {
  std::vector<std::string> out;
  for (const ScenarioSetting& s : settings) out.push_back(s.key);
  return out;
}

}  // namespace weft
