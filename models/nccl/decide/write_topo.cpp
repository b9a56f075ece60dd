#include "models/nccl/decide/write_topo.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "models/nccl/decide/fused_tree.hpp"
#include "sim/base/error.hpp"
#include "sim/input/nccl_parts.hpp"
#include "sim/topology/node_hosts.hpp"

namespace weft {
namespace {

// NCCL's PCI classes (graph/topo.cc).
constexpr const char* kBridgeClass = "0x060400";
constexpr const char* kGpuClass = "0x030200";
constexpr const char* kInfinibandClass = "0x020700";
constexpr const char* kEthernetClass = "0x020000";
constexpr const char* kNvSwitchClass = "0x068000";
// A switch that NCCL does not take for one of Broadcom's two-level ones: no subsystem numbers.
constexpr PciNumbers kSwitchNumbers{0x1000, 0xc030};
constexpr const char* kUnseenBusId = "fffffff:ff:ff.0";  // what NCCL writes of unseen NVSwitches

std::string hex_text(std::int64_t number) { return fmt::format("0x{:x}", number); }

/// What sysfs says of a generation's rate; "" if there is no such generation.
std::string link_speed_text(int generation) {
  static constexpr std::array<const char*, 6> kRates{"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"};
  if (generation < 1 || generation > static_cast<int>(kRates.size())) return "";
  return std::string(kRates[static_cast<std::size_t>(generation) - 1]) + " GT/s PCIe";
}

NcclElement element(std::string tag,
                    std::initializer_list<std::pair<std::string, std::string>> attributes) {
  NcclElement out;
  out.tag = std::move(tag);
  out.attributes = attributes;
  return out;
}

/// Why NCCL's decisions for a GPU are not known; "" if they are.
std::string gpu_obstacle(const DeviceSpec& gpu) {
  if (gpu.part.starts_with("mi")) {
    return gpu.name + ": AMD GPUs are not modelled: NCCL runs on NVIDIA's";
  }
  if (gpu_compute_capability(gpu.part)) return "";
  return gpu.name + ": NCCL decides by the compute capability, which its part '" + gpu.part +
         "' does not say; name the GPUs with --gpu PART (such as h100-sxm)";
}

class FabricReader {
 public:
  explicit FabricReader(const DeviceParams& devices);
  /// What NVML calls the GPUs, in the file's order.
  void number_gpus(const std::vector<std::uint32_t>& numbers);
  std::vector<std::uint32_t> nvml_numbers() const;
  FabricAsNccl read();

 private:
  /// The places of the first GPU and the first NIC at or below a device, for its place in the file.
  using FirstUsers = std::pair<std::size_t, std::size_t>;
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  void find_hosts();
  NcclElement cpu_element(DeviceId cpu, std::size_t numa);
  NcclElement pci_element(DeviceId device);
  NcclElement gpu_element(DeviceId gpu) const;
  /// What NCCL is told of a NIC's rate.
  Bandwidth reported_rate(DeviceId nic) const;
  NcclElement net_element(DeviceId nic, std::size_t port_number) const;
  bool is_port_of_another(DeviceId nic) const;
  std::vector<DeviceId> ports_of(DeviceId nic) const;
  FirstUsers arrange(DeviceId device);
  void name_buses(DeviceId above);
  std::string fresh_bus_id();
  const std::vector<DeviceId>& below(DeviceId device) const { return below_[device.index()]; }

