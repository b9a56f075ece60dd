#include "models/collective/separate_jobs.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "models/collective/joint_progress.hpp"
#include "models/collective/sample_network.hpp"
#include "models/collective/spares.hpp"

namespace weft {
namespace {

/// The first link of each trunk on the routes from the first of the nodes to each of the others,
/// NIC by NIC. They are all that the nodes take, besides their leaves' own: a message between two
/// pods takes links up from the spines of both.
std::vector<std::vector<LinkId>> trunks_of(const Fabric& fabric,
                                           const std::vector<std::uint32_t>& nodes) {
  std::vector<std::vector<LinkId>> out;
  for (const std::uint32_t node : nodes) {
    for (std::size_t n = 0; n < fabric.count(DeviceKind::kNic); ++n) {
      const std::optional<Route> route =
          fabric.wire_route(fabric.device(nodes.front(), DeviceKind::kNic, n),
                            fabric.device(node, DeviceKind::kNic, n));
      std::vector<LinkId>& trunks = out.emplace_back();
      for (std::size_t i = 1; route && i + 1 < route->size(); ++i) {
        trunks.push_back(fabric.trunk((*route)[i].link).first);
      }
    }
  }
  return out;
}

/// Leaves and trunks by the order in which a job's nodes meet them: equal of jobs that are cabled
/// alike.
std::vector<std::size_t> pattern_of(const Fabric& fabric, const std::vector<std::uint32_t>& nodes) {
  std::map<DeviceId, std::size_t> leaves;
  std::map<LinkId, std::size_t> trunks;
  std::vector<std::size_t> out;
  for (const std::uint32_t node : nodes) {
    for (const DeviceId leaf : leaves_of(fabric, node)) {
      out.push_back(leaves.try_emplace(leaf, leaves.size()).first->second);
    }
  }
  for (const std::vector<LinkId>& of_route : trunks_of(fabric, nodes)) {
    out.push_back(of_route.size());
    for (const LinkId trunk : of_route) {
      out.push_back(trunks.try_emplace(trunk, trunks.size()).first->second);
    }
  }
  return out;
}

bool is_as_a_cluster(const Fabric& fabric, const ScenarioJob& job) {
  const auto count = static_cast<std::uint32_t>(job.nodes.size());
  const Fabric cluster(fabric.spec(), count);
  std::vector<std::uint32_t> all(count);
  for (std::uint32_t i = 0; i < count; ++i) all[i] = i;
  return pattern_of(fabric, job.nodes) == pattern_of(cluster, all);
}

}  // namespace

bool are_separate(const Machine& machine, const std::vector<ScenarioJob>& jobs) {
  const Fabric& fabric = machine.fabric();
  const NetworkSpec& network = fabric.spec().network;
  const bool is_known =
      machine.has_one_switch() || (fabric.network_tiers().size() > 1 && machine.network_spreads() &&
                                   (network.kind == NetworkSpec::Kind::kLeafSpine ||
                                    network.kind == NetworkSpec::Kind::kRailOptimised ||
                                    network.kind == NetworkSpec::Kind::kFatTree) &&
                                   network.inside == NetworkSpec::Inside::kTree);
  if (!is_known || machine.has_unlike_nodes() || machine.has_emulated_nics() ||
      !network.failed_uplinks.empty()) {
    return false;
  }
  std::set<std::uint32_t> nodes;
  std::set<DeviceId> leaves;
  std::set<LinkId> trunks;
  for (const ScenarioJob& job : jobs) {
    std::set<DeviceId> its_own;
    for (const std::uint32_t node : job.nodes) {
      if (!nodes.insert(node).second) return false;
      const std::vector<DeviceId> of_node = leaves_of(fabric, node);
      its_own.insert(of_node.begin(), of_node.end());
    }
    if (machine.has_one_switch()) continue;
    for (const DeviceId leaf : its_own) {
      if (!leaves.insert(leaf).second) return false;
    }
    std::set<LinkId> its_trunks;
    for (const std::vector<LinkId>& of_route : trunks_of(fabric, job.nodes)) {
      its_trunks.insert(of_route.begin(), of_route.end());
    }
    for (const LinkId trunk : its_trunks) {
      if (!trunks.insert(trunk).second) return false;
    }
  }
  return std::ranges::all_of(jobs,
                             [&](const ScenarioJob& job) { return is_as_a_cluster(fabric, job); });
}

void predict_separately(const Scenario& scenario, const TopologySpec& spec, const Fabric& cluster,
                        const PredictOptions& options, const ParamCatalog& catalog,
                        RunResult& result) {
  const std::optional<std::uint32_t>& groups = cluster.spec().network.groups;
  const std::size_t paths = scenario.memory_paths.size();
  JointProgress progress(std::vector<std::size_t>(scenario.jobs.size(), paths),
                         options.on_progress);
  std::vector<ResultRow> rows;
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    const ScenarioJob& job = scenario.jobs[j];
    Scenario alone = scenario;
    alone.jobs.clear();
    alone.op = job.op;
    alone.sizes = {job.size};
    PredictOptions its_own = options;  // what is set of nodes counts last
    erase_spares(alone.set);           // of the cluster, whose nodes the job's are
    erase_spares(its_own.set);
    its_own.set.push_back({"nodes", std::to_string(job.nodes.size()), job.place});
    if (groups) its_own.set.push_back({"network.groups", std::to_string(*groups), job.place});
    its_own.on_progress = [&](const RunProgress& p) { progress.is_at(j, p); };
    const auto not_run = [&](const std::string& path) {
      result.not_run.push_back({job.op, job.size.count(), path, job.name});
    };
    try {
      RunResult one = predict(alone, spec, its_own, catalog);
      for (const auto& stopped : one.not_run) not_run(stopped.memory_path);
      for (ResultRow& row : one.rows) {
        row.job = job.name;
        row.alone_us = row.time_us;
        row.launches = 1;
        rows.push_back(std::move(row));
      }
      for (const std::string& note : one.notes) {
        if (std::ranges::find(result.notes, note) != result.notes.end()) continue;
        result.notes.push_back(job.name + ": " + note);
      }
    } catch (const Stopped&) {
      if (rows.empty()) throw;
      for (const std::string& path : scenario.memory_paths) not_run(path);
    }
  }
  std::ranges::stable_sort(rows, {}, [&](const ResultRow& row) {
    return std::ranges::find(scenario.memory_paths, row.memory_path) -
           scenario.memory_paths.begin();
  });
  result.rows = std::move(rows);
  result.notes.emplace_back(
      "jobs share no link between switches: each is as fast as alone, and was predicted as a "
      "cluster of its own nodes, whose launches follow each other as nccl.launch says");
}

}  // namespace weft
