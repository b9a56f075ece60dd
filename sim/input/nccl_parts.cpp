#include "sim/input/nccl_parts.hpp"

#include <array>
#include <utility>

namespace weft {
namespace {

constexpr std::int64_t kNvidia = 0x10de;
constexpr std::int64_t kMellanox = 0x15b3;
constexpr std::int64_t kAmazon = 0x1d0f;

struct CpuRange {
  std::string_view vendor;
  std::int64_t family;
  std::int64_t first_model;
  std::int64_t last_model;
  std::string_view part;
};

/// Intel models as in Linux' arch/x86/include/asm/intel-family.h; 85 is also Skylake-SP and Cooper
/// Lake, which this number does not tell apart. AMD models as in Linux' arch/x86/kernel/cpu/amd.c
/// (init_amd_zen*). NCCL adds the extended family times 16, so AMD's family 17h (base 15, extended
/// 8) is 143, 19h is 175, 1Ah is 191.
constexpr std::array kCpus{
    CpuRange{"GenuineIntel", 6, 207, 207, "emerald-rapids"},
    CpuRange{"GenuineIntel", 6, 143, 143, "sapphire-rapids"},
    CpuRange{"GenuineIntel", 6, 106, 106, "ice-lake-sp"},
    CpuRange{"GenuineIntel", 6, 108, 108, "ice-lake-sp"},
    CpuRange{"GenuineIntel", 6, 85, 85, "cascade-lake"},
    CpuRange{"AuthenticAMD", 143, 0x30, 0x3f, "rome"},
    CpuRange{"AuthenticAMD", 175, 0x00, 0x0f, "milan"},
    CpuRange{"AuthenticAMD", 175, 0x10, 0x1f, "genoa"},
};

struct PciPart {
  std::int64_t vendor;
  std::int64_t device;
  std::string_view part;
};

/// The PCI ID Repository (pci-ids.ucw.cz), devices of 10de, 15b3 and 1d0f.
constexpr std::array kGpus{
    PciPart{kNvidia, 0x1db1, "v100-sxm"},     PciPart{kNvidia, 0x1db5, "v100-sxm"},
    PciPart{kNvidia, 0x20b0, "a100-sxm"},     PciPart{kNvidia, 0x20b2, "a100-sxm"},
    PciPart{kNvidia, 0x20b5, "a100-pcie"},    PciPart{kNvidia, 0x20f1, "a100-pcie"},
    PciPart{kNvidia, 0x2330, "h100-sxm"},     PciPart{kNvidia, 0x2331, "h100-pcie"},
    PciPart{kNvidia, 0x2335, "h200-sxm"},     PciPart{kNvidia, 0x2901, "b200-sxm"},
    PciPart{kNvidia, 0x2941, "gb200"},        PciPart{kNvidia, 0x3182, "b300-sxm"},
    PciPart{kNvidia, 0x31c2, "gb300"},        PciPart{kNvidia, 0x2342, "gh200"},
    PciPart{kNvidia, 0x1eb8, "t4"},           PciPart{kNvidia, 0x2236, "a10"},
    PciPart{kNvidia, 0x20b7, "a30"},          PciPart{kNvidia, 0x2235, "a40"},
    PciPart{kNvidia, 0x27b8, "l4"},           PciPart{kNvidia, 0x26b9, "l40s"},
    PciPart{kNvidia, 0x2bb5, "rtx-pro-6000"},
};
constexpr std::array kNics{
    PciPart{kMellanox, 0x1017, "connectx-5"},
    PciPart{kMellanox, 0x1019, "connectx-5"},
    PciPart{kAmazon, 0xefa0, "efa"},
    PciPart{kAmazon, 0xefa1, "efa"},
    PciPart{kMellanox, 0x1021, "connectx-7"},
    PciPart{kMellanox, 0x101b, "connectx-6"},
    PciPart{kMellanox, 0x101d, "connectx-6-dx"},
    PciPart{kMellanox, 0x1023, "connectx-8"},
    PciPart{kMellanox, 0xa2dc, "bluefield-3"},
};

/// Root ports of the 4th generation's sockets, as lspci -nn lists them in cyring/CoreFreq#560 and
/// in the XE9680 of tests/data/evidence. Emerald Rapids goes into the same sockets. AMD's root
/// ports (1022:1483 and others) do not tell generations apart.
constexpr std::int64_t kIntel = 0x8086;
constexpr std::array kRootPorts{
    PciPart{kIntel, 0x352a, "sapphire-rapids"},
    PciPart{kIntel, 0x352b, "sapphire-rapids"},
    PciPart{kIntel, 0x352c, "sapphire-rapids"},
    PciPart{kIntel, 0x352d, "sapphire-rapids"},
};

template <class Parts>
std::string find_part(const Parts& parts, std::int64_t vendor, std::int64_t device) {
  for (const PciPart& part : parts) {
    if (part.vendor == vendor && part.device == device) return std::string(part.part);
  }
  return {};
}

template <class Parts>
std::optional<PciNumbers> find_numbers(const Parts& parts, std::string_view part) {
  for (const PciPart& each : parts) {
    if (each.part == part) return PciNumbers{each.vendor, each.device};
  }
  return std::nullopt;
}

struct GpuGeneration {
  std::string_view prefix;  ///< of the part's name
  std::int64_t compute_capability;
};

/// CUDA C++ Programming Guide, compute capabilities, and developer.nvidia.com/cuda-gpus. The first
/// prefix that fits counts.
constexpr std::array kGenerations{
    GpuGeneration{"v100", 70},  GpuGeneration{"t4", 75},     GpuGeneration{"a100", 80},
    GpuGeneration{"a30", 80},   GpuGeneration{"a10", 86},    GpuGeneration{"a40", 86},
    GpuGeneration{"l4", 89},    GpuGeneration{"h100", 90},   GpuGeneration{"h200", 90},
    GpuGeneration{"gh200", 90}, GpuGeneration{"b200", 100},  GpuGeneration{"gb200", 100},
    GpuGeneration{"b300", 103}, GpuGeneration{"gb300", 103}, GpuGeneration{"rtx-pro-6000", 120}};

}  // namespace

std::string cpu_part(std::string_view vendor, std::int64_t family, std::int64_t model) {
  for (const CpuRange& cpu : kCpus) {
    if (cpu.vendor == vendor && cpu.family == family && cpu.first_model <= model &&
        model <= cpu.last_model) {
      return std::string(cpu.part);
    }
  }
  return {};
}

std::string cpu_part_of_root_port(std::int64_t pci_vendor, std::int64_t pci_device) {
  return find_part(kRootPorts, pci_vendor, pci_device);
}

std::string gpu_part(std::int64_t pci_vendor, std::int64_t pci_device, std::int64_t sm) {
  const std::string by_id = find_part(kGpus, pci_vendor, pci_device);
  // Compute capability 8.0 is the A100 in all its forms, and the A30, which its id tells; the A100
  // SXM stands for the others.
  return by_id.empty() && sm == 80 ? "a100-sxm" : by_id;
}

std::string amd_gpu_part(std::string_view gcn) {
  // LLVM's target names (ROCm documentation, GPU specifications); older RCCL writes 910 for gfx90a.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kTargets{
      {{"906", "mi50"},
       {"gfx906", "mi50"},
       {"908", "mi100"},
       {"gfx908", "mi100"},
       {"910", "mi250x"},
       {"gfx90a", "mi250x"},
       {"942", "mi300x"},
       {"gfx942", "mi300x"}}};
  for (const auto& [target, part] : kTargets) {
    if (target == gcn) return std::string(part);
  }
  return {};
}

std::string nic_part(std::int64_t pci_vendor, std::int64_t pci_device) {
  return find_part(kNics, pci_vendor, pci_device);
}

std::optional<CpuNumbers> cpu_numbers(std::string_view part) {
  if (part == "grace") return CpuNumbers{"arm64", "", 0, 0};
  for (const CpuRange& cpu : kCpus) {
    if (cpu.part == part) return CpuNumbers{"x86_64", cpu.vendor, cpu.family, cpu.first_model};
  }
  return std::nullopt;
}

std::optional<PciNumbers> gpu_numbers(std::string_view part) {
  return find_numbers(kGpus, part == "h200-vm" ? "h200-sxm" : part);
}

std::optional<PciNumbers> nic_numbers(std::string_view part) { return find_numbers(kNics, part); }

std::optional<std::int64_t> gpu_compute_capability(std::string_view part) {
  for (const GpuGeneration& generation : kGenerations) {
    if (part.starts_with(generation.prefix)) return generation.compute_capability;
  }
  return std::nullopt;
}

}  // namespace weft
