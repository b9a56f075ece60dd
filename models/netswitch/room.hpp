#pragma once

#include <array>

#include "models/device/device.hpp"
#include "sim/base/params.hpp"

namespace weft {

/// Parameters of a switch of the network; the page is models/netswitch/README.md.
inline constexpr std::array kNetSwitchParams{
    ParamSpec{"netswitch.latency", Unit::kNanoseconds, 200, 0, 100'000, Origin::kAssumed,
              "Quantum-2: 150-250 ns with FEC", "port to port, one way"},
    ParamSpec{"netswitch.capacity", Unit::kGigabytesPerS, 1e6, 0.1, 1e6, Origin::kAssumed,
              "so large that nothing is refused: parts say what a switch has",
              "sum of all ports' rates, one direction; a network that needs more is refused"},
    ParamSpec{"netswitch.uplink_rate", Unit::kGigabytesPerS, 0, 0, 1000, Origin::kAssumed,
              "uplinks are usually of the NICs' generation",
              "rate of each link to the tier above; 0: as the fastest NIC's link"},
    ParamSpec{"netswitch.uplink_length", Unit::kMetres, 30, 0.1, 100'000, Origin::kAssumed,
              "between racks of one hall",
              "length of the cables to the tier above, or to other groups"},
    ParamSpec{
        "netswitch.local_rate", Unit::kGigabytesPerS, 0, 0, 1000, Origin::kAssumed,
        "links inside a rack are usually of the NICs' generation",
        "rate of each link to a switch beside it, in a rack, group or torus; 0: as the fastest "
        "NIC's link"},
    ParamSpec{"netswitch.local_length", Unit::kMetres, 5, 0.1, 100'000, Origin::kAssumed,
              "within a few racks", "length of the cables to the switches beside it"},
};
static_assert(every_param_is_sourced(kNetSwitchParams));

/// Room `netswitch`: a switch of the network.
DeviceRoom netswitch_room();

}  // namespace weft
