#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft {

/// Three decimals below 10, two below 1000, one above: never wider than 9 up to 9,999,999.
std::string short_number(double value);

/// A text, "(none)" of none.
std::string or_none(const std::string& text);

/// "+1.2 %", "1.2 %" of a fraction.
std::string signed_percent(double fraction);
std::string percent(double fraction);
/// Lines of cells under each other: the first `names` columns to the left, numbers to the right.
/// At least one line, all with as many cells.
std::string aligned(const std::vector<std::vector<std::string>>& lines, std::size_t names);

}  // namespace weft
