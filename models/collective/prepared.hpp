#pragma once

#include <string>
#include <vector>

#include "models/collective/decided.hpp"
#include "models/collective/predict.hpp"
#include "models/collective/sample.hpp"
#include "models/collective/settled.hpp"
#include "models/collective/task.hpp"
#include "models/collective/verdict.hpp"
#include "models/params/device_params.hpp"
#include "models/params/parts.hpp"

namespace weft {

/// A scenario's machine and what NCCL decides on it, made once for all rows that are asked for.
class Prepared {
 public:
  /// All but `spec` must outlive it. Of the scenario's workload nothing is read. Throws InputError
  /// as predict() does.
  Prepared(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
           const ParamCatalog& catalog, const PartLibrary& parts);
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  /// What predict() gives of these. Memory paths: "gdr", "host-staged", "nccl". Throws as it does.
  RunResult run(Op op, const std::vector<Bytes>& sizes,
                const std::vector<std::string>& memory_paths);
  /// How long the rows of each size take on one core, s, within a factor of three or so; by no
  /// clock.
  std::vector<double> seconds(Op op, const std::vector<Bytes>& sizes,
                              const std::vector<std::string>& memory_paths);
  /// What NCCL decides where GPUDirect RDMA is allowed; nullptr with weft's simple rules.
  const NcclRun* decided() const { return decided_.of(MemoryPath::kGdr); }

 private:
  /// Decided when first asked for.
  const Schedule& schedule(MemoryPath path);
  std::vector<MemoryPath> paths_to_run(Op op, const std::vector<std::string>& memory_paths,
                                       std::vector<std::string>& notes);
  std::vector<RowTask> tasks_of(Op op, const std::vector<Bytes>& sizes,
                                const std::vector<std::string>& memory_paths,
                                std::vector<std::string>& notes);
  /// Of what need not run whole on the fluid transport.
  void find_stand_ins(Samples& samples, std::vector<RowTask>& tasks) const;
  void refuse(const Ready& ready, const std::vector<RowTask>& tasks,
              std::vector<std::string>& notes) const;

  const PredictOptions& options_;
  const ParamCatalog& catalog_;
  const PartLibrary& parts_;
  Params params_;
  Settled asked_;  // but its spec, which is the fabric's
  std::vector<std::string> notes_;
  Fabric fabric_;
  DeviceParams devices_;
  Machine machine_;
  Decided decided_;
  Schedules schedules_;
};

}  // namespace weft
