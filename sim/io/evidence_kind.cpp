#include "sim/io/evidence_kind.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "sim/base/quantity.hpp"
#include "sim/io/kernel_log.hpp"
#include "sim/io/linux_release.hpp"

namespace weft {
namespace {

using Line = std::string_view;

constexpr bool holds(Line line, Line what) { return line.find(what) != Line::npos; }

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

/// The next word between blanks and '|'; "" at the end. Moves on.
Line next_word(Line& line) {
  constexpr Line kBetween = " \t|";
  line.remove_prefix(std::min(line.find_first_not_of(kBetween), line.size()));
  const Line word = line.substr(0, line.find_first_of(kBetween));
  line.remove_prefix(word.size());
  return word;
}

bool is_numbered(Line word, Line name) {
  return word.starts_with(name) && word.size() > name.size() &&
         std::all_of(word.begin() + static_cast<std::ptrdiff_t>(name.size()), word.end(), is_digit);
}

bool is_path_class(Line word) {
  constexpr std::array<Line, 9> kClasses{"X",   "SYS", "NODE", "PHB", "PXB",
                                         "PIX", "PSB", "SOC",  "?"};
  return std::find(kClasses.begin(), kClasses.end(), word) != kClasses.end() ||
         is_numbered(word, "NV");
}

/// The heads of its columns: GPUs first, and no cell among them.
bool begins_topo_matrix(Line line) {
  const Line first = next_word(line);
  if (!is_numbered(first, "GPU")) return false;
  const Line second = next_word(line);
  return second.empty()
             ? false
             : is_numbered(second, "GPU") || is_numbered(second, "NIC") || second == "CPU" ||
                   second.starts_with("ib") || second.starts_with("roce") ||
                   (holds(second, "_") && !is_path_class(second));
}

/// "0000:19:00.0 3D controller: ..." or without the domain.
bool begins_lspci(Line line) {
  const std::size_t blank = line.find(' ');
  if (blank == Line::npos || blank < 7 || blank > 16) return false;
  const Line id = line.substr(0, blank);
  if (id[id.size() - 2] != '.' || id[id.size() - 5] != ':') return false;
  for (const char c : id) {
    if (!is_hex(c) && c != ':' && c != '.') return false;
  }
  return holds(line.substr(blank), ": ");
}

bool begins_lspci_tree(Line line) {
  return (line.starts_with("-[") || line.starts_with("-+-[") || line.starts_with("+-[")) &&
         holds(line, "]-");
}

bool begins_nccl_log(Line line) {
  if (holds(line, "NCCL INFO ") || holds(line, "NCCL WARN ")) return true;
  if (line.starts_with("NCCL version ") || line.starts_with("=== System :")) return true;
  if (line.starts_with("Trees [") || line.starts_with("Pattern ") || line.starts_with("Ring 0")) {
    return true;
  }
  if (line.starts_with("Algorithm ") && holds(line, "Tree")) return true;
  if (holds(line, " coll channels, ")) return true;
  if (line.starts_with("Channel ") && (holds(line, " : ") || holds(line, " via "))) return true;
  return (line.starts_with("GPU/") || line.starts_with("NET/") || line.starts_with("CPU/") ||
          line.starts_with("+ PCI[")) &&
         (holds(line, "(") || holds(line, "["));
}

/// "0000:11:00", a function's bus id without it, or "0x86", the bus alone.
bool is_listed_bus(Line text) {
  constexpr Line kAlone = "0x";
  const bool is_alone = text.starts_with(kAlone);
  if (is_alone) text.remove_prefix(kAlone.size());
  const auto colons = std::count(text.begin(), text.end(), ':');
  return !text.empty() && colons == (is_alone ? 0 : 2) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_hex(c) || c == ':'; });
}

