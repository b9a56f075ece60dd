#include "models/machine/device_name.hpp"

#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.hpp"

namespace weft {
namespace {

constexpr std::uint32_t kMostNodes = 65'536;

}  // namespace

DeviceName parse_device_name(const std::string& text, const char* option, std::uint32_t node) {
  const std::size_t at = text.find('@');
  if (at == std::string::npos) return {text, node};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + at + 1, end, node);
  if (error != std::errc{} || rest != end || node >= kMostNodes) {
    throw InputError(
        fmt::format("{} '{}': write a device and its node, such as gpu0@1", option, text));
  }
  return {text.substr(0, at), node};
}

DeviceId find_device(const Fabric& fabric, const DeviceName& name, const char* option) {
  const auto id = fabric.find(name.node, name.device);
  if (id) return *id;
  std::vector<std::string> known;
  for (std::size_t i = 0; i < fabric.devices_per_node(); ++i) {
    const DeviceSpec& device = fabric.device(DeviceId{i});
    if (device.kind == DeviceKind::kGpu || device.kind == DeviceKind::kCpu ||
        device.kind == DeviceKind::kNic) {
      known.push_back(device.name);
    }
  }
  throw InputError(
      fmt::format("{} '{}': no such device; known: {}", option, name.device, known_names(known)));
}

}  // namespace weft
