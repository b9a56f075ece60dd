#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "models/collective/compare.hpp"
#include "models/collective/parameter_set.hpp"
#include "models/collective/predict.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "sim/report/csv_report.hpp"
#include "sim/report/table.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/expectation.hpp"
#include "tools/output_files.hpp"
#include "tools/predict_arguments.hpp"

namespace weft {
namespace {

struct RunArguments {
  PredictArguments predict;
  std::string params;
  std::string json;
  std::string csv;
  std::string fidelity{"fluid"};
  bool force{false};
  bool unfolded{false};
  std::vector<std::string> expect;
};

void run(const RunArguments& arguments) {
  check_outputs_differ(arguments.json, "--csv", arguments.csv);
  const ParameterSet params =
      arguments.params.empty() ? ParameterSet{} : read_parameter_set(arguments.params);
  PredictOptions options = predict_options(arguments.predict, params);
  options.fidelity = parse_fidelity(arguments.fidelity);
  options.force = arguments.force;
  options.folds = !arguments.unfolded;
  options.on_estimate = [](const std::string& text) { std::cerr << text << '\n'; };
  std::vector<Expectation> expectations;
  for (const std::string& text : arguments.expect) expectations.push_back(parse_expectation(text));
  const ParamCatalog catalog = make_catalog();
  const Scenario scenario = read_scenario(arguments.predict.scenario);
  const TopologySpec machine = read_topology(scenario.topology, catalog);
  RunResult result = predict(scenario, machine, options, catalog);
  add_intervals(result, machine, params.intervals);
  if (arguments.json != "-" && arguments.csv != "-") std::cout << table_text(result) << std::flush;
  if (!arguments.json.empty()) write_text_file(arguments.json, to_json(result).dump());
  if (!arguments.csv.empty()) write_text_file(arguments.csv, csv_text(result));
  for (const Expectation& expectation : expectations) expect(result, expectation);
}

}  // namespace

void add_run_command(CommandLine& line) {
  const auto arguments = std::make_shared<RunArguments>();
  Command command = line.add("run", "Simulate a scenario: times, bandwidths, what limits");
  command.argument("scenario", arguments->predict.scenario, "scenario YAML");
  add_predict_options(command, arguments->predict,
                      "a parameter, KEY=VALUE with its unit; repeatable");
  command
      .option("--params", arguments->params,
              "a set of parameters, YAML of KEY: VALUE; beats the scenario's, --set beats it")
      .option("--json", arguments->json, "write the result as JSON; '-' is standard output")
      .option("--csv", arguments->csv, "write the rows as CSV; '-' is standard output")
      .option("--expect", arguments->expect,
              "exit with 4 if this does not hold at the largest size, e.g. busbw>=380")
      .option("--fidelity", arguments->fidelity,
              "fluid: shared rates, any size; packet: TLP by TLP and packet by packet, some MiB on "
              "a few nodes")
      .flag("--force", arguments->force, "run packets even if that takes more than 10 minutes")
      .flag("--unfolded", arguments->unfolded,
            "run every rank, not one for all that do the same: slower, and the same times but for "
            "rows "
            "that are extended")
      .example("weft run scenarios/quickstart.yaml --set \"wire.rate=200 Gb/s\" --json out.json")
      .action([arguments] { run(*arguments); });
}

}  // namespace weft
