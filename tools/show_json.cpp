#include <array>

#include "models/machine/machine_state.hpp"
#include "sim/result/fields.hpp"
#include "tools/show_text.hpp"

namespace weft {
namespace {

Json names_json(const Fabric& fabric, const std::vector<DeviceId>& devices) {
  Json out = Json::array();
  for (const DeviceId id : devices) out.push(fabric.device(id).name);
  return out;
}

/// Something of a machine, and that machine.
template <class T>
struct Of {
  const Machine& machine;
  const T& it;
  const Fabric& fabric() const { return machine.fabric(); }
};

template <class T, std::size_t n>
Json listed(const Machine& machine, const std::vector<T>& all,
            const std::array<JsonField<Of<T>>, n>& fields) {
  Json out = Json::array();
  for (const T& it : all) out.push(object_of(Of<T>{machine, it}, fields));
  return out;
}

constexpr std::string_view kIfLocal = "where switches of the tier are joined";
constexpr std::string_view kIfUp = "where ports lead up or to other groups";

Json if_local(const TierView& t, Json value) {
  return t.tier.local > 0 ? std::move(value) : Json();
}
Json if_up(const TierView& t, Json value) { return t.tier.up > 0 ? std::move(value) : Json(); }

using TierField = JsonField<TierView>;
constexpr std::array kTierFields{
    TierField{{"tier", "text", "", "its name: switch, leaf, spine, core, ..."},
              [](const TierView& t) -> Json { return t.tier.name; }},
    TierField{{"part", "text", "", "of its switches; empty: none is named"},
              [](const TierView& t) -> Json { return t.part; }},
    TierField{{"switches", "whole number", "", "in all"},
              [](const TierView& t) -> Json { return t.tier.switches(); }},
    TierField{{"groups", "whole number", "", "pods or groups that they are in"},
              [](const TierView& t) -> Json { return t.tier.groups; }},
    TierField{{"ports", "whole number", "", "a switch has; 0: not limited"},
              [](const TierView& t) -> Json { return t.tier.ports; }},
    TierField{{"down", "whole number", "", "of them towards NICs"},
              [](const TierView& t) -> Json { return t.tier.down; }},
    TierField{{"down_rate_GBps", "number", "", "of one of these, each way, 1e9 bytes/s"},
              [](const TierView& t) -> Json { return t.down.as_gigabytes_per_s(); }},
    TierField{{"up", "whole number", "", "ports up, or to other groups"},
              [](const TierView& t) -> Json { return t.tier.up; }},
    TierField{{"parents", "whole number", "", "switches of the next tier that they lead to"},
              [](const TierView& t) -> Json { return t.tier.parents; }},
    TierField{{"latency_ns", "number", "", "of crossing a switch, ns"},
              [](const TierView& t) -> Json { return t.latency.as_ns(); }},
    TierField{{"one_way_ns", "number", "",
               "between NICs whose way turns in this tier: cables, FEC and switches, ns"},
              [](const TierView& t) -> Json { return t.one_way.as_ns(); }},
    TierField{{"local", "whole number", kIfLocal, "ports to other switches of the tier"},
              [](const TierView& t) { return if_local(t, t.tier.local); }},
    TierField{{"local_rate_GBps", "number", kIfLocal, "of one of these, each way, 1e9 bytes/s"},
              [](const TierView& t) { return if_local(t, t.local.as_gigabytes_per_s()); }},
    TierField{{"up_rate_GBps", "number", kIfUp, "of a port up, each way, 1e9 bytes/s"},
              [](const TierView& t) { return if_up(t, t.up.as_gigabytes_per_s()); }},
    TierField{{"oversubscription", "number", kIfUp, "ports down / ports up"},
              [](const TierView& t) { return if_up(t, t.tier.oversubscription()); }}};

Json tiers_json(const Machine& machine) {
  Json out = Json::array();
  for (const TierView& view : tier_views(machine)) out.push(object_of(view, kTierFields));
  return out;
}

Json failed_uplinks_json(const Machine& machine) {
  Json out;
  for (const auto& [at, links] : machine.fabric().spec().network.failed_uplinks) {
    out.set(at.name(), links);
  }
  return out;
}

using NetworkField = JsonField<Machine>;
constexpr std::array kNetworkFields{
    NetworkField{{"name", "text", "", "as the topology names it; empty: there is none"},
                 [](const Machine& m) -> Json { return m.fabric().spec().network.name; }},
    NetworkField{
        {"kind", "text", "", "as in a topology; none: there is none"},
        [](const Machine& m) -> Json { return network_kind_name(m.fabric().spec().network.kind); }},
    NetworkField{
        {"routing", "text", "", "spread: over equal ways; ecmp: a way drawn for each connection"},
        [](const Machine& m) -> Json { return m.routing().spread() ? "spread" : "ecmp"; }},
    NetworkField{{"tiers", "list", "", "of switches, the lowest first"}, tiers_json},
    NetworkField{
        {"failed_uplinks", "map by switch of whole numbers", "where some are down", "how many"},
        failed_uplinks_json}};

Json upstream_json(const Of<DeviceId>& d) {
  const auto upstream = d.fabric().upstream(d.it);
  return upstream ? Json(d.fabric().device(*upstream).name) : Json();
}

using DeviceField = JsonField<Of<DeviceId>>;
constexpr std::array kDeviceFields{
    DeviceField{{"name", "text", "", "as the topology names it"},
                [](const Of<DeviceId>& d) -> Json { return d.fabric().device(d.it).name; }},
    DeviceField{{"kind", "text", "", "cpu, switch, gpu, nic or nvswitch"},
                [](const Of<DeviceId>& d) -> Json {
                  return device_kind_name(d.fabric().device(d.it).kind);
                }},
    DeviceField{{"part", "text", "", "its part; empty: none is named"},
                [](const Of<DeviceId>& d) -> Json { return d.fabric().device(d.it).part; }},
    DeviceField{{"bus_id", "text", "", "its PCI bus id; empty: none is stated"},
                [](const Of<DeviceId>& d) -> Json { return d.fabric().device(d.it).bus_id; }},
    DeviceField{{"upstream", "text or null", "", "the device above it by PCIe; null: none"},
                upstream_json,
                true},
    DeviceField{
        {"state", "list of text", "",
         "settings that decide routes and are not what its part or weft assume"},
        [](const Of<DeviceId>& d) { return texts(unusual_state(d.machine.devices(), d.it)); }}};

using LinkField = JsonField<Of<LinkId>>;
constexpr std::array kLinkFields{
    LinkField{
        {"kind", "text", "", "pcie, socket, nvlink, c2c, xgmi or wire"},
        [](const Of<LinkId>& l) -> Json { return link_kind_name(l.fabric().link(l.it).kind); }},
    LinkField{{"a", "text", "", "a device; of PCIe the upper one"},
              [](const Of<LinkId>& l) -> Json {
                return l.fabric().device(l.fabric().link(l.it).a).name;
              }},
    LinkField{{"b", "text", "", "the other one"},
              [](const Of<LinkId>& l) -> Json {
                return l.fabric().device(l.fabric().link(l.it).b).name;
              }},
    LinkField{{"forward", "text", "", "a to b, as results name the direction"},
              [](const Of<LinkId>& l) -> Json {
                return l.fabric().direction_name({l.it, true});
              }},
    LinkField{{"back", "text", "", "likewise b to a"},
              [](const Of<LinkId>& l) -> Json {
                return l.fabric().direction_name({l.it, false});
              }},
    LinkField{{"count", "whole number", "", "parallel ones; the rate is that of all"},
              [](const Of<LinkId>& l) -> Json { return l.fabric().link(l.it).count; }},
    LinkField{{"rate_GBps", "number", "", "each way, 1e9 bytes/s"},
              [](const Of<LinkId>& l) -> Json { return trunk_gigabytes_per_s(l.machine, l.it); }}};

using PairField = JsonField<Of<PairView>>;
constexpr std::array kPairFields{
    PairField{{"gpu", "text", "", "its name"},
              [](const Of<PairView>& p) -> Json { return p.fabric().device(p.it.gpu).name; }},
    PairField{{"nic", "text", "", "its name"},
              [](const Of<PairView>& p) -> Json { return p.fabric().device(p.it.nic).name; }},
    PairField{{"class", "text", "", "as nvidia-smi topo -m has it: PIX, PXB, PHB, NODE or SYS"},
              [](const Of<PairView>& p) -> Json { return p.it.label.text(); }},
    PairField{{"gdr_possible", "true or false", "", "the machine lets the NIC reach GPU memory"},
              [](const Of<PairView>& p) -> Json { return p.it.gdr_possible; }},
    PairField{{"nccl_default", "true or false", "",
               "NCCL would, under the variables and release asked for"},
              [](const Of<PairView>& p) -> Json { return p.it.nccl_default; }},
    PairField{{"why", "text", "", "why it is not possible; else what NCCL decides by"},
              [](const Of<PairView>& p) -> Json { return p.it.why; }},
    PairField{{"nic_writes_gpu_GBps", "number", "",
               "of PCIe alone, the NIC alone on the machine, 1e9 bytes/s; 0: not possible"},
              [](const Of<PairView>& p) -> Json { return p.it.write_gb_per_s; }},
    PairField{{"nic_reads_gpu_GBps", "number", "", "likewise"},
              [](const Of<PairView>& p) -> Json { return p.it.read_gb_per_s; }}};

using GpuField = JsonField<Of<GpuNics>>;
constexpr std::array kGpuFields{
    GpuField{{"gpu", "text", "", "its name"},
             [](const Of<GpuNics>& g) -> Json { return g.fabric().device(g.it.gpu).name; }},
    GpuField{{"nics", "list of text", "",
              "by which it receives what is sent to it: channel c by entry c modulo their number"},
             [](const Of<GpuNics>& g) { return names_json(g.fabric(), g.it.nics); }},
    GpuField{{"distance", "text", "", "to them, as NCCL names it"},
             [](const Of<GpuNics>& g) -> Json { return nccl_path_type_name(g.it.distance); }},
    GpuField{{"tied", "list of text", "",
              "all that are as near, if those are more: the GPU's number decides"},
             [](const Of<GpuNics>& g) { return names_json(g.fabric(), g.it.tied); }},
    GpuField{{"sharing", "list of text", "", "other GPUs that have one of these NICs"},
             [](const Of<GpuNics>& g) { return names_json(g.fabric(), g.it.sharing); }}};

Json devices_json(const Machine& machine) {
  std::vector<DeviceId> devices;
  for (std::size_t i = 0; i < machine.fabric().devices_per_node(); ++i) devices.emplace_back(i);
  return listed(machine, devices, kDeviceFields);
}

Json links_json(const Machine& machine) {
  std::vector<LinkId> links;
  for (std::size_t i = 0; i < machine.fabric().links_per_node(); ++i) links.emplace_back(i);
  return listed(machine, links, kLinkFields);
}

/// What is shown.
struct Shown {
  const Machine& machine;
  const NodeView& node;
  const TopologySpec& spec() const { return machine.fabric().spec(); }
};

using FileField = JsonField<Shown>;
constexpr std::array kFileFields{
    FileField{{"schema", "text", "", "the version of this form: weft.show/1"},
              [](const Shown&) -> Json { return "weft.show/1"; }},
    FileField{{"topology", "text", "", "its name"},
              [](const Shown& s) -> Json { return s.spec().name; }},
    FileField{{"source", "text", "", "where it comes from, as it says"},
              [](const Shown& s) -> Json { return s.spec().source; }},
    FileField{{"nodes", "whole number", "", "how many there are"},
              [](const Shown& s) -> Json { return s.machine.fabric().nodes(); }},
    FileField{{"network", "map", "", "what joins nodes"},
              [](const Shown& s) { return object_of(s.machine, kNetworkFields); }},
    FileField{{"devices", "list", "", "of a node, in the topology's order"},
              [](const Shown& s) { return devices_json(s.machine); }},
    FileField{{"links", "list", "", "of a node: PCIe, between devices, wires"},
              [](const Shown& s) { return links_json(s.machine); }},
    FileField{{"pairs", "list", "", "each GPU with each NIC of a node"},
              [](const Shown& s) { return listed(s.machine, s.node.pairs, kPairFields); }},
    FileField{{"gpu_nics", "list", "", "the NICs that NCCL gives each GPU of a node"},
              [](const Shown& s) { return listed(s.machine, s.node.gpu_nics.gpus, kGpuFields); }},
    FileField{{"notes", "list of text", "", "what was assumed"},
              [](const Shown& s) { return texts(s.spec().notes); }},
    FileField{{"gpu_nics_unknown", "text", "where `gpu_nics` is not known", "why"},
              [](const Shown& s) { return if_any(s.node.gpu_nics.why_not); }}};

}  // namespace

Json show_json(const Machine& machine, const NodeView& node) {
  return object_of(Shown{machine, node}, kFileFields);
}

std::vector<FormatSection> show_format() {
  return {{"", "The file.", keys_of(kFileFields)},
          {"network", "What joins nodes.", keys_of(kNetworkFields)},
          {"network.tiers[]", "A tier of switches.", keys_of(kTierFields)},
          {"devices[]", "A device of a node.", keys_of(kDeviceFields)},
          {"links[]", "A link, or several in parallel.", keys_of(kLinkFields)},
          {"pairs[]", "A GPU and a NIC.", keys_of(kPairFields)},
          {"gpu_nics[]", "A GPU.", keys_of(kGpuFields)}};
}

}  // namespace weft
