#include "sim/input/nccl_xml.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/input/nccl_links.hpp"
#include "sim/input/nccl_parts.hpp"
#include "sim/input/nccl_root.hpp"
#include "sim/input/xml_text.hpp"
#include "sim/io/file.hpp"

namespace weft {
namespace {

constexpr std::int64_t kDisplayClass = 0x03;  // PCI base class; the others have the subclass too
constexpr std::int64_t kBridgeClass = 0x0604;
constexpr std::int64_t kInfinibandClass = 0x0207;
constexpr std::int64_t kEthernetClass = 0x0200;
constexpr std::size_t kMostCpus = 256;
constexpr const char* kNetworkName = "fabric";

/// "32.0 GT/s PCIe" is generation 5; nullopt if the text names no rate that PCIe has.
std::optional<int> pcie_generation(const std::string& link_speed) {
  static constexpr std::array<std::pair<double, int>, 6> kRates{
      {{2.5, 1}, {5.0, 2}, {8.0, 3}, {16.0, 4}, {32.0, 5}, {64.0, 6}}};
  const std::size_t end = std::min(link_speed.find(' '), link_speed.size());
  const std::optional<double> rate = parse_number(std::string_view(link_speed).substr(0, end));
  for (const auto& [gigatransfers, generation] : kRates) {
    if (rate == gigatransfers) return generation;
  }
  return std::nullopt;
}

/// A device whose place in the list is its `dev`, as NCCL numbers GPUs and NICs.
struct NumberedDevice {
  std::int64_t dev{std::numeric_limits<std::int64_t>::max()};
  DeviceSpec device;
};

class NcclReader {
 public:
  NcclReader(const XmlText& xml, const ParamCatalog& catalog) : xml_{xml}, catalog_{catalog} {}
  TopologySpec read();

 private:
  void read_cpu(pugi::xml_node cpu);
  void read_children(pugi::xml_node parent, const std::string& upstream);
  void read_pci(pugi::xml_node pci, const std::string& upstream);
  void add_switch(pugi::xml_node pci, const std::string& upstream);
  void add_gpu(pugi::xml_node gpu, pugi::xml_node pci, const std::string& upstream);
  void add_nics(pugi::xml_node nic, pugi::xml_node pci, const std::string& upstream);
  void add_net(pugi::xml_node net, pugi::xml_node pci, const std::string& upstream);
  void decide_wire(pugi::xml_node pci);

  void require_gpus(pugi::xml_node system) const;
  void gather_devices();
  void gather_links();

  DeviceSpec make_device(std::string name, DeviceKind kind, pugi::xml_node pci,
                         pugi::xml_node element, const std::string& upstream) const;
  std::optional<ParamValue> value(pugi::xml_node element, const std::string& key,
                                  const std::string& text, Origin origin,
                                  const std::string& source) const;
  void set(DeviceSpec& device, const char* name, const std::string& text, Origin origin,
           const std::string& source, pugi::xml_node element) const;
  void set_pcie(DeviceSpec& device, pugi::xml_node pci) const;
  void set_gdr(DeviceSpec& device, pugi::xml_node element) const;
  std::string unique_net_name(pugi::xml_node net);
  std::string said_by(const char* attribute, const DeviceSpec& device) const;

