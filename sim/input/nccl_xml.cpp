#include "sim/input/nccl_xml.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/input/nccl_links.hpp"
#include "sim/input/nccl_parts.hpp"
#include "sim/input/nccl_pci.hpp"
#include "sim/input/nccl_root.hpp"
#include "sim/input/xml_text.hpp"
#include "sim/io/file.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostCpus = 256;
constexpr const char* kNetworkName = "fabric";

/// A device with what it is listed by: its host, its number, its bus id.
struct NumberedDevice {
  std::size_t host{0};
  std::int64_t dev{std::numeric_limits<std::int64_t>::max()};
  std::string bus;  ///< digits, as long as the others' by leading zeros
  DeviceSpec device;
  auto order() const { return std::tuple(host, dev, bus.size(), bus); }
};

/// A host of the file. Most have one; a dump of a multi-node NVLink domain has several.
struct Host {
  std::string hash;
  std::vector<DeviceSpec> cpus;
};

class NcclReader {
 public:
  NcclReader(const XmlText& xml, const ParamCatalog& catalog) : xml_{xml}, catalog_{catalog} {}
  TopologySpec read();

 private:
  void survey(pugi::xml_node element);
  std::size_t host_of(pugi::xml_node cpu);
  std::string name_on_host(const std::string& name) const;
  void read_cpu(pugi::xml_node cpu);
  void read_children(pugi::xml_node parent, const std::string& upstream);
  void read_pci(pugi::xml_node pci, const std::string& upstream);
  void add_switch(pugi::xml_node pci, const std::string& upstream);
  void add_gpu(pugi::xml_node gpu, pugi::xml_node pci, const std::string& upstream);
  void add_bare_gpu(pugi::xml_node pci, const std::string& upstream);
  void add_nets(pugi::xml_node nic, pugi::xml_node pci, const std::string& upstream);
  void add_net(pugi::xml_node net, pugi::xml_node pci, const std::string& upstream);
  void add_bare_nic(pugi::xml_node pci, const std::string& upstream);
  void add_nic(NumberedDevice numbered, pugi::xml_node pci);

  void require_gpus(pugi::xml_node system) const;
  void gather_devices();
  void number_bare(std::vector<NumberedDevice>& devices, const char* word) const;
  void gather_links();
  void join_ports();
  void decide_wire();
  void add_notes();

  DeviceSpec make_device(std::string name, DeviceKind kind, pugi::xml_node pci,
                         pugi::xml_node element, const std::string& upstream) const;
  NumberedDevice number(DeviceSpec device, std::int64_t dev) const;
  std::optional<ParamValue> value(pugi::xml_node element, const std::string& key,
                                  const std::string& text, Origin origin,
                                  const std::string& source) const;
  void set(DeviceSpec& device, const char* name, const std::string& text, Origin origin,
           const std::string& source, pugi::xml_node element) const;
  void set_pcie(DeviceSpec& device, pugi::xml_node pci);
  bool is_virtual_bridge(pugi::xml_node pci) const;
  /// An attribute that is 0 or 1.
  void set_switch(DeviceSpec& device, const char* name, pugi::xml_node element,
                  const char* attribute) const;
  void set_c2c(DeviceSpec& device, pugi::xml_node gpu) const;
  std::string unique_net_name(pugi::xml_node net);
  std::string said_by(const char* attribute, const DeviceSpec& device) const;

  const XmlText& xml_;
  const ParamCatalog& catalog_;
  TopologySpec spec_;
  bool is_rccl_{false};
  bool has_gpu_{false};  // a <gpu> somewhere: functions without one are none then, as for NCCL
  bool has_net_{false};
  bool has_bare_leaf_{false};  // a function of which only the bus id is known
  std::size_t host_{0};        // of what is being read
  std::string root_cpu_;
  std::vector<Host> hosts_;
  std::vector<DeviceSpec> switches_;
  std::vector<NumberedDevice> gpus_;
  std::vector<NumberedDevice> nics_;
  std::set<std::string> net_names_;
  std::set<std::string> virtual_bridges_;
  std::vector<GpuElement> gpu_elements_;
  std::map<bool, double> rate_of_wire_;  // of all NICs of a kind, InfiniBand or not
};

