#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/result/measured.hpp"

namespace weft {

/// The entries of a cell "KEY=VALUE; KEY=VALUE", without blanks around.
std::vector<std::string> entries_of_cell(std::string_view cell);

/// A value without the quotes around it, which a shell takes off and NCCL never sees.
std::string unquoted(std::string_view value);

/// Whether a forced algorithm governs an operation: Ring all collectives, Tree all-reduce. NCCL's
/// others depend on the machine and the release.
bool governs(std::string_view algo, std::string_view op);

/// Throws InputError, without a place, where a variable of a row's `env` that governs its operation
/// says otherwise than the row's own column: which of the two it ran with nobody knows.
void check_env(const MeasuredRow& row);

}  // namespace weft
