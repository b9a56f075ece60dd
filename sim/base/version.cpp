#include "sim/base/version.hpp"

namespace weft {

std::string_view weft_version() { return WEFT_VERSION; }

}  // namespace weft
