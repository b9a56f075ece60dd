#include "models/workload/scenario_machine.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "models/collective/notes.hpp"
#include "models/collective/settings.hpp"
#include "models/collective/unused.hpp"
#include "models/machine/gdr_possible.hpp"
#include "models/machine/rooms.hpp"
#include "sim/input/topology_file.hpp"

namespace weft {

namespace {

/// The first pair of a GPU and a NIC of a plan that GPUDirect RDMA cannot join, and why; "" if it
/// can join all.
std::string gdr_obstacle(const Machine& machine, const Plan& plan) {
  const Fabric& fabric = machine.fabric();
  std::set<std::pair<std::size_t, std::size_t>> known;
  const auto why = [&](DeviceId memory, DeviceId nic) -> std::string {
    if (fabric.device(memory).kind != DeviceKind::kGpu) return "";
    const std::size_t in_node = fabric.devices_per_node();
    if (!known.emplace(memory.index() % in_node, nic.index() % in_node).second) return "";
    const GdrPossible gdr = gdr_possible(machine, memory, nic);
    return gdr.possible
               ? ""
               : fabric.device(memory).name + "-" + fabric.device(nic).name + ": " + gdr.why;
  };
  for (const QueuePair& q : plan.queue_pairs) {
    for (const auto& [memory, nic] : {std::pair{q.memory, q.nic}, {q.peer_memory, q.peer_nic}}) {
      if (std::string obstacle = why(memory, nic); !obstacle.empty()) return obstacle;
    }
  }
  return "";
}

}  // namespace

ScenarioMachine::ScenarioMachine(const Scenario& scenario, TopologySpec spec,
                                 const PredictOptions& options, const ParamCatalog& catalog)
    : catalog_{&catalog},
      parts_{catalog},
      params_{catalog},
      asked_{settle(scenario, std::move(spec), options, params_)},
      fabric_{asked_.spec, asked_.spec.nodes},
      devices_{fabric_, params_, parts_},
      machine_{devices_},
      decisions_{devices_,
                 parts_,
                 {.simple = params_.choice("nccl.decisions") == "simple",
                  .env = asked_.env,
                  .version = asked_.version,
                  .multicast = true}} {
  notes_ = asked_.env.notes;
  notes_.insert(notes_.end(), asked_.spec.notes.begin(), asked_.spec.notes.end());
  add_packets_note(asked_.settings,
                   "here, where no packets run (weft run --fidelity packet has them)", notes_);
  add_losses_note(asked_.env, " here, where nothing is lost", notes_);
  for (const ScenarioSetting& s : asked_.settings) {
    if (is_of_launches(s.key)) {
      notes_.push_back("no effect here, where kernels stand in queues: " + s.key);
    }
  }
  add_unused_notes(asked_.settings,
                   {machine_, params_.choice("nccl.decisions") == "simple", /*has_packets=*/false,
                    asked_.env.collnet_enable},
                   notes_);
  add_rate_notes(asked_.settings, machine_, notes_);
  refuse_faults(machine_);
  const bool seeded = std::any_of(options.set.begin(), options.set.end(),
                                  [](const ScenarioSetting& s) { return s.key == "wire.seed"; });
  if (seeded && !machine_.routing().decides(fabric_)) {
    notes_.emplace_back("--seed has no effect: no route is drawn in this network");
  }
}

Provenance ScenarioMachine::provenance() const {
  Provenance out = asked_.provenance;
  out.seed = machine_.routing().seed();
  out.params = provenance_of(used_params(devices_), *catalog_);
  return out;
}

PredictOptions launched_alone(PredictOptions options) {
  options.set.push_back({"nccl.launch", "single", {}});
  options.set.push_back({"nccl.host_wait", "0 ns", {}});
  return options;
}

RunProgress of_all_parts(const RunProgress& of_part, std::size_t done, std::size_t parts) {
  const double before = static_cast<double>(done) * of_part.work;
  return {done, parts, before + of_part.work_done, static_cast<double>(parts) * of_part.work};
}

std::vector<std::string> run_paths(
    const std::vector<std::string>& paths, const PredictOptions& options,
    const std::function<bool(const std::string&)>& is_there,
    const std::function<void(const std::string&, const PredictOptions&)>& run) {
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    if (is_there(*path)) continue;
    const auto done = static_cast<std::size_t>(path - paths.begin());
    try {
      if (options.stop != nullptr) options.stop->check();
      PredictOptions as_path = options;
      if (options.on_progress) {
        as_path.on_progress = [&](const RunProgress& of_path) {
          options.on_progress(of_all_parts(of_path, done, paths.size()));
        };
      }
      if (options.on_estimate) {
        as_path.on_estimate = [&](const std::string& text, double seconds) {
          options.on_estimate(*path + ": " + text, seconds);
        };
      }
      run(*path, as_path);
    } catch (const Stopped&) {
      if (path == paths.begin()) throw;
      std::vector<std::string> left(path, paths.end());
      std::erase_if(left, is_there);
      return left;
    }
  }
  return {};
}

bool falls_back(const Machine& machine, const Plan& plan, MemoryPath& path,
                std::vector<std::string>& notes) {
  if (path == MemoryPath::kHostStaged) return false;
  const std::string obstacle = gdr_obstacle(machine, plan);
  if (obstacle.empty()) return false;
  notes.push_back(std::string(memory_path_name(path)) + " falls back to host-staged: " + obstacle);
  path = MemoryPath::kHostStaged;
  return true;
}

}  // namespace weft
