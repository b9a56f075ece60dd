#pragma once

#include <string_view>

namespace weft {

/// weft's version as CMakeLists.txt states it, e.g. "0.1.0".
std::string_view weft_version();

/// The commit it was built from: "2f83ba303abc", with "-dirty" where files were changed; "unknown"
/// where it was not built from a clone.
std::string_view weft_commit();

}  // namespace weft
