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

/// Leaves by the order in which a job's nodes meet them: equal of jobs that are cabled alike.
std::vector<std::size_t> pattern_of(const Fabric& fabric, const std::vector<std::uint32_t>& nodes) {
  std::map<DeviceId, std::size_t> met;
  std::vector<std::size_t> out;
  for (const std::uint32_t node : nodes) {
    for (const DeviceId leaf : leaves_of(fabric, node)) {
      out.push_back(met.try_emplace(leaf, met.size()).first->second);
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
  const bool is_known = machine.has_one_switch() ||
                        (fabric.network_tiers().size() == 2 && machine.network_spreads() &&
                         (network.kind == NetworkSpec::Kind::kLeafSpine ||
                          network.kind == NetworkSpec::Kind::kRailOptimised) &&
                         network.inside == NetworkSpec::Inside::kTree);
  if (!is_known || machine.has_unlike_nodes() || machine.has_emulated_nics() ||
      !network.failed_uplinks.empty()) {
    return false;
  }
  std::set<std::uint32_t> nodes;
  std::set<DeviceId> leaves;
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
