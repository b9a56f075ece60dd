#pragma once

#include <string>

#include "models/collective/predict.hpp"
#include "sim/report/comparison.hpp"
#include "sim/result/measured.hpp"

namespace weft {

/// Predicts every row of a measured table on the machine of a topology file, or if `machine` is
/// empty each row on its own. A row says how many nodes, GPUs and NICs there are, the NICs' rate
/// and latency, what else of the machine, NCCL's variables and release; what `options` say beats
/// it. A row that weft cannot predict as it was measured has the reason instead. Throws InputError
/// where a machine or options are wrong whatever the row, or a row names no machine and nobody else
/// does.
Comparison compare(const MeasuredTable& table, const std::string& machine,
                   const PredictOptions& options, const ParamCatalog& catalog);

}  // namespace weft