TopologySpec NcclReader::read() {
  const pugi::xml_node system = require_nccl_system(xml_);
  is_rccl_ = XmlText::text(system, "version") == "2";
  spec_.file = xml_.file();
  spec_.name = std::filesystem::path(xml_.file()).stem().string();
  spec_.source = (is_rccl_ ? "RCCL topology file " : "NCCL topology file ") + xml_.file();
  survey(system);
  for (const pugi::xml_node child : system.children()) {
    const std::string name = child.name();
    if (name == "cpu") read_cpu(child);
    if (name == "pci" || name == "gpu" || name == "nic") {
      xml_.fail(child, "a fragment: this <" + name +
                           "> stands in no <cpu>, so it is not known what it hangs below");
    }
  }
  require_gpus(system);
  gather_devices();
  gather_links();
  join_ports();
  decide_wire();
  add_notes();
  return std::move(spec_);
}

/// Which elements the file has at all. Its depth is bounded.
void NcclReader::survey(pugi::xml_node element) {
  for (const pugi::xml_node child : element.children()) {
    const std::string_view name = child.name();
    has_gpu_ = has_gpu_ || name == "gpu";
    has_net_ = has_net_ || name == "net";
    survey(child);
  }
}

std::size_t NcclReader::host_of(pugi::xml_node cpu) {
  const std::string hash = XmlText::text(cpu, "host_hash");
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hash.empty() || hosts_[i].hash == hash) return i;
  }
  hosts_.push_back({hash, {}});
  return hosts_.size() - 1;
}

/// Device numbers and NUMA ids begin anew on each host.
std::string NcclReader::name_on_host(const std::string& name) const {
  return host_ == 0 ? name : name + "-host" + std::to_string(host_);
}

void NcclReader::read_cpu(pugi::xml_node cpu) {
  const std::optional<std::int64_t> numa = xml_.integer(cpu, "numaid");
  if (!numa) xml_.fail(cpu, "<cpu> without numaid");
  host_ = host_of(cpu);
  std::vector<DeviceSpec>& cpus = hosts_[host_].cpus;
  if (cpus.size() + hosts_.size() > kMostCpus) {  // joined pairwise below
    xml_.fail(cpu, "more than " + std::to_string(kMostCpus) + " <cpu> of one host, or hosts");
  }
  DeviceSpec device;
  // A virtual machine without NUMA information has -1; there is one such CPU then.
  device.name = name_on_host("cpu" + std::to_string(std::max<std::int64_t>(*numa, 0)));
  device.kind = DeviceKind::kCpu;
  device.part = cpu_part(XmlText::text(cpu, "vendor"), xml_.integer(cpu, "familyid").value_or(-1),
                         xml_.integer(cpu, "modelid").value_or(-1));
  device.place = xml_.place(cpu);
  for (const DeviceSpec& other : cpus) {
    if (other.name != device.name) continue;
    xml_.fail(cpu, "<cpu> with numaid " + std::to_string(*numa) + " is given twice");
  }
  for (const DeviceSpec& other : cpus) {
    spec_.node.links.push_back({LinkKind::kSocket, other.name, device.name, 1, device.place});
  }
  root_cpu_ = device.name;
  cpus.push_back(std::move(device));
  read_children(cpu, root_cpu_);
}

void NcclReader::read_children(pugi::xml_node parent, const std::string& upstream) {
  for (const pugi::xml_node child : parent.children()) {
    const std::string name = child.name();
    if (name == "pci") read_pci(child, upstream);
    if (name == "gpu") add_gpu(child, {}, upstream);
    if (name == "nic") add_nets(child, {}, upstream);
  }
}

