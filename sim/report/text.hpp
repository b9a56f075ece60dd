#pragma once

#include <string>

namespace weft {

/// Three decimals below 10, two below 1000, one above: never wider than 9 up to 9,999,999.
std::string short_number(double value);

}  // namespace weft
