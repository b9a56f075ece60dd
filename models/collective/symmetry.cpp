#include "models/collective/symmetry.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/collective/sample_network.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// Whether a rank of the first node has edges to other nodes.
bool leaves_node(const TreeRank& rank, std::size_t gpus) {
  const auto is_outside = [gpus](std::uint32_t other) {
    return other != TreeRank::kNone && other >= gpus;
  };
  return is_outside(rank.up) || std::ranges::any_of(rank.down, is_outside);
}

/// NICs by which the operation leaves a node: their number if these are all that it has, as then
/// their GPUs take turns at what each does in a channel; else 1. Of NVLS its heads.
double alike_nics(const Machine& machine, const Schedule& schedule, const Choice& choice) {
  const std::size_t all = cabled_nics(machine);
  if (choice.algorithm == Algorithm::kNvls || choice.algorithm == Algorithm::kNvlsTree) {
    return std::max<double>(1, static_cast<double>(schedule.nvls.places.size()));
  }
  std::set<std::size_t> used;
  const std::size_t gpus = machine.fabric().count(DeviceKind::kGpu);
  const auto add_trees = [&](const std::vector<Tree>& trees) {
    for (std::size_t t = 0; t < std::min<std::size_t>(trees.size(), choice.channels); ++t) {
      for (std::size_t g = 0; g < std::min(gpus, trees[t].size()); ++g) {
        if (leaves_node(trees[t][g], gpus)) used.insert(trees[t][g].nic);
      }
    }
  };
  if (choice.algorithm == Algorithm::kPointToPoint) {
    for (const auto& of_gpu : schedule.p2p_nics) used.insert(of_gpu.begin(), of_gpu.end());
  } else if (choice.algorithm == Algorithm::kRing) {
    for (std::size_t c = 0; c < std::min<std::size_t>(schedule.rings.size(), choice.channels);
         ++c) {
      if (!schedule.rings[c].entry_nic.empty()) used.insert(schedule.rings[c].entry_nic.front());
    }
  } else if (choice.algorithm == Algorithm::kTree) {
    add_trees(schedule.trees);
  }
  return all == 0 || used.size() < all ? 1 : static_cast<double>(all);
}

using Clauses = std::vector<std::string>;

/// "3, 5, 7 and 12 more".
template <class Numbers>
std::string some_of(const Numbers& numbers) {
  const std::size_t shown = std::min<std::size_t>(numbers.size(), 4);
  std::string out = fmt::format("{}", fmt::join(numbers.begin(), numbers.begin() + shown, ", "));
  return shown == numbers.size() ? out : fmt::format("{} and {} more", out, numbers.size() - shown);
}

/// What of the machine leaves no rank that does what another does.
Clauses of_machine(const Machine& machine) {
  Clauses out;
  const std::vector<std::uint32_t>& unlike = machine.devices().unlike_nodes();
  if (!unlike.empty()) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : machine.devices().params().of_single_nodes()) {
      keys.push_back(key);
    }
    out.push_back(
        unlike.size() == 1
            ? fmt::format("node {} is not like the others ({})", unlike.front(), some_of(keys))
            : fmt::format("nodes {} are not like the others ({})", some_of(unlike), some_of(keys)));
  }
  if (machine.has_emulated_nics()) {
    out.emplace_back("emulated NICs share their hosts' memories message by message");
  }
  if (machine.routing().decides(machine.fabric())) out.emplace_back(kDrawnByHash);
  return out;
}

/// What of the operation gives each node something of its own to do.
Clauses of_operation(const Machine& machine, Op op, const Choice& choice) {
  const std::uint32_t nodes = machine.fabric().nodes();
  const Algorithm algorithm = choice.algorithm;
  Clauses out;
  if (is_chain(op)) {
    out.push_back(fmt::format("a {} goes from node to node, each of which has its place on the way",
                              op_name(op)));
  } else if ((algorithm == Algorithm::kTree || algorithm == Algorithm::kNvlsTree) && nodes > 2) {
    // Two are the same in either of NCCL's two trees.
    out.emplace_back("each node has a place of its own in NCCL's two trees");
  } else if (algorithm == Algorithm::kPat && !machine.has_one_switch()) {
    out.emplace_back("over several switches each of PAT's messages has a way of its own");
  } else if (algorithm == Algorithm::kRing && nodes % 2 == 1) {
    out.push_back(
        fmt::format("over an odd number of nodes ({}) one hop of a ring is out of turn", nodes));
  }
  return out;
}

/// By how many NICs its leaf has: the first leaf with so many.
std::map<std::uint32_t, std::string> fillings_of_leaves(const Fabric& fabric) {
  std::map<DeviceId, std::uint32_t> nics_on;
  for (std::uint32_t node = 0; node < fabric.nodes(); ++node) {
    for (const DeviceId leaf : leaves_of(fabric, node)) ++nics_on[leaf];
  }
  std::map<std::uint32_t, std::string> out;
  for (const auto& [leaf, nics] : nics_on) out.try_emplace(nics, fabric.full_name(leaf));
  return out;
}

