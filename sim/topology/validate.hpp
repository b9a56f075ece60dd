#pragma once

#include <cstdint>

#include "sim/topology/spec.hpp"

namespace weft {

/// The most devices of one node and the most nodes of a fabric.
inline constexpr std::size_t kMaxDevicesPerNode = 4096;
inline constexpr std::uint32_t kMaxNodes = 1U << 20;

/// Holds a topology to the rules that Fabric promises; throws InputError with the place.
void validate_topology(const TopologySpec& spec, std::uint32_t nodes);

}  // namespace weft
