#include "sim/input/nccl_pci.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "sim/base/quantity.hpp"

namespace weft {
namespace {

// Base classes, and where it matters with the subclass (PCI Code and ID Assignment).
constexpr std::int64_t kNetworkClass = 0x02;
constexpr std::int64_t kInfinibandClass = 0x0207;
constexpr std::int64_t kDisplayClass = 0x03;
constexpr std::int64_t kVgaClass = 0x0300;
constexpr std::int64_t kBridgeClass = 0x0604;
constexpr std::int64_t kAcceleratorClass = 0x12;

constexpr std::array<std::int64_t, 3> kGpuVendors{0x10de, 0x1002, 0x1d94};  // NVIDIA, AMD, Hygon

std::int64_t class_of(const XmlText& xml, pugi::xml_node pci) {
  return xml.pci_number(pci, "class").value_or(0);
}

}  // namespace

PciKind pci_kind(const XmlText& xml, pugi::xml_node pci) {
  const std::int64_t code = class_of(xml, pci);
  if (code >> 8 == kBridgeClass) return PciKind::kBridge;
  switch (code >> 16) {
    case kDisplayClass:
    case kAcceleratorClass:
      return PciKind::kGpu;
    case kNetworkClass:
      return PciKind::kNic;
    default:
      return PciKind::kUnknown;
  }
}

bool is_infiniband(const XmlText& xml, pugi::xml_node pci) {
  return class_of(xml, pci) >> 8 == kInfinibandClass;
}

bool is_compute_gpu(const XmlText& xml, pugi::xml_node pci) {
  if (pci_kind(xml, pci) != PciKind::kGpu) return false;
  const std::optional<std::int64_t> vendor = xml.pci_number(pci, "vendor");
  return class_of(xml, pci) >> 8 != kVgaClass || !vendor ||
         std::find(kGpuVendors.begin(), kGpuVendors.end(), *vendor) != kGpuVendors.end();
}

std::optional<int> pcie_generation(const std::string& link_speed) {
  static constexpr std::array<std::pair<double, int>, 6> kRates{
      {{2.5, 1}, {5.0, 2}, {8.0, 3}, {16.0, 4}, {32.0, 5}, {64.0, 6}}};
  const std::size_t end = std::min(link_speed.find_first_of(" G"), link_speed.size());
  const std::optional<double> rate = parse_number(std::string_view(link_speed).substr(0, end));
  for (const auto& [gigatransfers, generation] : kRates) {
    if (rate == gigatransfers) return generation;
  }
  return std::nullopt;
}

std::optional<int> pcie_lanes(const XmlText& xml, pugi::xml_node pci) {
  constexpr int kNoLinkCapability = 255;  // Linux PCIE_LNK_WIDTH_UNKNOWN
  constexpr int kAllOnes = 63;            // the six bits of a link status that cannot be read
  const std::int64_t lanes = xml.integer(pci, "link_width").value_or(0);
  if (lanes == 0 || lanes == kNoLinkCapability || lanes == kAllOnes) return std::nullopt;
  if (lanes < 0 || lanes > kNoLinkCapability) {
    xml.fail(pci, "<pci>: link_width " + std::to_string(lanes) + " is out of range");
  }
  return static_cast<int>(lanes);
}

std::string bus_digits(const std::string& bus_id) {
  std::string digits;
  for (const char c : bus_id) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isxdigit(byte) != 0) digits += static_cast<char>(std::tolower(byte));
  }
  return digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
}

bool same_pci_device(const std::string& a, const std::string& b) {
  const std::size_t dot = a.rfind('.');
  return dot != std::string::npos && dot > 0 && b.rfind('.') == dot &&
         a.compare(0, dot, b, 0, dot) == 0;
}

}  // namespace weft
