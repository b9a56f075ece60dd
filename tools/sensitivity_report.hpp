#pragma once

#include <string>
#include <vector>

#include "models/collective/sensitivity.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// For people: for each row the parameters that move it, most first, and the words that would; then
/// what is assumed and matters, and what was not moved and why.
std::string sensitivity_text(const Sensitivity& sensitivity);
/// "schema": "weft.sensitivity/1".
Json sensitivity_json(const Sensitivity& sensitivity);
/// Every object of that JSON with its keys.
std::vector<FormatSection> sensitivity_format();

}  // namespace weft
