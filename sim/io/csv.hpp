#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace weft {

/// One CSV line with its newline (RFC 4180): cells with a comma, quote or newline are quoted.
std::string csv_line(std::span<const std::string> cells);

/// The cells of one line that holds no newline; a final carriage return is not part of it. Throws
/// InputError if its quotes do not pair up, at the column of the `line` that stands at `place`.
std::vector<std::string> csv_cells(std::string_view line, const Place& place = {});

/// The column of the line, from 1, where a cell begins; 0 if there is no such cell.
std::size_t csv_cell_column(std::string_view line, std::size_t cell);

}  // namespace weft
