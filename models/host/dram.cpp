#include "models/host/dram.hpp"

namespace weft {

Bandwidth dram_rate(const Params& params, const ParamScope& cpu) {
  constexpr double kBytesPerTransfer = 8.0;  // DDR4 and DDR5: 64 data bits a channel
  const double megabytes = params.number("cpu.dram_channels", cpu) *
                           params.number("cpu.dram_rate", cpu) * kBytesPerTransfer;
  return Bandwidth::gigabytes_per_s(megabytes / 1e3 * params.number("cpu.dram_efficiency", cpu));
}

double dram_weight(const Params& params, const ParamScope& cpu) {
  return 1.0 - params.number("cpu.llc_hit", cpu);
}

double dram_write_weight(const Params& params, const ParamScope& cpu) {
  return dram_weight(params, cpu) * params.number("cpu.dram_write_cost", cpu);
}

}  // namespace weft
