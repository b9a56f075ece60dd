#pragma once

#include <string>
#include <vector>

#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"
#include "tools/explain_view.hpp"

namespace weft {

/// For people: the answers, what they explain and how to verify them; what is ruled out and what
/// was not looked at.
std::string explain_text(const ExplainView& view);
/// "schema": "weft.explain/1".
Json explain_json(const ExplainView& view);
/// Every object of that JSON with its keys.
std::vector<FormatSection> explain_format();

}  // namespace weft
