#include "models/host/iommu.hpp"

#include <algorithm>

namespace weft {

double iotlb_miss_share(Params& params, const ParamScope& cpu, Bytes page) {
  const double reach = params.number("cpu.iotlb_entries", cpu) * page.as_double();
  return std::max(0.0, 1.0 - reach / params.number("cpu.iommu_working_set", cpu));
}

Bandwidth iommu_walk_rate(Params& params, const ParamScope& cpu) {
  // A walk of no time is never a limit; a picosecond stands for it.
  const double walk = std::max(params.duration("cpu.iommu_walk", cpu), Duration::ps(1)).as_s();
  return Bandwidth::bytes_per_s(kWalkUnit.as_double() * params.number("cpu.iommu_walkers", cpu) /
                                walk);
}

}  // namespace weft