  const DeviceParams& devices_;
  const Fabric& fabric_;
  // By device of the node:
  std::vector<std::vector<DeviceId>> below_;  ///< on the PCIe tree; only what leads to a GPU or NIC
  std::vector<std::size_t> place_;            ///< of GPUs, and of NICs in use, among their kind
  std::vector<std::size_t> dev_;              ///< the same among those of its host
  std::vector<std::size_t> host_;             ///< of CPUs and what is below them
  std::size_t hosts_{0};
  std::vector<std::string> bus_ids_;
  std::set<std::string> taken_;
  std::uint32_t next_bus_{1};
  std::size_t made_up_{0};
  std::vector<std::string> notes_;
};

FabricReader::FabricReader(const DeviceParams& devices)
    : devices_{devices}, fabric_{devices.fabric()} {
  const std::size_t count = fabric_.devices_per_node();
  below_.resize(count);
  place_.resize(count, kNone);
  bus_ids_.resize(count);
  std::size_t gpus = 0;
  std::size_t nics = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const DeviceId id{i};
    const DeviceSpec& spec = fabric_.device(id);
    if (spec.kind == DeviceKind::kGpu) place_[i] = gpus++;
    if (spec.kind == DeviceKind::kNic && fabric_.wire_link(id)) place_[i] = nics++;
    if (const auto above = fabric_.upstream(id)) below_[above->index()].push_back(id);
    if (!spec.bus_id.empty()) taken_.insert(bus_ids_[i] = spec.bus_id);
  }
  find_hosts();
}

void FabricReader::find_hosts() {
  const std::size_t count = fabric_.devices_per_node();
  host_.assign(count, 0);
  dev_ = place_;
  const NodeHosts hosts(fabric_.spec().node);
  hosts_ = hosts.count();
  std::map<std::string_view, std::size_t> numbers;  // by a host's CPU
  for (std::size_t i = 0; i < fabric_.count(DeviceKind::kCpu); ++i) {
    const DeviceId cpu = fabric_.device(0, DeviceKind::kCpu, i);
    const std::string_view host = hosts.first_cpu(fabric_.device(cpu).name);
    host_[cpu.index()] = numbers.try_emplace(host, numbers.size()).first->second;
  }
  if (hosts_ < 2) return;
  std::vector<std::size_t> gpus(hosts_, 0);
  std::vector<std::size_t> nics(hosts_, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (place_[i] == kNone) continue;
    DeviceId top{i};
    while (const auto above = fabric_.upstream(top)) top = *above;
    const bool is_gpu = fabric_.device(DeviceId{i}).kind == DeviceKind::kGpu;
    dev_[i] = (is_gpu ? gpus : nics)[host_[top.index()]]++;
  }
}

void FabricReader::number_gpus(const std::vector<std::uint32_t>& numbers) {
  for (std::size_t g = 0; g < numbers.size(); ++g) {
    dev_[fabric_.device(0, DeviceKind::kGpu, g).index()] = numbers[g];
  }
}

std::vector<std::uint32_t> FabricReader::nvml_numbers() const {
  std::vector<std::uint32_t> out;
  for (std::size_t g = 0; g < fabric_.count(DeviceKind::kGpu); ++g) {
    const std::size_t gpu = fabric_.device(0, DeviceKind::kGpu, g).index();
    out.push_back(static_cast<std::uint32_t>(dev_[gpu]));
  }
  return out;
}

FabricAsNccl FabricReader::read() {
  FabricAsNccl out;
  out.tree.file = fabric_.spec().file;
  out.tree.system = element("system", {{"version", "1"}});
  const std::size_t cpus = fabric_.count(DeviceKind::kCpu);
  for (std::size_t i = 0; i < cpus; ++i) {
    const DeviceId cpu = fabric_.device(0, DeviceKind::kCpu, i);
    arrange(cpu);
    name_buses(cpu);
  }
  for (std::size_t i = 0; i < cpus; ++i) {
    out.tree.system.children.push_back(cpu_element(fabric_.device(0, DeviceKind::kCpu, i), i));
  }
  if (made_up_ > 0) {
    notes_.push_back(
        fmt::format("{} devices have no bus_id and got one that the machine does not have: NCCL "
                    "finds devices by bus id, so state them before you use the file there",
                    made_up_));
  }
  out.notes = std::move(notes_);
  return out;
}

/// Orders what is below: branches with GPUs first, in the GPUs' order, then those with NICs only;
/// branches without either, which NCCL drops, are left out.
FabricReader::FirstUsers FabricReader::arrange(DeviceId device) {
  const DeviceKind kind = fabric_.device(device).kind;
  if (kind == DeviceKind::kGpu) return {place_[device.index()], kNone};
  if (kind == DeviceKind::kNic) return {kNone, place_[device.index()]};
  std::vector<std::pair<FirstUsers, DeviceId>> used;
  FirstUsers first{kNone, kNone};
  for (const DeviceId child : below(device)) {
    if (is_port_of_another(child)) continue;
    const FirstUsers users = arrange(child);
    if (users == FirstUsers{kNone, kNone}) continue;
    used.emplace_back(users, child);
    first = {std::min(first.first, users.first), std::min(first.second, users.second)};
  }
  std::sort(used.begin(), used.end());
  below_[device.index()].clear();
  for (const auto& [users, child] : used) below_[device.index()].push_back(child);
  return first;
}

/// Bus ids for what has none, in the order of the file.
void FabricReader::name_buses(DeviceId above) {
  for (const DeviceId device : below(above)) {
    std::string& bus_id = bus_ids_[device.index()];
    if (bus_id.empty()) {
      bus_id = fresh_bus_id();
      ++made_up_;
    }
    name_buses(device);
  }
}

std::string FabricReader::fresh_bus_id() {
  while (true) {
    std::string bus_id = fmt::format("{:04x}:{:02x}:00.0", next_bus_ / 256, next_bus_ % 256);
    ++next_bus_;
    if (taken_.insert(bus_id).second) return bus_id;
  }
}

NcclElement FabricReader::cpu_element(DeviceId cpu, std::size_t numa) {
  const DeviceSpec& spec = fabric_.device(cpu);
  NcclElement out = element("cpu", {{"numaid", std::to_string(numa)}});
  const std::optional<CpuNumbers> numbers = cpu_numbers(spec.part);
  if (!numbers) {
    notes_.push_back(spec.name +
                     ": its part does not say vendor and model; NCCL then takes an x86 CPU whose "
                     "sockets are joined without limit");
  }
  out.set("arch", std::string(numbers ? numbers->arch : "x86_64"));
  if (numbers && !numbers->vendor.empty()) {
    out.set("vendor", std::string(numbers->vendor));
    out.set("familyid", std::to_string(numbers->family));
    out.set("modelid", std::to_string(numbers->model));
  }
  if (hosts_ > 1) out.set("host_hash", hex_text(static_cast<std::int64_t>(host_[cpu.index()]) + 1));
  for (const DeviceId device : below(cpu)) out.children.push_back(pci_element(device));
  return out;
}

NcclElement FabricReader::pci_element(DeviceId device) {
  const DeviceSpec& spec = fabric_.device(device);
  const std::string kind(device_kind_name(spec.kind));
  std::string pci_class = kBridgeClass;
  PciNumbers numbers = kSwitchNumbers;
  if (spec.kind == DeviceKind::kGpu) {
    pci_class = kGpuClass;
    numbers = gpu_numbers(spec.part).value_or(PciNumbers{0x10de, 0});
  } else if (spec.kind == DeviceKind::kNic) {
    const bool infiniband = devices_.params().choice("wire.kind") == "infiniband";
    pci_class = infiniband ? kInfinibandClass : kEthernetClass;
    numbers = nic_numbers(spec.part).value_or(PciNumbers{});
  }
  const auto generation = static_cast<int>(devices_.number(kind + ".pcie_gen", device));
  const auto width = std::lround(devices_.number(kind + ".pcie_width", device));
  NcclElement out = element("pci", {{"busid", bus_ids_[device.index()]},
                                    {"class", pci_class},
                                    {"vendor", hex_text(numbers.vendor)},
                                    {"device", hex_text(numbers.device)},
                                    {"subsystem_vendor", "0x0"},
                                    {"subsystem_device", "0x0"},
                                    {"link_speed", link_speed_text(generation)},
                                    {"link_width", std::to_string(width)}});
  if (spec.kind == DeviceKind::kGpu) {
    out.children.push_back(gpu_element(device));
  } else if (spec.kind == DeviceKind::kNic) {
    NcclElement nic = element("nic", {});
    nic.children.push_back(net_element(device, 1));
    for (const DeviceId port : ports_of(device)) {
      nic.children.push_back(net_element(port, nic.children.size() + 1));
    }
    out.children.push_back(std::move(nic));
  }
  for (const DeviceId child : below(device)) out.children.push_back(pci_element(child));
  return out;
}

NcclElement FabricReader::gpu_element(DeviceId gpu) const {
  const DeviceSpec& spec = fabric_.device(gpu);
  const std::string obstacle = gpu_obstacle(spec);
  if (!obstacle.empty()) throw InputError(spec.place, obstacle);
  NcclElement out =
      element("gpu", {{"dev", std::to_string(dev_[gpu.index()])},
                      {"sm", std::to_string(gpu_compute_capability(spec.part).value())},
                      {"rank", std::to_string(place_[gpu.index()])},
                      {"gdr", devices_.choice("gpu.peer_mapping", gpu) == "none" ? "0" : "1"}});
  for (const PeerLinkSpec& link : fabric_.spec().node.links) {
    if (link.a != spec.name && link.b != spec.name) continue;
    const DeviceId peer = *fabric_.find(0, link.a == spec.name ? link.b : link.a);
    const bool is_switch = fabric_.device(peer).kind == DeviceKind::kNvSwitch;
    if (link.kind == LinkKind::kNvlink) {
      out.children.push_back(
          element("nvlink", {{"target", is_switch ? kUnseenBusId : bus_ids_[peer.index()]},
                             {"count", std::to_string(link.count)},
                             {"tclass", is_switch ? kNvSwitchClass : kGpuClass}}));
    } else if (link.kind == LinkKind::kC2c) {
      const double rate = devices_.bandwidth("gpu.c2c_rate", gpu).as_gigabytes_per_s();
      out.children.push_back(element("c2c", {{"bw", std::to_string(std::llround(rate * 1000))},
                                             {"count", std::to_string(link.count)}}));
    }
  }
  return out;
}

/// A further port of a NIC, on the same PCI function: it has no element of its own. Functions of a
/// card have their own bus ids, and NCCL sees a NIC in each.
bool FabricReader::is_port_of_another(DeviceId nic) const {
  const DeviceSpec& spec = fabric_.device(nic);
  if (spec.port_of.empty()) return false;
  const DeviceId first = *fabric_.find(0, spec.port_of);
  if (!fabric_.wire_link(first)) return false;
  return spec.bus_id.empty() || spec.bus_id == fabric_.device(first).bus_id;
}

std::vector<DeviceId> FabricReader::ports_of(DeviceId nic) const {
  std::vector<DeviceId> ports;
  for (std::size_t i = 0; i < fabric_.devices_per_node(); ++i) {
    const DeviceId id{i};
    const bool is_port = fabric_.device(id).port_of == fabric_.device(nic).name;
    if (is_port && is_port_of_another(id) && fabric_.wire_link(id)) ports.push_back(id);
  }
  return ports;
}

Bandwidth FabricReader::reported_rate(DeviceId nic) const {
  if (devices_.number("nic.reported_rate", nic) > 0) {
    return devices_.bandwidth("nic.reported_rate", nic);
  }
  return std::min(devices_.bandwidth("nic.rate", nic), devices_.params().bandwidth("wire.rate"));
}

NcclElement FabricReader::net_element(DeviceId nic, std::size_t port_number) const {
  const DeviceSpec& spec = fabric_.device(nic);
  const std::size_t dev = dev_[nic.index()];
  // Ports of one card share its GUID: NCCL tells cards apart by it.
  const DeviceId first = is_port_of_another(nic) ? *fabric_.find(0, spec.port_of) : nic;
  const std::size_t card = place_[first.index()];
  // NCCL takes 0 for 10 Gb/s.
  const long long speed =
      std::max(1LL, std::llround(reported_rate(nic).as_gigabits_per_s() * 1000));
  NcclElement out = element("net", {{"name", spec.name},
                                    {"dev", std::to_string(dev)},
                                    {"latency", "0.000000"},
                                    {"speed", std::to_string(speed)},
                                    {"port", std::to_string(port_number)},
                                    {"guid", hex_text(static_cast<std::int64_t>(card) + 1)},
                                    {"maxconn", "131072"},
                                    {"gdr", devices_.choice("nic.gdr", nic) == "on" ? "1" : "0"}});
  if (devices_.choice("nic.collnet", nic) == "on") out.set("coll", "1");
  return out;
}

// Limits of NCCL's reader (graph/xml.h, graph/xml.cc).
constexpr std::size_t kMostCharacters = 255;
constexpr std::size_t kMostAttributes = 16;
constexpr std::size_t kMostChildren = 640;
constexpr std::array kTags{"system", "cpu", "pci", "gpu", "nvlink", "c2c", "nic", "net", "pcilink"};

void check_text(const NcclElement& element, const std::string& text) {
  const bool odd = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '<' || c == '>';
  });
  if (text.size() <= kMostCharacters && !odd) return;
  element.fail(
      "<" + element.tag +
      ">: NCCL reads no names and values of more than 255 characters, or with quotes, <, > "
      "and control characters");
}

