#include "models/nccl/decide/system.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "models/nccl/decide/fused_tree.hpp"
#include "sim/input/nccl_parts.hpp"

namespace weft {
namespace {

using enum NcclNodeType;

constexpr int kMaxNodes = 576;               // NCCL_TOPO_MAX_NODES, graph/topo.h
constexpr std::int64_t kAmdVendor = 0x1002;  // PCI
constexpr int kHostShift = 56;               // NCCL_TOPO_ID
constexpr std::uint64_t kLocalIdMask = (std::uint64_t{1} << kHostShift) - 1;

/// A word and what it stands for; NCCL takes the first word that the text begins with.
template <class Value>
struct Word {
  std::string_view prefix;
  Value value;
};

template <class Value, std::size_t N>
Value first_prefix(const std::array<Word<Value>, N>& words, std::string_view text,
                   Value otherwise) {
  for (const Word<Value>& word : words) {
    if (text.starts_with(word.prefix)) return word.value;
  }
  return otherwise;
}

NcclNodeType class_of(std::string_view pci_class) {
  static constexpr std::array<Word<NcclNodeType>, 6> kClasses{{{"0x060400", kPci},
                                                               {"0x080100", kPci},
                                                               {"0x068000", kNvs},
                                                               {"0x068001", kCpu},
                                                               {"0x03", kGpu},
                                                               {"0x02", kNic}}};
  return first_prefix(kClasses, pci_class, kPci);
}

/// 100 Mb/s a lane after encoding and protocol (kvDictPciGen, graph/topo.cc).
int lane_speed(std::string_view link_speed) {
  static constexpr std::array<Word<int>, 11> kSpeeds{{{"2.5 GT/s", 15},
                                                      {"5 GT/s", 30},
                                                      {"8 GT/s", 60},
                                                      {"16 GT/s", 120},
                                                      {"32 GT/s", 240},
                                                      {"2.5 GT/s PCIe", 15},
                                                      {"5.0 GT/s PCIe", 30},
                                                      {"8.0 GT/s PCIe", 60},
                                                      {"16.0 GT/s PCIe", 120},
                                                      {"32.0 GT/s PCIe", 240},
                                                      {"64.0 GT/s PCIe", 480}}};
  return first_prefix(kSpeeds, link_speed, 60);
}

/// "0000:00:06.0" is 0x60: the hexadecimal digits up to the first other sign.
std::uint64_t bus_number(std::string_view bus_id) {
  std::string digits;
  for (const char c : bus_id) {
    if (c == '.' || c == ':') continue;
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) break;
    digits += c;
  }
  return std::strtoull(digits.c_str(), nullptr, 16) & kLocalIdMask;
}

/// Between sockets, GB/s (graph/topo.h, ncclTopoGetInterCpuBw).
float socket_bw(const NcclCpuInfo& cpu, const NcclRelease& release) {
  if (cpu.arch == NcclCpuArch::kPower) return 32.0F;
  if (cpu.arch == NcclCpuArch::kArm) return 6.0F;
  switch (cpu.vendor) {
    case NcclCpuVendor::kIntel:
      if (cpu.model == NcclCpuModel::kEmerald && release.knows_sapphire) return 40.0F;
      if (cpu.model == NcclCpuModel::kSapphire && release.knows_sapphire) return 22.0F;
      return cpu.model == NcclCpuModel::kBroadwell ? 6.0F : 10.0F;
    case NcclCpuVendor::kAmd:
      return release.amd_socket_bw;
    case NcclCpuVendor::kZhaoxin:
      return cpu.model == NcclCpuModel::kYongfeng ? 9.0F : 6.0F;
    case NcclCpuVendor::kOther:
      break;
  }
  return kNcclLocalBw;
}

NcclCpuModel intel_model(std::int64_t family, std::int64_t model) {
  if (family != 6 || model < 0x55) return NcclCpuModel::kBroadwell;
  if (model >= 0xcf) return NcclCpuModel::kEmerald;
  return model >= 0x8f ? NcclCpuModel::kSapphire : NcclCpuModel::kSkylake;
}

NcclCpuInfo cpu_info(const NcclElement& cpu) {
  NcclCpuInfo info;
  const std::string& arch = cpu.text("arch");
  if (arch == "arm64") info.arch = NcclCpuArch::kArm;
  if (arch == "ppc64") info.arch = NcclCpuArch::kPower;
  if (info.arch != NcclCpuArch::kX86) return info;
  const std::string& vendor = cpu.text("vendor");
  const std::int64_t family = cpu.integer("familyid").value_or(0);
  const std::int64_t model = cpu.integer("modelid").value_or(0);
  if (vendor == "GenuineIntel") {
    info.vendor = NcclCpuVendor::kIntel;
    info.model = intel_model(family, model);
  } else if (vendor == "AuthenticAMD") {
    info.vendor = NcclCpuVendor::kAmd;
  } else if (vendor == "CentaurHauls" || vendor == "  Shanghai  ") {
    info.vendor = NcclCpuVendor::kZhaoxin;
    if (family == 7 && model == 0x5b) info.model = NcclCpuModel::kYongfeng;
  }
  return info;
}

class SystemBuilder {
 public:
  explicit SystemBuilder(const NcclRelease& release) { system_.release = release; }
  NcclSystem build(const NcclElement& fused);