/// "#  Rank  0 Group  0 Pid 134070 on gpu03 device  0 [0000:11:00] NVIDIA H100 80GB HBM3".
bool begins_nccl_tests_list(Line line) {
  constexpr Line kMark = "#";
  if (line.starts_with(kMark)) line.remove_prefix(kMark.size());
  if (next_word(line) != "Rank") return false;
  const std::size_t on = line.find(" on ");
  if (on == Line::npos || !holds(line.substr(0, on), "Pid ")) return false;
  const std::size_t device = line.find(" device ", on);
  const std::size_t bus = line.find('[', device);
  const std::size_t end = line.find(']', bus);
  return end != Line::npos && is_listed_bus(line.substr(bus + 1, end - bus - 1));
}

bool begins_iblinkinfo(Line line) {
  if (holds(line, "==>") &&
      (holds(line, "LinkUp") || holds(line, "Down/") || holds(line, "Active/"))) {
    return true;
  }
  return (line.starts_with("CA: ") || line.starts_with("Switch: ") ||
          line.starts_with("Switch 0x") || line.starts_with("Router: ")) &&
         line.ends_with(':');
}

bool begins_ibnetdiscover(Line line) {
  if (line.starts_with("vendid=0x") || line.starts_with("# Topology file:")) return true;
  Line rest = line;
  const Line word = next_word(rest);
  const Line ports = next_word(rest);
  return (word == "Switch" || word == "Ca" || word == "Rt" || word == "Hca") && !ports.empty() &&
         std::all_of(ports.begin(), ports.end(), is_digit) && holds(rest, "\"");
}

bool begins_ibnetdiscover_ports(Line line) {
  const Line all = line;
  const Line kind = next_word(line);
  if (kind != "CA" && kind != "SW" && kind != "RT") return false;
  const Line lid = next_word(line);
  const Line port = next_word(line);
  return !lid.empty() && std::all_of(lid.begin(), lid.end(), is_digit) && !port.empty() &&
         std::all_of(port.begin(), port.end(), is_digit) && holds(all, " 0x");
}

bool begins_dmesg(Line line) { return kernel_line(line).has_value(); }

/// What boot loaders write first, or a root device and an option that only kernels have.
bool begins_command_line(Line line) {
  constexpr std::array<Line, 4> kFirst{"BOOT_IMAGE=", "initrd=", "root=", "console="};
  if (std::any_of(kFirst.begin(), kFirst.end(),
                  [&](Line word) { return line.starts_with(word); })) {
    return true;
  }
  return holds(line, "root=") &&
         (holds(line, " ro ") || line.ends_with(" ro") || holds(line, " rw ") ||
          line.ends_with(" rw") || holds(line, " quiet") || holds(line, "iommu"));
}

/// Modules that tables of other things do not name: those of GPUs and NICs.
bool is_known_module(Line name) {
  constexpr std::array<Line, 5> kBegins{"nvidia", "nv_", "mlx", "ib_", "rdma"};
  constexpr std::array<Line, 3> kNames{"gdrdrv", "efa", "nouveau"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kBegins.begin(), kBegins.end(),
                     [&](Line begin) { return name.starts_with(begin); });
}

/// Its head, or a line as `lsmod | grep nvidia` leaves it: name, bytes, users and who they are,
/// "nvidia 56823808 117 nvidia_uvm,nvidia_modeset"; in /proc/modules a state and an address behind.
bool begins_lsmod(Line line) {
  if (line.starts_with("Module") && holds(line, "Size") && holds(line, "Used by")) return true;
  const auto are = [](Line word, Line letters) {
    return !word.empty() && word.find_first_not_of(letters) == Line::npos;
  };
  constexpr Line kDigits = "0123456789";
  constexpr Line kNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_,";
  constexpr std::size_t kFewestDigits = 4;  // a module has a page at least
  const Line name = next_word(line);
  const Line bytes = next_word(line);
  const Line users = next_word(line);
  if (!are(name, kNames) || !is_known_module(name) || !are(bytes, kDigits) ||
      bytes.size() < kFewestDigits || !are(users, kDigits)) {
    return false;
  }
  const Line by = next_word(line);
  const Line state = next_word(line);
  return (by.empty() || by == "-" || are(by, kNames)) &&
         (state.empty() || state == "Live" || state == "Loading" || state == "Unloading");
}

