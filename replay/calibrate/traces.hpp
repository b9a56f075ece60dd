#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/collective/predict.hpp"
#include "replay/simulate/simulate.hpp"
#include "sim/base/params.hpp"
#include "sim/report/comparison.hpp"
#include "sim/result/measured.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// Verbs traces as measured tables, so that parameters can be fitted to them. A trace is a run, of
/// which the tables' `run` has the file's name. Each operation of a trace has two rows for each
/// size that it was posted with, up to a power of two (`write` for example):
///
/// - write_completion: the median time from post to completion;
/// - write_interval: from the first post to the last completion, for each operation posted; its
///   bytes, their mean, over that is goodput.
class TraceRuns {
 public:
  /// `map` as Ends takes it, for all of them. Throws InputError as read_recorded does.
  TraceRuns(const std::vector<std::string>& files, std::vector<std::string> map);

  const std::vector<MeasuredTable>& tables() const { return tables_; }
  /// What of them is not replayed.
  std::vector<std::string> notes() const;

  /// Replays the trace that `rows`, of one of the tables, are of, in a closed loop, and predicts
  /// them by what came of it. Rows whose operations are not all predicted have the reason instead,
  /// as have all of a trace that cannot be replayed with these settings. Throws InputError: the
  /// machine, the settings or the map are wrong.
  Comparison compare(const MeasuredTable& rows, const TopologySpec& machine,
                     const PredictOptions& options, const ParamCatalog& catalog) const;

 private:
  const replay::Recorded& run_of(const MeasuredTable& rows) const;

  std::vector<std::string> map_;
  std::vector<replay::Recorded> runs_;
  std::vector<MeasuredTable> tables_;  ///< of each run
};

/// A run's rows beside what a replay of it shows.
Comparison compared_rows(const replay::Recorded& run, const replay::Replay& replayed);

/// The parameters that are fitted to traces unless others are asked for: those of NICs and of what
/// lies between them.
std::span<const std::string_view> trace_keys();

}  // namespace weft
