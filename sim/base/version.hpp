#pragma once

#include <string_view>

namespace weft {

/// weft's version as CMakeLists.txt states it, e.g. "0.1.0".
std::string_view weft_version();

}  // namespace weft
