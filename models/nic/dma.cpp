#include "models/nic/dma.hpp"

namespace weft {

Bandwidth nic_read_cap(Params& params, const ParamScope& nic, Duration round_trip) {
  const double in_flight = params.number("nic.read_tags", nic) * params.number("nic.mrrs", nic);
  return Bandwidth::bytes_per_s(in_flight / round_trip.as_s());
}

}  // namespace weft
