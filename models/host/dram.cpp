#include "models/host/dram.hpp"

namespace weft {
namespace {

/// What large buffers cost, where devices' data lie in such; else 1.
double of_large(const Params& params, const ParamScope& cpu, const char* key) {
  return params.number("cpu.dma_buffers", cpu) != 0 ? params.number(key, cpu) : 1;
}

}  // namespace

Bandwidth dram_rate(const Params& params, const ParamScope& cpu) {
  constexpr double kBytesPerTransfer = 8.0;  // DDR4 and DDR5: 64 data bits a channel
  const double megabytes = params.number("cpu.dram_channels", cpu) *
                           params.number("cpu.dram_rate", cpu) * kBytesPerTransfer;
  return Bandwidth::gigabytes_per_s(megabytes / 1e3 * params.number("cpu.dram_efficiency", cpu) *
                                    of_large(params, cpu, "cpu.dram_large_share"));
}

double dram_weight(const Params& params, const ParamScope& cpu) {
  return 1.0 - params.number("cpu.llc_hit", cpu);
}

double dram_write_weight(const Params& params, const ParamScope& cpu) {
  return dram_weight(params, cpu) * params.number("cpu.dram_write_cost", cpu) *
         of_large(params, cpu, "cpu.dram_large_write_cost");
}

}  // namespace weft