/// A node with errors, one of its ports' lines, or the summary, which is all that a healthy network
/// has.
bool begins_ibqueryerrors(Line line) {
  const Line port = line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
  if (port.starts_with("GUID 0x") && holds(port, " port ") && holds(port, ": [") &&
      holds(port, " == ")) {
    return true;
  }
  return line.starts_with("Errors for ") ||
         (line.starts_with("## Summary: ") && holds(line, " nodes checked"));
}

bool begins_sysfs(Line line) {
  constexpr Line kTail = "==> ";  // its heads: "==> /sys/class/... <=="
  if (line.starts_with(kTail)) line.remove_prefix(kTail.size());
  return line.starts_with("/sys/class/") || line.starts_with("/sys/bus/pci/") ||
         line.starts_with("/sys/devices/pci") || line.starts_with("/sys/kernel/iommu_groups") ||
         holds(line, " -> ../../devices/pci") || holds(line, "/sys/devices/pci0") ||
         holds(line, " -> ../../../devices/pci");
}

/// Of a module's file, or what `grep license` leaves of NVIDIA's.
bool begins_modinfo(Line line) {
  constexpr Line kLicense = "license:";
  if (line.starts_with("filename:") && holds(line, ".ko")) return true;
  if (!line.starts_with(kLicense)) return false;
  line.remove_prefix(kLicense.size());
  const Line license = trimmed(line);
  return license == "NVIDIA" || license == "Dual MIT/GPL";
}