void NcclReader::read_pci(pugi::xml_node pci, const std::string& upstream) {
  if (pci.child("pci")) {
    add_switch(pci, upstream);
    return;
  }
  const pugi::xml_node gpu = pci.child("gpu");
  if (gpu && gpu.next_sibling("gpu")) {
    xml_.fail(pci, "two <gpu> in one <pci> (ML partitions of one GPU) are not modelled");
  }
  if (gpu) add_gpu(gpu, pci, upstream);
  for (const pugi::xml_node nic : pci.children("nic")) add_nets(nic, pci, upstream);
  if (gpu || pci.child("nic")) return;

  // A skeleton: NCCL fills in what the machine has. As for NCCL, a file with <gpu> has all of them.
  if (!has_gpu_ && is_compute_gpu(xml_, pci)) add_bare_gpu(pci, upstream);
  if (!has_net_ && pci_kind(xml_, pci) == PciKind::kNic) add_bare_nic(pci, upstream);
  has_bare_leaf_ = has_bare_leaf_ || XmlText::text(pci, "class").empty();
}

void NcclReader::add_switch(pugi::xml_node pci, const std::string& upstream) {
  const std::string name = "pcisw" + std::to_string(switches_.size());
  switches_.push_back(make_device(name, DeviceKind::kSwitch, pci, pci, upstream));
  set_pcie(switches_.back(), pci);
  read_children(pci, name);
}

void NcclReader::add_gpu(pugi::xml_node gpu, pugi::xml_node pci, const std::string& upstream) {
  const std::optional<std::int64_t> dev = xml_.integer(gpu, "dev");
  if (!dev || *dev < 0) xml_.fail(gpu, "<gpu> without a device number (dev)");
  const std::string name = name_on_host("gpu" + std::to_string(*dev));
  DeviceSpec device = make_device(name, DeviceKind::kGpu, pci, gpu, upstream);
  const std::int64_t vendor = xml_.pci_number(pci, "vendor").value_or(0);
  device.part = is_rccl_ ? amd_gpu_part(XmlText::text(gpu, "gcn"))
                         : gpu_part(vendor, xml_.pci_number(pci, "device").value_or(0),
                                    xml_.integer(gpu, "sm").value_or(0));
  if (pci) set_pcie(device, pci);
  set_switch(device, "gdr", gpu, "gdr");
  set_c2c(device, gpu);
  gpu_elements_.push_back({device.name, device.bus_id, root_cpu_, host_, gpu});
  gpus_.push_back(number(std::move(device), *dev));
}

void NcclReader::add_bare_gpu(pugi::xml_node pci, const std::string& upstream) {
  DeviceSpec device = make_device("", DeviceKind::kGpu, pci, pci, upstream);
  device.part = gpu_part(xml_.pci_number(pci, "vendor").value_or(0),
                         xml_.pci_number(pci, "device").value_or(0), 0);
  set_pcie(device, pci);
  gpus_.push_back(number(std::move(device), 0));
}

void NcclReader::add_nets(pugi::xml_node nic, pugi::xml_node pci, const std::string& upstream) {
  for (const pugi::xml_node net : nic.children("net")) add_net(net, pci, upstream);
}

void NcclReader::add_net(pugi::xml_node net, pugi::xml_node pci, const std::string& upstream) {
  constexpr std::int64_t kSpeedWhenUnknown = 10'000;  // Mb/s; NCCL's, graph/topo.cc
  DeviceSpec device = make_device(unique_net_name(net), DeviceKind::kNic, pci, net, upstream);
  set_switch(device, "gdr", net, "gdr");
  set_switch(device, "collnet", net, "coll");
  const std::int64_t speed = xml_.integer(net, "speed").value_or(0);
  if (speed > 0) {
    set(device, "rate", std::to_string(speed) + " Mb/s", Origin::kMeasured,
        said_by("speed", device), net);
  } else {
    set(device, "rate", std::to_string(kSpeedWhenUnknown) + " Mb/s", Origin::kAssumed,
        said_by("speed", device) + " is unknown; 10 Gb/s, as NCCL reads it", net);
  }
  if (pci)
    rate_of_wire_[is_infiniband(xml_, pci)] +=
        static_cast<double>(std::max<std::int64_t>(speed, 1));
  const std::int64_t unnumbered = std::numeric_limits<std::int64_t>::max();
  add_nic(number(std::move(device), xml_.integer(net, "dev").value_or(unnumbered)), pci);
}

