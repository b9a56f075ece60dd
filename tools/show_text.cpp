#include "tools/show_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/machine/by_node.hpp"
#include "models/machine/gdr_possible.hpp"
#include "models/machine/machine_state.hpp"
#include "models/nccl/decide/bar1.hpp"
#include "models/nccl/decide/gdr.hpp"
#include "models/nccl/decide/gpu_nics.hpp"
#include "models/nccl/schedule.hpp"
#include "models/transport/contraction.hpp"

namespace weft {
namespace {

std::vector<DeviceId> devices_of_kind(const Fabric& fabric, DeviceKind kind) {
  std::vector<DeviceId> out;
  for (std::size_t i = 0; i < fabric.count(kind); ++i) out.push_back(fabric.device(0, kind, i));
  return out;
}

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

std::string matrix_text(const Fabric& fabric) {
  std::vector<DeviceId> ends = devices_of_kind(fabric, DeviceKind::kGpu);
  const std::vector<DeviceId> nics = devices_of_kind(fabric, DeviceKind::kNic);
  ends.insert(ends.end(), nics.begin(), nics.end());
  std::size_t width = 5;
  for (const DeviceId id : ends) width = std::max(width, fabric.device(id).name.size() + 1);
  std::string out(width, ' ');
  for (const DeviceId id : ends) out += fmt::format("{:<{}}", fabric.device(id).name, width);
  out += '\n';
  for (const DeviceId row : ends) {
    out += fmt::format("{:<{}}", fabric.device(row).name, width);
    for (const DeviceId column : ends) {
      out += fmt::format("{:<{}}", fabric.path_label(row, column).text(), width);
    }
    out += '\n';
  }
  return out;
}

/// The rate of a link, or of all of a trunk over which the load is spread.
double trunk_gigabytes(const Machine& machine, LinkId id) {
  return machine.capacity(ServerId{2 * id.index()}) / 1e9;
}

Json link_json(const Machine& machine, LinkId id) {
  const Fabric& fabric = machine.fabric();
  const Link link = fabric.link(id);
  return Json::object({{"kind", link_kind_name(link.kind)},
                       {"a", fabric.device(link.a).name},
                       {"b", fabric.device(link.b).name},
                       {"forward", fabric.direction_name({id, true})},
                       {"back", fabric.direction_name({id, false})},
                       {"count", link.count},
                       {"rate_GBps", trunk_gigabytes(machine, id)}});
}

/// What `weft show` says of a tier of the network.
struct TierView {
  NetworkTier tier;
  std::string part;
  Bandwidth down;
  Bandwidth up;  ///< of no meaning where no port leads up
  Bandwidth local;
  Duration latency;
  Duration one_way;  ///< between NICs whose way turns in this tier: cables, FEC and switches
};

std::vector<TierView> tier_views(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  std::vector<TierView> out;
  Bandwidth down = machine.fastest_nic_link();
  Duration up_and_down;  // what a way that goes higher adds
  for (const DeviceId nic : devices_of_kind(fabric, DeviceKind::kNic)) {
    if (const auto wire = fabric.wire_link(nic)) up_and_down = machine.wire_latency(*wire) * 2;
  }
  for (std::size_t t = 0; t < fabric.network_tiers().size(); ++t) {
    const DeviceId id = fabric.network_switch(t, 0);
    const DeviceModel& model = machine.model(id);
    out.push_back({fabric.network_tiers()[t], fabric.device(id).part, down, machine.uplink_rate(id),
                   machine.local_rate(id), model.crossing_time(),
                   up_and_down + model.crossing_time()});
    down = out.back().up;
    up_and_down += (model.crossing_time() + model.network->uplink_latency) * 2;
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
  for (const auto& [leaf, links] : spec.failed_uplinks) {
    out += fmt::format(", {} uplink{} of leaf{} down", links, links == 1 ? "" : "s", leaf);
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

Json network_json(const Machine& machine) {
  const NetworkSpec& spec = machine.fabric().spec().network;
  Json tiers = Json::array();
  for (const TierView& view : tier_views(machine)) {
    const NetworkTier& tier = view.tier;
    Json each = Json::object({{"tier", tier.name},
                              {"part", view.part},
                              {"switches", tier.switches()},
                              {"groups", tier.groups},
                              {"ports", tier.ports},
                              {"down", tier.down},
                              {"down_rate_GBps", view.down.as_gigabytes_per_s()},
                              {"up", tier.up},
                              {"parents", tier.parents},
                              {"latency_ns", view.latency.as_ns()},
                              {"one_way_ns", view.one_way.as_ns()}});
    if (tier.local > 0) {
      each.set("local", tier.local);
      each.set("local_rate_GBps", view.local.as_gigabytes_per_s());
    }
    if (tier.up > 0) {
      each.set("up_rate_GBps", view.up.as_gigabytes_per_s());
      each.set("oversubscription", tier.oversubscription());
    }
    tiers.push(std::move(each));
  }
  Json out = Json::object({{"name", spec.name},
                           {"kind", network_kind_name(spec.kind)},
                           {"routing", machine.routing().spread() ? "spread" : "ecmp"},
                           {"tiers", tiers}});
  if (spec.failed_uplinks.empty()) return out;
  Json failed = Json::object({});
  for (const auto& [leaf, links] : spec.failed_uplinks)
    failed.set("leaf" + std::to_string(leaf), links);
  out.set("failed_uplinks", std::move(failed));
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

std::string gpu_nics_text(const Machine& machine, const ShownNccl& asked) {
  const Fabric& fabric = machine.fabric();
  if (fabric.count(DeviceKind::kNic) == 0 || fabric.count(DeviceKind::kGpu) == 0) return "";
  const NcclGpuNics found = nccl_gpu_nics(machine.devices(), asked.env, asked.version);
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

Json gpu_nics_json(const Fabric& fabric, const std::vector<GpuNics>& gpus) {
  const auto names = [&](const std::vector<DeviceId>& devices) {
    Json out = Json::array();
    for (const DeviceId id : devices) out.push(fabric.device(id).name);
    return out;
  };
  Json out = Json::array();
  for (const GpuNics& one : gpus) {
    out.push(Json::object({{"gpu", fabric.device(one.gpu).name},
                           {"nics", names(one.nics)},
                           {"distance", nccl_path_type_name(one.distance)},
                           {"tied", names(one.tied)},
                           {"sharing", names(one.sharing)}}));
  }
  return out;
}

}  // namespace

std::vector<PairView> pair_views(const Machine& machine, const ShownNccl& asked) {
  const Fabric& fabric = machine.fabric();
  std::vector<PairView> out;
  const std::vector<DeviceId> gpus = devices_of_kind(fabric, DeviceKind::kGpu);
  // One GPU alone, or nodes that no NIC joins, can be shown too.
  const bool has_rings = fabric.nodes() > 1 && fabric.count(DeviceKind::kNic) > 0;
  const std::vector<PinnedMemory> pinned =
      nccl_pinned(machine.devices(),
                  has_rings ? make_schedule(machine.devices(), MemoryPath::kGdr) : Schedule{});
  const NcclGdrRule rule(machine.devices(), asked.env, asked.version);
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const DeviceId gpu = gpus[g];
    for (const DeviceId nic : devices_of_kind(fabric, DeviceKind::kNic)) {
      const PathLabel label = fabric.path_label(gpu, nic);
      const GdrPossible possible = gdr_possible(machine, gpu, nic, pinned[g]);
      const GdrDecision nccl = rule.of(gpu, nic);
      PairView view{gpu,
                    nic,
                    label,
                    possible.possible,
                    possible.possible && nccl.enabled,
                    possible.possible ? nccl.why : possible.why};
      if (possible.possible) {
        const auto rate = [&](Leg leg) {
          return solo_rate(machine, contract(machine, {leg})).as_gigabytes_per_s();
        };
        view.write_gb_per_s = rate({Leg::Kind::kWrite, Leg::Medium::kPcie, nic, nic, gpu});
        view.read_gb_per_s = rate({Leg::Kind::kRead, Leg::Medium::kPcie, nic, gpu, nic});
      }
      out.push_back(std::move(view));
    }
  }
  return out;
}

std::string show_text(const Machine& machine, const ShownNccl& nccl) {
  const Fabric& fabric = machine.fabric();
  std::string out = fmt::format("{}: {} node{} of\n", fabric.spec().name, fabric.nodes(),
                                fabric.nodes() == 1 ? "" : "s");
  for (std::size_t i = 0; i < fabric.devices_per_node(); ++i) {
    if (!fabric.upstream(DeviceId{i})) add_tree(machine, DeviceId{i}, "  ", out);
  }
  out += unlike_text(machine) + network_text(machine) + "\n" + matrix_text(fabric) +
         gpu_nics_text(machine, nccl);
  const std::vector<PairView> pairs = pair_views(machine, nccl);
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

Json show_json(const Machine& machine, const ShownNccl& nccl) {
  const Fabric& fabric = machine.fabric();
  Json devices = Json::array();
  for (std::size_t i = 0; i < fabric.devices_per_node(); ++i) {
    const DeviceSpec& spec = fabric.device(DeviceId{i});
    const auto upstream = fabric.upstream(DeviceId{i});
    Json device = Json::object({{"name", spec.name},
                                {"kind", device_kind_name(spec.kind)},
                                {"part", spec.part},
                                {"bus_id", spec.bus_id}});
    device.set("upstream", upstream ? Json(fabric.device(*upstream).name) : Json());
    Json state = Json::array();
    for (const std::string& word : unusual_state(machine.devices(), DeviceId{i})) state.push(word);
    device.set("state", std::move(state));
    devices.push(std::move(device));
  }
  Json links = Json::array();
  for (std::size_t i = 0; i < fabric.links_per_node(); ++i) {
    links.push(link_json(machine, LinkId{i}));
  }
  Json pairs = Json::array();
  for (const PairView& pair : pair_views(machine, nccl)) {
    pairs.push(Json::object({{"gpu", fabric.device(pair.gpu).name},
                             {"nic", fabric.device(pair.nic).name},
                             {"class", pair.label.text()},
                             {"gdr_possible", pair.gdr_possible},
                             {"nccl_default", pair.nccl_default},
                             {"why", pair.why},
                             {"nic_writes_gpu_GBps", pair.write_gb_per_s},
                             {"nic_reads_gpu_GBps", pair.read_gb_per_s}}));
  }
  Json notes = Json::array();
  for (const std::string& note : fabric.spec().notes) notes.push(note);
  const NcclGpuNics gpu_nics = nccl_gpu_nics(machine.devices(), nccl.env, nccl.version);
  Json out = Json::object({{"schema", "weft.show/1"},
                           {"topology", fabric.spec().name},
                           {"source", fabric.spec().source},
                           {"nodes", fabric.nodes()},
                           {"network", network_json(machine)},
                           {"devices", devices},
                           {"links", links},
                           {"pairs", pairs},
                           {"gpu_nics", gpu_nics_json(fabric, gpu_nics.gpus)},
                           {"notes", notes}});
  if (!gpu_nics.why_not.empty()) out.set("gpu_nics_unknown", gpu_nics.why_not);
  return out;
}

std::string show_dot(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  std::string out = "graph weft {\n  node [shape=box];\n";
  for (std::size_t i = 0; i < fabric.links_per_node(); ++i) {
    const Link link = fabric.link(LinkId{i});
    out += fmt::format(
        "  \"{}\" -- \"{}\" [label=\"{}{} {:.0f} GB/s\"];\n", fabric.device(link.a).name,
        fabric.device(link.b).name, link_kind_name(link.kind),
        link.count > 1 ? fmt::format(" x{}", link.count) : "", trunk_gigabytes(machine, LinkId{i}));
  }
  return out + "}\n";
}

}  // namespace weft