  const XmlText& xml_;
  const ParamCatalog& catalog_;
  TopologySpec spec_;
  std::string root_cpu_;  // of what is being read
  std::string host_hash_;
  std::vector<DeviceSpec> cpus_;
  std::vector<DeviceSpec> switches_;
  std::vector<NumberedDevice> gpus_;
  std::vector<NumberedDevice> nics_;
  std::set<std::string> net_names_;
  std::vector<GpuElement> gpu_elements_;
  bool has_gpu_function_{false};
};

TopologySpec NcclReader::read() {
  const pugi::xml_node system = require_nccl_system(xml_);
  spec_.file = xml_.file();
  spec_.name = std::filesystem::path(xml_.file()).stem().string();
  spec_.source = "NCCL topology file " + xml_.file();
  for (const pugi::xml_node cpu : system.children("cpu")) read_cpu(cpu);
  require_gpus(system);
  gather_devices();
  gather_links();
  if (!nics_.empty()) {
    spec_.network.kind = NetworkSpec::Kind::kOneSwitch;
    spec_.network.name = kNetworkName;
    spec_.network.place = xml_.place(system);
  }
  return std::move(spec_);
}

void NcclReader::read_cpu(pugi::xml_node cpu) {
  const std::optional<std::int64_t> numa = xml_.integer(cpu, "numaid");
  if (!numa) xml_.fail(cpu, "<cpu> without numaid");
  if (cpus_.size() == kMostCpus) {
    xml_.fail(cpu, "more than " + std::to_string(kMostCpus) + " <cpu>");  // joined pairwise below
  }
  const std::string host_hash = XmlText::text(cpu, "host_hash");
  if (!cpus_.empty() && host_hash != host_hash_) {
    xml_.fail(cpu, "this file holds several machines (host_hash); give the file of one");
  }
  host_hash_ = host_hash;

  DeviceSpec device;
  // A virtual machine without NUMA information has -1; there is one such CPU then.
  device.name = "cpu" + std::to_string(std::max<std::int64_t>(*numa, 0));
  device.kind = DeviceKind::kCpu;
  device.part = cpu_part(XmlText::text(cpu, "vendor"), xml_.integer(cpu, "familyid").value_or(-1),
                         xml_.integer(cpu, "modelid").value_or(-1));
  device.place = xml_.place(cpu);
  for (const DeviceSpec& other : cpus_) {
    if (other.name != device.name) continue;
    xml_.fail(cpu, "<cpu> with numaid " + std::to_string(*numa) + " is given twice");
  }
  for (const DeviceSpec& other : cpus_) {
    spec_.node.links.push_back({LinkKind::kSocket, other.name, device.name, 1, device.place});
  }
  root_cpu_ = device.name;
  cpus_.push_back(std::move(device));
  read_children(cpu, root_cpu_);
}

void NcclReader::read_children(pugi::xml_node parent, const std::string& upstream) {
  for (const pugi::xml_node child : parent.children()) {
    const std::string name = child.name();
    if (name == "pci") read_pci(child, upstream);
    if (name == "gpu") add_gpu(child, {}, upstream);
    if (name == "nic") add_nics(child, {}, upstream);
  }
}

void NcclReader::read_pci(pugi::xml_node pci, const std::string& upstream) {
  const std::int64_t pci_class = xml_.integer(pci, "class").value_or(0);
  const std::int64_t base_class = pci_class >> 16;
  if (base_class == kDisplayClass) has_gpu_function_ = true;
  if (const pugi::xml_node gpu = pci.child("gpu")) {
    if (gpu.next_sibling("gpu")) {
      xml_.fail(pci, "two <gpu> in one <pci> (ML partitions) are not read yet");
    }
    add_gpu(gpu, pci, upstream);
  } else if (pci.child("nic")) {
    for (const pugi::xml_node nic : pci.children("nic")) add_nics(nic, pci, upstream);
  } else if (pci.child("pci") || pci_class >> 8 == kBridgeClass) {
    add_switch(pci, upstream);
  }
}

void NcclReader::add_switch(pugi::xml_node pci, const std::string& upstream) {
  const std::string name = "pcisw" + std::to_string(switches_.size());
  DeviceSpec device = make_device(name, DeviceKind::kSwitch, pci, pci, upstream);
  set_pcie(device, pci);
  switches_.push_back(std::move(device));
  read_children(pci, name);
}

void NcclReader::add_gpu(pugi::xml_node gpu, pugi::xml_node pci, const std::string& upstream) {
  const std::optional<std::int64_t> dev = xml_.integer(gpu, "dev");
  if (!dev || *dev < 0) xml_.fail(gpu, "<gpu> without a device number (dev)");
  NumberedDevice numbered;
  numbered.dev = *dev;
  numbered.device = make_device("gpu" + std::to_string(*dev), DeviceKind::kGpu, pci, gpu, upstream);
  DeviceSpec& device = numbered.device;
  device.part =
      gpu_part(xml_.integer(pci, "vendor").value_or(0), xml_.integer(pci, "device").value_or(0),
               xml_.integer(gpu, "sm").value_or(0));
  if (pci) set_pcie(device, pci);
  set_gdr(device, gpu);
  gpu_elements_.push_back({device.name, device.bus_id, root_cpu_, gpu});
  gpus_.push_back(std::move(numbered));
}

void NcclReader::add_nics(pugi::xml_node nic, pugi::xml_node pci, const std::string& upstream) {
  for (const pugi::xml_node net : nic.children("net")) add_net(net, pci, upstream);
}

void NcclReader::add_net(pugi::xml_node net, pugi::xml_node pci, const std::string& upstream) {
  constexpr std::int64_t kSpeedWhenUnknown = 10'000;  // Mb/s; NCCL's, graph/topo.cc
  if (nics_.empty()) decide_wire(pci);
  NumberedDevice numbered;
  numbered.dev = xml_.integer(net, "dev").value_or(numbered.dev);
  numbered.device = make_device(unique_net_name(net), DeviceKind::kNic, pci, net, upstream);
  DeviceSpec& device = numbered.device;
  device.part =
      nic_part(xml_.integer(pci, "vendor").value_or(0), xml_.integer(pci, "device").value_or(0));
  device.network = kNetworkName;
  if (pci) set_pcie(device, pci);
  set_gdr(device, net);
  const std::int64_t speed = xml_.integer(net, "speed").value_or(0);
  if (speed > 0) {
    set(device, "rate", std::to_string(speed) + " Mb/s", Origin::kMeasured,
        said_by("speed", device), net);
  } else {
    set(device, "rate", std::to_string(kSpeedWhenUnknown) + " Mb/s", Origin::kAssumed,
        said_by("speed", device) + " is unknown; 10 Gb/s, as NCCL reads it", net);
  }
  nics_.push_back(std::move(numbered));
}

/// The first NIC decides what the network is made of.
void NcclReader::decide_wire(pugi::xml_node pci) {
  const std::int64_t nic_class = xml_.integer(pci, "class").value_or(0) >> 8;
  if (nic_class != kInfinibandClass && nic_class != kEthernetClass) return;
  const std::string kind = nic_class == kInfinibandClass ? "infiniband" : "roce";
  const std::string source =
      xml_.file() + ": class of " + XmlText::text(pci, "busid") + ", the first NIC";
  if (const auto found = value(pci, "wire.kind", kind, Origin::kMeasured, source)) {
    spec_.defaults.emplace("wire.kind", *found);
  }
}

void NcclReader::require_gpus(pugi::xml_node system) const {
  if (!gpus_.empty()) return;
  xml_.fail(system, std::string("no <gpu> in this file") +
                        (has_gpu_function_
                             ? ": a skeleton, which NCCL fills in as it starts, is not read yet; "
                               "give the file that NCCL_TOPO_DUMP_FILE writes"
                             : ""));
}

void NcclReader::gather_devices() {
  const auto by_dev = [](const NumberedDevice& a, const NumberedDevice& b) {
    return a.dev < b.dev;
  };
  std::vector<DeviceSpec>& devices = spec_.node.devices;
  devices = std::move(cpus_);
  std::move(switches_.begin(), switches_.end(), std::back_inserter(devices));
  for (std::vector<NumberedDevice>* numbered : {&gpus_, &nics_}) {
    std::stable_sort(numbered->begin(), numbered->end(), by_dev);
    for (const NumberedDevice& each : *numbered) devices.push_back(each.device);
  }
}

void NcclReader::gather_links() {
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

void NcclReader::set_pcie(DeviceSpec& device, pugi::xml_node pci) const {
  if (const auto generation = pcie_generation(XmlText::text(pci, "link_speed"))) {
    set(device, "pcie_gen", std::to_string(*generation), Origin::kMeasured,
        said_by("link_speed", device), pci);
  }
  const std::int64_t width = xml_.integer(pci, "link_width").value_or(0);
  if (width != 0) {
    set(device, "pcie_width", std::to_string(width), Origin::kMeasured,
        said_by("link_width", device), pci);
  } else {
    set(device, "pcie_width", "16", Origin::kAssumed,
        said_by("link_width", device) + " is unknown; x16, as NCCL reads it", pci);
  }
}

void NcclReader::set_gdr(DeviceSpec& device, pugi::xml_node element) const {
  const std::optional<std::int64_t> gdr = xml_.integer(element, "gdr");
  if (!gdr) return;
  set(device, "gdr", *gdr != 0 ? "on" : "off", Origin::kMeasured, said_by("gdr", device), element);
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
