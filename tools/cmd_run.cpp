#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/collective/compare.hpp"
#include "models/collective/parameter_set.hpp"
#include "models/collective/predict.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/base/parallel.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "sim/report/csv_report.hpp"
#include "sim/report/perfetto.hpp"
#include "sim/report/table.hpp"
#include "tools/answer.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/expectation.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/stopping.hpp"
#include "tools/told_run.hpp"

namespace weft {
namespace {

struct RunArguments {
  PredictArguments predict;
  std::string time_limit;
  std::string params;
  std::string json;
  std::string csv;
  std::string trace;
  std::string trace_size;
  std::string fidelity{"fluid"};
  bool force{false};
  bool unfolded{false};
  std::vector<std::string> expect;
};

/// "sizes: 1 GiB, 2 GiB": of what is missing; of jobs the memory paths.
std::string what_is_missing(const RunResult& result) {
  if (!result.not_run.front().job.empty()) {
    std::string paths;
    for (const RowNotRun& row : result.not_run) {
      if (row.job != result.not_run.front().job) continue;
      paths += (paths.empty() ? "" : ", ") + row.memory_path;
    }
    return "memory paths: " + paths;
  }
  std::string out = "sizes: ";
  std::int64_t last = 0;
  for (const RowNotRun& row : result.not_run) {
    if (row.bytes != last) out += (last == 0 ? "" : ", ") + format_size(Bytes{row.bytes});
    last = row.bytes;
  }
  return out;
}

RunResult predict_told(const RunArguments& arguments, const Scenario& scenario,
                       const TopologySpec& machine, PredictOptions options,
                       const Stopping& stopping, const ParamCatalog& catalog) {
  const ToldRun told("rows", options, threads_each(1, arguments.predict.threads));
  options.stop = stopping.stop();
  try {
    return or_smaller_question(scenario, machine, options, catalog,
                               [&] { return predict(scenario, machine, options, catalog); });
  } catch (const Stopped&) {
    throw Stopped(stopping.by() +
                  " before any row was finished; nothing is written. Ask for fewer or smaller "
                  "sizes, or fewer nodes");
  }
}

/// Whose timeline is written: --trace-size, or the largest; none without --trace.
std::optional<Bytes> timeline_of(const RunArguments& arguments, const Scenario& scenario) {
  if (arguments.trace.empty()) {
    if (!arguments.trace_size.empty()) throw InputError("--trace-size: without --trace");
    return std::nullopt;
  }
  if (scenario.sizes.empty()) return Bytes{0};  // jobs, which refuse it
  if (arguments.trace_size.empty()) return std::ranges::max(scenario.sizes);
  const Bytes size = parse_size(arguments.trace_size);
  if (std::ranges::find(scenario.sizes, size) == scenario.sizes.end()) {
    throw InputError("--trace-size " + arguments.trace_size + ": no size of " + scenario.file);
  }
  return size;
}

/// Nothing of a run that was stopped before any row of that size was finished.
void write_trace(const std::string& file, const RunResult& result) {
  bool any = false;
  for (const ResultRow& row : result.rows) {
    if (!row.timeline) continue;
    any = true;
    if (row.timeline->left_out == 0) continue;
    std::cerr << fmt::format("--trace: {} has its first {} slices; {} are left out\n",
                             row.memory_path, row.timeline->slices.size(), row.timeline->left_out);
  }
  if (any) {
    write_text_file(file, perfetto_trace(result));
  } else {
    std::cerr << "--trace: no row of its size was finished; " << file << " is not written\n";
  }
}

void run(const RunArguments& arguments, const Outputs& outputs) {
  const Stopping stopping(arguments.time_limit);
  const ParameterSet params = parameter_set(arguments.params);
  PredictOptions options = predict_options(arguments.predict, params);
  options.fidelity = parse_fidelity(arguments.fidelity);
  options.force = arguments.force;
  options.folds = !arguments.unfolded;
  options.link_use = !arguments.json.empty();
  std::vector<Expectation> expectations;
  for (const std::string& text : arguments.expect) expectations.push_back(parse_expectation(text));
  const ParamCatalog catalog = make_catalog();
  const Scenario scenario = read_scenario(arguments.predict, outputs);
  options.timeline_of = timeline_of(arguments, scenario);
  const TopologySpec machine = read_topology(scenario.topology, catalog);
  RunResult result = predict_told(arguments, scenario, machine, options, stopping, catalog);
  Beside beside{&machine, {}, scenario.env, {result.provenance.nccl_version}};
  for (const ScenarioSetting& said : scenario.set) {
    const auto replaces = [&said](const ScenarioSetting& fitted) { return fitted.key == said.key; };
    if (std::ranges::none_of(params.set, replaces)) beside.set.push_back(said);
  }
  beside.set.insert(beside.set.end(), options.set.begin() + std::ssize(params.set),
                    options.set.end());
  for (const auto& [name, value] : options.env) beside.env[name] = value;
  std::vector<std::string> left_out;
  const auto notes_before = std::ssize(result.notes);
  add_intervals(result, machine, intervals_of(params, beside, left_out));
  result.notes.insert(result.notes.end(), left_out.begin(), left_out.end());
  if (arguments.csv == "-") {  // rows have no place for them
    std::for_each(result.notes.begin() + notes_before, result.notes.end(),
                  [](const std::string& note) { std::cerr << "note: " << note << '\n'; });
  }
  const bool data_on_stdout =
      arguments.json == "-" || arguments.csv == "-" || arguments.trace == "-";
  if (!data_on_stdout) std::cout << table_text(result) << std::flush;
  if (!arguments.json.empty()) write_text_file(arguments.json, to_json(result).dump());
  if (!arguments.csv.empty()) write_text_file(arguments.csv, csv_text(result));
  if (!arguments.trace.empty()) write_trace(arguments.trace, result);
  if (!result.not_run.empty()) {
    throw Stopped(stopping.by() + fmt::format(": {} of {} rows are missing; to go on, run a "
                                              "scenario of their {}",
                                              result.not_run.size(),
                                              result.rows.size() + result.not_run.size(),
                                              what_is_missing(result)));
  }
  for (const Expectation& expectation : expectations) expect(result, expectation);
}

}  // namespace

void add_run_command(CommandLine& line) {
  const auto arguments = std::make_shared<RunArguments>();
  Command command = line.add("run", "Simulate a scenario: times, bandwidths, what limits");
  command.argument("scenario", arguments->predict.scenario, "scenario YAML");
  add_predict_options(command, arguments->predict,
                      "a parameter, KEY=VALUE with its unit; repeatable");
  command.option("--params", arguments->params, kScenarioParamsHelp)
      .output("--json", arguments->json, "write the result as JSON; '-' is standard output")
      .output("--csv", arguments->csv, "write the rows as CSV; '-' is standard output")
      .option("--expect", arguments->expect,
              "exit with 4 if this does not hold at the largest size, e.g. busbw>=380")
      .option("--fidelity", arguments->fidelity,
              "fluid: shared rates, any size; packet: TLP by TLP and packet by packet, some MiB on "
              "a few nodes",
              {"fluid", "packet"})
      .option("--time-limit", arguments->time_limit, kTimeLimitHelp)
      .output("--trace", arguments->trace,
              "write what every thread block, proxy thread and NIC did in one launch, for "
              "ui.perfetto.dev; its timeline is of that size as with --unfolded")
      .option("--trace-size", arguments->trace_size, "of which size; the largest by default")
      .flag("--force", arguments->force, "run packets even if that takes more than 10 minutes")
      .flag("--unfolded", arguments->unfolded,
            "run every rank, not one for all that do the same: slower, and the same times but for "
            "rows that are extended")
      .example("weft run scenarios/quickstart.yaml --set \"wire.rate=200 Gb/s\" --json out.json")
      .action([arguments](const Outputs& outputs) { run(*arguments, outputs); });
}

}  // namespace weft
