#include "models/wire/link.hpp"

namespace weft {

WireCosts::WireCosts(const Params& params)
    : mtu_{params.number("wire.mtu")},
      overhead_{params.number(params.choice("wire.kind") == "roce" ? "wire.roce_overhead"
                                                                   : "wire.ib_overhead")},
      ack_{(overhead_ + params.number("wire.ack_extra")) / params.number("wire.packets_per_ack")} {}

Duration wire_link_latency(const Params& params, double cable_metres) {
  return Duration::from_ns(cable_metres * params.number("wire.cable_delay")) +
         params.duration("wire.fec_latency");
}

}  // namespace weft
