#include "models/gpu/sm_copy.hpp"

#include <cmath>

namespace weft {

Bytes bytes_in_flight(Params& params, const ParamScope& gpu) {
  return params.bytes("gpu.bytes_per_thread", gpu) *
         std::llround(params.number("gpu.block_threads", gpu));
}

}  // namespace weft
