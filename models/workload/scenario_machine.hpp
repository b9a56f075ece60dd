#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "models/collective/settled.hpp"
#include "models/machine/machine.hpp"
#include "models/nccl/decide/communicators.hpp"
#include "models/params/device_params.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// The machine that a scenario and a command line's options ask for, and who decides in NCCL's
/// place. Fluid transport only. Throws InputError as predict() does.
class ScenarioMachine {
 public:
  ScenarioMachine(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
                  const ParamCatalog& catalog);
  ScenarioMachine(const ScenarioMachine&) = delete;
  ScenarioMachine& operator=(const ScenarioMachine&) = delete;

  const Fabric& fabric() const { return fabric_; }
  const DeviceParams& devices() const { return devices_; }
  const Machine& machine() const { return machine_; }
  const PartLibrary& parts() const { return parts_; }
  CommunicatorDecisions& decisions() { return decisions_; }
  std::uint32_t gpus() const {
    return static_cast<std::uint32_t>(fabric_.count(DeviceKind::kGpu)) * fabric_.nodes();
  }
  /// What the user should know of it.
  const std::vector<std::string>& notes() const { return notes_; }
  /// With its parameters and seed.
  Provenance provenance() const;

 private:
  const ParamCatalog* catalog_;
  std::vector<std::string> notes_;
  PartLibrary parts_;
  Params params_;
  Settled asked_;
  Fabric fabric_;
  DeviceParams devices_;
  Machine machine_;
  CommunicatorDecisions decisions_;
};

/// So that calls are launched as a workload's are, one alone: kernels stand in queues, and no host
/// waits for them.
PredictOptions launched_alone(PredictOptions options);

/// Whether GPUDirect RDMA cannot carry what a plan's NICs read from and write to GPUs: the path is
/// then the hosts' buffers, and a note has the first pair that cannot, and why.
bool falls_back(const Machine& machine, const Plan& plan, MemoryPath& path,
                std::vector<std::string>& notes);

/// Whether there is a row of that memory path.
template <class Row>
bool has_row(const std::vector<Row>& rows, const std::string& memory_path) {
  return std::ranges::find(rows, memory_path, &Row::memory_path) != rows.end();
}

/// How far all of several parts are, each of which takes about as long, `done` of them having run
/// before the one that is so far.
RunProgress of_all_parts(const RunProgress& of_part, std::size_t done, std::size_t parts);

/// Runs one memory path after the other, by their names, until it is stopped, but for those that
/// are there already, as others fell back to them; those that it did not come to. `run` is given
/// the options with which what it says of itself is heard as of that path, and how far it is as of
/// all of them. Throws Stopped before the first one is finished.
std::vector<std::string> run_paths(
    const std::vector<std::string>& paths, const PredictOptions& options,
    const std::function<bool(const std::string&)>& is_there,
    const std::function<void(const std::string&, const PredictOptions&)>& run);

}  // namespace weft
