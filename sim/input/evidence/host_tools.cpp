#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/io/kernel_log.hpp"

namespace weft {
namespace {

/// What the kernel was asked at boot that touches DMA.
void read_boot_options(const EvidenceSection& section, const EvidenceLine& line,
                       std::string_view text, Facts& facts) {
  std::string iommu;
  Scan scan(text);
  while (!scan.blanks().at_end()) {
    const std::string_view word = scan.word();
    Scan option(word);
    const std::string_view name = option.until("=");
    const std::string_view value = option.rest();
    const bool is_iommu = name == "iommu" || name == "intel_iommu" || name == "amd_iommu" ||
                          name == "iommu.passthrough" || name == "iommu.strict";
    if (!is_iommu && name != "pci" && name != "pcie_aspm" && name != "numa_balancing") continue;
    facts.add(section.fact(line, "host", std::string(fact::kBoot) + std::string(name),
                           one_line(value.substr(0, 128))));
    if (!is_iommu || name == "iommu.strict") continue;
    if (value == "pt" || (name == "iommu.passthrough" && value == "1")) {
      iommu = "passthrough";
    } else if (value == "off" && iommu.empty()) {
      iommu = "off";
    } else if (value.starts_with("on") && iommu.empty()) {
      iommu = "translate";
    }
  }
  if (!iommu.empty()) facts.add(section.fact(line, "host", fact::kIommu, iommu));
}

/// Messages of the kernel that name a fault.
bool is_alert(std::string_view text) {
  constexpr std::array<std::string_view, 16> kWords{"NVRM: Xid",
                                                    "SXid",
                                                    "RmInitAdapter failed",
                                                    "fallen off the bus",
                                                    "NVIDIA probe routine failed",
                                                    "BAR1 is 0M",
                                                    "available PCIe bandwidth, limited by",
                                                    "insufficient power on the PCIe slot",
                                                    "AER: ",
                                                    "PCIe Bus Error",
                                                    "DMAR: [DMA ",
                                                    "IO_PAGE_FAULT",
                                                    "failed to register peer",
                                                    "health compromised",
                                                    "Fatal error detected",
                                                    "Unknown symbol ib_register_peer_memory"};
  // "BAR 1: can't assign; no space", later "BAR 1 [mem size 0x...]: can't assign; no space".
  constexpr std::array<std::string_view, 3> kNoRoom{"can't assign", "failed to assign",
                                                    "no space for"};
  const auto has = [&](std::string_view word) { return holds(text, word); };
  if (has("AER: ") && !has("rror")) return false;  // "AER: enabled with IRQ 26"
  return std::any_of(kWords.begin(), kWords.end(), has) ||
         ((has("BAR 1:") || has("BAR 1 [")) && std::any_of(kNoRoom.begin(), kNoRoom.end(), has));
}

/// NVIDIA's driver, as it says itself: "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64
/// 570.158.01  Release Build", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05".
void read_driver(const EvidenceSection& section, const EvidenceLine& line, std::string_view text,
                 Facts& facts) {
  const bool is_open = holds(text, "Open Kernel Module");
  facts.add(section.fact(line, "host", fact::kKernelModules, is_open ? "open" : "proprietary"));
  Scan scan(text);
  scan.skip_to("Kernel Module");
  while (!scan.blanks().at_end()) {
    const std::string_view word = scan.word();
    const bool is_version = word.find_first_not_of("0123456789.") == std::string_view::npos;
    if (!is_version) continue;
    facts.add(section.fact(line, "host", std::string(fact::kVersion) + "NVIDIA driver",
                           std::string(word.substr(0, 32))));
    return;
  }
}

/// That an IOMMU is at work: the kernel puts devices into its groups.
bool is_of_iommu(std::string_view text) {
  constexpr std::array<std::string_view, 5> kWords{"Adding to iommu group", "DMAR: IOMMU enabled",
                                                   "AMD-Vi: Found IOMMU", "AMD-Vi: Lazy IO",
                                                   "arm-smmu"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return holds(text, word); });
}

/// The first bus id among the words of a message; "" if it has none.
std::string bus_id_in(std::string_view text) {
  Scan scan(text);
  while (!scan.blanks().at_end()) {
    const std::string_view word = scan.word();
    std::string id = bus_id_of(word.substr(0, word.find_last_not_of(':') + 1));
    if (!id.empty()) return id;
  }
  return "";
}

/// A line of the kernel's log without its time; "" of another's, which journals have between them.
std::string_view message_of(const EvidenceLine& line) {
  const std::optional<KernelLine> kernel = kernel_line(line.text);
  return kernel ? kernel->message : std::string_view{};
}

/// The GPUs of Xid 79, "NVRM: Xid (PCI:0000:b3:00): 79, ... GPU has fallen off the bus.": the same
/// is said of them once more without it.
std::set<std::string> fallen_by_xid(const EvidenceSection& section) {
  std::set<std::string> out;
  for (const EvidenceLine& line : section.lines) {
    Scan scan(message_of(line));
    if (!scan.skip("NVRM: Xid (")) continue;
    scan.skip("PCI:");
    const std::string_view bus = scan.until(")");
    if (scan.skip(": 79,")) out.insert(bus_id_of(fmt::format("{}.0", bus)));
  }
  return out;
}

/// What mlx5_core says of a transceiver: "mlx5_core 0000:4c:00.0: Port module event: module 0,
/// Cable unplugged" (mlx5_port_module_event()).
struct ModuleEvent {
  std::string_view module;  ///< up to its number; "" if the line is none
  bool is_fault{false};     ///< unplugged, or an error
};
ModuleEvent module_event_of(std::string_view text) {
  const std::size_t begin = text.find("Port module event");
  const std::size_t comma = text.find(", ", begin);
  if (begin == 0 || begin == std::string_view::npos || comma == std::string_view::npos) return {};
  const bool is_fault =
      holds(text.substr(comma), "unplugged") || holds(text.substr(comma), "error");
  return {text.substr(0, begin), is_fault};
}

/// Of each NIC the line of the last one: a cable that was plugged in again is no fault.
std::map<std::string_view, int> last_module_events(const EvidenceSection& section) {
  std::map<std::string_view, int> out;
  for (const EvidenceLine& line : section.lines) {
    const ModuleEvent event = module_event_of(message_of(line));
    if (!event.module.empty()) out[event.module] = line.number;
  }
  return out;
}

bool has_no_cable(const EvidenceLine& line, const std::map<std::string_view, int>& last_events) {
  const ModuleEvent event = module_event_of(message_of(line));
  return event.is_fault && last_events.at(event.module) == line.number;
}

/// lscpu and /proc/cpuinfo name the CPU by the same numbers. AMD's family counts the extended one
/// once, NCCL 16 times; cpu_part() takes NCCL's.
void add_cpu(const EvidenceSection& section, const EvidenceLine& line, const std::string& vendor,
             std::optional<std::int64_t> family, std::optional<std::int64_t> model, Facts& facts) {
  if (vendor.empty() || !family || !model) return;
  constexpr std::int64_t kExtended = 15;
  const std::int64_t counted =
      *family > kExtended && *family < 256 ? kExtended + (*family - kExtended) * 16 : *family;
  facts.add(
      section.fact(line, "host", fact::kCpu, fmt::format("{} {} {}", vendor, counted, *model)));
}

void read_cpu(const EvidenceSection& section, std::string_view vendor_key,
              std::string_view family_key, std::string_view model_key, Facts& facts) {
  std::string vendor;
  std::optional<std::int64_t> family;
  for (const EvidenceLine& line : section.lines) {
    const std::optional<KeyAndValue> entry = key_and_value(line.text);
    if (!entry) continue;
    if (entry->key == vendor_key) vendor = one_line(entry->value);
    if (entry->key == family_key) family = Scan(entry->value).whole();
    if (entry->key == model_key) {
      add_cpu(section, line, vendor, family, Scan(entry->value).whole(), facts);
    }
    if (holds(entry->value, "Neoverse-V2")) {
      facts.add(section.fact(line, "host", fact::kCpu, "ARM Neoverse-V2"));
    }
  }
}

/// An attribute of a file below /sys, with what it is a fact of.
void add_pci_attribute(const EvidenceSection& section, const EvidenceLine& line,
                       const std::string& id, std::string_view name, std::string_view value,
                       Facts& facts) {
  const auto add = [&](std::string_view what, std::string text) {
    if (!text.empty()) facts.add(section.fact(line, id, what, std::move(text)));
  };
  const std::optional<std::int64_t> number = Scan(value).whole();
  const std::string lanes =
      number && *number > 0 && *number <= 32 ? std::to_string(*number) : std::string{};
  if (name == "max_link_speed") add(fact::kGen, generation_of(value));
  if (name == "current_link_speed") add(fact::kTrainedGen, generation_of(value));
  if (name == "max_link_width") add(fact::kWidth, lanes);
  if (name == "current_link_width") add(fact::kTrainedWidth, lanes);
  if (name == "numa_node" && number) add(fact::kNuma, std::to_string(*number));
  if (name == "class" && value.starts_with("0x") && value.size() >= 6) {
    add(fact::kClass, std::string(value.substr(2, 4)));
  }
  if (name == "id" && value.size() == 9 && value[4] == ':') add(fact::kPciId, std::string(value));
}

void add_port_attribute(const EvidenceSection& section, const EvidenceLine& line,
                        const std::string& nic, std::string_view name, std::string_view value,
                        Facts& facts) {
  const auto add = [&](std::string_view what, std::string text) {
    if (!text.empty()) facts.add(section.fact(line, nic, what, std::move(text)));
  };
  if (name == "rate") add(fact::kRate, gigabits_of(value));
  if (name == "link_layer") add(fact::kLinkLayer, one_line(value));
  if (name == "hca_type") add(fact::kProduct, one_line(value));
  if (name == "state") add(fact::kState, holds(value, "ACTIVE") ? "up" : "down");
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  });
}

