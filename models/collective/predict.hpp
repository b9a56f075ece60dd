#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/machine/machine.hpp"
#include "models/nccl/decide/path_type.hpp"
#include "sim/base/params.hpp"
#include "sim/base/stop.hpp"
#include "sim/input/scenario.hpp"
#include "sim/result/run_result.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

enum class Fidelity : std::uint8_t { kFluid, kPacket };

/// "fluid" or "packet"; throws InputError for another.
Fidelity parse_fidelity(const std::string& name);

/// How far a prediction has come.
struct RunProgress {
  std::size_t rows_done;
  std::size_t rows;
  double work_done;  ///< of the rows that are done, and of steps and traffic of the one that runs
  double work;       ///< of all
};

/// More than weft runs: a smaller question would be answered.
class TooLarge : public InputError {
 public:
  using InputError::InputError;
};

class SharedRuns;

/// What the command line adds to a scenario.
struct PredictOptions {
  std::vector<ScenarioSetting> set;
  std::map<std::string, std::string> env;
  unsigned threads{0};  ///< 0: as many as the machine has; the result does not depend on it
  Fidelity fidelity{Fidelity::kFluid};
  std::optional<NcclVersion> nccl_version{};  ///< whose decisions; absent: as the scenario says
  bool force{false};                          ///< packets: run what takes long, too
  /// Fluid: of what does the same one stands for all (see fold()), which changes no time; else
  /// every rank runs.
  bool folds{true};
  /// For tests: the events of one instant run in an order drawn with this seed (EventQueue).
  std::optional<std::uint64_t> shuffle_ties{};
  /// Hears before the run how long it will take, in words and seconds of one core: of packets,
  /// else of what takes kLongRun.
  std::function<void(const std::string&, double)> on_estimate{};
  /// Hears how far it is, before the first row and after each, of steps and traffic also within:
  /// on the threads that run them, one call at a time.
  std::function<void(const RunProgress&)> on_progress{};
  /// Ends it early: rows that are not finished then are named in RunResult::not_run.
  const Stop* stop{nullptr};
  /// All values of one parameter times a factor (Params::scale): for sensitivities.
  std::optional<std::pair<std::string, double>> scale{};
  /// Rows of this size keep what happened in them (ResultRow::timeline); every rank of them runs.
  std::optional<Bytes> timeline_of{};
  bool link_use{false};  ///< rows say how much of links was in use (ResultRow::link_use)
  /// Fluid, but for `link_use`: what runs alike in several predictions runs once. Their `folds` and
  /// `shuffle_ties` must be the same. None: nothing is shared.
  std::shared_ptr<SharedRuns> shared{};
  bool check_only{false};  ///< reads, decides and refuses, but runs no row
};

std::shared_ptr<SharedRuns> make_shared_runs();

/// The release whose decisions a scenario follows unless the command line names one. Throws
/// InputError at its place: one that is not modelled.
NcclVersion scenario_nccl_version(const Scenario& scenario);

/// What a prediction is made from, but for variables, seed and parameters. A scenario without a
/// file is left out.
Provenance provenance_of(const Scenario& scenario, const PredictOptions& options,
                         const TopologySpec& spec);

/// Without packets nothing is lost: throws InputError where a NIC's fault was asked for, and where
/// refuse_unlike_places() does.
void refuse_faults(const Machine& machine);
/// Predicts every size of a scenario over every memory path it asks for. The same scenario, options
/// and files give the same result. Throws InputError, TooLarge where it would take too long,
/// Stopped if it is stopped before its first row is finished.
RunResult predict(const Scenario& scenario, const PredictOptions& options,
                  const ParamCatalog& catalog);
/// The same on a topology that was read before, in place of the scenario's.
RunResult predict(const Scenario& scenario, TopologySpec spec, const PredictOptions& options,
                  const ParamCatalog& catalog);

/// Who answers a scenario: predict(), or whoever knows more workloads.
using Predictor = std::function<RunResult(const Scenario&, TopologySpec, const PredictOptions&,
                                          const ParamCatalog&)>;

}  // namespace weft
