#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/input/nccl_links.hpp"
#include "sim/input/nccl_parts.hpp"
#include "sim/input/xml_text.hpp"

namespace weft {
namespace {

constexpr std::int64_t kMostBytes = 16LL << 20;

/// Where an object of hwloc hangs.
struct Above {
  std::string numa;      ///< "" if it is near to several
  std::string root_bus;  ///< "" outside of PCI
  std::string bridge;    ///< "" on a root bus
};

class HwlocReader {
 public:
  HwlocReader(const XmlText& xml, const EvidenceSection& section, Facts& facts)
      : xml_{xml}, section_{section}, facts_{facts} {}

  /// Its depth is bounded by XmlText.
  void read(pugi::xml_node object, Above above);

 private:
  void add(pugi::xml_node object, const std::string& subject, std::string_view what,
           std::string value) {
    if (value.empty()) return;
    facts_.add(section_.fact({{}, xml_.place(object).line}, subject, what, std::move(value)));
  }
  void read_cpu(pugi::xml_node package);
  void read_function(pugi::xml_node object, const std::string& id, const Above& above);
  void read_os_device(pugi::xml_node object, const Above& above);

  const XmlText& xml_;
  const EvidenceSection& section_;
  Facts& facts_;
};

/// The one node of a set "0x00000002"; "" if there are none or several.
std::string only_node(std::string_view set) {
  std::string out;
  std::uint64_t word = 0;
  // Words of 32 bits, the highest first, divided by commas; a word may be left out.
  std::uint64_t words = 1;
  for (const char c : set) words += c == ',' ? 1 : 0;
  Scan scan(set);
  while (words-- > 0) {
    word = Scan(scan.until(",")).hex().value_or(0);
    for (std::uint64_t bit = 0; bit < 32; ++bit) {
      if ((word >> bit & 1) == 0) continue;
      if (!out.empty()) return {};
      out = std::to_string(words * 32 + bit);
    }
  }
  return out;
}

void HwlocReader::read(pugi::xml_node object, Above above) {
  const std::string type = XmlText::text(object, "type");
  const std::string id = bus_id_of(XmlText::text(object, "pci_busid"));
  if (const std::string set = XmlText::text(object, "nodeset"); !set.empty()) {
    above.numa = only_node(set);
  }
  if (type == "Package" || type == "Machine") read_cpu(object);
  if (type == "OSDev") read_os_device(object, above);
  if ((type == "Bridge" || type == "PCIDev") && !id.empty()) read_function(object, id, above);
  if (type == "Bridge") {
    const std::string buses = XmlText::text(object, "bridge_pci");  // "0000:[2b-3b]"
    if (id.empty()) {
      Scan scan(buses);
      const std::optional<std::uint64_t> domain = scan.hex();
      const std::optional<std::uint64_t> bus = scan.skip(":[") ? scan.hex() : std::nullopt;
      if (domain && bus) above.root_bus = fmt::format("{:04x}:{:02x}", *domain, *bus);
    }
    above.bridge = id;
  } else if (type == "PCIDev") {
    above.bridge = id;  // of the OS devices below
  }
  for (const pugi::xml_node child : object.children("object")) read(child, above);
}

void HwlocReader::read_cpu(pugi::xml_node package) {
  std::string vendor;
  std::string family;
  std::string model;
  for (const pugi::xml_node info : package.children("info")) {
    const std::string name = XmlText::text(info, "name");
    const std::string value = XmlText::text(info, "value");
    if (name == "CPUVendor") vendor = value;
    if (name == "CPUFamilyNumber") family = value;
    if (name == "CPUModelNumber") model = value;
  }
  const std::optional<std::int64_t> number = Scan(family).whole();
  if (vendor.empty() || model.empty() || !number) return;
  const std::int64_t counted = *number > 15 && *number < 256 ? 15 + (*number - 15) * 16 : *number;
  add(package, "host", fact::kCpu, one_line(fmt::format("{} {} {}", vendor, counted, model)));
}

/// pci_type is "0302 [10de:1db8] [10de:12f7] a1 00".
void HwlocReader::read_function(pugi::xml_node object, const std::string& id, const Above& above) {
  const std::string type = XmlText::text(object, "pci_type");
  add(object, id, fact::kClass, type.substr(0, 4));
  if (Scan scan(type); scan.skip_to("["))
    add(object, id, fact::kPciId, std::string(scan.until("]")));
  if (!above.bridge.empty()) {
    add(object, id, fact::kParent, above.bridge);
  } else {
    add(object, id, fact::kRootBus, above.root_bus);
  }
  add(object, id, fact::kNuma, above.numa);
  const std::optional<double> rate = Scan(XmlText::text(object, "pci_link_speed")).number();
  if (rate && *rate > 0 && *rate < 1000) add(object, id, fact::kLinkRate, format_number(*rate));
}

/// "mlx5_0" is a verbs device, as is what hwloc 2 gives type 3 ("ibp24s0"); "nvml3" and "cuda3"
/// GPUs by NVML's and CUDA's number.
void HwlocReader::read_os_device(pugi::xml_node object, const Above& above) {
  const std::string name = XmlText::text(object, "name");
  if (above.bridge.empty()) return;
  Scan scan(name);
  if (scan.skip("nvml")) {
    if (const auto number = scan.whole()) {
      add(object, "gpu" + std::to_string(*number), fact::kBusId, above.bridge);
      add(object, above.bridge, fact::kClass, "0302");
    }
    return;
  }
  bool is_verbs = XmlText::text(object, "osdev_type") == "3";
  for (const std::string_view begin :
       {"mlx4_", "mlx5_", "bnxt_re", "rocep", "efa_", "irdma", "hns_"}) {
    is_verbs = is_verbs || name.starts_with(begin);
  }
  if (is_verbs) add(object, name, fact::kBusId, above.bridge);
}

/// An NCCL topology file as facts.
class NcclXmlFacts {
 public:
  NcclXmlFacts(const XmlText& xml, const EvidenceSection& section, Facts& facts)
      : xml_{xml}, section_{section}, facts_{facts} {}

