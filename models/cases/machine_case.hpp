#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/cases/change.hpp"
#include "models/collective/predict.hpp"
#include "models/collective/prepared.hpp"
#include "models/collective/verdict.hpp"
#include "models/nccl/decide/decided_schedule.hpp"
#include "models/params/device_params.hpp"
#include "models/params/parts.hpp"
#include "sim/base/stop.hpp"
#include "sim/base/units.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// What all cases share.
struct CaseContext {
  const ParamCatalog& catalog;
  const PartLibrary& parts;
  NcclVersion version;
  std::uint32_t nodes;
  /// What runs alike in several cases.
  std::shared_ptr<SharedRuns> runs{make_shared_runs()};
};

/// A case as the models take it, without NICs that are on no network, and what NCCL decides there.
class CaseMachine {
 public:
  /// Throws InputError as predict() does.
  CaseMachine(const MachineCase& what, const CaseContext& context);
  CaseMachine(const CaseMachine&) = delete;
  CaseMachine& operator=(const CaseMachine&) = delete;

  const Machine& machine() const { return machine_; }
  const Fabric& fabric() const { return fabric_; }
  const NcclRun& run() const { return run_; }
  /// GPUs and NICs at the ends of its rings; none on one node.
  const std::vector<GdrPair>& pairs() const { return pairs_; }

 private:
  Params params_;
  NcclEnv env_;
  Fabric fabric_;
  DeviceParams devices_;
  Machine machine_;
  NcclRun run_;
  std::vector<GdrPair> pairs_;
};

/// What is predicted of a case.
struct CaseRequest {
  std::string op;
  std::vector<Bytes> sizes;  ///< ascending
  std::string path{};        ///< memory path, one that predict() knows; "": what NCCL does
};

/// What one case came to: rows by size, or why there are none.
struct CasePrediction {
  std::vector<ResultRow> rows;
  std::vector<std::string> notes;  ///< predict()'s
  std::string why_not;
};

/// Predicts a case, whose machine and decisions are made once. Every number is one of predict().
class CasePredictor {
 public:
  /// `what`, changed by each in turn; `context` must outlive it. `name`: who asks.
  CasePredictor(MachineCase what, const std::vector<const Change*>& changes,
                const CaseContext& context, const std::string& name, unsigned threads,
                const Stop* stop);
  CasePredictor(const CasePredictor&) = delete;
  CasePredictor& operator=(const CasePredictor&) = delete;

  /// Throws Stopped.
  CasePrediction predict(const CaseRequest& request);
  /// How long predict() takes for each size on one core, s, by estimate. Precondition: it had no
  /// why_not.
  std::vector<double> seconds(const CaseRequest& request);

 private:
  std::vector<std::string> paths(const CaseRequest& request, Op op) const;

  bool is_staged_;
  Scenario scenario_;
  PredictOptions options_;
  std::unique_ptr<Prepared> prepared_;
  std::string why_not_;
};

}  // namespace weft
