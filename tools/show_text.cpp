#include "tools/show_text.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/machine/alike_devices.hpp"
#include "models/machine/by_node.hpp"
#include "models/machine/machine_state.hpp"

namespace weft {
namespace {

std::string link_text(const Machine& machine, DeviceId device) {
  const DeviceModel& model = machine.model(device);
  const DeviceSpec& spec = machine.fabric().device(device);
  if (!spec.port_of.empty()) return "  port of " + spec.port_of;
  if (!model.port) return "";
  return fmt::format("  Gen{} x{}, {:.1f} GB/s", model.port->generation, model.port->width,
                     model.port->rate.as_gigabytes_per_s());
}

std::string state_text(const Machine& machine, DeviceId device) {
  const std::vector<std::string> state = unusual_state(machine.devices(), device);
  return state.empty() ? "" : fmt::format("  [{}]", fmt::join(state, ", "));
}

void add_tree(const Machine& machine, DeviceId device, const std::string& indent,
              std::string& out) {
  const Fabric& fabric = machine.fabric();
  const DeviceSpec& spec = fabric.device(device);
  out += fmt::format("{}{}{}{}{}\n", indent, spec.name,
                     spec.part.empty() ? "" : " (" + spec.part + ")", link_text(machine, device),
                     state_text(machine, device));
  for (std::size_t i = 0; i < fabric.devices_per_node(); ++i) {
    if (fabric.upstream(DeviceId{i}) == device) add_tree(machine, DeviceId{i}, indent + "  ", out);
  }
}

/// The cells of the matrix, as wide as its columns. Of pairs that are alike one is looked at.
class MatrixCells {
 public:
  MatrixCells(const Machine& machine, std::size_t width)
      : fabric_{machine.fabric()},
        alike_{machine},
        width_{width},
        self_{padded(PathLabel{PathClass::kSelf}.text())},
        cells_(alike_.count() * alike_.count()) {}

  const std::string& cell(DeviceId row, DeviceId column) {
    if (row == column) return self_;
    const std::string*& cell =
        cells_[alike_.class_of(row) * alike_.count() + alike_.class_of(column)];
    if (cell == nullptr) {
      cell = &*texts_.insert(padded(fabric_.path_label(row, column).text())).first;
    }
    return *cell;
  }
  std::string padded(std::string_view text) const { return fmt::format("{:<{}}", text, width_); }