void NcclReader::add_bare_nic(pugi::xml_node pci, const std::string& upstream) {
  rate_of_wire_[is_infiniband(xml_, pci)] += 1;
  add_nic(number(make_device("", DeviceKind::kNic, pci, pci, upstream), 0), pci);
}

void NcclReader::add_nic(NumberedDevice numbered, pugi::xml_node pci) {
  DeviceSpec& device = numbered.device;
  device.part = nic_part(xml_.pci_number(pci, "vendor").value_or(0),
                         xml_.pci_number(pci, "device").value_or(0));
  device.network = kNetworkName;
  if (pci) set_pcie(device, pci);
  nics_.push_back(std::move(numbered));
}

void NcclReader::require_gpus(pugi::xml_node system) const {
  if (!gpus_.empty()) return;
  if (has_bare_leaf_) {
    xml_.fail(system,
              "no <gpu> in this file, and no class that says which of its PCI functions are GPUs: "
              "NCCL fills that in from the machine; give the file that NCCL_TOPO_DUMP_FILE writes "
              "there, or add class=\"0x030200\" to the GPUs and class=\"0x020000\" to the NICs");
  }
  xml_.fail(system, "no GPU in this file: no <gpu>, and no <pci> of class 0x03... or 0x12...");
}

void NcclReader::gather_devices() {
  if (!has_gpu_) number_bare(gpus_, "gpu");
  if (!has_net_) number_bare(nics_, "nic");
  std::vector<DeviceSpec>& devices = spec_.node.devices;
  for (const Host& host : hosts_) {
    devices.insert(devices.end(), host.cpus.begin(), host.cpus.end());
  }
  std::move(switches_.begin(), switches_.end(), std::back_inserter(devices));
  const auto before = [](const NumberedDevice& a, const NumberedDevice& b) {
    return a.order() < b.order();
  };
  for (std::vector<NumberedDevice>* numbered : {&gpus_, &nics_}) {
    std::stable_sort(numbered->begin(), numbered->end(), before);
    for (const NumberedDevice& each : *numbered) devices.push_back(each.device);
  }
}

/// CUDA and the drivers number devices by their bus ids.
void NcclReader::number_bare(std::vector<NumberedDevice>& devices, const char* word) const {
  std::stable_sort(
      devices.begin(), devices.end(),
      [](const NumberedDevice& a, const NumberedDevice& b) { return a.order() < b.order(); });
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].device.name = word + std::to_string(i);
    devices[i].dev = static_cast<std::int64_t>(i);
  }
}

void NcclReader::gather_links() {
  spec_.nvlinks_unknown = !has_gpu_;
  const std::vector<PeerLinkSpec> links = read_gpu_links(xml_, gpu_elements_);
  spec_.node.links.insert(spec_.node.links.end(), links.begin(), links.end());
  const auto to_switch = std::find_if(links.begin(), links.end(), [](const PeerLinkSpec& link) {
    return link.b == kNcclNvSwitchName;
  });
  if (to_switch == links.end()) return;
  DeviceSpec nvswitch;
  nvswitch.name = kNcclNvSwitchName;
  nvswitch.kind = DeviceKind::kNvSwitch;
  nvswitch.place = to_switch->place;
  spec_.node.devices.push_back(std::move(nvswitch));
}

