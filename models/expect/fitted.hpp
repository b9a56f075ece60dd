#pragma once

#include <string>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/expect/error_band.hpp"
#include "models/expect/healthy.hpp"
#include "sim/result/intervals.hpp"

namespace weft {

/// How far off predictions with a subject's `params` are.
struct Fitted {
  ErrorIntervals held_out{};  ///< of rows that its fit has not seen, where they hold here
  std::string beside{};       ///< why published errors are of others; "" of values by hand
};

/// `notes` say why intervals of rows held out are left out, as where something is mended on the
/// healthy machine, which is another one than was measured then. Both are for one state.
Fitted fitted_of_healthy(const Subject& subject, const PredictOptions& options,
                         std::vector<std::string>& notes);
Fitted fitted_of_found(const Subject& subject, const PredictOptions& options,
                       std::vector<std::string>& notes);

/// Of a row whose class has such an interval.
ErrorBand held_out_band(const ErrorInterval& interval);

/// Both reasons why errors known are of others, those that there are.
std::string both_besides(const std::string& one, const std::string& other);

}  // namespace weft