/// The switches that have another number of uplinks down than others of their tier have. Where the
/// load is spread, what counts is how many of a group are, such as of a pod's spines.
std::vector<std::string> unlike_switches(const Machine& machine) {
  const FailedUplinks& failed = machine.fabric().spec().network.failed_uplinks;
  const std::vector<NetworkTier>& tiers = machine.fabric().network_tiers();
  std::vector<std::map<std::uint32_t, std::uint32_t>> of_groups(tiers.size());  // by tier
  const auto group_of = [&](const UplinkedSwitch& at) {
    return machine.network_spreads() ? at.number / tiers[at.tier].group_size : at.number;
  };
  for (const auto& [at, links] : failed) of_groups[at.tier][group_of(at)] += links;
  std::vector<bool> are_alike;
  for (std::size_t tier = 0; tier < tiers.size(); ++tier) {
    std::set<std::uint32_t> counts;
    for (const auto& [group, links] : of_groups[tier]) counts.insert(links);
    const std::size_t all = machine.network_spreads() ? tiers[tier].groups : tiers[tier].switches();
    are_alike.push_back(counts.size() == 1 && of_groups[tier].size() == all);
  }
  std::vector<std::string> out;
  for (const auto& [at, links] : failed) {
    if (!are_alike[at.tier]) out.push_back(fmt::format("{} of {}", links, at.name()));
  }
  return out;
}

/// What of their places on the network tells nodes apart.
Clauses of_places(const Machine& machine) {
  Clauses out;
  const Fabric& fabric = machine.fabric();
  if (fabric.network_tiers().empty() || machine.has_one_switch()) return out;
  const auto fillings = fillings_of_leaves(fabric);
  if (fillings.size() > 1) {
    out.push_back(fmt::format("leaves are not filled evenly ({} has {} NICs, {} has {})",
                              fillings.rbegin()->second, fillings.rbegin()->first,
                              fillings.begin()->second, fillings.begin()->first));
  }
  const std::vector<std::string> unlike = unlike_switches(machine);
  if (!unlike.empty()) out.push_back("uplinks are down: " + some_of(unlike));
  return out;
}

/// Rows of one memory path and algorithm.
struct Rows {
  const SimulatedWhole* first;
  std::int64_t least;
  std::int64_t most;
  double alike;
  double transfers{0};
};

}  // namespace

std::vector<std::string> what_breaks_symmetry(const Machine& machine, Op op, const Choice& choice) {
  Clauses out = of_machine(machine);
  for (const Clauses& more : {of_operation(machine, op, choice), of_places(machine)}) {
    out.insert(out.end(), more.begin(), more.end());
  }
  const std::vector<NetworkTier>& tiers = machine.fabric().network_tiers();
  if (out.empty() && !tiers.empty() && tiers.front().switches() > 1) {
    out.emplace_back(
        "which nodes have the same neighbours on their leaf, and which beyond it, is decided by "
        "their place on it (network.placement)");
  }
  return out;
}

double alike(const Machine& machine, const Schedule& schedule, Op op, const Choice& choice) {
  if (!of_machine(machine).empty()) return 1;
  const double nodes = of_operation(machine, op, choice).empty() ? machine.fabric().nodes() : 1.0;
  return nodes * alike_nics(machine, schedule, choice);
}

void add_symmetry_notes(const Machine& machine, const Schedules& schedules,
                        const std::vector<SimulatedWhole>& rows, std::vector<std::string>& notes) {
  constexpr double kWorthSaying = 2e5;  // transfers: about a second of one core (fluid_seconds)
  const std::uint32_t nodes = machine.fabric().nodes();
  const auto choice_of = [&](const RowTask& task) {
    return schedules.at(task.path).choose(task.op, task.bytes);
  };
  std::map<std::pair<MemoryPath, Algorithm>, Rows> all;
  for (const SimulatedWhole& row : rows) {
    // Rings may take turns at even and odd nodes, of which two then stand for all.
    if (nodes <= 2 || row.alike >= nodes / 2.0) continue;
    const std::int64_t bytes = row.task.bytes.count();
    Rows& of = all.try_emplace({row.task.path, choice_of(row.task).algorithm},
                               Rows{&row, bytes, bytes, row.alike})
                   .first->second;
    of.least = std::min(of.least, bytes);
    of.most = std::max(of.most, bytes);
    of.alike = std::min(of.alike, row.alike);
    of.transfers += row.transfers;
  }
  for (const auto& [key, of] : all) {
    if (of.transfers < kWorthSaying) continue;
    const Choice choice = choice_of(of.first->task);
    const Clauses why = what_breaks_symmetry(machine, of.first->task.op, choice);
    const std::string least = format_size(Bytes{of.least});
    constexpr double kNone = 1.05;
    notes.push_back(fmt::format(
        "{}, {}, {}: all {} nodes are simulated, {}: {}", memory_path_name(key.first),
        algorithm_name(choice.algorithm),
        of.least == of.most ? least : least + " to " + format_size(Bytes{of.most}), nodes,
        of.alike < kNone ? std::string("no rank stands for another")
                         : fmt::format("one transfer stands for {:.2g} only, on average", of.alike),
        why.empty() ? "what tells the others apart is not known"
                    : fmt::format("{}", fmt::join(why, "; "))));
  }
}

}  // namespace weft