/// NICs of one PCI function are its ports, those of one PCI device its functions: all behind one
/// PCIe link.
void NcclReader::join_ports() {
  std::vector<DeviceSpec*> first_ports;
  for (DeviceSpec& device : spec_.node.devices) {
    if (device.kind != DeviceKind::kNic || device.bus_id.empty()) continue;
    const auto same_card = [&](const DeviceSpec* other) {
      return other->upstream == device.upstream &&
             (other->bus_id == device.bus_id || same_pci_device(other->bus_id, device.bus_id));
    };
    const auto first = std::find_if(first_ports.begin(), first_ports.end(), same_card);
    if (first == first_ports.end()) {
      first_ports.push_back(&device);
    } else {
      device.port_of = (*first)->name;
      device.upstream.clear();
    }
  }
}

/// The network is made of what most of the NICs' bandwidth is made of.
void NcclReader::decide_wire() {
  if (nics_.empty()) return;
  spec_.network.kind = NetworkSpec::Kind::kOneSwitch;
  spec_.network.name = kNetworkName;
  spec_.network.place = nics_.front().device.place;
  if (rate_of_wire_.empty()) return;
  const bool infiniband = rate_of_wire_[true] >= rate_of_wire_[false];
  const std::string source = xml_.file() + ": class of most NICs by their rate";
  if (const auto found =
          value({}, "wire.kind", infiniband ? "infiniband" : "roce", Origin::kMeasured, source)) {
    spec_.defaults.emplace("wire.kind", *found);
  }
}

void NcclReader::add_notes() {
  std::vector<std::string>& notes = spec_.notes;
  const std::string where = xml_.file() + ": ";
  if (hosts_.size() > 1) {
    notes.push_back(where + std::to_string(hosts_.size()) +
                    " hosts of one NVLink domain, taken as one node");
  }
  if (!has_gpu_) {
    notes.push_back(where + "a skeleton without <gpu>: functions of class 0x03... are its GPUs");
  }
  if (!nics_.empty() && !has_net_) {
    notes.push_back(where +
                    "no <net>: functions of class 0x02... are its NICs, at the rate of "
                    "their part or nic.rate");
  }
  if (!virtual_bridges_.empty()) {
    notes.push_back(where + "bridges at 2.5 GT/s x1 above faster devices are virtual (" +
                    known_names({virtual_bridges_.begin(), virtual_bridges_.end()}) +
                    "): their links are taken as fast as what is below");
  }
}

DeviceSpec NcclReader::make_device(std::string name, DeviceKind kind, pugi::xml_node pci,
                                   pugi::xml_node element, const std::string& upstream) const {
  DeviceSpec device;
  device.name = std::move(name);
  device.kind = kind;
  device.upstream = upstream;
  device.bus_id = XmlText::text(pci, "busid");
  device.place = xml_.place(element);
  return device;
}

NumberedDevice NcclReader::number(DeviceSpec device, std::int64_t dev) const {
  return {host_, dev, bus_digits(device.bus_id), std::move(device)};
}

