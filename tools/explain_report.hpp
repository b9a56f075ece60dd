#pragma once

#include <string>
#include <vector>

#include "models/explain/explain.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// What an explanation is shown with.
struct ExplainView {
  const Explanation& explanation;
  const Effects& effects;
  const Measurement& measurement;
  const std::vector<CauseEntry>& entries;
  std::string slow;     ///< its file
  std::string healthy;  ///< likewise; "" if there was none
  std::string machine;
  std::string nccl_version;
  std::vector<std::string> notes;
};

/// For people: the answers, what they explain and how to verify them; what is ruled out and what
/// was not looked at.
std::string explain_text(const ExplainView& view);
/// "schema": "weft.explain/1".
Json explain_json(const ExplainView& view);
/// Every object of that JSON with its keys.
std::vector<FormatSection> explain_format();

}  // namespace weft
