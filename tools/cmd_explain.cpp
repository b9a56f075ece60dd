#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/collective/compare.hpp"
#include "models/collective/settings.hpp"
#include "models/explain/explain.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/input/evidence/host_view.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/explain_report.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/stopping.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostSizes = 8;  // of one operation

struct ExplainArguments {
  std::vector<std::string> runs;
  std::string as;
  std::string machine;
  std::vector<std::string> evidence;
  PredictArguments predict;
  std::string json;
  std::string time_limit;
};

/// What of the machine is known, before the run says how many GPUs took part.
struct Known {
  std::optional<Evidence> evidence;
  std::optional<Patient> patient;
  MachineCase healthy;
  std::string name;
  NcclVersion version;
  std::vector<std::string> notes;
};

/// A check that is ok on one host rules out nothing on another.
void refuse_several_hosts(const Evidence& evidence) {
  const std::vector<std::string> hosts = compare_hosts(evidence.facts).names;
  if (hosts.size() < 2) return;
  throw InputError(fmt::format(
      "the evidence is of {} hosts ({}): explain weighs causes by that of one host; give the "
      "slow one's alone (weft doctor examines and compares several)",
      hosts.size(), known_names(hosts, 3)));
}

void read_known(const ExplainArguments& arguments, const Measurement& measured,
                const ParamCatalog& catalog, const PartLibrary& parts, Known& known) {
  if (!arguments.evidence.empty()) {
    known.evidence = read_evidence(arguments.evidence);
    refuse_several_hosts(*known.evidence);
    known.patient.emplace(*known.evidence, catalog, parts,
                          static_cast<std::uint32_t>(measured.hosts), arguments.predict.gpu);
  }
  if (!arguments.machine.empty()) {
    known.healthy.spec = read_topology(arguments.machine, catalog);
    known.name = arguments.machine;
    return;
  }
  if (!known.patient) {
    throw InputError(
        "which machine is it? write --machine FILE (a topology), or --evidence FILE "
        "(what its tools print)");
  }
  known.healthy = mended_machine(*known.patient);
  known.name = "the evidence's machine, mended";
  known.version = known.patient->context().version;
  known.notes = known.patient->spec().notes;
}

/// What the run's rows and the command line say of the machine and of NCCL.
void apply_run(const Measurement& measured, const std::string& file, const PredictOptions& options,
               const ParamCatalog& catalog, Known& known) {
  const Scenario scenario = scenario_of(measured.row, file, known.healthy.spec, options, catalog);
  known.healthy.set = scenario.set;
  known.healthy.set.insert(known.healthy.set.end(), options.set.begin(), options.set.end());
  for (const auto& [name, value] : scenario.env) known.healthy.env[name] = value;
  for (const auto& [name, value] : options.env) known.healthy.env[name] = value;
  if (!scenario.nccl_version.empty()) known.version = scenario_nccl_version(scenario);
  if (options.nccl_version) known.version = *options.nccl_version;
}

ErrorModel errors_of(const MachineCase& healthy, bool has_healthy, const ParamCatalog& catalog) {
  Params params(catalog);
  TopologySpec spec = healthy.spec;
  apply_settings(healthy.set, spec, params);
  return error_model(params, has_healthy);
}

Explanation explained(const ExplainArguments& arguments, const ParamCatalog& catalog) {
  const Stopping stopping(arguments.time_limit);
  if (arguments.runs.size() > 2) {
    throw InputError("explain takes a slow run and a healthy one, not more: '" + arguments.runs[2] +
                     "'");
  }
  const bool has_healthy = arguments.runs.size() == 2;
  const StatedColumns stated = parse_stated(arguments.as);
  const PredictOptions options = predict_options(arguments.predict, ParameterSet{});
  const MeasuredTable slow = read_run(arguments.runs[0], stated);
  std::optional<MeasuredTable> healthy;
  if (has_healthy) healthy = read_run(arguments.runs[1], stated);
  const Measurement measured = measurement_of(slow, has_healthy ? &*healthy : nullptr, kMostSizes);
  const PartLibrary parts(catalog);
  Known known;
  read_known(arguments, measured, catalog, parts, known);
  apply_run(measured, slow.file, options, catalog, known);
  const CaseContext context{catalog, parts, known.version,
                            static_cast<std::uint32_t>(measured.hosts)};
  const std::vector<CauseEntry>& entries = catalogue();
  const Site site(known.healthy, context);
  std::vector<Suspect> suspects = suspects_of(entries, site);
  if (known.patient) {
    weigh_by(*known.patient, site, arguments.machine.empty(), suspects);
  }
  try {
    const Effects effects(known.healthy, context, measured.points, std::move(suspects),
                          arguments.predict.threads, stopping.stop());
    Explanation explanation =
        explain(gaps_of(effects), effects, errors_of(known.healthy, has_healthy, catalog));
    known.notes.insert(known.notes.end(), effects.notes().begin(), effects.notes().end());
    const ExplainView view{explanation, effects,
                           measured,    entries,
                           slow.file,   has_healthy ? healthy->file : "",
                           known.name,  known.version.text(),
                           known.notes};
    if (arguments.json != "-") std::cout << explain_text(view) << std::flush;
    if (!arguments.json.empty()) write_text_file(arguments.json, explain_json(view).dump());
    return explanation;
  } catch (const Stopped&) {
    throw Stopped(stopping.by() + " before all causes were predicted; nothing is written");
  }
}

void run(const ExplainArguments& arguments) {
  const ParamCatalog catalog = make_catalog();
  if (explained(arguments, catalog).verdict != Explained::kNotSlower) {
    throw FaultFound("the run is slower than it should be");
  }
}

}  // namespace

void add_explain_command(CommandLine& line) {
  const auto arguments = std::make_shared<ExplainArguments>();
  Command command =
      line.add("explain", "Why a run is slow: ranked causes, what each explains, how to verify it");
  command
      .argument("runs", arguments->runs,
                "the slow run, and a healthy one of the same machine if there is one: what "
                "nccl-tests prints or writes as JSON, or a measured table (scenarios/README.md)")
      .option("--machine", arguments->machine,
              "the machine as it should be: topology YAML or NCCL XML; unless given the "
              "evidence's, with all mended that weft doctor finds")
      .option("--evidence", arguments->evidence,
              "what tools print on one host of the slow machine, or a tar of it (weft doctor); "
              "repeatable")
      .option("--as", arguments->as,
              "columns that the runs leave out, such as ranks=16,hosts=2,op=allreduce");
  add_predict_options(command, arguments->predict,
                      "a parameter of the healthy machine, KEY=VALUE with its unit; repeatable");
  command.option("--json", arguments->json, "write the result as JSON; '-' is standard output")
      .option("--time-limit", arguments->time_limit,
              "end after this time, such as 30s; nothing is written then (exit 130)")
      .example("weft explain slow.txt healthy.txt --machine topologies/hgx-h100-8nic.yaml")
      .action([arguments] { run(*arguments); });
}

}  // namespace weft