  void read(pugi::xml_node element, const std::string& above) {
    const std::string_view name = element.name();
    std::string here = above;
    if (name == "cpu") here = read_cpu(element);
    if (name == "pci") here = read_pci(element, above);
    if (name == "gpu") read_gpu(element, above);
    if (name == "net") read_net(element, above);
    for (const pugi::xml_node child : element.children()) read(child, here);
  }

 private:
  void add(pugi::xml_node element, const std::string& subject, std::string_view what,
           std::string value) {
    if (value.empty() || subject.empty()) return;
    facts_.add(section_.fact({{}, xml_.place(element).line}, subject, what, std::move(value)));
  }

  std::string read_cpu(pugi::xml_node cpu) {
    std::string numa = "numa" + std::to_string(xml_.integer(cpu, "numaid").value_or(0));
    const std::string vendor = XmlText::text(cpu, "vendor");
    const std::optional<std::int64_t> family = xml_.integer(cpu, "familyid");
    const std::optional<std::int64_t> model = xml_.integer(cpu, "modelid");
    if (family && model) {
      add(cpu, "host", fact::kCpu, one_line(fmt::format("{} {} {}", vendor, *family, *model)));
    }
    add(cpu, numa, fact::kClass, "CPU");
    return numa;
  }

  /// The links that NCCL writes are what both ends can do.
  std::string read_pci(pugi::xml_node pci, const std::string& above) {
    std::string id = bus_id_of(XmlText::text(pci, "busid"));
    if (id.empty()) return above;
    add(pci, id, fact::kParent, above);
    const std::optional<std::int64_t> code = xml_.pci_number(pci, "class");
    if (code) add(pci, id, fact::kClass, fmt::format("{:04x}", *code >> 8 & 0xffff));
    const std::optional<std::int64_t> vendor = xml_.pci_number(pci, "vendor");
    const std::optional<std::int64_t> device = xml_.pci_number(pci, "device");
    if (vendor && device && *vendor > 0) {
      add(pci, id, fact::kPciId, fmt::format("{:04x}:{:04x}", *vendor, *device));
    }
    add(pci, id, fact::kGen, generation_of(XmlText::text(pci, "link_speed")));
    const std::optional<std::int64_t> lanes = xml_.integer(pci, "link_width");
    if (lanes && *lanes > 0 && *lanes <= 32) add(pci, id, fact::kWidth, std::to_string(*lanes));
    if (pci.child("pci")) add(pci, id, fact::kPort, "switch");
    return id;
  }

