#include "models/wire/routing.hpp"

#include <cmath>

#include "sim/base/random.hpp"

namespace weft {
namespace {

bool is_spread(const Params& params) {
  const std::string_view routing = params.choice("wire.routing");
  if (routing == "auto") return params.choice("wire.kind") == "infiniband";
  return routing == "spread";
}

}  // namespace

Routing::Routing(const Params& params)
    : spread_{is_spread(params)},
      queue_pairs_{spread_ ? 1U
                           : static_cast<std::uint32_t>(
                                 std::lround(params.number("wire.qps_per_connection")))},
      seed_{static_cast<std::uint64_t>(std::llround(params.number("wire.seed")))} {}

bool Routing::decides(const Fabric& fabric) const { return !spread_ && fabric.has_equal_routes(); }

std::uint64_t Routing::pick(DeviceId from, DeviceId to, std::uint32_t connection,
                            std::uint32_t i) const {
  if (spread_) return 0;
  std::uint64_t hash = splitmix64(seed_);
  for (const std::uint32_t part : {from.value, to.value, connection, i}) {
    hash = splitmix64(hash + part);
  }
  return hash;
}

}  // namespace weft