/// "/sys/bus/pci/devices/0000:19:00.0/numa_node:0",
/// "/sys/class/infiniband/mlx5_0/ports/1/rate:400 Gb/sec (4X NDR)".
void read_attribute(const EvidenceSection& section, const EvidenceLine& line, std::string_view text,
                    Facts& facts) {
  const std::size_t slash = text.rfind('/', text.find(' '));
  if (slash == std::string_view::npos) return;
  const std::string_view folder = text.substr(0, slash);
  const std::optional<KeyAndValue> entry = key_and_value(text.substr(slash + 1));
  if (!entry || !is_name(entry->key)) return;
  Scan scan(folder);
  if (scan.skip_to("/infiniband/")) {
    const std::string nic(scan.until("/"));
    const bool is_of_device = scan.at_end();
    const std::int64_t port = is_of_device ? 1 : scan.skip("ports/") ? scan.whole().value_or(0) : 0;
    if (is_name(nic) && port > 0 && port < 256 && scan.at_end()) {
      const std::string subject = port == 1 ? nic : nic + ":" + std::to_string(port);
      add_port_attribute(section, line, subject, entry->key, entry->value, facts);
    }
    return;
  }
  const std::string id = bus_id_of(folder.substr(folder.rfind('/') + 1));
  if (!id.empty()) add_pci_attribute(section, line, id, entry->key, entry->value, facts);
}

}  // namespace

