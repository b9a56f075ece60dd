#pragma once

#include <span>
#include <string>

namespace weft {

/// One CSV line with its newline (RFC 4180): cells with a comma, quote or newline are quoted.
std::string csv_line(std::span<const std::string> cells);

}  // namespace weft
