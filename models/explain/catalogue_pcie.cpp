// Causes in the machine: PCIe, hosts, GPUs, NICs and the network.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/explain/catalogue.hpp"
#include "models/nccl/memory_path.hpp"

namespace weft {
namespace {

using Devices = Site::Devices;
using Variants = std::vector<Variant>;

std::string_view plural(const DeviceSpec& device) {
  switch (device.kind) {
    case DeviceKind::kGpu:
      return "GPUs";
    case DeviceKind::kNic:
      return "NICs";
    case DeviceKind::kSwitch:
      return "PCIe switches";
    default:
      return "CPUs";
  }
}

std::string one_of(const Site::Alike& alike) {
  if (alike.names.size() == 1) return alike.first->name;
  return fmt::format("{}, or another of {} {} alike", alike.first->name, alike.names.size(),
                     plural(*alike.first));
}

std::string all_of(const Devices& devices) {
  return devices.size() == 1 ? devices.front()->name
                             : fmt::format("all {} {}", devices.size(), plural(*devices.front()));
}

/// A device's parameter with a fault, and how that is called.
struct Amount {
  std::string value;  ///< with its unit
  std::string how;
};
/// None: the device cannot have the fault.
using AmountOf = std::function<std::optional<Amount>(const DeviceSpec&)>;

Change set_on(const Devices& devices, const std::string& parameter, const std::string& value) {
  Change out;
  for (const DeviceSpec* each : devices) out.set.push_back({each->name, parameter, value});
  return out;
}

/// Each device's own amount, on all of them that have one and on one of each kind of place.
void add_amounts(const Site& site, const Devices& all, const std::string& parameter,
                 const AmountOf& amount_of, Variants& out, bool one_too = true) {
  Devices devices;
  Change change;
  std::vector<std::string> hows;
  for (const DeviceSpec* each : all) {
    const std::optional<Amount> amount = amount_of(*each);
    if (!amount) continue;
    devices.push_back(each);
    change.set.push_back({each->name, parameter, amount->value});
    if (std::find(hows.begin(), hows.end(), amount->how) == hows.end()) hows.push_back(amount->how);
  }
  if (devices.empty()) return;
  const std::string where =
      devices.size() == all.size()
          ? all_of(all)
          : fmt::format("{} of {} {}", devices.size(), all.size(), plural(*all.front()));
  out.push_back({where, fmt::format("{}", fmt::join(hows, ", ")), std::move(change)});
  if (!one_too || devices.size() == 1) return;
  for (const Site::Alike& alike : site.alike(devices)) {
    const Amount amount = amount_of(*alike.first).value();
    out.push_back({one_of(alike), amount.how, set_on({alike.first}, parameter, amount.value)});
  }
}

/// The same setting on all of them and on one of each kind of place.
void add_settings(const Site& site, const Devices& devices, const std::string& parameter,
                  const std::string& value, const std::string& how, Variants& out,
                  bool one_too = true) {
  const auto amount = [&](const DeviceSpec&) -> std::optional<Amount> {
    return Amount{value, how};
  };
  add_amounts(site, devices, parameter, amount, out, one_too);
}

/// Of a number so many times as much, called by `how`.
void add_factor(const Site& site, const Devices& devices, const std::string& parameter,
                double factor, const std::string& how, Variants& out, bool one_too = true) {
  const auto amount = [&](const DeviceSpec& device) -> std::optional<Amount> {
    const std::string key = std::string(device.scope()) + "." + parameter;
    return Amount{site.text(key, factor * site.number(device, parameter)), how};
  };
  add_amounts(site, devices, parameter, amount, out, one_too);
}

/// Behind its own link: a second port is behind the first one's.
Devices own_links(const Devices& devices) {
  Devices out;
  for (const DeviceSpec* each : devices) {
    if (each->port_of.empty() && !each->upstream.empty()) out.push_back(each);
  }
  return out;
}

/// Half of the lanes are as fast as one generation less, so each width stands for that, too.
void add_links(const Site& site, const Devices& all, Variants& out) {
  for (const int halvings : {1, 2, 4}) {
    const auto amount = [&](const DeviceSpec& device) -> std::optional<Amount> {
      const double width = site.number(device, "pcie_width") / std::exp2(halvings);
      const double gen = site.number(device, "pcie_gen");
      if (width < 1) return std::nullopt;
      std::string how = fmt::format("x{:.0f}", width);
      if (gen > halvings) how += fmt::format(" or Gen{:.0f}", gen - halvings);
      return Amount{fmt::format("{:.0f}", width), how};
    };
    add_amounts(site, own_links(all), "trained_width", amount, out);
  }
}

Variants nic_links(const Site& site) {
  Variants out;
  add_links(site, site.nics(), out);
  return out;
}

Variants gpu_links(const Site& site) {
  Variants out;
  add_links(site, site.gpus(), out);
  return out;
}

Variants uplinks(const Site& site) {
  Variants out;
  add_links(site, site.switches(), out);
  return out;
}

/// Below a switch that has a GPU and another device.
Devices below_shared_switches(const Site& site) {
  std::set<std::string> shared;
  for (const DeviceSpec* gpu : site.gpus()) {
    const auto is_beside = [&](const DeviceSpec* other) {
      return other != gpu && other->upstream == gpu->upstream;
    };
    const bool has_peer = std::any_of(site.nics().begin(), site.nics().end(), is_beside) ||
                          std::any_of(site.gpus().begin(), site.gpus().end(), is_beside);
    if (site.is_below_switch(*gpu) && has_peer) shared.insert(gpu->upstream);
  }
  Devices out;
  for (const Devices* devices : {&site.gpus(), &site.nics()}) {
    for (const DeviceSpec* each : *devices) {
      if (each->port_of.empty() && shared.contains(each->upstream)) out.push_back(each);
    }
  }
  return out;
}

Variants acs(const Site& site) {
  constexpr const char* kRedirect = "SV+RR+CR+UF";  // ACSCtl 0x001d
  const Devices ports = below_shared_switches(site);
  Variants out;
  if (ports.empty()) return out;
  out.push_back({fmt::format("all {} switch ports above GPUs and NICs", ports.size()),
                 "ACSCtl 0x001d", set_on(ports, "port_acs", kRedirect)});
  std::set<std::string> above;
  for (const DeviceSpec* each : ports) above.insert(each->upstream);
  if (above.size() < 2) return out;
  Devices of_one;
  for (const DeviceSpec* each : ports) {
    if (each->upstream == *above.begin()) of_one.push_back(each);
  }
  out.push_back({fmt::format("the ports of {}, or of another switch like it", *above.begin()),
                 "ACSCtl 0x001d", set_on(of_one, "port_acs", kRedirect)});
  return out;
}

/// Translation by the pages that the machine has, and by the smallest. VT-d has pages of 4 KiB,
/// 2 MiB and 1 GiB: pieces of 64 KiB, in which the GPU's driver hands memory to NICs, and host
/// memory that is not contiguous are mapped by 4 KiB. How much of either is: assumed, all. What the
/// machine does already is no variant.
Variants translated(const Site& site, const std::string& where, const Change& besides) {
  constexpr const char* kTranslates = "translate";
  constexpr const char* kSmallest = "4 KiB";
  const auto have = [&](const Devices& devices, const char* parameter, const std::string& value) {
    return std::all_of(devices.begin(), devices.end(), [&](const DeviceSpec* each) {
      const std::string key = std::string(each->scope()) + "." + parameter;
      return site.text(key, site.number(*each, parameter)) == value;
    });
  };
  Variants out;
  Change change = besides;
  for (const DeviceSpec* cpu : site.cpus()) change.set.push_back({cpu->name, "iommu", kTranslates});
  const bool is_other = !have(site.cpus(), "iommu", kTranslates) || !besides.empty();
  if (is_other) out.push_back({where, "translates", change});
  const std::string smallest = site.text("cpu.iommu_page", 4096);
  if (have(site.cpus(), "iommu_page", smallest) && have(site.gpus(), "dma_page", smallest)) {
    return out;
  }
  add_iommu_pages(kSmallest, site.cpus(), site.gpus(), change);
  out.push_back({where, "translates pages of 4 KiB", std::move(change)});
  return out;
}

Variants iommu(const Site& site) {
  if (site.cpus().empty()) return {};
  return translated(site, all_of(site.cpus()), {});
}

/// NCCL sees no switch above a GPU and a NIC, so data goes by host memory; what devices are given
/// is translated, as they may not ask for translations themselves.
Variants flat_guest(const Site& site) {
  if (site.nics().empty() || site.switches().empty()) return {};
  Change change;
  change.staged = true;
  return translated(site, "each host", change);
}

void add_lower(const Site& site, const Devices& devices, const std::string& parameter,
               std::initializer_list<double> values, Variants& out, bool one_too = false) {
  for (const double value : values) {
    const auto amount = [&](const DeviceSpec& device) -> std::optional<Amount> {
      if (value >= site.number(device, parameter)) return std::nullopt;
      const std::string text = site.text(std::string(device.scope()) + "." + parameter, value);
      return Amount{text, text};
    };
    add_amounts(site, devices, parameter, amount, out, one_too);
  }
}

Variants payload(const Site& site) {
  constexpr double kLeast = 128;
  Variants out;
  Devices devices = site.gpus();
  devices.insert(devices.end(), site.nics().begin(), site.nics().end());
  devices.insert(devices.end(), site.cpus().begin(), site.cpus().end());
  std::erase_if(devices,
                [&](const DeviceSpec* each) { return site.number(*each, "mps") <= kLeast; });
  const bool has_gpu = std::any_of(devices.begin(), devices.end(), [](const DeviceSpec* each) {
    return each->kind == DeviceKind::kGpu;
  });
  if (!has_gpu) return out;
  out.push_back({"GPUs, NICs and CPUs", "128 B", set_on(devices, "mps", "128 B")});
  return out;
}

Variants read_requests(const Site& site) {
  Variants out;
  add_lower(site, own_links(site.nics()), "mrrs", {128, 512}, out);
  return out;
}

Variants outstanding_reads(const Site& site) {
  Variants out;
  add_lower(site, own_links(site.nics()), "read_tags", {8, 16, 32}, out);
  return out;
}

Variants ordering(const Site& site) {
  Variants out;
  add_settings(site, own_links(site.nics()), "relaxed_ordering", "off", "off", out, false);
  return out;
}

const DeviceSpec* other_cpu(const Site& site, const DeviceSpec& device) {
  const DeviceSpec* const own = site.root(device);
  for (const DeviceSpec* cpu : site.cpus()) {
    if (cpu != own) return cpu;
  }
  return nullptr;
}

Variants far_nics(const Site& site) {
  const Devices nics = own_links(site.nics());
  Variants out;
  if (site.cpus().size() < 2 || nics.empty()) return out;
  Change all;
  for (const DeviceSpec* nic : nics) all.hang.push_back({nic->name, other_cpu(site, *nic)->name});
  out.push_back({all_of(nics), "below the other socket", all});
  if (nics.size() == 1) return out;
  for (const Site::Alike& alike : site.alike(nics)) {
    Change one;
    one.hang.push_back({alike.first->name, other_cpu(site, *alike.first)->name});
    out.push_back({one_of(alike), "below the other socket", one});
  }
  return out;
}

Variants nics_at_root(const Site& site) {
  Change all;
  Devices moved;
  for (const DeviceSpec* nic : own_links(site.nics())) {
    const DeviceSpec* const root = site.root(*nic);
    if (!site.is_below_switch(*nic) || root == nullptr) continue;
    all.hang.push_back({nic->name, root->name});
    moved.push_back(nic);
  }
  if (moved.empty()) return {};
  return {{all_of(moved), "at root ports of the CPU", all}};
}

Variants peer_memory(const Site& site) {
  Variants out;
  if (site.nics().empty()) return out;
  add_settings(site, site.gpus(), "peer_mapping", "none", "nothing maps GPU memory for NICs", out,
               false);
  out.push_back({all_of(site.nics()), "refuse GPU memory", set_on(site.nics(), "gdr", "off")});
  return out;
}

Variants bar1(const Site& site) {
  Variants out;
  if (site.nics().empty()) return out;
  constexpr double kMiB = 1024.0 * 1024;
  add_lower(site, site.gpus(), "bar1_size", {64 * kMiB}, out);
  return out;
}

Variants staged(const Site& site) {
  if (site.nics().empty()) return {};
  Change change;
  change.staged = true;
  return {{"all connections", "data goes by host memory", change}};
}

Variants dram(const Site& site) {
  Variants out;
  for (const bool is_half : {true, false}) {
    const auto amount = [&](const DeviceSpec& cpu) -> std::optional<Amount> {
      const double all = site.number(cpu, "dram_channels");
      const double channels = is_half ? std::floor(all / 2) : 1;
      if (channels < 1 || channels >= all) return std::nullopt;
      return Amount{fmt::format("{:.0f}", channels),
                    fmt::format("{:.0f} channels of {:.0f}", channels, all)};
    };
    add_amounts(site, site.cpus(), "dram_channels", amount, out, false);
  }
  return out;
}

Variants socket_link(const Site& site) {
  Variants out;
  if (site.cpus().size() < 2) return out;
  for (const double share : {0.5, 0.25}) {
    add_factor(site, site.cpus(), "socket_rate", share,
               fmt::format("{:.0f} % of its rate", 100 * share), out, false);
  }
  return out;
}

using PeerLinks = std::vector<const PeerLinkSpec*>;

PeerLinks nvlinks_of(const Site& site, const std::function<bool(const PeerLinkSpec&)>& is_one) {
  PeerLinks out;
  for (const PeerLinkSpec& link : site.spec().node.links) {
    if (link.kind == LinkKind::kNvlink && is_one(link)) out.push_back(&link);
  }
  return out;
}

/// So many of each of these links are left; none where that is all of them.
void add_fewer(const std::string& where, const PeerLinks& links, double share, Variants& out) {
  Change change;
  std::uint32_t all = 0;
  std::uint32_t left = 0;
  for (const PeerLinkSpec* link : links) {
    const auto few = static_cast<std::uint32_t>(std::floor(link->count * share));
    change.nvlinks.push_back({link->a, std::max(1U, few), link->b});
    all += link->count;
    left += change.nvlinks.back().count;
  }
  if (left == all) return;
  const bool is_same = std::all_of(links.begin(), links.end(), [&](const PeerLinkSpec* link) {
    return link->count == links.front()->count;
  });
  std::string how = fmt::format("{} of {} links", left, all);
  if (is_same) {
    how = fmt::format("{} of {} links{}", change.nvlinks.front().count, links.front()->count,
                      links.size() > 1 ? " each" : "");
  }
  out.push_back({where, std::move(how), std::move(change)});
}

Variants nvlinks_of_one(const Site& site) {
  Variants out;
  if (site.gpus().size() < 2) return out;
  const std::string& gpu = site.gpus().front()->name;
  const PeerLinks links =
      nvlinks_of(site, [&](const PeerLinkSpec& link) { return link.a == gpu || link.b == gpu; });
  for (const double share : {0.95, 0.5}) add_fewer(gpu + ", or another GPU", links, share, out);
  return out;
}

Variants nvswitches(const Site& site) {
  Variants out;
  const PeerLinks links = nvlinks_of(site, [&](const PeerLinkSpec& link) {
    const DeviceSpec* const to = site.device(link.b);
    return to != nullptr && to->kind == DeviceKind::kNvSwitch;
  });
  if (links.size() < 2) return out;
  for (const double share : {0.75, 0.5}) add_fewer("all GPUs", links, share, out);
  return out;
}

Variants clocks(const Site& site) {
  Variants out;
  constexpr double kLonger = 1.5;
  add_factor(site, site.gpus(), "sm_cycle", kLonger,
             fmt::format("{:.0f} % of the clock", 100 / kLonger), out);
  return out;
}

Change taken_off(const Devices& nics, const std::function<bool(std::size_t)>& goes) {
  Change out;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    if (goes(i)) out.uncable.push_back(nics[i]->name);
  }
  return out;
}

Variants ports_down(const Site& site) {
  const Devices& nics = site.nics();
  const std::size_t n = nics.size();
  Variants out;
  if (n < 2) return out;
  for (const Site::Alike& alike : site.alike(nics)) {
    out.push_back({one_of(alike), "down",
                   taken_off(nics, [&](std::size_t i) { return nics[i] == alike.first; })});
  }
  for (const auto& [every, where] :
       {std::pair{2U, "every second NIC"}, {4U, "all but every fourth NIC"}}) {
    if (n <= every) continue;
    out.push_back(
        {where, "down", taken_off(nics, [every](std::size_t i) { return i % every != 0; })});
  }
  if (n > 2) {
    out.push_back({fmt::format("all NICs but {}", nics.front()->name), "down",
                   taken_off(nics, [](std::size_t i) { return i > 0; })});
  }
  return out;
}

Variants rates(const Site& site) {
  Variants out;
  for (const double share : {0.5, 0.25}) {
    add_factor(site, site.nics(), "rate", share, fmt::format("{:.0f} % of its rate", 100 * share),
               out);
  }
  return out;
}

Variants mtu(const Site& site) {
  Variants out;
  if (site.nics().empty()) return out;
  for (const double bytes : {1024.0, 256.0}) {
    if (bytes >= site.number("wire.mtu")) continue;
    Change change;
    change.set.push_back({"", "wire.mtu", site.text("wire.mtu", bytes)});
    out.push_back({"the network", site.text("wire.mtu", bytes), change});
  }
  return out;
}

bool has_tiers(const Site& site) {
  return !site.nics().empty() && site.spec().network.kind > NetworkSpec::Kind::kOneSwitch;
}

Variants uplinks_of_leaves(const Site& site) {
  Variants out;
  // Leaves with a rate of their own keep it: what all switches have does not beat that.
  if (!has_tiers(site) || site.spec().network.leaf.settings.contains("uplink_rate")) return out;
  double rate = site.number("netswitch.uplink_rate");
  if (rate == 0) {  // as the fastest NIC's link
    for (const DeviceSpec* nic : site.nics()) rate = std::max(rate, site.number(*nic, "rate"));
    rate = std::min(rate, site.number("wire.rate"));
  }
  for (const double share : {0.5, 0.25}) {
    Change change;
    change.set.push_back(
        {"", "netswitch.uplink_rate", site.text("netswitch.uplink_rate", share * rate)});
    out.push_back(
        {"the leaves' uplinks", fmt::format("{:.0f} % of their rate", 100 * share), change});
  }
  return out;
}

Variants hashing(const Site& site) {
  if (!has_tiers(site)) return {};
  Change change;
  change.set.push_back({"", "wire.routing", "ecmp"});
  return {{"the network", "each queue pair takes one way", change}};
}

constexpr std::array kCauses{
    CauseEntry{"acs", "ACS sends peer traffic by the root complex",
               "a GPU and a peer below one PCIe switch",
               "sudo lspci -vvv | grep ACSCtl; clear it there (setpci), or in the BIOS", "ACS",
               false, acs},
    CauseEntry{"iommu", "the IOMMU translates what devices read and write", "a CPU",
               "cat /proc/cmdline; boot with iommu=pt", "IOMMU", false, iommu},
    CauseEntry{"flat-guest", "a virtual machine that shows no PCIe switches, without ATS",
               "NICs, PCIe switches, and more than one node",
               "nvidia-smi topo -m in the guest (PHB everywhere); NCCL_TOPO_FILE, and ACS with ATS "
               "at the host",
               "IOMMU", true, flat_guest},  // the guest's kernel knows only its own
    CauseEntry{"gdr-missing", "GPUDirect RDMA is off: nobody maps GPU memory for NICs",
               "NICs, and more than one node",
               "lsmod | grep peermem; modprobe nvidia-peermem, or use DMA-BUF; NCCL_DEBUG=INFO "
               "says GDRDMA",
               "modules", false, peer_memory},
    CauseEntry{"staged", "GPUDirect RDMA is off for another reason", "NICs, and more than one node",
               "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH says GDRDMA or not, and why",
               "GPUDirect RDMA", true, staged},
    CauseEntry{"bar1", "BAR1 is too small for NCCL's buffers", "NICs, and more than one node",
               "nvidia-smi -q -d MEMORY; Above 4G Decoding and Resizable BAR in the BIOS", "BAR1",
               false, bar1},
    CauseEntry{"far-nic", "NICs are at the other socket", "two sockets and NICs",
               "nvidia-smi topo -m (SYS); another slot, or NCCL_IB_HCA", "NUMA placement", true,
               far_nics},
    CauseEntry{"nic-at-root", "NICs are at the CPU, not below the GPUs' switches",
               "NICs below PCIe switches", "nvidia-smi topo -m (PHB, NODE)", "", false,
               nics_at_root},
    CauseEntry{"nic-link", "PCIe links of NICs trained low", "NICs, and more than one node",
               "sudo lspci -vvv (LnkSta against LnkCap); reseat", "PCIe links", false, nic_links},
    CauseEntry{"gpu-link", "PCIe links of GPUs trained low", "a GPU",
               "nvidia-smi -q (GPU Link Info) under load; reseat", "PCIe links", false, gpu_links},
    CauseEntry{"switch-link", "uplinks of PCIe switches trained low", "a PCIe switch",
               "sudo lspci -vvv (LnkSta of the upstream ports)", "PCIe links", false, uplinks},
    CauseEntry{"payload", "MaxPayload is low", "more than 128 B",
               "sudo lspci -vvv (DevCtl); pci=pcie_bus_perf", "MaxPayload", false, payload},
    CauseEntry{"read-requests", "MaxReadReq of NICs is low", "NICs, and more than one node",
               "sudo lspci -vvv (DevCtl); setpci -s BUS CAP_EXP+8.w=5000:7000", "MaxReadReq", false,
               read_requests},
    CauseEntry{"outstanding-reads", "NICs have few PCIe reads in flight",
               "NICs, and more than one node", "mlxconfig q (MAX_ACC_OUT_READ); ib_read_bw", "",
               true, outstanding_reads},
    CauseEntry{"ordering", "relaxed ordering of NICs is off", "NICs, and more than one node",
               "mlxconfig q (PCI_WR_ORDERING); lspci -vvv (RlxdOrd)", "relaxed ordering", false,
               ordering},
    CauseEntry{"port-down", "ports of NICs are down", "two NICs, and more than one node",
               "ibstat; NCCL_DEBUG=INFO (NET/IB : Using)", "ports", false, ports_down},
    CauseEntry{"nic-rate", "NICs run below their rate", "NICs, and more than one node",
               "ibstat (Rate); ib_write_bw of each NIC", "rate", false, rates},
    CauseEntry{"mtu", "the network's MTU is low", "NICs, and more than one node",
               "ibv_devinfo (active_mtu); ip link set NETDEV mtu 9000", "MTU", false, mtu},
    CauseEntry{"uplinks", "leaves have fewer or slower uplinks", "a network of several tiers",
               "iblinkinfo; the switches' ports", "", false, uplinks_of_leaves},
    CauseEntry{"hashing", "flows collide on uplinks by hashing", "a network of several tiers",
               "NCCL_IB_QPS_PER_CONNECTION=4; adaptive routing", "", false, hashing},
    CauseEntry{"dram", "memory channels are empty", "a CPU",
               "sudo dmidecode -t memory; fill every channel", "", false, dram},
    CauseEntry{"socket-link", "the link between the sockets is slow", "two sockets",
               "BIOS: UPI or xGMI speed and links", "", false, socket_link},
    CauseEntry{"nvlink", "a GPU has lost NVLinks", "two GPUs that NVLink joins",
               "nvidia-smi nvlink -s; dmesg (Xid 74)", "NVLinks", false, nvlinks_of_one},
    CauseEntry{"nvswitch", "an NVSwitch or a part of all NVLinks is lost",
               "two GPUs behind an NVSwitch", "nvidia-smi nvlink -s; Fabric Manager's log",
               "NVLinks", false, nvswitches},
    CauseEntry{"gpu-clock", "GPUs run below their clock", "a GPU",
               "nvidia-smi -q -d CLOCK,PERFORMANCE under load (throttling, power cap)", "alerts",
               true, clocks},
};

}  // namespace

std::span<const CauseEntry> pcie_causes() { return kCauses; }

}  // namespace weft