 private:
  void add_cpu(const NcclElement& element);
  void add_cpu_nic(const NcclElement& nic, int cpu);
  void add_pci(const NcclElement& pci, int parent);
  int add_gpu(const NcclElement& pci, const NcclElement& gpu, std::uint64_t bus);
  int add_switch(const NcclElement& pci, std::uint64_t bus);
  void add_nets(const NcclElement& nic, int nic_node);
  void add_net(const NcclElement& net, int nic_node);

  template <class Visit>
  void for_each_cpu(const NcclElement& fused, const Visit& visit);
  void add_gpu_links(const NcclElement& element, std::uint64_t above, std::string_view tag);
  void add_nvlink(const NcclElement& nvlink, int gpu);
  void add_c2c(const NcclElement& c2c, int gpu);
  void add_pci_links(const NcclElement& element, std::uint64_t bus);
  void join_cpus();

  int create(NcclNodeType type, std::uint64_t id, const NcclElement& element);
  int find(NcclNodeType type, std::uint64_t id) const;
  void connect_one_way(int from, int to, NcclLinkType type, float bw);
  void connect(int a, int b, NcclLinkType type, float bw) {
    connect_one_way(a, b, type, bw);
    connect_one_way(b, a, type, bw);
  }
  int cpu_above(int node, int from) const;

  void flatten_switches();
  int switch_generation(int node, bool is_lower) const;
  void take_over(int upper, int lower);
  void remove_node(int node);
  void put_uplinks_last(int node, int up);

  NcclNode& node(int i) { return system_.nodes[static_cast<std::size_t>(i)]; }
  const NcclNode& node(int i) const { return system_.nodes[static_cast<std::size_t>(i)]; }
  NcclLink& link(int i) { return system_.links[static_cast<std::size_t>(i)]; }
  const NcclLink& link(int i) const { return system_.links[static_cast<std::size_t>(i)]; }
  std::vector<int>& of(NcclNodeType type) {
    return system_.by_type[static_cast<std::size_t>(type)];
  }

