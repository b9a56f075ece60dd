#pragma once

#include <set>
#include <string>
#include <vector>

#include "replay/calibrate/calibrate.hpp"

namespace weft {

/// Errors of a part's rows, all in one.
ErrorSummary summary_of_all(const std::vector<Comparison>& tables, const Calibration& calibration);

/// Throws InputError if a table's times, in the median, are kOtherUnits times those predicted with
/// the starting values, or these those.
void check_units(const std::vector<Comparison>& tables);

/// As releases_of(), of the rows fitted and held out.
std::set<std::string> releases_of_all(const Calibration& calibration,
                                      const PredictOptions& options);

/// Of each class of rows fitted or held out: where fewer than kFewestIntervalConfigurations of it
/// are held out that of the next wider class, which has one column less, the last one, down to that
/// of all rows; never of several releases. `notes` say which are wider, and which have none.
ErrorIntervals intervals_of_held_out(const Calibration& calibration,
                                     std::vector<std::string>& notes);

/// Why a fit is not to be believed, by the rows that it has not seen; "" if it is.
std::string why_not_believed(const Calibration& calibration);

}  // namespace weft
