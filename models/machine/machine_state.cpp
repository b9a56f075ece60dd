#include "models/machine/machine_state.hpp"

#include <array>
#include <string_view>

#include "sim/base/quantity.hpp"

namespace weft {

std::vector<std::string> unusual_state(const DeviceParams& devices, DeviceId device) {
  constexpr std::array<std::string_view, 23> kNames{"trained_gen",
                                                    "trained_width",
                                                    "mps",
                                                    "mrrs",
                                                    "acs",
                                                    "acs_egress",
                                                    "port_acs",
                                                    "port_egress",
                                                    "iommu",
                                                    "iommu_page",
                                                    "iotlb_entries",
                                                    "p2p",
                                                    "gdr",
                                                    "collnet",
                                                    "peer_mapping",
                                                    "kernel_modules",
                                                    "bar1_size",
                                                    "bar1_used",
                                                    "dma_page",
                                                    "ats",
                                                    "dma_buf",
                                                    "peer_memory_api",
                                                    "relaxed_ordering"};
  const std::string kind(devices.fabric().device(device).scope());
  const ParamScope scope = devices.scope(device);
  std::vector<std::string> out;
  for (const std::string_view name : kNames) {
    const ParamSpec* spec = devices.params().catalog().find(kind + "." + std::string(name));
    if (spec == nullptr) continue;
    double usual = spec->fallback;
    if (scope.part != nullptr) {
      const auto at = scope.part->find(name);
      if (at != scope.part->end()) usual = at->second.number;
    }
    const double is = devices.number(spec->key, device);
    if (is == usual) continue;
    out.push_back(std::string(name) + "=" +
                  (spec->unit == Unit::kBytes ? format_size(devices.bytes(spec->key, device))
                                              : ParamCatalog::format(*spec, is)));
  }
  return out;
}

}  // namespace weft
