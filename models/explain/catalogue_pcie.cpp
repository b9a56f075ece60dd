// Causes in the machine: PCIe, hosts, GPUs, NICs and the network.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>

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

Change set_on(const Devices& devices, const std::string& parameter, const std::string& value) {
  Change out;
  for (const DeviceSpec* each : devices) out.set.push_back({each->name, parameter, value});
  return out;
}

/// The same setting on all of them and on one of each kind of place.
void add_settings(const Site& site, const Devices& devices, const std::string& parameter,
                  const std::string& value, const std::string& how, Variants& out,
                  bool one_too = true) {
  if (devices.empty()) return;
  out.push_back({all_of(devices), how, set_on(devices, parameter, value)});
  if (!one_too || devices.size() == 1) return;
  for (const Site::Alike& alike : site.alike(devices)) {
    out.push_back({one_of(alike), how, set_on({alike.first}, parameter, value)});
  }
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
  const Devices devices = own_links(all);
  if (devices.empty()) return;
  const double lanes = site.number(*devices.front(), "pcie_width");
  const double gen = site.number(*devices.front(), "pcie_gen");
  for (const int halvings : {1, 2, 4}) {
    const double width = lanes / std::exp2(halvings);
    if (width < 1) continue;
    std::string how = fmt::format("x{:.0f}", width);
    if (gen > halvings) how += fmt::format(" or Gen{:.0f}", gen - halvings);
    add_settings(site, devices, "trained_width", fmt::format("{:.0f}", width), how, out);
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

Variants iommu(const Site& site) {
  Variants out;
  add_settings(site, site.cpus(), "iommu", "translate", "translates", out, false);
  return out;
}

void add_lower(const Site& site, const Devices& devices, const std::string& parameter,
               std::initializer_list<double> values, Variants& out, bool one_too = false) {
  if (devices.empty()) return;
  const double now = site.number(*devices.front(), parameter);
  const std::string key = std::string(devices.front()->scope()) + "." + parameter;
  for (const double value : values) {
    if (value >= now) continue;
    const std::string text = site.text(key, value);
    add_settings(site, devices, parameter, text, text, out, one_too);
  }
}

Variants payload(const Site& site) {
  constexpr double kLeast = 128;
  Variants out;
  Devices devices = site.gpus();
  devices.insert(devices.end(), site.nics().begin(), site.nics().end());
  devices.insert(devices.end(), site.cpus().begin(), site.cpus().end());
  if (site.gpus().empty() || site.number(*site.gpus().front(), "mps") <= kLeast) return out;
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
  if (site.cpus().empty()) return out;
  const double all = site.number(*site.cpus().front(), "dram_channels");
  for (const double channels : {std::floor(all / 2), 1.0}) {
    if (channels < 1 || channels >= all) continue;
    add_settings(site, site.cpus(), "dram_channels", fmt::format("{:.0f}", channels),
                 fmt::format("{:.0f} channels of {:.0f}", channels, all), out, false);
  }
  return out;
}

Variants socket_link(const Site& site) {
  Variants out;
  if (site.cpus().size() < 2) return out;
  const double rate = site.number(*site.cpus().front(), "socket_rate");
  for (const double share : {0.5, 0.25}) {
    add_settings(site, site.cpus(), "socket_rate", site.text("cpu.socket_rate", share * rate),
                 fmt::format("{:.0f} % of its rate", 100 * share), out, false);
  }
  return out;
}

struct GpuLinks {
  std::vector<Change::Links> all;
  bool at_switch{false};
};

GpuLinks nvlinks_of(const Site& site) {
  GpuLinks out;
  for (const PeerLinkSpec& link : site.spec().node.links) {
    if (link.kind != LinkKind::kNvlink) continue;
    const DeviceSpec* const to = site.device(link.b);
    out.at_switch = out.at_switch || (to != nullptr && to->kind == DeviceKind::kNvSwitch);
    const bool is_new = std::none_of(out.all.begin(), out.all.end(),
                                     [&](const auto& known) { return known.gpu == link.a; });
    if (is_new) out.all.push_back({link.a, link.count});
  }
  return out;
}

Change fewer(const std::vector<Change::Links>& links, double share) {
  Change out;
  for (const Change::Links& each : links) {
    const auto left = static_cast<std::uint32_t>(std::floor(each.count * share));
    out.nvlinks.push_back({each.gpu, std::max(1U, left)});
  }
  return out;
}

Variants nvlinks_of_one(const Site& site) {
  const GpuLinks links = nvlinks_of(site);
  Variants out;
  if (links.all.size() < 2) return out;
  for (const double share : {0.95, 0.5}) {
    Change change = fewer({links.all.front()}, share);
    const std::uint32_t left = change.nvlinks.front().count;
    if (left == links.all.front().count) continue;
    out.push_back({links.all.front().gpu + ", or another GPU",
                   fmt::format("{} of {} links", left, links.all.front().count), change});
  }
  return out;
}

Variants nvswitches(const Site& site) {
  const GpuLinks links = nvlinks_of(site);
  Variants out;
  if (links.all.size() < 2) return out;
  for (const double share : {0.75, 0.5}) {
    Change change = fewer(links.all, share);
    const std::uint32_t left = change.nvlinks.front().count;
    if (left == links.all.front().count) continue;
    out.push_back(
        {"all GPUs", fmt::format("{} of {} links", left, links.all.front().count), change});
  }
  return out;
}

Variants clocks(const Site& site) {
  Variants out;
  if (site.gpus().empty()) return out;
  for (const double factor : {1.5}) {
    const double cycle = factor * site.number(*site.gpus().front(), "sm_cycle");
    add_settings(site, site.gpus(), "sm_cycle", site.text("gpu.sm_cycle", cycle),
                 fmt::format("{:.0f} % of the clock", 100 / factor), out);
  }
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
  if (n > 2) {
    out.push_back(
        {"every second NIC", "down", taken_off(nics, [](std::size_t i) { return i % 2 == 1; })});
    out.push_back({fmt::format("all NICs but {}", nics.front()->name), "down",
                   taken_off(nics, [](std::size_t i) { return i > 0; })});
  }
  return out;
}

Variants rates(const Site& site) {
  Variants out;
  if (site.nics().empty()) return out;
  const double rate = site.number(*site.nics().front(), "rate");
  for (const double share : {0.5, 0.25}) {
    add_settings(site, site.nics(), "rate", site.text("nic.rate", share * rate),
                 fmt::format("{:.0f} % of its rate", 100 * share), out);
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
  if (!has_tiers(site)) return out;
  const double rate = site.number("wire.rate");
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
               "two GPUs that NVLink joins", "nvidia-smi nvlink -s; Fabric Manager's log",
               "NVLinks", false, nvswitches},
    CauseEntry{"gpu-clock", "GPUs run below their clock", "a GPU",
               "nvidia-smi -q -d CLOCK,PERFORMANCE under load (throttling, power cap)", "alerts",
               true, clocks},
};

}  // namespace

std::span<const CauseEntry> pcie_causes() { return kCauses; }

}  // namespace weft