void write(const NcclElement& element, std::size_t depth, std::string& out) {
  if (element.attributes.size() > kMostAttributes || element.children.size() > kMostChildren) {
    element.fail("<" + element.tag + ">: NCCL reads at most 16 attributes and 640 children");
  }
  const std::string indent(2 * depth, ' ');
  out += indent + "<" + element.tag;
  for (const auto& [name, value] : element.attributes) {
    check_text(element, name);
    check_text(element, value);
    out += fmt::format(" {}=\"{}\"", name, value);
  }
  const auto is_known = [](const NcclElement& child) {
    return std::find(kTags.begin(), kTags.end(), child.tag) != kTags.end();
  };
  if (std::none_of(element.children.begin(), element.children.end(), is_known)) {
    out += "/>\n";
    return;
  }
  out += ">\n";
  for (const NcclElement& child : element.children) {
    if (is_known(child)) write(child, depth + 1, out);
  }
  out += indent + "</" + element.tag + ">\n";
}

}  // namespace

std::string why_not_decided(const Fabric& fabric) {
  const std::size_t gpus = fabric.count(DeviceKind::kGpu);
  if (gpus == 0) return "no GPU";
  if (std::cmp_greater(gpus, kMostNcclGpus)) {
    return fmt::format("{} GPUs in a node, more than {}", gpus, kMostNcclGpus);
  }
  for (std::size_t g = 0; g < gpus; ++g) {
    std::string why = gpu_obstacle(fabric.device(fabric.device(0, DeviceKind::kGpu, g)));
    if (!why.empty()) return why;
  }
  return "";
}

FabricAsNccl nccl_tree_of(const DeviceParams& devices,
                          const std::vector<std::uint32_t>& gpu_numbers) {
  FabricReader reader(devices);
  if (!gpu_numbers.empty()) reader.number_gpus(gpu_numbers);
  return reader.read();
}

std::vector<std::uint32_t> gpu_numbers_of(const DeviceParams& devices) {
  return FabricReader(devices).nvml_numbers();
}

std::string nccl_tree_text(const NcclTree& tree) {
  std::string out;
  write(tree.system, 0, out);
  return out;
}

}  // namespace weft
