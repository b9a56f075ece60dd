#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/expect/error_table.hpp"
#include "sim/result/error_interval.hpp"

namespace weft {

/// Between 10 % and 90 %: eight cases of ten.
inline constexpr double kTail = 0.1;
/// Fewer sites than this make no class.
inline constexpr std::size_t kFewestSites = 3;

/// What an interval is asked for.
struct ErrorQuery {
  std::string transport;  ///< "nvlink", "net"; another word: nothing like it was measured
  std::string memory_path;
  std::int64_t nodes{1};
  std::int64_t ranks{1};
  std::string op;
  std::int64_t bytes{0};
  std::int64_t qps{1};
  std::int64_t tx_depth{128};
  std::string unlike{};  ///< as unlike_measured() has it
  std::string beside{};  ///< as beside_measured() has it
  bool is_fitted{false};
};

/// How far off a prediction may be, and how that is known.
struct ErrorBand {
  ErrorInterval time;      ///< of the measured time, as multiples of the predicted one; holds 1
  bool is_covered{false};  ///< a class of measured points covers it; else there is no floor
  std::string basis;       ///< "validated: ...", "wider: ...", "not validated: ..."
  std::size_t sites{0};
  std::size_t points{0};
};

/// Of eight points of ten of one more site, as logarithms: from the 10 % and 90 % quantiles of
/// log_ratio(), each site weighing alike, away from their median by widening(). At least 2 sites.
std::pair<double, double> log_interval(std::span<const KnownError* const> rows);

/// The interval of the first class, from the narrowest on, that has enough sites, and never less
/// than the quantiles of the narrower ones; of a machine beside those that were measured that and
/// the widest's together; of what no class covers the range of all that is known. `known` has a row
/// at least.
ErrorBand error_band(const ErrorQuery& query, std::span<const KnownError> known);

/// Of what weft cannot be held against anything for, and why: the range of all that is known.
ErrorBand uncovered_band(std::string why, std::span<const KnownError> known);

/// The class that a point itself is in: "allreduce, 1 node, 64 MiB and more".
std::string class_name(const KnownError& point);
/// What would be asked to predict it.
ErrorQuery query_of(const KnownError& point);

}  // namespace weft
