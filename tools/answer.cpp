#include "tools/answer.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "models/workload/traffic.hpp"
#include "sim/base/error.hpp"
#ifdef WEFT_HAS_CHAKRA
#include "replay/chakra/graph.hpp"
#endif

namespace weft {
namespace {

#ifdef WEFT_HAS_CHAKRA
TaskGraph read_traces(const ChakraFiles& files, std::uint32_t ranks) {
  const ChakraGroups groups =
      files.groups.empty() ? ChakraGroups{} : read_chakra_groups(files.groups);
  return chakra_graph(read_chakra_ranks(files.prefix, ranks), groups, files.groups);
}
#endif

/// A scenario's execution traces, read by the first who asks.
class Traces {
 public:
  StepResult predict(const Scenario& scenario, const TopologySpec& spec,
                     const PredictOptions& options, const ParamCatalog& catalog) {
    const ChakraFiles& files = scenario.chakra.value();
#ifdef WEFT_HAS_CHAKRA
    const std::uint32_t ranks = count_chakra_ranks(files.prefix);
    const auto graph = [&] {
      std::call_once(once_, [&] { graph_ = read_traces(files, ranks); });
      return graph_;
    };
    return predict_graph(scenario, spec, ranks, graph, options, catalog);
#else
    throw InputError(files.place,
                     "this weft was built without protobuf (Debian's libprotobuf-dev and "
                     "protobuf-compiler), which reads Chakra's traces");
#endif
  }

 private:
  std::once_flag once_;
  TaskGraph graph_;
};

StepResult step_by(Traces& traces, const Scenario& scenario, const TopologySpec& spec,
                   const PredictOptions& options, const ParamCatalog& catalog) {
  return scenario.chakra ? traces.predict(scenario, spec, options, catalog)
                         : predict_step(scenario, spec, options, catalog);
}

}  // namespace

std::vector<std::string> trace_files(const Scenario& scenario) {
  std::vector<std::string> out;
#ifdef WEFT_HAS_CHAKRA
  if (!scenario.chakra) return out;
  const std::string& prefix = scenario.chakra->prefix;
  const std::uint32_t ranks = count_chakra_ranks(prefix);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) out.push_back(chakra_file(prefix, rank));
#endif
  return out;
}

Scenario read_any_scenario(const PredictArguments& arguments, const Outputs& outputs) {
  Scenario out = read_scenario(arguments, outputs);
  for (const std::string& file : trace_files(out)) outputs.keep(file, out.file);
  return out;
}

StepResult answer_step(const Scenario& scenario, const TopologySpec& spec,
                       const PredictOptions& options, const ParamCatalog& catalog) {
  Traces traces;
  return step_by(traces, scenario, spec, options, catalog);
}

Predictor any_predictor() {
  const auto traces = std::make_shared<Traces>();
  return [traces](const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
                  const ParamCatalog& catalog) {
    if (scenario.step || scenario.chakra) {
      return rows_of(step_by(*traces, scenario, spec, options, catalog));
    }
    if (scenario.traffic) {
      return rows_of(predict_traffic(scenario, std::move(spec), options, catalog));
    }
    return predict(scenario, std::move(spec), options, catalog);
  };
}

}  // namespace weft
