#pragma once

#include "models/collective/predict.hpp"
#include "models/machine/machine.hpp"

namespace weft {

/// Whether jobs do not meet: no link between switches carries messages of two of them, no two have
/// a node in common, and each is on its leaves as a cluster of as many nodes is. So all take what
/// each takes as a cluster of its own, exactly. Known of one switch and of folded Clos networks
/// that spread the load, where all nodes and switches of a tier are alike; false of all others.
bool are_separate(const Machine& machine, const std::vector<ScenarioJob>& jobs);

/// Predicts such jobs one by one as predict() does a cluster of a job's nodes, so that samples
/// stand for large ones, and adds their rows, of one memory path after the other, and notes.
/// `cluster`: of `spec`, as settings make it. Throws as predict() does; Stopped before the first
/// job is finished.
void predict_separately(const Scenario& scenario, const TopologySpec& spec, const Fabric& cluster,
                        const PredictOptions& options, const ParamCatalog& catalog,
                        RunResult& result);

}  // namespace weft
