#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "models/registry/registry.hpp"
#include "models/workload/step.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/step_json.hpp"
#ifdef WEFT_HAS_CHAKRA
#include "replay/chakra/graph.hpp"
#endif

namespace weft {
namespace {

struct StepArguments {
  PredictArguments predict;
  std::string params;
  std::string json;
};

/// What the scenario's execution traces say.
StepResult predict_traced(const Scenario& scenario, [[maybe_unused]] const Outputs& outputs,
                          [[maybe_unused]] TopologySpec machine,
                          [[maybe_unused]] const PredictOptions& options,
                          [[maybe_unused]] const ParamCatalog& catalog) {
  const ChakraFiles& files = scenario.chakra.value();
#ifdef WEFT_HAS_CHAKRA
  const std::uint32_t ranks = count_chakra_ranks(files.prefix);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    outputs.keep(chakra_file(files.prefix, rank), scenario.file);
  }
  const auto graph = [&] {
    const ChakraGroups groups =
        files.groups.empty() ? ChakraGroups{} : read_chakra_groups(files.groups);
    return chakra_graph(read_chakra_ranks(files.prefix, ranks), groups, files.groups);
  };
  return predict_graph(scenario, std::move(machine), ranks, graph, options, catalog);
#else
  throw InputError(files.place,
                   "this weft was built without protobuf (Debian's libprotobuf-dev and "
                   "protobuf-compiler), which reads Chakra's traces");
#endif
}

void run(const StepArguments& arguments, const Outputs& outputs) {
  const ParameterSet params = parameter_set(arguments.params);
  const PredictOptions options = predict_options(arguments.predict, params);
  const ParamCatalog catalog = make_catalog();
  const Scenario scenario = read_scenario(arguments.predict, outputs);
  TopologySpec machine = read_topology(scenario.topology, catalog);
  const StepResult result =
      scenario.chakra ? predict_traced(scenario, outputs, std::move(machine), options, catalog)
                      : predict_step(scenario, std::move(machine), options, catalog);
  if (arguments.json != "-") std::cout << step_text(result) << std::flush;
  if (!arguments.json.empty()) write_text_file(arguments.json, to_json(result).dump());
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
      .example(
          "weft step scenarios/steps/llama-70b.yaml --set \"nic.rate=800 Gb/s\" --set "
          "\"wire.rate=800 Gb/s\"")
      .action([arguments](const Outputs& outputs) { run(*arguments, outputs); });
}

}  // namespace weft