/// "mlx5_0"; made of the characters that device names may have, and unique.
std::string NcclReader::unique_net_name(pugi::xml_node net) {
  std::string name = XmlText::text(net, "name");
  if (name.empty()) name = "nic" + XmlText::text(net, "dev");
  for (char& c : name) {
    const bool allowed = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                         c == '+' || c == ':';
    if (!allowed) c = '_';
  }
  std::string unique = name;
  for (int i = 2; !net_names_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  return unique;
}

std::string NcclReader::said_by(const char* attribute, const DeviceSpec& device) const {
  return xml_.file() + ": " + attribute + " of " +
         (device.bus_id.empty() ? device.name : device.bus_id);
}

/// nullopt where the catalog does not know the key.
std::optional<ParamValue> NcclReader::value(pugi::xml_node element, const std::string& key,
                                            const std::string& text, Origin origin,
                                            const std::string& source) const {
  const ParamSpec* spec = catalog_.find(key);
  if (spec == nullptr) return std::nullopt;
  try {
    return ParamValue{ParamCatalog::parse(*spec, text), origin, source};
  } catch (const InputError& error) {
    xml_.fail(element, std::string("<") + element.name() + ">: " + error.what());
  }
}

void NcclReader::set(DeviceSpec& device, const char* name, const std::string& text, Origin origin,
                     const std::string& source, pugi::xml_node element) const {
  const std::string key = std::string(device_kind_name(device.kind)) + "." + name;
  if (const auto found = value(element, key, text, origin, source)) {
    device.settings.emplace(name, *found);
  }
}

/// Hypervisors give their bridges 2.5 GT/s x1, whatever is below; no machine is built so.
bool NcclReader::is_virtual_bridge(pugi::xml_node pci) const {
  if (pcie_generation(XmlText::text(pci, "link_speed")) != 1 || pcie_lanes(xml_, pci) != 1) {
    return false;
  }
  const auto faster = [&](const pugi::xml_node& below) {
    return std::string_view(below.name()) == "pci" &&
           (pcie_generation(XmlText::text(below, "link_speed")).value_or(1) > 1 ||
            pcie_lanes(xml_, below).value_or(1) > 1);
  };
  return static_cast<bool>(pci.find_node(faster));
}

void NcclReader::set_pcie(DeviceSpec& device, pugi::xml_node pci) {
  std::optional<int> generation = pcie_generation(XmlText::text(pci, "link_speed"));
  std::optional<int> lanes = pcie_lanes(xml_, pci);
  if (device.kind == DeviceKind::kSwitch && is_virtual_bridge(pci)) {
    virtual_bridges_.insert(device.bus_id.empty() ? device.name : device.bus_id);
    for (const pugi::xml_node below : pci.children("pci")) {
      generation = std::max(generation, pcie_generation(XmlText::text(below, "link_speed")));
      lanes = std::max(lanes, pcie_lanes(xml_, below));
    }
    const std::string source = said_by("link_speed", device) + " is a virtual bridge's 2.5 GT/s x1";
    set(device, "pcie_gen", std::to_string(*generation), Origin::kAssumed, source, pci);
    set(device, "pcie_width", std::to_string(*lanes), Origin::kAssumed, source, pci);
    return;
  }
  if (generation) {
    set(device, "pcie_gen", std::to_string(*generation), Origin::kMeasured,
        said_by("link_speed", device), pci);
  }
  if (lanes) {
    set(device, "pcie_width", std::to_string(*lanes), Origin::kMeasured,
        said_by("link_width", device), pci);
  } else {
    set(device, "pcie_width", "16", Origin::kAssumed,
        said_by("link_width", device) + " is unknown; x16, as NCCL reads it", pci);
  }
}

/// NVML gives the rate of one C2C link in MB/s.
void NcclReader::set_c2c(DeviceSpec& device, pugi::xml_node gpu) const {
  const pugi::xml_node c2c = gpu.child("c2c");
  const std::int64_t rate = xml_.integer(c2c, "bw").value_or(0);
  if (rate <= 0) return;
  set(device, "c2c_rate", std::to_string(rate) + " MB/s", Origin::kMeasured,
      said_by("c2c bw", device), c2c);
}

void NcclReader::set_switch(DeviceSpec& device, const char* name, pugi::xml_node element,
                            const char* attribute) const {
  const std::optional<std::int64_t> said = xml_.integer(element, attribute);
  if (!said) return;
  set(device, name, *said != 0 ? "on" : "off", Origin::kMeasured, said_by(attribute, device),
      element);
}

}  // namespace

TopologySpec read_nccl_xml(const std::string& file, const ParamCatalog& catalog) {
  return parse_nccl_xml(read_text_file(file, kMaxXmlBytes), file, catalog);
}

TopologySpec parse_nccl_xml(const std::string& text, const std::string& file,
                            const ParamCatalog& catalog) {
  const XmlText xml(text, file, kMaxXmlBytes);
  return NcclReader(xml, catalog).read();
}

}  // namespace weft
