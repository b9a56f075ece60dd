#include "models/gpu/sm_copy.hpp"

#include <cmath>

namespace weft {

Bytes bytes_in_flight(Params& params, const ParamScope& gpu, std::uint32_t threads) {
  return params.bytes("gpu.bytes_per_thread", gpu) *
         (threads != 0 ? threads : std::llround(params.number("gpu.block_threads", gpu)));
}

}  // namespace weft
