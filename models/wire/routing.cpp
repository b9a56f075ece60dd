#include "models/wire/routing.hpp"

#include <cmath>

namespace weft {
namespace {

/// The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every bit of the input moves
/// every bit of the output.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

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

bool Routing::decides(const Fabric& fabric) const {
  for (std::size_t i = 0; !spread_ && i < fabric.link_count(); ++i) {
    const LinkId link{i};
    if (fabric.link(link).kind == LinkKind::kWire && fabric.trunk(link).count > 1) return true;
  }
  return false;
}

std::uint64_t Routing::pick(DeviceId from, DeviceId to, std::uint32_t connection,
                            std::uint32_t i) const {
  if (spread_) return 0;
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;  // SplitMix64's increment
  std::uint64_t hash = mixed(seed_ + kStep);
  for (const std::uint32_t part : {from.value, to.value, connection, i}) {
    hash = mixed(hash + kStep + part);
  }
  return hash;
}

}  // namespace weft