constexpr std::array<EvidenceKindText, 35> kKinds{{
    {EvidenceKind::kNcclLog, "NCCL's log (NCCL_DEBUG=INFO)", begins_nccl_log},
    {EvidenceKind::kNcclTestsList, "nccl-tests' list of devices", begins_nccl_tests_list},
    {EvidenceKind::kTopoMatrix, "nvidia-smi topo -m", begins_topo_matrix},
    {EvidenceKind::kLspci, "lspci -vvv", begins_lspci},
    {EvidenceKind::kLspciTree, "lspci -tv", begins_lspci_tree},
    {EvidenceKind::kNcclXml, "NCCL's topology dump (NCCL_TOPO_DUMP_FILE)",
     [](Line line) { return line.starts_with("<system"); }},
    {EvidenceKind::kHwloc, "lstopo --of xml",
     [](Line line) {
       return line.starts_with("<topology") ||
              (line.starts_with("<!DOCTYPE topology") && holds(line, "hwloc"));
     }},
    {EvidenceKind::kNvidiaSmiXml, "nvidia-smi -q -x",
     [](Line line) {
       return line.starts_with("<nvidia_smi_log") || line.starts_with("<!DOCTYPE nvidia_smi_log");
     }},
    {EvidenceKind::kNvidiaSmiQuery, "nvidia-smi -q",
     [](Line line) {
       return holds(line, "==NVSMI LOG==") ||
              (line.starts_with("GPU 0") && holds(line, ":") && line.ends_with(".0"));
     }},
    {EvidenceKind::kNvidiaSmi, "nvidia-smi",
     [](Line line) { return line.starts_with("| NVIDIA-SMI "); }},
    {EvidenceKind::kNvlink, "nvidia-smi nvlink -s",
     [](Line line) { return line.starts_with("GPU ") && holds(line, "(UUID: "); }},
    {EvidenceKind::kIbstat, "ibstat", [](Line line) { return line.starts_with("CA '"); }},
    {EvidenceKind::kIbstatus, "ibstatus",
     [](Line line) { return line.starts_with("Infiniband device '"); }},
    {EvidenceKind::kIbvDevinfo, "ibv_devinfo -v",
     [](Line line) { return line.starts_with("hca_id:"); }},
    {EvidenceKind::kRdmaLink, "rdma link",
     [](Line line) {  // before iproute2 5.1 "1/1: mlx5_0/1: state ACTIVE ..."
       const bool is_old = !line.empty() && is_digit(line[0]) && holds(line, " physical_state ") &&
                           line.substr(0, line.find(' ')).ends_with(':');
       return (line.starts_with("link ") || is_old) && holds(line, "/") && holds(line, " state ");
     }},
    {EvidenceKind::kIbdev2netdev, "ibdev2netdev",
     [](Line line) {
       const Line end = line.substr(std::min(line.find(" ==> "), line.size()));
       return holds(line, " port ") && (holds(end, "(Up)") || holds(end, "(Down)"));
     }},
    {EvidenceKind::kMlxlink, "mlxlink",
     [](Line line) {  // with --json in quotes, or all in one line
       constexpr Line kQuoted = "\"Operational Info\"";
       return line.starts_with("Operational Info") || line.starts_with(kQuoted) ||
              (line.starts_with('{') && holds(line, kQuoted));
     }},
    {EvidenceKind::kMst, "mst status -v",
     [](Line line) {
       return line.starts_with("MST modules:") ||
              (line.starts_with("DEVICE_TYPE") && holds(line, " MST "));
     }},
    {EvidenceKind::kIbnetdiscover, "ibnetdiscover", begins_ibnetdiscover},
    {EvidenceKind::kIbnetdiscoverPorts, "ibnetdiscover -p", begins_ibnetdiscover_ports},
    {EvidenceKind::kIblinkinfo, "iblinkinfo", begins_iblinkinfo},
    {EvidenceKind::kIbqueryerrors, "ibqueryerrors", begins_ibqueryerrors},
    {EvidenceKind::kPerfquery, "perfquery",
     [](Line line) {
       return line.starts_with("# Port counters:") ||
              line.starts_with("# Port extended counters:") || line.starts_with("PortSelect:....");
     }},
    {EvidenceKind::kEthtoolStatistics, "ethtool -S",
     [](Line line) { return line.starts_with("NIC statistics:"); }},
    {EvidenceKind::kDmesg, "dmesg", begins_dmesg},
    {EvidenceKind::kLsmod, "lsmod", begins_lsmod},
    {EvidenceKind::kLscpu, "lscpu",
     [](Line line) {
       return line.starts_with("Architecture:") &&
              (holds(line, "x86_64") || holds(line, "aarch64") || holds(line, "ppc64"));
     }},
    {EvidenceKind::kCpuinfo, "/proc/cpuinfo",
     [](Line line) {
       return line.starts_with("vendor_id\t:") || line.starts_with("processor\t:");
     }},
    {EvidenceKind::kDriverVersion, "/proc/driver/nvidia/version",
     [](Line line) { return line.starts_with("NVRM version:"); }},
    {EvidenceKind::kUname, "uname -a", [](Line line) { return !linux_release_of(line).empty(); }},
    {EvidenceKind::kModinfo, "modinfo nvidia", begins_modinfo},
    {EvidenceKind::kRdmaTopo, "rdma_topo", [](Line line) { return line.starts_with("RDMA NIC="); }},
    {EvidenceKind::kAcsLines, "lspci -vvv | grep ACSCtl",
     [](Line line) { return line.starts_with("ACSCtl:"); }},
    {EvidenceKind::kSysfs, "/sys", begins_sysfs},
    {EvidenceKind::kCommandLine, "/proc/cmdline", begins_command_line},
}};

}  // namespace

std::span<const EvidenceKindText> evidence_kinds() { return kKinds; }

const EvidenceKindText* evidence_begun_by(std::string_view line) {
  for (const EvidenceKindText& each : kKinds) {
    if (each.begins(line)) return &each;
  }
  return nullptr;
}

std::string_view evidence_tool(EvidenceKind kind) {
  return std::find_if(kKinds.begin(), kKinds.end(),
                      [kind](const EvidenceKindText& each) { return each.kind == kind; })
      ->tool;
}

}  // namespace weft
