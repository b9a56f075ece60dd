#pragma once

#include "sim/result/measured.hpp"

namespace weft {

/// Throws InputError, without a place, where a variable of a row's `env` says otherwise than the
/// row's own column: which of the two it ran with nobody knows.
void check_env(const MeasuredRow& row);

}  // namespace weft
