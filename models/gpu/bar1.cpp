#include "models/gpu/bar1.hpp"

#include "sim/base/quantity.hpp"

namespace weft {

std::string bar1_shortage(const Bar1& bar1, const PinnedMemory& pinned) {
  if (bar1.size == Bytes{0}) return "it has no BAR1 (gpu.bar1_size=0 B)";
  if (bar1.used + pinned.bytes <= bar1.size) return "";
  return "its BAR1 of " + format_size(bar1.size) + " is too small: " + format_size(bar1.used) +
         " in use, and NICs need " + pinned.sum;
}

}  // namespace weft
