#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

/// The part that an NCCL file's numbers stand for; "" if they stand for none that is known here.
/// `family` and `model` are NCCL's: base plus extended number as CPUID gives them.
std::string cpu_part(std::string_view vendor, std::int64_t family, std::int64_t model);
/// Of the CPU whose root port it is: "sapphire-rapids" for Emerald Rapids, too, which has the same.
std::string cpu_part_of_root_port(std::int64_t pci_vendor, std::int64_t pci_device);
/// By PCI id, else by compute capability (`sm`, e.g. 90).
std::string gpu_part(std::int64_t pci_vendor, std::int64_t pci_device, std::int64_t sm);
/// Of an AMD GPU by RCCL's `gcn`: "908", or "gfx942" in newer files.
std::string amd_gpu_part(std::string_view gcn);
std::string nic_part(std::int64_t pci_vendor, std::int64_t pci_device);

/// The way back: what NCCL reads of a part; nullopt if that is not known here.
struct CpuNumbers {
  std::string_view arch;
  std::string_view vendor;  ///< "" and no numbers: NCCL does not ask for them on this `arch`
  std::int64_t family{0};
  std::int64_t model{0};
};
std::optional<CpuNumbers> cpu_numbers(std::string_view part);

struct PciNumbers {
  std::int64_t vendor{0};
  std::int64_t device{0};
};
std::optional<PciNumbers> gpu_numbers(std::string_view part);
std::optional<PciNumbers> nic_numbers(std::string_view part);
/// Compute capability times 10, e.g. 90.
std::optional<std::int64_t> gpu_compute_capability(std::string_view part);

}  // namespace weft
