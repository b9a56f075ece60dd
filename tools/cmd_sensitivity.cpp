#include <iostream>
#include <memory>
#include <string>

#include "models/collective/sensitivity.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "tools/answer.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/progress.hpp"
#include "tools/sensitivity_report.hpp"
#include "tools/stopping.hpp"

namespace weft {
namespace {

struct SensitivityArguments {
  PredictArguments predict;
  std::string params;
  std::string size;
  std::string step{"0.01"};
  std::string json;
  std::string time_limit;
};

double step_of(const std::string& text) {
  constexpr double kLeast = 1e-4;  // less is rounding
  constexpr double kMost = 0.5;
  const auto step = parse_number(text);
  if (step && *step >= kLeast && *step <= kMost) return *step;
  throw InputError("--step '" + text + "': write a share of each value, from 0.0001 to 0.5");
}

/// --size, or the largest one of the scenario; none of a workload that has none.
std::vector<Bytes> sizes_of(const std::string& text, const Scenario& scenario) {
  if (text.empty() && scenario.sizes.empty()) return {};
  if (text.empty()) return {scenario.sizes.back()};
  if (!scenario.sizes.empty()) return size_list(text);
  throw InputError("--size: " + scenario.file + " has no workload of one operation");
}

void run(const SensitivityArguments& arguments, const Outputs& outputs) {
  const Stopping stopping(arguments.time_limit);
  const ParamCatalog catalog = make_catalog();
  SensitivityRequest request;
  request.options = predict_options(arguments.predict, ParameterSet{});
  request.options.stop = stopping.stop();
  request.step = step_of(arguments.step);
  if (!arguments.params.empty()) request.keys = comma_separated(arguments.params);
  Scenario scenario = read_any_scenario(arguments.predict, outputs);
  scenario.sizes = sizes_of(arguments.size, scenario);
  const TopologySpec topology = read_topology(scenario.topology, catalog);
  Pace pace("runs");
  Progress progress([&pace] { return pace.text(); });
  request.on_progress = [&](std::size_t done, std::size_t all) {
    pace.is_at(done, all, static_cast<double>(done) / static_cast<double>(all));
  };
  Sensitivity result;
  try {
    result = sensitivity(scenario, topology, request, any_predictor(), catalog);
  } catch (const Stopped&) {
    throw Stopped(stopping.by() + " before any parameter was moved; nothing is written");
  }
  progress.end();
  if (arguments.json != "-") std::cout << sensitivity_text(result) << std::flush;
  if (!arguments.json.empty()) {
    write_text_file(arguments.json, sensitivity_json(result).dump());
  }
  if (result.is_stopped) {
    throw Stopped(stopping.by() +
                  ": some parameters were not come to (not_moved names them); --params KEY,... "
                  "asks for those alone");
  }
}

}  // namespace

void add_sensitivity_command(CommandLine& line) {
  const auto arguments = std::make_shared<SensitivityArguments>();
  Command command = line.add("sensitivity", "Which parameters a scenario's answer hangs on");
  command.argument("scenario", arguments->predict.scenario, "scenario YAML, of any workload");
  add_predict_options(command, arguments->predict,
                      "a parameter, KEY=VALUE with its unit; repeatable");
  command
      .option("--params", arguments->params,
              "the parameters to move, separated by commas; unless given all that the run uses")
      .option("--size", arguments->size,
              "sizes, separated by commas, such as 64K,1G; unless given the scenario's largest")
      .option("--step", arguments->step, "how far each number is moved, of its value")
      .output("--json", arguments->json, "write the result as JSON; '-' is standard output")
      .option("--time-limit", arguments->time_limit, kTimeLimitHelp)
      .example("weft sensitivity scenarios/quickstart.yaml --params wire.rate,gpu.nvlink_rate")
      .action([arguments](const Outputs& outputs) { run(*arguments, outputs); });
}

}  // namespace weft
