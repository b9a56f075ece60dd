#pragma once

#include <span>
#include <string_view>

#include "models/doctor/patient.hpp"

namespace weft {

/// One item of the checklist.
struct Check {
  std::string_view name;
  std::string_view looks_at;
  Outcome (*run)(const Patient&);
};

/// The checklist, in the order in which data meets what it looks at.
std::span<const Check> doctor_checks();

}  // namespace weft
