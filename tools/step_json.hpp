#pragma once

#include <string>
#include <vector>

#include "models/workload/step.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// "schema": "weft.step/1".
Json to_json(const StepResult& result);
/// Every object of that JSON with its keys, but for `provenance`, which is a result's.
std::vector<FormatSection> step_result_format();

/// The same as tables for people.
std::string step_text(const StepResult& result);

}  // namespace weft