  NcclSystem system_;
  int host_{0};  ///< of the CPU that is being read
  std::vector<std::string> host_hashes_;
};

NcclSystem SystemBuilder::build(const NcclElement& fused) {
  for_each_cpu(fused, [this](const NcclElement& cpu) { add_cpu(cpu); });
  system_.hosts = static_cast<int>(host_hashes_.size());
  if (of(kGpu).empty()) {
    fused.fail("no <gpu> in this file stands in a <pci> of a <cpu>, where NCCL looks for it");
  }
  for (const char* const tag : {"nvlink", "c2c"}) {
    for_each_cpu(fused, [&](const NcclElement& cpu) { add_gpu_links(cpu, 0, tag); });
  }
  for_each_cpu(fused, [this](const NcclElement& cpu) { add_pci_links(cpu, 0); });
  flatten_switches();
  join_cpus();
  for (const int cpu : of(kCpu)) put_uplinks_last(cpu, -1);
  return std::move(system_);
}

/// Visits the CPUs in the file's order; `host_` is then the host of each.
template <class Visit>
void SystemBuilder::for_each_cpu(const NcclElement& fused, const Visit& visit) {
  for (const NcclElement& cpu : fused.children) {
    if (cpu.tag != "cpu") continue;
    const std::string& hash = cpu.text("host_hash");
    const auto known = std::find(host_hashes_.begin(), host_hashes_.end(), hash);
    host_ = static_cast<int>(known - host_hashes_.begin());
    if (known == host_hashes_.end()) host_hashes_.push_back(hash);
    visit(cpu);
  }
}

void SystemBuilder::add_cpu(const NcclElement& element) {
  const std::optional<std::int64_t> numa = element.integer("numaid");
  if (!numa) element.fail("<cpu> without numaid");
  const int cpu = create(kCpu, static_cast<std::uint64_t>(*numa) & kLocalIdMask, element);
  node(cpu).cpu = cpu_info(element);
  for (const NcclElement& child : element.children) {
    if (child.tag == "pci") add_pci(child, cpu);
    if (child.tag == "nic") add_cpu_nic(child, cpu);
  }
}

/// A NIC that is no PCI device. Its id would have the NUMA id in bits that NCCL masks off, so all
/// of them are one node.
void SystemBuilder::add_cpu_nic(const NcclElement& nic, int cpu) {
  int found = find(kNic, 0);
  if (found == -1) {
    found = create(kNic, 0, nic);
    connect(cpu, found, NcclLinkType::kPci, kNcclLocalBw);
  }
  add_nets(nic, found);
}

void SystemBuilder::add_pci(const NcclElement& pci, int parent) {
  NcclNodeType type = class_of(pci.text("class"));
  const std::uint64_t bus = bus_number(pci.text("busid"));
  int created = -1;
  if (const NcclElement* const gpu = pci.child("gpu")) {
    type = kGpu;
    if (pci.integer("vendor") == kAmdVendor) {
      gpu->fail("AMD GPUs are not modelled: NCCL runs on NVIDIA's");
    }
    created = add_gpu(pci, *gpu, bus);
  }
  if (const NcclElement* const nic = pci.child("nic")) {
    type = kNic;
    int nic_node = find(kNic, bus);
    if (nic_node == -1) created = nic_node = create(kNic, bus, pci);
    add_nets(*nic, nic_node);
  } else if (type == kPci) {
    created = add_switch(pci, bus);
  }
  if (created == -1) return;
  const std::int64_t width = std::clamp<std::int64_t>(pci.integer("link_width").value_or(0), 0, 64);
  const int speed = lane_speed(pci.text("link_speed"));
  const auto bw = static_cast<float>(static_cast<double>(width == 0 ? 16 : width) * speed / 80.0);
  connect(created, parent, NcclLinkType::kPci, bw);
}

int SystemBuilder::add_gpu(const NcclElement& pci, const NcclElement& gpu, std::uint64_t bus) {
  if (gpu.integer("mlopart").value_or(-1) != -1) {
    gpu.fail("ML partitions (mlopart) are not modelled; -1 says that the GPU is whole");
  }
  const std::optional<std::int64_t> sm = gpu.integer("sm");
  const std::optional<std::int64_t> dev = gpu.integer("dev");
  if (!sm || *sm < 30 || *sm > 999) {
    gpu.fail("<gpu> needs sm, its compute capability times 10 (90 is Hopper)");
  }
  if (!dev || *dev < 0 || *dev >= kMaxNodes) gpu.fail("<gpu> without a device number (dev)");
  const int created = create(kGpu, bus, gpu);
  const std::string part =
      gpu_part(pci.integer("vendor").value_or(0), pci.integer("device").value_or(0), 0);
  node(created).gpu = {static_cast<int>(*dev),
                       static_cast<int>(gpu.integer("rank").value_or(-1)),
                       static_cast<int>(*sm),
                       static_cast<int>(gpu_compute_capability(part).value_or(*sm)),
                       gpu.integer("gdr").value_or(0) != 0,
                       created};
  if (!system_.release.has_dev_nodes) return created;
  const int device = create(kDev, bus, gpu);
  node(created).gpu.port = device;
  node(device).gpu = node(created).gpu;
  connect(created, device, NcclLinkType::kLoc, kNcclLocalBw);
  return device;
}

int SystemBuilder::add_switch(const NcclElement& pci, std::uint64_t bus) {
  const int created = create(kPci, bus, pci);
  std::uint64_t device = 0;
  int shift = 48;
  for (const char* const part : {"vendor", "device", "subsystem_vendor", "subsystem_device"}) {
    device += static_cast<std::uint64_t>(pci.integer(part).value_or(0)) << shift;
    shift -= 16;
  }
  node(created).pci_device = device;
  for (const NcclElement& child : pci.children) {
    if (child.tag == "pci") add_pci(child, created);
  }
  return created;
}

void SystemBuilder::add_nets(const NcclElement& nic, int nic_node) {
  for (const NcclElement& net : nic.children) {
    if (net.tag == "net") add_net(net, nic_node);
  }
}

void SystemBuilder::add_net(const NcclElement& net, int nic_node) {
  constexpr std::int64_t kSpeedIfUnknown = 10'000;  // Mb/s; graph/topo.cc
  constexpr std::int64_t kMostSpeed = 100'000'000;
  const std::int64_t dev = net.integer("dev").value_or(0);
  const int created = create(kNet, static_cast<std::uint64_t>(dev), net);
  NcclNetInfo& info = node(created).net;
  info.name = net.text("name");
  info.dev = static_cast<int>(dev);
  const std::string& guid = net.text("guid");
  info.asic = guid.empty() ? static_cast<std::uint64_t>(dev)
                           : std::strtoull(guid.c_str(), nullptr, 16);  // with 0x or without
  info.port = static_cast<int>(net.integer("port").value_or(0));
  std::int64_t speed = net.integer("speed").value_or(0);
  if (speed <= 0) speed = kSpeedIfUnknown;
  info.bw = static_cast<float>(static_cast<double>(std::min(speed, kMostSpeed)) / 8000.0);
  info.latency = std::strtof(net.text("latency").c_str(), nullptr);
  if (!(info.latency >= 0.0F && info.latency <= 1e6F)) {
    net.fail("<net>: latency='" + net.text("latency") + "' is not a time in us up to 1e6");
  }
  info.gdr = net.integer("gdr").value_or(0) != 0;
  info.coll = net.integer("coll").value_or(0) != 0;
  const float bw = info.bw;  // `info` moves when nodes are added; links do not add any
  connect(nic_node, created, NcclLinkType::kNet, bw);
  if (system_.release.has_gin_nodes && net.integer("gin").value_or(0) != 0) {
    const int gin = create(kGin, static_cast<std::uint64_t>(dev), net);
    connect(nic_node, gin, NcclLinkType::kNet, bw);
  }
}

/// NVLinks or C2C links, by `tag`, of all GPUs below.
void SystemBuilder::add_gpu_links(const NcclElement& element, std::uint64_t above,
                                  std::string_view tag) {
  const std::uint64_t bus =
      element.find("busid") != nullptr ? bus_number(element.text("busid")) : above;
  for (const NcclElement& child : element.children) {
    if (child.tag != tag) {
      add_gpu_links(child, bus, tag);
      continue;
    }
    const int gpu = find(system_.port_type(), bus);
    if (gpu == -1) child.fail("<" + child.tag + "> stands in no GPU");
    if (tag == "nvlink") {
      add_nvlink(child, gpu);
    } else {
      add_c2c(child, gpu);
    }
  }
}

void SystemBuilder::add_nvlink(const NcclElement& nvlink, int gpu) {
  constexpr std::int64_t kMostParallel = 1024;
  const std::optional<std::int64_t> count = nvlink.integer("count");
  if (!count || *count < 0 || *count > kMostParallel) {
    nvlink.fail("<nvlink> needs a count from 0 to " + std::to_string(kMostParallel));
  }
  // A target whose class is not stated is not visible in the machine: NCCL takes it for NVSwitch.
  const std::string* const target_class = nvlink.find("tclass");
  const NcclNodeType target = target_class != nullptr ? class_of(*target_class) : kNvs;
  int remote = -1;
  if (target == kGpu) {
    remote = find(system_.port_type(), bus_number(nvlink.text("target")));
  } else if (target == kCpu) {
    remote = cpu_above(gpu, -1);
  } else {
    if (of(kNvs).empty()) node(create(kNvs, 0, nvlink)).host = 0;  // one for all hosts
    remote = of(kNvs).front();
  }
  if (remote == -1) return;
  const float bw = static_cast<float>(*count) * nccl_nvlink_bw(node(gpu).gpu.sm, system_.release);
  connect_one_way(gpu, remote, NcclLinkType::kNvl, bw);
  if (target != kGpu) connect_one_way(remote, gpu, NcclLinkType::kNvl, bw);
}

void SystemBuilder::add_c2c(const NcclElement& c2c, int gpu) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const std::int64_t count = c2c.integer("count").value_or(0);
  const std::int64_t megabytes = c2c.integer("bw").value_or(0);
  if (count < 0 || count > 1024 || megabytes < 0 || megabytes > kMost) {
    c2c.fail("<c2c> needs a count from 0 to 1024 and a bw in MB/s");
  }
  const int cpu = cpu_above(gpu, -1);
  if (cpu == -1) return;
  const auto bw = static_cast<float>(static_cast<double>(megabytes * count) / 1000.0);
  connect(gpu, cpu, system_.release.has_c2c ? NcclLinkType::kC2c : NcclLinkType::kNvl, bw);
}

