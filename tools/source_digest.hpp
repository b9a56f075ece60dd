#pragma once

#include <string_view>

namespace weft {

/// A digest, 16 hexadecimal digits, of the simulator's and the models' sources and parameters that
/// this program was built from: programs that have it in common predict the same.
std::string_view source_digest();

}  // namespace weft
