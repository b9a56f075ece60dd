#pragma once

#include <string>
#include <vector>

#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"
#include "sim/report/decisions.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// One cause in a row of two results: for how long it limited, and its share of the row's time.
struct CauseChange {
  std::string cause;
  double us_a{0};
  double us_b{0};
  double share_a{0};
  double share_b{0};
  double grew_us() const { return us_b - us_a; }
};

/// The same operation and size in two results, over the same memory path where both have it.
struct RowDiff {
  ResultRow a;
  ResultRow b;
  std::vector<CauseChange> causes;  ///< what grew most first
  bool same_path() const { return a.memory_path == b.memory_path; }
  double time_ratio() const { return b.time_us / a.time_us; }
  /// Of steps and irregular traffic there is none.
  bool has_bandwidth() const { return a.busbw_gb_per_s > 0 && b.busbw_gb_per_s > 0; }
  double busbw_ratio() const { return b.busbw_gb_per_s / a.busbw_gb_per_s; }
};

/// One thing that the two runs were given differently; "" where one run did not have it.
struct InputChange {
  std::string what;
  std::string a;
  std::string b;
};

/// Result B beside result A.
struct ResultDiff {
  std::vector<InputChange> inputs;
  std::vector<RowDiff> rows;      ///< in A's order
  std::vector<ResultRow> only_a;  ///< without counterpart
  std::vector<ResultRow> only_b;
};

ResultDiff diff_results(const RunResult& a, const RunResult& b);

/// For people: what differs between the runs and in NCCL's decisions, then a line a row. Lines that
/// are not rows begin with '#'; without rows decisions stand alone, without it.
std::string diff_text(const ResultDiff& diff, const DecisionsDiff& decisions = {});
/// "schema": "weft.diff/1".
Json diff_json(const ResultDiff& diff, const DecisionsDiff& decisions = {});
/// Every object of that JSON with its keys.
std::vector<FormatSection> diff_format();

}  // namespace weft