void read_dmesg(const EvidenceSection& section, Facts& facts) {
  std::size_t alerts = 0;
  constexpr std::size_t kMostAlerts = 100;
  const auto add = [&](const EvidenceLine& line, std::string_view what, std::string value) {
    facts.add(section.fact(line, "host", what, std::move(value)));
  };
  // A kernel that complains of nothing says that, too, but not by its first line alone.
  const bool has_more =
      std::any_of(section.lines.begin(), section.lines.end(), [](const EvidenceLine& line) {
        const std::string_view text = message_of(line);
        return !text.empty() && !text.starts_with("Linux version ");
      });
  if (has_more) add(section.lines.front(), std::string(fact::kLog) + "messages", "read");
  const std::map<std::string_view, int> last_events = last_module_events(section);
  const std::set<std::string> fallen = fallen_by_xid(section);
  const bool has_iommu =
      std::any_of(section.lines.begin(), section.lines.end(),
                  [](const EvidenceLine& line) { return is_of_iommu(message_of(line)); });
  std::string gpu;  // of a message of several lines, the second of which says what is wrong
  for (const EvidenceLine& line : section.lines) {
    const std::string_view text = message_of(line);
    Scan scan(text);
    if (text.starts_with("NVRM: The NVIDIA GPU ")) gpu = one_line(text.substr(0, 64)) + " ";
    if (text.starts_with("NVRM: loading NVIDIA UNIX ")) read_driver(section, line, text, facts);
    if (scan.skip("Command line: ") || scan.skip("Kernel command line: ")) {
      read_boot_options(section, line, scan.rest(), facts);
    } else if (scan.skip_to("iommu: Default domain type: ")) {
      // Every kernel says so, with an IOMMU or without (iommu_subsys_init()).
      const bool through = scan.skip("Passthrough");
      if (!through && !has_iommu) continue;
      add(line, fact::kIommu, through ? "passthrough" : "translate");
    } else if (scan.skip("Linux version ")) {
      add(line, std::string(fact::kVersion) + "Linux", one_line(scan.word().substr(0, 64)));
    } else if ((is_alert(text) || has_no_cable(line, last_events)) && alerts < kMostAlerts) {
      const bool is_rest = text.starts_with("NVRM: fallen off the bus");
      const std::string said =
          (is_rest ? std::exchange(gpu, "") : "") + one_line(without_blanks(text).substr(0, 240));
      const bool is_said = !said.starts_with("NVRM: Xid") && holds(said, "fallen off the bus") &&
                           fallen.contains(bus_id_in(said));
      if (is_said) continue;
      ++alerts;
      add(line, fact::kAlert, said);
    }
  }
}