 private:
  const Fabric& fabric_;
  AlikeDevices alike_;
  std::size_t width_;
  std::string self_;
  std::set<std::string> texts_;            // of all pairs
  std::vector<const std::string*> cells_;  // theirs, by two classes; null: not known yet
};

std::string matrix_text(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  std::vector<DeviceId> ends = devices_of_kind(fabric, DeviceKind::kGpu);
  const std::vector<DeviceId> nics = devices_of_kind(fabric, DeviceKind::kNic);
  ends.insert(ends.end(), nics.begin(), nics.end());
  std::size_t width = 5;
  for (const DeviceId id : ends) width = std::max(width, fabric.device(id).name.size() + 1);
  MatrixCells cells(machine, width);
  std::string out(width, ' ');
  for (const DeviceId id : ends) out += cells.padded(fabric.device(id).name);
  out += '\n';
  for (const DeviceId row : ends) {
    out += cells.padded(fabric.device(row).name);
    for (const DeviceId column : ends) out += cells.cell(row, column);
    out += '\n';
  }
  return out;
}

/// "1 spine", "8 leaves".
std::string switches_text(std::uint32_t count, const Fabric& fabric, std::size_t tier) {
  const std::string& name = fabric.network_tiers()[tier].name;
  const bool one_switch = fabric.spec().network.kind == NetworkSpec::Kind::kOneSwitch;
  if (one_switch) return fmt::format("{} switch", count);
  if (count == 1) return "1 " + name;
  return fmt::format("{} {}", count, name == "leaf" ? "leaves" : name + "s");
}

/// "leaf-spine, 2 planes, racks of 32 leaves in a ring".
std::string shape_text(const NetworkSpec& spec) {
  std::string out(network_kind_name(spec.kind));
  if (spec.planes.value_or(1) > 1) out += fmt::format(", {} planes", *spec.planes);
  if (spec.inside != NetworkSpec::Inside::kTree) {
    out += fmt::format(", racks of {} leaves {}", spec.rack_leaves.value_or(1),
                       spec.inside == NetworkSpec::Inside::kRing ? "in a ring" : "all to all");
  }
  if (!spec.dims.empty()) out += fmt::format(" {}", fmt::join(spec.dims, "x"));
  if (spec.paths == NetworkSpec::Paths::kValiant) out += ", Valiant's routes";
  for (const auto& [at, links] : spec.failed_uplinks) {
    out += fmt::format(", {} uplink{} of {} down", links, links == 1 ? "" : "s", at.name());
  }
  return out;
}

/// "  but nic3@5.trained_width=8" for each of what one node alone has.
std::string unlike_text(const Machine& machine) {
  const Params& params = machine.devices().params();
  std::string out;
  for (const auto& [key, value] : params.of_single_nodes()) {
    const std::string plain = of_all_nodes(key);
    const std::size_t dot = plain.find('.');
    const auto device = machine.fabric().find(0, plain.substr(0, dot));
    const std::string declared =
        device ? std::string(machine.fabric().device(*device).scope()) + plain.substr(dot) : plain;
    out += fmt::format("  but {}={}\n", key,
                       ParamCatalog::format(params.catalog().require(declared), value.number));
  }
  return out;
}

std::string network_text(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  const NetworkSpec& spec = fabric.spec().network;
  const std::vector<TierView> tiers = tier_views(machine);
  if (tiers.empty()) return "";
  std::string out =
      fmt::format("\nnetwork {}: {}, {}\n", spec.name, shape_text(spec),
                  machine.routing().spread() ? "load spread over equal ways" : "ECMP");
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const TierView& view = tiers[t];
    const NetworkTier& tier = view.tier;
    const auto ports = [](std::uint32_t count, Bandwidth rate) {
      return fmt::format("{} x {:g} Gb/s", count, rate.as_gigabytes_per_s() * 8);
    };
    std::string line =
        fmt::format("  {}{}: {} down", switches_text(tier.switches(), fabric, t),
                    view.part.empty() ? "" : " (" + view.part + ")", ports(tier.down, view.down));
    if (tier.local > 0) line += fmt::format(", {} beside", ports(tier.local, view.local));
    if (tier.up > 0 && t + 1 < tiers.size()) {
      line += fmt::format(", {} up to {}, {:g}:1", ports(tier.up, view.up),
                          switches_text(tier.parents, fabric, t + 1), tier.oversubscription());
    } else if (tier.up > 0) {
      line += fmt::format(", {} to other groups ({} in all)", ports(tier.up, view.up), tier.groups);
    }
    out += line + fmt::format("; {:.0f} ns, NIC to NIC {:.0f} ns\n", view.latency.as_ns(),
                              view.one_way.as_ns());
  }
  return out;
}

std::string names_text(const Fabric& fabric, const std::vector<DeviceId>& devices) {
  std::string out;
  for (const DeviceId id : devices) out += (out.empty() ? "" : ", ") + fabric.device(id).name;
  return out;
}

/// "tie of nic0, nic1: by the GPU's number; also gpu1's".
std::string remark_text(const Fabric& fabric, const GpuNics& one) {
  std::string out;
  if (!one.tied.empty()) {
    out = "tie of " + names_text(fabric, one.tied) + ": by the GPU's number";
  }
  if (!one.sharing.empty()) {
    out += (out.empty() ? "" : "; ") + ("also of " + names_text(fabric, one.sharing));
  }
  return out;
}

std::string gpu_nics_text(const Fabric& fabric, const NcclGpuNics& found) {
  if (fabric.count(DeviceKind::kNic) == 0 || fabric.count(DeviceKind::kGpu) == 0) return "";
  if (!found.why_not.empty()) return "\nNICs that NCCL gives each GPU: " + found.why_not + "\n";
  const auto line = [](std::string_view gpu, std::string_view nics, std::string_view distance,
                       std::string_view remark) {
    return fmt::format("{:<8} {:<20} {:<9} {}\n", gpu, nics, distance, remark);
  };
  std::string out = "\n" + line("GPU", "NIC by NCCL", "distance", "remark");
  for (const GpuNics& one : found.gpus) {
    out += line(fabric.device(one.gpu).name, names_text(fabric, one.nics),
                nccl_path_type_name(one.distance), remark_text(fabric, one));
  }
  return out +
         "(by which it receives what is sent to it, channel by channel; sends may leave by the "
         "receiver's;\nrings and trees have their own: weft nccl)\n";
}

}  // namespace

std::string show_text(const Machine& machine, const NodeView& node) {
  const Fabric& fabric = machine.fabric();
  std::string out = fmt::format("{}: {} node{} of\n", fabric.spec().name, fabric.nodes(),
                                fabric.nodes() == 1 ? "" : "s");
  for (std::size_t i = 0; i < fabric.devices_per_node(); ++i) {
    if (!fabric.upstream(DeviceId{i})) add_tree(machine, DeviceId{i}, "  ", out);
  }
  out += unlike_text(machine) + network_text(machine) + "\n" + matrix_text(machine) +
         gpu_nics_text(fabric, node.gpu_nics);
  const std::vector<PairView>& pairs = node.pairs;
  if (pairs.empty()) return out;
  out += fmt::format("\n{:<16} {:<5} {:>13} {:>13}  {:<12} {}\n", "GPU-NIC", "class",
                     "NIC writes GPU", "NIC reads GPU", "NCCL's rule", "why");
  for (const PairView& pair : pairs) {
    const auto rate = [&](double gb_per_s) {
      return pair.gdr_possible ? fmt::format("{:.1f} GB/s", gb_per_s) : std::string("no");
    };
    out += fmt::format("{:<16} {:<5} {:>14} {:>13}  {:<12} {}\n",
                       fabric.device(pair.gpu).name + "-" + fabric.device(pair.nic).name,
                       pair.label.text(), rate(pair.write_gb_per_s), rate(pair.read_gb_per_s),
                       pair.nccl_default ? "GDR" : "host-staged", pair.why);
  }
  return out + "(rates of PCIe alone, before the wire; NIC alone on the machine)\n";
}

std::string show_dot(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  std::string out = "graph weft {\n  node [shape=box];\n";
  for (std::size_t i = 0; i < fabric.links_per_node(); ++i) {
    const Link link = fabric.link(LinkId{i});
    out += fmt::format("  \"{}\" -- \"{}\" [label=\"{}{} {:.0f} GB/s\"];\n",
                       fabric.device(link.a).name, fabric.device(link.b).name,
                       link_kind_name(link.kind),
                       link.count > 1 ? fmt::format(" x{}", link.count) : "",
                       trunk_gigabytes_per_s(machine, LinkId{i}));
  }
  return out + "}\n";
}

}  // namespace weft