/// PCI switches that talk to each other directly (Broadcom).
void SystemBuilder::add_pci_links(const NcclElement& element, std::uint64_t bus) {
  const std::uint64_t here =
      element.find("busid") != nullptr ? bus_number(element.text("busid")) : bus;
  for (const NcclElement& child : element.children) {
    if (child.tag != "pcilink") {
      add_pci_links(child, here);
      continue;
    }
    const int from = find(kPci, here);
    const int to = find(kPci, bus_number(child.text("target")));
    if (from == -1) child.fail("<pcilink> stands in no PCI switch");
    if (to != -1) connect_one_way(from, to, NcclLinkType::kLoc, kNcclLocalBw);
  }
}

void SystemBuilder::join_cpus() {
  for (const int a : of(kCpu)) {
    for (const int b : of(kCpu)) {
      if (a == b || node(a).host != node(b).host) continue;
      connect_one_way(a, b, NcclLinkType::kSys, socket_bw(node(a).cpu, system_.release));
    }
  }
}

int SystemBuilder::create(NcclNodeType type, std::uint64_t id, const NcclElement& element) {
  if (type != kPci && find(type, id) != -1) {
    element.fail("<" + element.tag + "> is given twice (the same busid, numaid or dev)");
  }
  if (std::cmp_equal(of(type).size(), kMaxNodes)) {
    element.fail("more than " + std::to_string(kMaxNodes) + " of <" + element.tag + ">");
  }
  const int created = static_cast<int>(system_.nodes.size());
  NcclNode fresh;
  fresh.type = type;
  fresh.id = id;
  fresh.host = host_;
  system_.nodes.push_back(std::move(fresh));
  of(type).push_back(created);
  return created;
}

