#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/collective/predict.hpp"
#include "tools/explain_view.hpp"
#include "tools/input_text.hpp"

namespace weft {

/// What is asked of a run as a user writes it, not yet checked; named as the options of `weft
/// explain`.
struct ExplainAsked {
  InputText slow;
  std::optional<InputText> healthy{};
  std::string as;
  std::optional<InputText> machine{};  ///< a topology; none: the evidence's
  std::vector<std::string> evidence;
  std::string gpu;                   ///< which `predict` sets too
  PredictOptions predict;            ///< what is set, and when to stop
  std::vector<std::string> notes{};  ///< on what was asked
};

/// Explains it, and gives `show` the answer while what it refers to lives. Throws InputError naming
/// the option of `weft explain` and what is allowed, and Stopped.
void explain_asked(const ExplainAsked& asked, const std::function<void(const ExplainView&)>& show);

}  // namespace weft
