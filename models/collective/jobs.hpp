#pragma once

#include "models/collective/predict.hpp"

namespace weft {

/// Predicts the jobs of a scenario that has several, all on one fabric: a row for each job and
/// memory path. NCCL decides for each job by itself, as for a cluster of its nodes. All begin at
/// one instant. Those that are shorter alone, by shared rates, are launched again and again, one
/// launch behind the other, about as often as the longest one's time has room for, but 32 times at
/// most, and less often where that is long to simulate; times are a launch's on average. Each also
/// runs alone, as often. On shared rates each job's messages get one share of those that its NICs
/// send at once alone, as if ports of switches took turns; on packets they do. A memory path that a
/// stop comes into is not kept. Jobs that do not meet (are_separate()) and are too large to run at
/// once are predicted one by one, which a note says. Throws as predict() does, and InputError for
/// what jobs cannot be asked: GPU memory that NICs cannot reach, nodes that there are not.
RunResult predict_jobs(const Scenario& scenario, const TopologySpec& spec,
                       const PredictOptions& options, const ParamCatalog& catalog);

}  // namespace weft
