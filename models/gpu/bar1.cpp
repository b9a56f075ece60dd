#include "models/gpu/bar1.hpp"

#include "sim/base/quantity.hpp"

namespace weft {

std::string bar1_shortage(Params& params, const ParamScope& gpu, const PinnedMemory& pinned) {
  const Bytes size = params.bytes("gpu.bar1_size", gpu);
  const Bytes used = params.bytes("gpu.bar1_used", gpu);
  if (size > Bytes{0} && used + pinned.bytes <= size) return "";
  if (size == Bytes{0}) return "it has no BAR1 (gpu.bar1_size=0 B)";
  return "its BAR1 of " + format_size(size) + " is too small: " + format_size(used) +
         " in use, and NICs need " + pinned.sum;
}

}  // namespace weft
