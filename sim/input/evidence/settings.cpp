#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/evidence/kernel.hpp"
#include "sim/input/evidence/machine.hpp"
#include "sim/input/evidence/product_names.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/input/nccl_parts.hpp"

namespace weft {
namespace {

/// A fact of a device or function that is a parameter's value as it stands, but for a unit.
struct DirectSetting {
  DeviceKind kind;
  std::string_view what;
  std::string_view parameter;
  std::string_view unit;
};
constexpr std::array<DirectSetting, 11> kDirect{
    {{DeviceKind::kGpu, fact::kMps, "mps", " B"},
     {DeviceKind::kGpu, fact::kBar1, "bar1_size", " B"},
     {DeviceKind::kGpu, fact::kBar1Used, "bar1_used", " B"},
     {DeviceKind::kNic, fact::kMps, "mps", " B"},
     {DeviceKind::kNic, fact::kMrrs, "mrrs", " B"},
     {DeviceKind::kNic, fact::kRelaxedOrdering, "relaxed_ordering", ""},
     {DeviceKind::kNic, fact::kRate, "rate", " Gb/s"},
     {DeviceKind::kNic, fact::kGdr, "gdr", ""},
     {DeviceKind::kNic, fact::kCollnet, "collnet", ""},
     {DeviceKind::kSwitch, fact::kMps, "mps", " B"},
     {DeviceKind::kCpu, fact::kIommu, "iommu", ""}}};

std::int64_t whole(const Fact* fact) {
  return fact == nullptr ? 0 : Scan(fact->value).whole().value_or(0);
}

/// Of a function's PCI id; 0 where it is not known.
PciNumbers pci_numbers(const Fact* id) {
  const std::string_view text = id == nullptr ? std::string_view{} : id->value;
  Scan scan(text);
  const auto vendor = static_cast<std::int64_t>(scan.hex().value_or(0));
  const auto device = static_cast<std::int64_t>(scan.skip(":") ? scan.hex().value_or(0) : 0);
  return {vendor, device};
}

class Settings {
 public:
  Settings(const HostView& view, const FoundDevices& found, const ParamCatalog& catalog,
           TopologySpec& spec)
      : view_{view}, catalog_{catalog}, spec_{spec} {
    for (const std::vector<FoundDevice>* kind : {&found.gpus, &found.nics}) {
      for (const FoundDevice& device : *kind) aliases_.emplace(device.name, device.alias);
    }
  }

  void add() {
    for (DeviceSpec& device : spec_.node.devices) {
      set_part(device);
      for (const DirectSetting& row : kDirect) {
        if (row.kind == device.kind) set_direct(device, row);
      }
      set_link(device);
      set_port(device);
      if (device.kind == DeviceKind::kGpu) set_driver(device);
      if (device.kind == DeviceKind::kNic) set_kernel(device);
    }
    set_parts_of_rows();
    note_unknown_gpus();
    set_root_ports();
    set_network();
  }

 private:
  const Fact* said_of(const DeviceSpec& device, std::string_view what) const;
  void set(DeviceSpec& device, std::string_view name, const std::string& text, Origin origin,
           const std::string& source) const;
  void set_part(DeviceSpec& device) const;
  void set_parts_of_rows();
  void note_unknown_gpus();
  void set_direct(DeviceSpec& device, const DirectSetting& row) const;
  void set_link(DeviceSpec& device);
  bool set_link_by_rate(DeviceSpec& device, std::string_view what,
                        const std::array<double, 6>& lane);
  void set_port(DeviceSpec& device) const;
  void set_driver(DeviceSpec& device) const;
  void set_kernel(DeviceSpec& device) const;
  void set_part_by(const std::set<std::string>& root_ports, DeviceSpec& cpu) const;
  void set_root_ports();
  void leave_out(DeviceSpec& nic, const std::string& why, const Place& place);
  std::vector<DeviceSpec*> nics_in_use();
  const Fact* layer_of(const std::vector<DeviceSpec*>& nics) const;
  void set_network();
  bool is_virtual(const std::string& function) const;
  bool outruns(const DeviceSpec& device, const std::string& port) const;
  std::string root_port_above(const DeviceSpec& device) const;

