#include <iostream>
#include <memory>
#include <string>

#include "models/registry/registry.hpp"
#include "models/workload/traffic.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "tools/answer.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/stopping.hpp"
#include "tools/told_run.hpp"
#include "tools/traffic_json.hpp"

namespace weft {
namespace {

struct TrafficArguments {
  PredictArguments predict;
  std::string params;
  std::string json;
  std::string time_limit;
  bool estimate{false};
};

/// What to ask for where a question took too long.
std::string smaller(const TrafficSpec& traffic, bool estimate) {
  const bool given = !traffic.matrix.empty() || !traffic.routing.empty();
  std::string fewer =
      given ? "a file with fewer GPUs or pairs" : "fewer nodes, as with --set nodes=N";
  const bool is_sparse =
      traffic.kind == TrafficSpec::Kind::kPermutation || traffic.kind == TrafficSpec::Kind::kIncast;
  if (estimate || is_sparse) return fewer;
  if (traffic.kind == TrafficSpec::Kind::kAllToAllV) {
    return fewer + ", or --estimate, where most GPUs send to most others";
  }
  return fewer + ", or --estimate";
}

void run(const TrafficArguments& arguments, const Outputs& outputs) {
  const Stopping stopping(arguments.time_limit);
  const ParameterSet params = parameter_set(arguments.params);
  PredictOptions options = predict_options(arguments.predict, params);
  options.stop = stopping.stop();
  const ParamCatalog catalog = make_catalog();
  const Scenario scenario = read_scenario(arguments.predict, outputs);
  const TopologySpec machine = read_topology(scenario.topology, catalog);
  const TrafficSpec traffic = scenario.traffic.value_or(TrafficSpec{});
  std::string ask_for = smaller(traffic, arguments.estimate);  // told once work has thrown
  const auto answer = [&] {
    const ToldRun told("memory paths", options);
    try {
      return or_smaller_question(scenario, machine, options, catalog, [&] {
        return predict_traffic(scenario, machine, options, catalog,
                               arguments.estimate ? TrafficBy::kEstimate : TrafficBy::kRun);
      });
    } catch (const StoppedEstimate&) {
      ask_for = smaller(traffic, true);
      throw;
    }
  };
  const TrafficResult result = stopping.run(ask_for, answer);
  if (arguments.json != "-") std::cout << traffic_text(result) << std::flush;
  if (!arguments.json.empty()) write_text_file(arguments.json, to_json(result).dump());
  stopping.tell_paths(result.not_run);
}

}  // namespace

void add_traffic_command(CommandLine& line) {
  const auto arguments = std::make_shared<TrafficArguments>();
  Command command = line.add(
      "traffic", "Simulate irregular traffic: a matrix, a permutation, incast, experts' tokens");
  command.argument("scenario", arguments->predict.scenario, "scenario YAML with such a workload");
  add_predict_options(command, arguments->predict,
                      "a parameter, KEY=VALUE with its unit; repeatable");
  command.option("--params", arguments->params, kScenarioParamsHelp)
      .output("--json", arguments->json, "write the result as JSON; '-' is standard output")
      .flag("--estimate", arguments->estimate,
            "do not run it whole: the most loaded link, and what an even all-to-all takes beyond "
            "its own, or the ranks with most to do, run without the rest, if these take longer; "
            "unless given, only what is too much to run is told so")
      .option("--time-limit", arguments->time_limit, kTimeLimitHelp)
      .example("weft traffic scenarios/traffic/experts.yaml --set nodes=4")
      .action([arguments](const Outputs& outputs) { run(*arguments, outputs); });
}

}  // namespace weft