void read_command_line(const EvidenceSection& section, Facts& facts) {
  // One without a word on DMA says that, too.
  facts.add(section.fact(section.lines.front(), "host", std::string(fact::kLog) + "command line",
                         "read"));
  for (const EvidenceLine& line : section.lines) {
    read_boot_options(section, line, line.text, facts);
  }
}

void read_lsmod(const EvidenceSection& section, Facts& facts) {
  constexpr std::array<std::string_view, 9> kModules{
      "nvidia",    "nvidia_peermem", "nv_peer_mem", "nvidia_fs", "gdrdrv",
      "mlx5_core", "mlx5_ib",        "efa",         "nouveau"};
  for (const EvidenceLine& line : section.lines) {
    const std::string_view name = Scan(line.text).blanks().word();
    if (std::find(kModules.begin(), kModules.end(), name) == kModules.end()) continue;
    facts.add(section.fact(line, "host", std::string(fact::kModule) + std::string(name), "loaded"));
  }
  // What `grep` left of it does not say which modules are not loaded.
  const EvidenceLine& first = section.lines.front();
  if (without_blanks(first.text).starts_with("Module")) {
    facts.add(section.fact(first, "host", std::string(fact::kModule) + "list", "complete"));
  } else {
    facts.add(section.fact(first, "host", std::string(fact::kLog) + "modules", "lines of a list"));
  }
}

/// "NUMA node2 CPU(s):" without any is of a GPU's memory.
void read_lscpu(const EvidenceSection& section, Facts& facts) {
  read_cpu(section, "Vendor ID", "CPU family", "Model", facts);
  std::int64_t nodes = 0;
  std::int64_t without_processors = 0;
  EvidenceLine nodes_line;
  for (const EvidenceLine& line : section.lines) {
    const std::optional<KeyAndValue> entry = key_and_value(line.text);
    if (!entry) continue;
    const std::int64_t count = Scan(entry->value).whole().value_or(0);
    if (entry->key == "Socket(s)" && count > 0) {
      facts.add(section.fact(line, "host", fact::kSockets, std::to_string(count)));
    } else if (entry->key == "Hypervisor vendor") {
      facts.add(section.fact(line, "host", fact::kHypervisor, std::string(entry->value)));
    } else if (entry->key == "NUMA node(s)") {
      nodes = count;
      nodes_line = line;
    } else if (entry->key.starts_with("NUMA node") && entry->value.empty()) {
      ++without_processors;
    }
  }
  nodes -= without_processors;
  if (nodes > 0)
    facts.add(section.fact(nodes_line, "host", fact::kNumaNodes, std::to_string(nodes)));
}

void read_cpuinfo(const EvidenceSection& section, Facts& facts) {
  read_cpu(section, "vendor_id", "cpu family", "model", facts);
}

/// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04 ...".
void read_driver_version(const EvidenceSection& section, Facts& facts) {
  for (const EvidenceLine& line : section.lines) {
    if (!without_blanks(line.text).starts_with("NVRM version:")) continue;
    read_driver(section, line, line.text, facts);
  }
}

