#include <iostream>
#include <memory>
#include <string>

#include "models/registry/registry.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "tools/answer.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/step_json.hpp"
#include "tools/stopping.hpp"
#include "tools/told_run.hpp"

namespace weft {
namespace {

struct StepArguments {
  PredictArguments predict;
  std::string params;
  std::string json;
  std::string time_limit;
  bool unfolded{false};
};

/// What to ask for where the whole step takes too long.
std::string smaller_step(const Scenario& scenario) {
  return scenario.chakra ? "traces of a smaller job"
                         : "a step of fewer layers, micro-batches or nodes (parallel: data)";
}

void run(const StepArguments& arguments, const Outputs& outputs) {
  const Stopping stopping(arguments.time_limit);
  const ParameterSet params = parameter_set(arguments.params);
  PredictOptions options = predict_options(arguments.predict, params);
  options.stop = stopping.stop();
  options.folds = !arguments.unfolded;
  const ParamCatalog catalog = make_catalog();
  const Scenario scenario = read_any_scenario(arguments.predict, outputs);
  const TopologySpec machine = read_topology(scenario.topology, catalog);
  const StepResult result = stopping.run(smaller_step(scenario), [&] {
    const ToldRun told("memory paths", options);
    return or_smaller_question(scenario, machine, options, catalog,
                               [&] { return answer_step(scenario, machine, options, catalog); });
  });
  if (arguments.json != "-") std::cout << step_text(result) << std::flush;
  if (!arguments.json.empty()) write_text_file(arguments.json, to_json(result).dump());
  stopping.tell_paths(result.not_run);
}

}  // namespace

void add_step_command(CommandLine& line) {
  const auto arguments = std::make_shared<StepArguments>();
  Command command =
      line.add("step", "Simulate a training step: its time, and how much of it is communication");
  command.argument("scenario", arguments->predict.scenario, "scenario YAML with a step");
  add_predict_options(command, arguments->predict,
                      "a parameter, KEY=VALUE with its unit; repeatable");
  command.option("--params", arguments->params, kScenarioParamsHelp)
      .output("--json", arguments->json, "write the result as JSON; '-' is standard output")
      .flag("--unfolded", arguments->unfolded,
            "every rank and call is simulated; unless given, some stand for those that are alike")
      .option("--time-limit", arguments->time_limit, kTimeLimitHelp)
      .example(
          "weft step scenarios/steps/llama-70b.yaml --set \"nic.rate=200 Gb/s\" --set "
          "\"wire.rate=200 Gb/s\"")
      .action([arguments](const Outputs& outputs) { run(*arguments, outputs); });
}

}  // namespace weft
