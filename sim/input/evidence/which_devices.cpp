#include "sim/input/evidence/which_devices.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/input/evidence/scan.hpp"
#include "sim/input/nccl_parts.hpp"

namespace weft {
namespace {

std::string part_by_id(const std::string& id, std::string (*part)(std::int64_t, std::int64_t)) {
  Scan scan(id);
  const std::optional<std::uint64_t> vendor = scan.hex();
  const std::optional<std::uint64_t> device = scan.skip(":") ? scan.hex() : std::nullopt;
  if (!vendor || !device) return {};
  return part(static_cast<std::int64_t>(*vendor), static_cast<std::int64_t>(*device));
}

bool has_gpu_part(const std::string& id) {
  const auto part = [](std::int64_t vendor, std::int64_t device) {
    return gpu_part(vendor, device, 0);
  };
  return !part_by_id(id, part).empty();
}
bool has_nic_part(const std::string& id) { return !part_by_id(id, nic_part).empty(); }

/// "NVIDIA Corporation GV100GL [Tesla V100 PCIe 16GB]": the PCI ID Repository calls GPUs by chip
/// and product, but not their audio and USB functions, or what else a chipset has; NVSwitches say
/// so. Behind may stand its number, "[10de:1db4]".
bool is_called_as_gpu(std::string_view product) {
  product = without_blanks(product.substr(0, product.rfind(" [10de:")));
  Scan scan(product);
  if (!scan.skip("NVIDIA Corporation ") && !scan.skip("nVidia Corporation ")) return false;
  const std::string_view chip = scan.until(" [");
  return !chip.empty() && product.ends_with(']') && !holds(product, "NVSwitch") &&
         chip.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == std::string_view::npos;
}

/// Of ATI, on servers' boards for their consoles: ES1000, Rage XL.
bool is_console(const std::string& id, std::string_view product) {
  return id == "1002:515e" || id == "1002:5969" || id == "1002:4752" ||
         holds(product, "[AMD/ATI] ES1000") || holds(product, "[AMD/ATI] Rage XL");
}

/// The device number of a function of such a vendor that lspci -tv has by its number alone and
/// nothing else knows the class of.
std::optional<std::uint64_t> number_alone(const HostView& view, const std::string& function,
                                          std::string_view vendor) {
  const bool is_alone = view.first(function, fact::kNumberAlone) != nullptr &&
                        view.first(function, fact::kClass) == nullptr;
  const std::string id = view.value(function, fact::kPciId);
  Scan scan(id);
  if (!is_alone || !scan.skip(vendor) || !scan.skip(":") || scan.rest().size() != 4) return {};
  return scan.hex();
}

/// Below a bridge 00.0 alone is a device for certain: SR-IOV's functions, which NVIDIA gives their
/// GPU's number, are 00.4 and on, 01.0, ... of its bus.
bool may_be_virtual(const HostView& view, const std::string& function) {
  return view.first(function, fact::kParent) != nullptr && !function.ends_with(":00.0");
}

/// GPUs are function 0, behind a bridge, or in a virtual machine on a root bus of their own; the
/// first root bus has what NVIDIA's chipsets have. From Ampere on they are numbered from 0x2000, as
/// what goes with them is from 0x2280 to 0x22ff: audio, NVSwitches, Tegra's ports.
bool is_gpu_by_number(const HostView& view, const std::string& function) {
  const std::optional<std::uint64_t> number = number_alone(view, function, "10de");
  return number && *number >= 0x2000 && (*number < 0x2280 || *number > 0x22ff) &&
         function.ends_with(".0") && !may_be_virtual(view, function) &&
         view.value(function, fact::kRootBus) != "0000:00";
}

/// Mellanox' numbers from 0x1000 to 0x10ff are ConnectX', from ConnectX-2 to ConnectX-9: of their
/// physical functions odd ones, of their virtual ones even ones.
bool is_nic_by_number(const HostView& view, const std::string& function) {
  const std::optional<std::uint64_t> number = number_alone(view, function, "15b3");
  return number && *number / 256 == 0x10 && *number % 2 == 1 && !may_be_virtual(view, function);
}

/// What clouds have for RDMA alone, whatever its class: Alibaba's has none (00ff).
bool is_cloud_nic(const std::string& id, const std::string& product) {
  return id.starts_with("1d0f:efa") || holds(product, "Elastic Fabric Adapter") ||
         id == "1ded:107f" || holds(product, "Elastic RDMA Adapter");
}

/// Omni-Path's host fabric interfaces, Intel's and Cornelis': of class 0208, which is theirs.
bool is_omni_path(const std::string& id, const std::string& product) {
  return id == "8086:24f0" || id == "8086:24f1" || id == "434e:0001" ||
         holds(product, "Omni-Path HFI");
}

}  // namespace

bool is_gpu(const HostView& view, const std::string& function, bool is_numbered) {
  const std::string kind = view.value(function, fact::kClass);
  const std::string id = view.value(function, fact::kPciId);
  const std::string product = view.value(function, fact::kProduct);
  if (kind.empty()) {
    return has_gpu_part(id) || is_called_as_gpu(product) || is_gpu_by_number(view, function);
  }
  if (!kind.starts_with("03") && !kind.starts_with("12")) return false;
  if (is_numbered) return true;
  const std::string vendor = id.substr(0, 4);
  if (vendor.empty()) return product.empty() || holds(product, "NVIDIA");
  return vendor == "10de" || (vendor == "1002" && !is_console(id, product));
}

bool is_nic(const HostView& view, const std::string& function, bool is_verbs_device) {
  const std::string kind = view.value(function, fact::kClass);
  const std::string id = view.value(function, fact::kPciId);
  const std::string product = view.value(function, fact::kProduct);
  const bool is_network = kind.starts_with("02");
  if (!is_network && !kind.empty() && !kind.starts_with("00")) return false;
  if (id.starts_with("1d0f") || is_cloud_nic(id, product)) return is_cloud_nic(id, product);
  if (is_verbs_device) return true;
  if (id.starts_with("15b3")) {
    return is_network || has_nic_part(id) || is_nic_by_number(view, function);
  }
  if (kind == "0207" || kind == "0208" || is_omni_path(id, product)) return true;
  return is_network && id.empty() && product.empty();
}

bool is_by_number(const HostView& view, const std::string& function) {
  const std::string id = view.value(function, fact::kPciId);
  return (is_gpu_by_number(view, function) && !has_gpu_part(id)) ||
         (is_nic_by_number(view, function) && !has_nic_part(id));
}

bool is_virtual_function(const HostView& view, const std::string& function) {
  return holds(view.value(function, fact::kProduct), "Virtual Function");
}

}  // namespace weft
