#include "models/cases/machine_case.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "models/collective/settings.hpp"
#include "models/collective/spares.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

bool is_of_spares(const ScenarioSetting& setting) { return is_spares_key(setting.key); }

Fabric fabric_of(const MachineCase& what, const CaseContext& context, Params& params) {
  TopologySpec spec = what.spec;
  spec.nodes = context.nodes;
  apply_settings(what.set, spec, params);
  if (spec.nodes != context.nodes && std::ranges::any_of(what.set, is_of_spares)) {
    throw InputError(
        "failed.nodes, failed.nics: all nodes that are measured or asked for run here; ask for "
        "fewer");
  }
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

}  // namespace

CaseMachine::CaseMachine(const MachineCase& what, const CaseContext& context)
    : params_{context.catalog},
      env_{apply_nccl_env(what.env, params_, {}, version_of(what, context))},
      fabric_{fabric_of(what, context, params_)},
      devices_{fabric_, params_, context.parts},
      machine_{devices_},
      run_{decided_run(devices_, env_, version_of(what, context))},
      pairs_{ring_pairs(machine_, decided_schedule(devices_, run_))} {}

CasePredictor::CasePredictor(MachineCase what, const std::vector<const Change*>& changes,
                             const CaseContext& context, const std::string& name, unsigned threads,
                             const Stop* stop)
    : is_staged_{what.is_staged} {
  options_.threads = threads;
  options_.stop = stop;
  options_.shared = context.runs;
  try {
    for (const Change* change : changes) {
      what = changed(std::move(what), *change, context.catalog);
    }
    is_staged_ = what.is_staged;
    scenario_.name = name;
    scenario_.nodes = context.nodes;
    scenario_.nccl_version = version_of(what, context).text();
    scenario_.env = what.env;
    scenario_.set = what.set;
    prepared_ = std::make_unique<Prepared>(scenario_, std::move(what.spec), options_,
                                           context.catalog, context.parts);
  } catch (const InputError& error) {
    why_not_ = error.what();
  }
}

/// The one that was asked for, or that NCCL takes.
std::vector<std::string> CasePredictor::paths(const CaseRequest& request, Op op) const {
  if (!request.path.empty()) return {request.path};
  const NcclRun* const decided = prepared_->decided();
  const MemoryPath path = is_staged_           ? MemoryPath::kHostStaged
                          : decided == nullptr ? MemoryPath::kGdr
                                               : decided->taken(op).path;
  return {std::string(memory_path_name(path))};
}

std::vector<double> CasePredictor::seconds(const CaseRequest& request) {
  const Op op = parse_op(request.op);
  return prepared_->seconds(op, request.sizes, paths(request, op));
}

CasePrediction CasePredictor::predict(const CaseRequest& request) {
  CasePrediction out;
  out.why_not = why_not_;
  if (prepared_ == nullptr) return out;
  try {
    const Op op = parse_op(request.op);
    RunResult run = prepared_->run(op, request.sizes, paths(request, op));
    if (!run.not_run.empty()) throw Stopped("stopped");
    out.rows = std::move(run.rows);
    out.notes = std::move(run.notes);
  } catch (const InputError& error) {
    out.why_not = error.what();
  }
  return out;
}

}  // namespace weft
