#include "sim/report/text.hpp"

#include <fmt/format.h>

namespace weft {

std::string short_number(double value) {
  if (value < 10) return fmt::format("{:.3f}", value);
  if (value < 1000) return fmt::format("{:.2f}", value);
  return fmt::format("{:.1f}", value);
}

}  // namespace weft
