#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

/// The part that an NCCL file's numbers stand for; "" if they stand for none that is known here.
/// `family` and `model` are NCCL's: base plus extended number as CPUID gives them.
std::string cpu_part(std::string_view vendor, std::int64_t family, std::int64_t model);
/// By PCI id, else by compute capability (`sm`, e.g. 90).
std::string gpu_part(std::int64_t pci_vendor, std::int64_t pci_device, std::int64_t sm);
std::string nic_part(std::int64_t pci_vendor, std::int64_t pci_device);

}  // namespace weft
