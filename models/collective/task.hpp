#pragma once

#include <atomic>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/collective/sample.hpp"

namespace weft {

/// One size over one memory path.
struct RowTask {
  Op op;
  Bytes bytes;
  MemoryPath path;
  /// In place of the cluster: one that stands for it, or three by which its time is extended.
  std::vector<const Sample*> samples{};

  bool is_extended() const { return samples.size() > 1; }
};

/// What all threads share: none changes it.
struct Ready {
  const Machine& machine;
  const Schedules& schedules;
  const PredictOptions& options;
};

/// Runs a task; `has_drawn` becomes true if that depended on the seed. Throws Stopped.
ResultRow run_task(const Ready& ready, const RowTask& task, std::atomic<bool>& has_drawn);

}  // namespace weft