int SystemBuilder::find(NcclNodeType type, std::uint64_t id) const {
  for (const int i : system_.of(type)) {
    if (node(i).id == id && node(i).host == host_) return i;
  }
  return -1;
}

/// Parallel links add up. A node's links stay sorted by bandwidth, falling, the older one first.
void SystemBuilder::connect_one_way(int from, int to, NcclLinkType type, float bw) {
  std::vector<int>& links = node(from).links;
  auto place = std::find_if(links.begin(), links.end(),
                            [&](int i) { return link(i).to == to && link(i).type == type; });
  if (place == links.end()) {
    links.push_back(static_cast<int>(system_.links.size()));
    system_.links.push_back({from, to, type, 0.0F});
    place = links.end() - 1;
  }
  link(*place).bw += bw;
  while (place != links.begin() && link(*(place - 1)).bw < link(*place).bw) {
    std::iter_swap(place - 1, place);
    --place;
  }
}

/// Up the PCIe tree; -1 if no CPU is above.
int SystemBuilder::cpu_above(int at, int from) const {
  if (node(at).type == kCpu) return at;
  for (const int i : node(at).links) {
    const NcclNodeType type = node(link(i).to).type;
    if (link(i).type != NcclLinkType::kPci || link(i).to == from) continue;
    if (type != kPci && type != kCpu) continue;
    const int found = cpu_above(link(i).to, at);
    if (found != -1) return found;
  }
  return -1;
}

