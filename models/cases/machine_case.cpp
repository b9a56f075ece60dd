#include "models/cases/machine_case.hpp"

#include <utility>
#include <variant>

#include "models/collective/predict.hpp"
#include "models/collective/settings.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

Fabric fabric_of(const MachineCase& what, const CaseContext& context, Params& params) {
  TopologySpec spec = what.spec;
  spec.nodes = context.nodes;
  apply_settings(what.set, spec, params);
  drop_uncabled_nics(spec);
  return {std::move(spec), context.nodes};
}

NcclVersion version_of(const MachineCase& what, const CaseContext& context) {
  return what.version.value_or(context.version);
}

NcclRun decided_run(const DeviceParams& devices, const NcclEnv& env, NcclVersion version) {
  std::variant<NcclRun, NcclNotFollowed> made = decide_run(devices, MemoryPath::kGdr, env, version);
  if (const auto* const not_followed = std::get_if<NcclNotFollowed>(&made)) {
    throw InputError("weft cannot follow NCCL's decisions here: " + not_followed->why);
  }
  return std::get<NcclRun>(std::move(made));
}

std::string path_of(const MachineCase& what, const CaseContext& context, const CaseRequest& request,
                    bool& is_mixed) {
  if (!request.path.empty()) return request.path;
  if (what.is_staged) return std::string(memory_path_name(MemoryPath::kHostStaged));
  Params params(context.catalog);
  TopologySpec spec = what.spec;
  apply_settings(what.set, spec, params);
  if (params.choice("nccl.decisions") == "simple") {
    return std::string(memory_path_name(MemoryPath::kGdr));  // host-staged where it is not possible
  }
  const CaseMachine machine(what, context);
  is_mixed = machine.is_mixed();
  return std::string(memory_path_name(machine.path()));
}

}  // namespace

CaseMachine::CaseMachine(const MachineCase& what, const CaseContext& context)
    : params_{context.catalog},
      env_{apply_nccl_env(what.env, params_, {}, version_of(what, context))},
      fabric_{fabric_of(what, context, params_)},
      devices_{fabric_, params_, context.parts},
      machine_{devices_},
      run_{decided_run(devices_, env_, version_of(what, context))},
      pairs_{ring_pairs(machine_, decided_schedule(devices_, run_).rings)} {}

CasePrediction predicted(MachineCase what, const std::vector<const Change*>& changes,
                         const CaseContext& context, const CaseRequest& request) {
  Scenario scenario;
  scenario.name = request.name;
  scenario.op = request.op;
  scenario.sizes = request.sizes;
  scenario.nodes = context.nodes;
  PredictOptions options;
  options.threads = request.threads;
  options.stop = request.stop;
  CasePrediction out;
  try {
    for (const Change* change : changes) {
      what = changed(std::move(what), *change, context.catalog);
    }
    scenario.nccl_version = version_of(what, context).text();
    scenario.env = what.env;
    scenario.set = what.set;
    scenario.memory_paths = {path_of(what, context, request, out.is_mixed)};
    RunResult run = predict(scenario, what.spec, options, context.catalog);
    if (!run.not_run.empty()) throw Stopped("stopped");
    out.rows = std::move(run.rows);
    out.notes = std::move(run.notes);
  } catch (const InputError& error) {
    out.why_not = error.what();
  }
  return out;
}

}  // namespace weft