  const HostView& view_;
  const ParamCatalog& catalog_;
  TopologySpec& spec_;
  std::map<std::string, std::string> aliases_;
};

/// Of a device by its name, its function, its number in topo -m; of a CPU what is of the host.
const Fact* Settings::said_of(const DeviceSpec& device, std::string_view what) const {
  const Fact* out = nullptr;
  const auto alias = aliases_.find(device.name);
  const std::string other = device.kind == DeviceKind::kCpu ? "host"
                            : alias == aliases_.end()       ? ""
                                                            : alias->second;
  for (const std::string& subject : {device.name, device.bus_id, other}) {
    const Fact* const found = subject.empty() ? nullptr : view_.first(subject, what);
    if (found != nullptr && (out == nullptr || found < out)) out = found;
  }
  if (out == nullptr && what == fact::kRate && !device.bus_id.empty()) {  // NCCL's "net3"
    for (const Fact* at : view_.beginning(fact::kBusId)) {
      if (at->value == device.bus_id && at->subject.starts_with("net")) {
        out = view_.first(at->subject, what);
      }
    }
  }
  return out;
}

/// A value that the parameter cannot have is refused with the fact's place.
void Settings::set(DeviceSpec& device, std::string_view name, const std::string& text,
                   Origin origin, const std::string& source) const {
  const std::string key = std::string(device_kind_name(device.kind)) + "." + std::string(name);
  const ParamSpec* const declared = catalog_.find(key);
  if (declared == nullptr) return;
  try {
    device.settings.insert_or_assign(
        std::string(name), ParamValue{ParamCatalog::parse(*declared, text), origin, source});
  } catch (const InputError& error) {
    throw InputError(source + ": " + error.what());
  }
}

void Settings::set_part(DeviceSpec& device) const {
  if (device.kind == DeviceKind::kCpu) {
    const std::string cpu = view_.value("host", fact::kCpu);
    Scan scan(cpu);
    const std::string vendor(scan.word());
    const std::optional<std::int64_t> family = scan.blanks().whole();
    const std::optional<std::int64_t> model = scan.blanks().whole();
    if (family && model) device.part = cpu_part(vendor, *family, *model);
    if (cpu == "ARM Neoverse-V2") device.part = "grace";
    return;
  }
  const auto [vendor, number] = pci_numbers(said_of(device, fact::kPciId));
  const Fact* const product = said_of(device, fact::kProduct);
  const std::string_view name = product == nullptr ? std::string_view{} : product->value;
  if (device.kind == DeviceKind::kGpu) device.part = gpu_part(vendor, number, 0);
  if (device.kind == DeviceKind::kNic) device.part = nic_part(vendor, number);
  if (device.part.empty() && device.kind == DeviceKind::kGpu) device.part = gpu_part_named(name);
  if (device.part.empty() && device.kind == DeviceKind::kGpu) device.product = name;
  if (device.part.empty() && device.kind == DeviceKind::kNic) device.part = nic_part_named(name);
  if (device.kind == DeviceKind::kSwitch) {
    if (holds(name, "PEX890xx") || (vendor == 0x1000 && number == 0xc030)) device.part = "pex89144";
    if (holds(name, "PEX880xx") || (vendor == 0x1000 && number == 0xc010)) device.part = "pex88096";
  }
  if (device.kind == DeviceKind::kNvSwitch) {
    for (const std::string& function : view_.functions()) {
      const std::string found = view_.value(function, fact::kPciId);
      if (found == "10de:22a3") device.part = "nvswitch-3";
      if (found == "10de:1af1") device.part = "nvswitch-2";
    }
  }
}

/// GPUs that only topo -m names are taken to be as the others of the node, where these are one
/// part.
void Settings::set_parts_of_rows() {
  std::set<std::string> parts;
  std::vector<DeviceSpec*> rows;
  for (DeviceSpec& device : spec_.node.devices) {
    if (device.kind != DeviceKind::kGpu) continue;
    if (device.bus_id.empty() && device.part.empty() && device.product.empty()) {
      rows.push_back(&device);
    } else {
      parts.insert(device.part);
    }
  }
  if (rows.empty() || parts.size() != 1 || parts.begin()->empty()) return;
  std::vector<std::string> names;
  for (DeviceSpec* row : rows) {
    row->part = *parts.begin();
    names.push_back(row->name);
  }
  spec_.notes.push_back(known_names(names) + ": taken to be " + *parts.begin() +
                        " as the node's other GPUs; `nvidia-smi` would tell");
}

/// Which GPUs are of a product that weft has no part of, by what they are called.
void Settings::note_unknown_gpus() {
  std::map<std::string, std::vector<std::string>> names;  // by product
  std::map<std::string, Place> places;
  for (const DeviceSpec& device : spec_.node.devices) {
    if (device.product.empty()) continue;
    names[device.product].push_back(device.name);
    places.emplace(device.product, said_of(device, fact::kProduct)->place);
  }
  for (const auto& [product, gpus] : names) {
    spec_.notes.push_back(known_names(gpus) + ": " + unknown_gpu(product, places[product]));
  }
}

/// The physical function's control register rules a virtual function's TLPs; its own reads as 0
/// (PCI Express Base, 9.3.5.4), which lspci prints as 128 bytes and off.
void Settings::set_direct(DeviceSpec& device, const DirectSetting& row) const {
  const bool of_control =
      row.what == fact::kMps || row.what == fact::kMrrs || row.what == fact::kRelaxedOrdering;
  if (of_control && holds(view_.value(device.bus_id, fact::kProduct), "Virtual Function")) return;
  const Fact* const fact = said_of(device, row.what);
  if (fact == nullptr) return;
  set(device, row.parameter, fact->value + std::string(row.unit), Origin::kMeasured,
      fact->place.text());
}

/// Hypervisors give their bridges 2.5 GT/s x1, or QEMU's (vendor 1b36) 16 GT/s x32, whatever is
/// below; no machine is built so.
bool Settings::is_virtual(const std::string& function) const {
  const std::string width = view_.value(function, fact::kWidth);
  return (view_.value(function, fact::kGen) == "1" && width == "1") || width == "32" ||
         view_.value(function, fact::kPciId).starts_with("1b36:");
}

/// A device that runs faster than the port above it can is passed through to a virtual machine.
bool Settings::outruns(const DeviceSpec& device, const std::string& port) const {
  const auto above = [&](std::string_view trained, std::string_view able) {
    const Fact* const own = said_of(device, trained);
    const Fact* const most = view_.first(port, able);
    return own != nullptr && most != nullptr && whole(own) > whole(most);
  };
  return above(fact::kTrainedGen, fact::kGen) || above(fact::kTrainedWidth, fact::kWidth);
}

/// What both ends of the link above can do, and what it trained to where that is less. An idle GPU
/// slows its link down to save power, so its speed says nothing; its lanes do.
void Settings::set_link(DeviceSpec& device) {
  if (device.kind == DeviceKind::kCpu || device.kind == DeviceKind::kNvSwitch) return;
  if (device.kind == DeviceKind::kSwitch && is_virtual(device.bus_id)) return;
  const std::string above = view_.value(device.bus_id, fact::kParent);
  const auto least = [&](std::string_view what) -> const Fact* {
    const Fact* own = said_of(device, what);
    const Fact* port = above.empty() ? nullptr : view_.first(above, what);
    // A whole switch: its own link above.
    const bool folded = !above.empty() && view_.value(above, fact::kPort) == "switch";
    if (port == nullptr || folded || is_virtual(above) || outruns(device, above)) return own;
    return own == nullptr || whole(port) < whole(own) ? port : own;
  };
  const Fact* const gen = least(fact::kGen);
  const Fact* const width = least(fact::kWidth);
  const Fact* const trained_gen = said_of(device, fact::kTrainedGen);
  const Fact* const trained_width = said_of(device, fact::kTrainedWidth);
  const auto put = [&](std::string_view name, const Fact* fact) {
    if (fact != nullptr) set(device, name, fact->value, Origin::kMeasured, fact->place.text());
  };
  put("pcie_gen", gen != nullptr ? gen : trained_gen);
  put("pcie_width", width != nullptr ? width : trained_width);
  if (trained_width != nullptr && whole(trained_width) < whole(width)) {
    put("trained_width", trained_width);
  }
  if (trained_gen != nullptr && whole(trained_gen) < whole(gen)) {
    if (device.kind == DeviceKind::kGpu) {
      spec_.notes.push_back(device.name + ": its link runs at generation " + trained_gen->value +
                            " of " + gen->value + " (" + trained_gen->place.text() +
                            "): taken for an idle GPU's; read it again under load");
    } else {
      put("trained_gen", trained_gen);
    }
  }
  constexpr std::array<double, 6> kNccl{0.1875, 0.375, 0.75, 1.5, 3, 6};  // xml.cc: 15 to 480 / 80
  constexpr std::array<double, 6> kHwloc{0.25, 0.5, 0.98462, 1.96923, 3.93846, 7.5625};
  if (gen == nullptr && trained_gen == nullptr &&
      !set_link_by_rate(device, fact::kLinkRate, kHwloc)) {
    set_link_by_rate(device, fact::kNcclPcie, kNccl);
  }
}

/// A rate alone leaves open how many lanes it is of: x16 of what is built today, then fewer, then
/// older generations. 2.5 GT/s x1 is a hypervisor's bridge, as fast as what it passes on.
bool Settings::set_link_by_rate(DeviceSpec& device, std::string_view what,
                                const std::array<double, 6>& lane) {
  constexpr std::array<std::pair<std::size_t, int>, 14> kLinks{{{3, 16},
                                                                {4, 16},
                                                                {5, 16},
                                                                {6, 16},
                                                                {3, 8},
                                                                {3, 4},
                                                                {3, 2},
                                                                {3, 1},
                                                                {2, 16},
                                                                {2, 8},
                                                                {2, 4},
                                                                {2, 2},
                                                                {2, 1},
                                                                {1, 16}}};
  const Fact* const fact = said_of(device, what);
  const double rate = fact == nullptr ? 0 : Scan(fact->value).number().value_or(0);
  const bool trained = what == fact::kLinkRate;  // hwloc's is the link as it runs
  for (const auto& [gen, lanes] : kLinks) {
    // NCCL prints one decimal, hwloc six: 3.94 GB/s is x4 of 8 GT/s, 4 is x16 of 2.5 GT/s.
    const double off = trained ? 0.005 * rate : 0.05 + 0.01 * rate;
    if (std::abs(lane.at(gen - 1) * lanes - rate) > off) continue;
    const std::string source = fact->place.text() + ": " + fact->value + " GB/s";
    if (trained && gen < 3 && device.kind == DeviceKind::kGpu) {
      spec_.notes.push_back(device.name + ": its link runs at " + fact->value + " GB/s (" +
                            fact->place.text() +
                            "): taken for an idle GPU's and left out; `lspci -vvv` would tell");
      return true;
    }
    set(device, "pcie_gen", std::to_string(gen), Origin::kAssumed, source);
    set(device, "pcie_width", std::to_string(lanes), Origin::kAssumed, source);
    return true;
  }
  return false;
}

/// ACS of the switch's port above it.
void Settings::set_port(DeviceSpec& device) const {
  if (device.bus_id.empty()) return;
  const std::string above = view_.value(device.bus_id, fact::kParent);
  const std::string port = view_.value(above, fact::kPort);
  const Fact* const acs = above.empty() ? nullptr : view_.first(above, fact::kAcs);
  if (acs == nullptr || port != "downstream") return;
  set(device, "port_acs", acs->value, Origin::kMeasured, acs->place.text());
}

/// Who maps GPU memory for NICs: the loaded module; without one, DMA-BUF where NCCL found it.
void Settings::set_driver(DeviceSpec& device) const {
  const auto module = [&](std::string_view name) {
    return view_.first("host", std::string(fact::kModule) + std::string(name));
  };
  const Fact* const dma_buf = view_.first("host", fact::kDmaBuf);
  if (const Fact* const said = module("nvidia_peermem")) {
    set(device, "peer_mapping", "nvidia-peermem", Origin::kMeasured, said->place.text());
  } else if (const Fact* const old = module("nv_peer_mem")) {
    set(device, "peer_mapping", "nv_peer_mem", Origin::kMeasured, old->place.text());
  } else if (dma_buf != nullptr) {
    set(device, "peer_mapping", "dma-buf", Origin::kMeasured, dma_buf->place.text());
  } else if (const Fact* const list = module("list")) {
    set(device, "peer_mapping", "dma-buf", Origin::kAssumed,
        list->place.text() + ": no peer memory module is loaded; DMA-BUF is left");
  }
  if (const Fact* const modules = view_.first("host", fact::kKernelModules)) {
    set(device, "kernel_modules", modules->value, Origin::kMeasured, modules->place.text());
  }
}

/// Whether its driver registers DMA-BUF; assumed, as drivers may come from elsewhere.
void Settings::set_kernel(DeviceSpec& device) const {
  const Fact* const said = view_.first("host", std::string(fact::kVersion) + "Linux");
  if (said == nullptr || registers_dma_buf(said->value).value_or(true)) return;
  set(device, "dma_buf", "off", Origin::kAssumed, said->place.text() + ": Linux " + said->value);
}

std::string Settings::root_port_above(const DeviceSpec& device) const {
  std::string at = view_.value(device.bus_id, fact::kParent);
  for (int i = 0; i < 64 && !at.empty(); ++i) {
    if (view_.value(at, fact::kPort) == "root") return at;
    at = view_.value(at, fact::kParent);
  }
  return {};
}

void Settings::set_part_by(const std::set<std::string>& root_ports, DeviceSpec& cpu) const {
  for (const std::string& port : root_ports) {
    const Fact* const id = view_.first(port, fact::kPciId);
    const auto [vendor, device] = pci_numbers(id);
    cpu.part = cpu_part_of_root_port(vendor, device);
    if (cpu.part.empty()) continue;
    spec_.notes.push_back(cpu.name + " is taken for " + cpu.part + " by its root port " +
                          id->value + " (" + id->place.text() + "): assumed; `lscpu` would tell");
    return;
  }
}

/// A CPU has one value for its root ports: ACS bits that any of those above its devices has, their
/// smallest MaxPayload.
void Settings::set_root_ports() {
  std::map<std::string, std::set<std::string>> ports;  // by CPU
  for (const DeviceSpec& device : spec_.node.devices) {
    const std::string port = device.bus_id.empty() ? "" : root_port_above(device);
    if (port.empty()) continue;
    std::string at = device.name;
    const auto find = [&](const std::string& name) {
      return std::find_if(spec_.node.devices.begin(), spec_.node.devices.end(),
                          [&](const DeviceSpec& each) { return each.name == name; });
    };
    for (auto above = find(at); above != spec_.node.devices.end() && !above->upstream.empty();) {
      at = above->upstream;
      above = find(at);
    }
    ports[at].insert(port);
  }
  constexpr std::array<std::string_view, 7> kBits{"SV", "TB", "RR", "CR", "UF", "EC", "DT"};
  for (DeviceSpec& cpu : spec_.node.devices) {
    if (cpu.kind != DeviceKind::kCpu) continue;
    if (cpu.part.empty()) set_part_by(ports[cpu.name], cpu);
    const Fact* mps = nullptr;
    const Fact* acs = nullptr;
    std::string bits;
    for (const std::string& port : ports[cpu.name]) {
      const Fact* const size = view_.first(port, fact::kMps);
      if (size != nullptr && (mps == nullptr || whole(size) < whole(mps))) mps = size;
      const Fact* const said = view_.first(port, fact::kAcs);
      if (said != nullptr && (acs == nullptr || acs->value == "none")) acs = said;
      if (said != nullptr) bits += "+" + said->value + "+";
    }
    if (mps != nullptr) set(cpu, "mps", mps->value + " B", Origin::kMeasured, mps->place.text());
    if (acs == nullptr) continue;
    std::string all;
    for (const std::string_view bit : kBits) {
      if (holds(bits, "+" + std::string(bit) + "+"))
        all += (all.empty() ? "" : "+") + std::string(bit);
    }
    set(cpu, "acs", all.empty() ? "none" : all, Origin::kMeasured, acs->place.text());
  }
}

void Settings::leave_out(DeviceSpec& nic, const std::string& why, const Place& place) {
  nic.network = "none";
  spec_.notes.push_back(nic.name + " is on no network: " + why + " (" + place.text() + ")");
}

/// NICs that are up and, where NCCL lists NICs that were found, in its list: those carry its data.
std::vector<DeviceSpec*> Settings::nics_in_use() {
  std::vector<DeviceSpec*> nics;
  std::set<std::string> names;
  for (DeviceSpec& device : spec_.node.devices) {
    if (device.kind != DeviceKind::kNic) continue;
    nics.push_back(&device);
    names.insert(device.name);
  }
  const std::vector<const Fact*> list = view_.beginning(fact::kNetIndex);
  std::set<std::string> unknown;
  for (const Fact* each : list) {
    if (!names.contains(each->subject)) unknown.insert(each->subject);
  }
  const bool listed = std::any_of(list.begin(), list.end(),
                                  [&](const Fact* each) { return names.contains(each->subject); });
  if (!unknown.empty() && !nics.empty()) {
    spec_.notes.push_back(
        "NCCL's list of NICs (" + list.front()->place.text() + ") has " +
        known_names({unknown.begin(), unknown.end()}) +
        ", which no NIC here is called; `ls -l /sys/class/infiniband` would tell whose they are" +
        (listed ? "" : "; every NIC that is up is taken to be used"));
  }
  std::vector<DeviceSpec*> out;
  for (DeviceSpec* nic : nics) {
    const Fact* const state = said_of(*nic, fact::kState);
    if (state != nullptr && state->value == "down") {
      leave_out(*nic, "its port is down", state->place);
    } else if (listed && view_.first(nic->name, fact::kNetIndex) == nullptr) {
      leave_out(*nic, "NCCL's list of NICs is without it", list.front()->place);
    } else {
      out.push_back(nic);
    }
  }
  return out;
}

/// The link layer of most bandwidth, or of most NICs where a rate is not known: one network is of
/// one. nullptr if nothing says any.
const Fact* Settings::layer_of(const std::vector<DeviceSpec*>& nics) const {
  std::map<bool, const Fact*> said;  // by whether it is InfiniBand
  std::map<bool, double> rates;
  std::map<bool, double> counts;
  bool all_rates = true;
  for (const DeviceSpec* nic : nics) {
    const Fact* const layer = said_of(*nic, fact::kLinkLayer);
    if (layer == nullptr) continue;
    const bool infiniband = layer->value == "InfiniBand";
    said.emplace(infiniband, layer);
    const Fact* const rate = said_of(*nic, fact::kRate);
    all_rates = all_rates && rate != nullptr;
    if (rate != nullptr) rates[infiniband] += Scan(rate->value).number().value_or(0);
    counts[infiniband] += 1;
  }
  if (said.empty()) return nullptr;
  if (said.size() == 1) return said.begin()->second;
  std::map<bool, double>& votes = all_rates ? rates : counts;
  return said.at(votes[true] >= votes[false]);
}

/// One switch joins the NICs that are used and of one link layer: what joins them further away is
/// in ibnetdiscover's output alone.
void Settings::set_network() {
  const std::vector<DeviceSpec*> nics = nics_in_use();
  if (nics.empty()) return;
  const Fact* const layer = layer_of(nics);
  const Fact* mtu = nullptr;
  for (DeviceSpec* nic : nics) {
    const Fact* const own = said_of(*nic, fact::kLinkLayer);
    if (own != nullptr && own->value != layer->value) {
      leave_out(*nic, "it is on " + own->value + ", most of the bandwidth on " + layer->value,
                own->place);
      continue;
    }
    nic->network = "fabric";
    const Fact* const size = said_of(*nic, fact::kMtu);
    if (size != nullptr && (mtu == nullptr || whole(size) < whole(mtu))) mtu = size;
  }
  spec_.network.kind = NetworkSpec::Kind::kOneSwitch;
  spec_.network.name = "fabric";
  const auto put = [&](const std::string& key, const std::string& text, const Fact* fact) {
    if (const ParamSpec* declared = catalog_.find(key)) {
      spec_.defaults.insert_or_assign(key, ParamValue{ParamCatalog::parse(*declared, text),
                                                      Origin::kMeasured, fact->place.text()});
    }
  };
  if (layer != nullptr) {
    put("wire.kind", layer->value == "InfiniBand" ? "infiniband" : "roce", layer);
  }
  if (mtu != nullptr) put("wire.mtu", mtu->value + " B", mtu);
}

}  // namespace

void add_settings(const HostView& view, const FoundDevices& found, const ParamCatalog& catalog,
                  TopologySpec& spec) {
  Settings(view, found, catalog, spec).add();
}

}  // namespace weft