/// Broadcom's Gen4 and Gen5 switches show as two levels although all ports have full bandwidth;
/// NCCL makes one switch of them.
void SystemBuilder::flatten_switches() {
  for (std::size_t s = 0; s < of(kPci).size(); ++s) {
    const int upper = of(kPci)[s];
    const int generation = switch_generation(upper, false);
    if (generation == 0) continue;
    std::vector<int> lower;
    for (const int i : node(upper).links) {
      const int below = link(i).to;
      if (node(below).type == kPci && switch_generation(below, true) == generation) {
        lower.push_back(below);
      }
    }
    std::erase_if(node(upper).links, [&](int i) {
      return std::find(lower.begin(), lower.end(), link(i).to) != lower.end();
    });
    for (const int below : lower) take_over(upper, below);
    node(upper).pci_device |= 0xffff;  // done
    s = static_cast<std::size_t>(-1);  // start again: the list of switches has changed
  }
}

int SystemBuilder::switch_generation(int at, bool is_lower) const {
  constexpr std::uint64_t kMask = 0xffff'ffff'ffff'f000;
  const std::uint64_t device = node(at).pci_device & kMask;
  if (device == 0x1000'c010'1000'a000) return 4;
  return device == (0x1000'c030'1000'0000 | (is_lower ? 0x1000U : 0U)) ? 5 : 0;
}

void SystemBuilder::take_over(int upper, int lower) {
  for (const int i : node(lower).links) {
    const int device = link(i).to;
    if (device == upper) continue;
    link(i).from = upper;
    node(upper).links.push_back(i);
    for (const int back : node(device).links) {
      if (link(back).to == lower) {
        link(back).to = upper;
        break;
      }
    }
  }
  node(lower).links.clear();
  remove_node(lower);
}

/// Takes a node out of the lists; its place among all nodes stays, unused.
void SystemBuilder::remove_node(int gone) {
  std::erase(of(node(gone).type), gone);
  for (NcclNode& other : system_.nodes) {
    std::erase_if(other.links, [&](int i) { return link(i).to == gone; });
  }
}

/// NVLinks first (they are fastest), then down the PCIe tree, then up, then between sockets.
void SystemBuilder::put_uplinks_last(int at, int up) {
  std::vector<int>& links = node(at).links;
  if (up != -1) {
    const auto uplink =
        std::find_if(links.begin(), links.end(), [&](int i) { return link(i).to == up; });
    if (uplink != links.end()) std::rotate(uplink, uplink + 1, links.end());
  }
  for (const int i : links) {
    if (link(i).type == NcclLinkType::kPci && link(i).to != up) put_uplinks_last(link(i).to, at);
  }
}

}  // namespace

std::string NcclNode::name() const {
  static constexpr std::array kTypes{"GPU", "PCI", "NVS", "CPU", "NIC", "NET", "GIN", "DEV"};
  return fmt::format("{}/{:x}-{:x}", kTypes[static_cast<std::size_t>(type)], host, id);
}

std::uint64_t NcclNode::full_id() const {
  return (static_cast<std::uint64_t>(host) << kHostShift) | id;
}

int NcclSystem::lowest_sm() const {
  int lowest = node(kGpu, 0).gpu.sm;
  for (int g = 0; g < count(kGpu); ++g) lowest = std::min(lowest, node(kGpu, g).gpu.sm);
  return lowest;
}

int NcclSystem::lowest_capability() const {
  int lowest = node(kGpu, 0).gpu.capability;
  for (int g = 0; g < count(kGpu); ++g) lowest = std::min(lowest, node(kGpu, g).gpu.capability);
  return lowest;
}

int NcclSystem::highest_capability() const {
  int highest = 0;
  for (int g = 0; g < count(kGpu); ++g) highest = std::max(highest, node(kGpu, g).gpu.capability);
  return highest;
}

int NcclSystem::gpu_of_rank(int rank) const {
  for (int g = 0; g < count(kGpu); ++g) {
    if (node(kGpu, g).gpu.rank == rank) return g;
  }
  return -1;
}

float nccl_nvlink_bw(int sm, const NcclRelease& release) {
  if (sm >= 100 && release.knows_blackwell) return 40.1F;
  if (sm >= 90) return 20.6F;
  if (sm == 86) return 12.0F;
  if (sm >= 80) return 20.0F;
  if (sm >= 70) return 20.0F;
  return sm >= 60 ? 18.0F : 20.0F;
}

NcclSystem build_nccl_system(const NcclTree& tree, const NcclEnv& env, const NcclRelease& release) {
  return SystemBuilder(release).build(fuse_nccl_tree(tree, env, release));
}

}  // namespace weft
