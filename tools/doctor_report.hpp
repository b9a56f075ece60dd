#pragma once

#include <string>
#include <vector>

#include "models/doctor/doctor.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// For people: findings by what they cost with their evidence, what is not known, what is well;
/// the last line counts them.
std::string doctor_text(const Diagnosis& diagnosis, double threshold);
/// "schema": "weft.doctor/1".
Json doctor_json(const Diagnosis& diagnosis, double threshold);
/// Every object of that JSON with its keys.
std::vector<FormatSection> doctor_format();

}  // namespace weft
