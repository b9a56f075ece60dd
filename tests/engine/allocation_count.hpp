#pragma once

#include <cstddef>

namespace weft {

/// How often this test program has called operator new so far: to show that something allocates
/// nothing.
std::size_t allocation_count();

}  // namespace weft
