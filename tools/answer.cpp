#include "tools/answer.hpp"

#include <cstdint>
#include <utility>

#include "models/workload/traffic.hpp"
#include "sim/base/error.hpp"
#ifdef WEFT_HAS_CHAKRA
#include "replay/chakra/graph.hpp"
#endif

namespace weft {
namespace {

#ifdef WEFT_HAS_CHAKRA
StepResult predict_traced(const Scenario& scenario, TopologySpec spec,
                          const PredictOptions& options, const ParamCatalog& catalog) {
  const ChakraFiles& files = scenario.chakra.value();
  const std::uint32_t ranks = count_chakra_ranks(files.prefix);
  const auto graph = [&] {
    const ChakraGroups groups =
        files.groups.empty() ? ChakraGroups{} : read_chakra_groups(files.groups);
    return chakra_graph(read_chakra_ranks(files.prefix, ranks), groups, files.groups);
  };
  return predict_graph(scenario, std::move(spec), ranks, graph, options, catalog);
}
#else
[[noreturn]] void refuse_traces(const Scenario& scenario) {
  throw InputError(scenario.chakra.value().place,
                   "this weft was built without protobuf (Debian's libprotobuf-dev and "
                   "protobuf-compiler), which reads Chakra's traces");
}
#endif

}  // namespace

std::vector<std::string> trace_files(const Scenario& scenario) {
  std::vector<std::string> out;
  if (!scenario.chakra) return out;
#ifdef WEFT_HAS_CHAKRA
  const std::string& prefix = scenario.chakra->prefix;
  const std::uint32_t ranks = count_chakra_ranks(prefix);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) out.push_back(chakra_file(prefix, rank));
  return out;
#else
  refuse_traces(scenario);
#endif
}

Scenario read_any_scenario(const PredictArguments& arguments, const Outputs& outputs) {
  Scenario out = read_scenario(arguments, outputs);
  for (const std::string& file : trace_files(out)) outputs.keep(file, out.file);
  return out;
}

StepResult answer_step(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
                       const ParamCatalog& catalog) {
  if (!scenario.chakra) return predict_step(scenario, std::move(spec), options, catalog);
#ifdef WEFT_HAS_CHAKRA
  return predict_traced(scenario, std::move(spec), options, catalog);
#else
  refuse_traces(scenario);
#endif
}

RunResult answer(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
                 const ParamCatalog& catalog) {
  if (scenario.step || scenario.chakra) {
    return rows_of(answer_step(scenario, std::move(spec), options, catalog));
  }
  if (scenario.traffic) {
    return rows_of(predict_traffic(scenario, std::move(spec), options, catalog));
  }
  return predict(scenario, std::move(spec), options, catalog);
}

}  // namespace weft
