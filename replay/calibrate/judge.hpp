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

/// Of each class of rows held out, and predicted with the fitted values, that are of enough
/// configurations; `notes` say how many are not. None where releases differ and classes do not.
ErrorIntervals intervals_of_held_out(const Calibration& calibration,
                                     std::vector<std::string>& notes);

/// Why a fit is not to be believed, by the rows that it has not seen; "" if it is.
std::string why_not_believed(const Calibration& calibration);

}  // namespace weft