  /// What a device is, where the <pci> above does not say it.
  void add_class(pugi::xml_node device, const std::string& above, std::string kind) {
    const pugi::xml_node pci = device.parent();
    if (std::string_view(pci.name()) == "pci" && !xml_.pci_number(pci, "class")) {
      add(device, above, fact::kClass, std::move(kind));
    }
  }

  void read_gpu(pugi::xml_node gpu, const std::string& above) {
    add_class(gpu, above, "0302");
    if (const auto number = xml_.integer(gpu, "dev")) {
      add(gpu, "gpu" + std::to_string(*number), fact::kBusId, above);
    }
    constexpr std::int64_t kMostLinks = 1024;
    std::int64_t links = 0;
    std::map<std::string, std::int64_t> to;
    for (const pugi::xml_node link : gpu.children("nvlink")) {
      const std::int64_t count = xml_.integer(link, "count").value_or(0);
      if (count <= 0 || count >= kMostLinks) continue;
      links += count;
      const std::optional<std::int64_t> kind = xml_.pci_number(link, "tclass");
      if (!kind || nvlink_end(*kind) == NvlinkEnd::kCpu) continue;
      const bool is_gpu = nvlink_end(*kind) == NvlinkEnd::kGpu;
      to[is_gpu ? bus_id_of(XmlText::text(link, "target")) : std::string(kNcclNvSwitchName)] +=
          count;
    }
    if (links == 0 || links >= kMostLinks) return;
    add(gpu, above, fact::kNvlinks, std::to_string(links));
    for (const auto& [peer, count] : to) {
      if (!peer.empty()) add(gpu, above, std::string(fact::kLink) + peer, std::to_string(count));
    }
  }

  void read_net(pugi::xml_node net, const std::string& above) {
    const std::string name = one_line(XmlText::text(net, "name"));
    if (!above.starts_with("numa")) add(net, name, fact::kBusId, above);
    add_class(net, above, "0200");
    if (const auto dev = xml_.integer(net, "dev"))
      add(net, name, fact::kNetIndex, std::to_string(*dev));
    const std::optional<std::int64_t> speed = xml_.integer(net, "speed");
    if (speed && *speed > 0) {
      add(net, name, fact::kRate, format_number(static_cast<double>(*speed) / 1000));
    }
    // NET/Socket has port 0; that it has no GPUDirect RDMA says nothing.
    const auto gdr = xml_.integer(net, "gdr");
    const bool is_socket = xml_.integer(net, "port").value_or(1) == 0;
    if (gdr && (*gdr != 0 || !is_socket)) add(net, name, fact::kGdr, *gdr != 0 ? "on" : "off");
    const auto collnet = xml_.integer(net, "coll");
    if (collnet) add(net, name, fact::kCollnet, *collnet != 0 ? "on" : "off");
  }

  const XmlText& xml_;
  const EvidenceSection& section_;
  Facts& facts_;
};

}  // namespace

void read_hwloc(const std::string& text, const EvidenceSection& section, Facts& facts) {
  const XmlText xml(text, section.file, kMostBytes);
  HwlocReader reader(xml, section, facts);
  for (const pugi::xml_node object : xml.document().child("topology").children("object")) {
    reader.read(object, {});
  }
}

void read_nccl_xml_facts(const std::string& text, const EvidenceSection& section, Facts& facts) {
  const XmlText xml(text, section.file, kMostBytes);
  NcclXmlFacts(xml, section, facts).read(xml.document().child("system"), "");
}

}  // namespace weft