std::string add_sysfs_path(const EvidenceSection& section, const EvidenceLine& line,
                           std::string_view path, Facts& facts) {
  std::string above;
  Scan scan(path);
  if (!scan.skip_to("devices/pci")) return {};
  const std::string_view root = scan.until("/");
  if (root.size() < 7 || root.size() > 11) return {};
  while (!scan.at_end()) {
    const std::string id = bus_id_of(scan.until("/"));
    if (id.empty()) break;
    if (above.empty()) {
      facts.add(section.fact(line, id, fact::kRootBus, std::string(root)));
    } else {
      facts.add(section.fact(line, id, fact::kParent, above));
    }
    above = id;
  }
  return above;
}

namespace {

/// Whether a path below a function is a verbs device's: of disks, displays and interfaces there are
/// links too. What ends at the function may be anyone's.
bool is_of_verbs(std::string_view path) {
  std::size_t end = 0;  // of the last function
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    if (!bus_id_of(path.substr(at, slash - at)).empty()) end = slash;
    at = slash + 1;
  }
  const std::string_view below = path.substr(end);
  return below.empty() || below == "/" || below.starts_with("/infiniband/");
}

}  // namespace

/// Attributes as `grep -r .` prints them, or `tail` below heads "==> FILE <=="; links as `ls -l` or
/// readlink does: "mlx5_0 -> ../../ devices/pci0000:15/...", "mlx5_5 = /sys/devices/...".
void read_sysfs(const EvidenceSection& section, Facts& facts) {
  std::string_view head;  // of what follows
  for (const EvidenceLine& line : section.lines) {
    const std::string_view text = without_blanks(line.text);
    if (const std::string_view file = tail_head(text); !file.empty()) {
      head = file;
      continue;
    }
    if (!head.empty() && !text.empty()) {
      const std::string_view file = std::exchange(head, {});
      read_attribute(section, line, std::string(file) + ":" + std::string(text), facts);
      continue;
    }
    const std::size_t path = text.find("devices/pci");
    const bool is_link = path != std::string_view::npos && path > 0 &&
                         (holds(text, " -> ") || holds(text, " = ") || holds(text, "=/"));
    if (!is_link) {
      read_attribute(section, line, text, facts);
      if (text.starts_with("/sys/devices/pci")) add_sysfs_path(section, line, text, facts);
      continue;
    }
    const std::string_view target = Scan(text.substr(path)).word();
    const std::string id = add_sysfs_path(section, line, target, facts);
    std::string_view before = text.substr(0, std::min(text.find(" -> "), text.find('=')));
    before = without_blanks(before);
    if (before.ends_with("/device")) before.remove_suffix(7);  // "mlx5_0/device -> ..."
    before = before.substr(before.find_last_of(" /") + 1);
    // An Ethernet interface of the same function has a name of its own.
    const bool is_nic = is_name(before) && bus_id_of(before).empty() && !holds(text, "/net/") &&
                        is_of_verbs(target);
    if (!id.empty() && is_nic) facts.add(section.fact(line, std::string(before), fact::kBusId, id));
  }
}

/// "RDMA NIC=0000:03:00.0, GPU=0009:06:00.0, RDMA DMA Function=0009:03:00.0  NUMA Node: 0  RDMA
/// device: ibp3s0 (...)".
void read_rdma_topo(const EvidenceSection& section, Facts& facts) {
  for (const EvidenceLine& line : section.lines) {
    Scan scan(without_blanks(line.text));
    if (!scan.skip("RDMA NIC=")) continue;
    const std::string nic = bus_id_of(scan.until(","));
    if (nic.empty()) continue;
    facts.add(section.fact(line, nic, fact::kClass, "0207"));
    Scan gpu(scan.rest());
    if (gpu.skip_to("GPU=")) {
      const std::string id = bus_id_of(gpu.until(","));
      if (!id.empty()) {
        facts.add(section.fact(line, id, fact::kClass, "0302"));
        facts.add(section.fact(line, nic, std::string(fact::kLog) + "data direct to", id));
      }
    }
    Scan numa(scan.rest());
    if (numa.skip_to("NUMA Node: ")) {
      if (const auto node = numa.whole()) {
        facts.add(section.fact(line, nic, fact::kNuma, std::to_string(*node)));
      }
    }
    Scan device(scan.rest());
    if (device.skip_to("RDMA device: ")) {
      facts.add(section.fact(line, std::string(device.word()), fact::kBusId, nic));
    }
  }
}

}  // namespace weft
