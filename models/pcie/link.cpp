#include "models/pcie/link.hpp"

#include <algorithm>

namespace weft {

Bandwidth pcie_rate(int generation, int width) {
  constexpr std::array<double, kPcieGenerations> kTransfersPerLane{
      2.5, 5.0, 8.0, 16.0, 32.0, 64.0};  // GT/s, one bit each
  constexpr std::array kWidths{1, 2, 4, 8, 12, 16, 32};
  if (generation < 1 || generation > static_cast<int>(kTransfersPerLane.size())) {
    throw InputError("PCIe generation " + std::to_string(generation) +
                     " is not known; allowed: 1-6");
  }
  if (std::find(kWidths.begin(), kWidths.end(), width) == kWidths.end()) {
    throw InputError("PCIe width x" + std::to_string(width) +
                     " does not exist; allowed: 1, 2, 4, 8, 12, 16, 32");
  }
  const double encoding = generation <= 2   ? 8.0 / 10.0
                          : generation <= 5 ? 128.0 / 130.0
                                            : 236.0 / 256.0;
  const double gigabits = kTransfersPerLane.at(static_cast<std::size_t>(generation - 1)) * width;
  return Bandwidth::gigabits_per_s(gigabits * encoding);
}

PcieCosts::PcieCosts(const Params& params, int generation)
    : framing_{params.number("pcie.framing")},
      request_{params.number("pcie.request_header")},
      completion_{params.number("pcie.completion_header")},
      dllp_{params.number("pcie.dllp") * params.number("pcie.dllps_per_tlp")} {
  constexpr int kFirstFlitGeneration = 6;
  if (generation >= kFirstFlitGeneration) framing_ = dllp_ = 0.0;
}

}  // namespace weft
