#pragma once

#include <vector>

#include "models/collective/predict.hpp"
#include "sim/result/measured.hpp"

namespace weft {

/// Predicts rows of perftest or nvbandwidth of one configuration on a machine with `settings`,
/// which are not repeated in `options`: the result's rows are theirs, in their order, without those
/// that a stop came before. perftest runs
/// between GPU 0 of node 0 and of node 1, by their nearest NICs, or between these GPUs' hosts'
/// memories; a row's time is that of a message at the steady rate, or the latency. Throws
/// InputError: what the machine cannot do, a cell that it does not have; Stopped before the first.
RunResult predict_tool_rows(const std::vector<const MeasuredRow*>& rows, TopologySpec machine,
                            const std::vector<ScenarioSetting>& settings,
                            const PredictOptions& options, const ParamCatalog& catalog);

}  // namespace weft
