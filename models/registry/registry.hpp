#pragma once

#include "sim/base/params.hpp"

namespace weft {

/// Every parameter that weft's models declare; the one visible list (no static registration).
ParamCatalog make_catalog();

}  // namespace weft
