#include "models/expect/fitted.hpp"

#include <algorithm>
#include <iterator>

namespace weft {

Fitted fitted_of_found(const Subject& subject, const PredictOptions& options,
                       std::vector<std::string>& notes) {
  const ParameterSet& params = subject.params;
  Beside beside{&subject.found.spec,
                {subject.found_set.begin() + std::ssize(params.set), subject.found_set.end()},
                subject.found.env,
                options.nccl_version.value_or(NcclVersion{})};
  for (const auto& [name, value] : options.env) beside.env[name] = value;
  return {
      intervals_of(params, beside, notes),
      params.machine_fnv1a.empty() ? "" : "their predictions are without the values of --params"};
}

Fitted fitted_of_healthy(const Subject& subject, const PredictOptions& options,
                         std::vector<std::string>& notes) {
  std::vector<std::string> of_found;
  Fitted out = fitted_of_found(subject, options, of_found);
  if (!subject.mended.empty() && !out.held_out.classes.empty()) {
    out.held_out = {};
    of_found = {
        "the intervals of --params are left out: the healthy machine is not the one that "
        "it was fitted on"};
  }
  notes.insert(notes.end(), of_found.begin(), of_found.end());
  return out;
}

ErrorBand held_out_band(const ErrorInterval& interval) {
  return {{std::min(interval.low, 1.0), std::max(interval.high, 1.0)},
          true,
          "held out: rows of this machine that the fit of --params has not seen",
          0,
          0};
}

std::string both_besides(const std::string& one, const std::string& other) {
  return one + (one.empty() || other.empty() ? "" : "; ") + other;
}

}  // namespace weft
