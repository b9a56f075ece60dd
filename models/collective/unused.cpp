#include "models/collective/unused.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/collective/notes.hpp"
#include "models/collective/spares.hpp"
#include "models/collective/uplinks_left.hpp"
#include "models/gpu/copy_engine.hpp"
#include "models/host/iommu.hpp"
#include "models/machine/by_node.hpp"
#include "models/machine/rooms.hpp"
#include "models/nic/emulated.hpp"
#include "models/perftest/params.hpp"
#include "models/wire/dcqcn.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// A parameter by its declared key ("nic.rate" of nic3.rate).
using Key = std::string_view;

bool is_one_of(Key key, std::initializer_list<Key> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}
bool is_of(Key key, std::span<const ParamSpec> table) {
  return std::any_of(table.begin(), table.end(), [&](const ParamSpec& p) { return p.key == key; });
}

const Params& params_of(const RunFacts& run) { return run.machine.devices().params(); }

bool has_link(const RunFacts& run, LinkKind kind) {
  const auto& links = run.machine.fabric().spec().node.links;
  return std::any_of(links.begin(), links.end(),
                     [&](const PeerLinkSpec& link) { return link.kind == kind; });
}

template <class Is>
bool any_cpu(const RunFacts& run, Is is) {
  const Fabric& fabric = run.machine.fabric();
  for (const std::uint32_t node : run.machine.kinds_of_nodes()) {
    for (std::size_t i = 0; i < fabric.count(DeviceKind::kCpu); ++i) {
      if (is(fabric.device(node, DeviceKind::kCpu, i))) return true;
    }
  }
  return false;
}

/// Parameters that belong together, and when none of them takes part.
struct UnusedRule {
  bool (*is_of)(Key key);
  bool (*is_unused)(const RunFacts& run);
  std::string_view why;
};

constexpr std::array kRules{
    UnusedRule{[](Key key) { return key.starts_with("explain."); },
               [](const RunFacts&) { return true; }, "but in weft explain"},
    UnusedRule{[](Key key) { return is_of(key, kStagingParams); },
               [](const RunFacts&) { return true; }, "but in weft perftest --mem staged"},
    UnusedRule{[](Key key) { return is_of(key, kCopyEngineParams); },
               [](const RunFacts& run) { return !run.machine.has_emulated_nics(); },
               "but on copies (weft copies; emulated NICs): NCCL's kernels take no copy engine"},
    UnusedRule{[](Key key) { return key == "cpu.memcpy_rate"; },
               [](const RunFacts& run) { return !run.machine.has_emulated_nics(); },
               "without emulated NICs (nic.emulation): no thread of a CPU copies"},
    UnusedRule{[](Key key) { return key != "nic.emulation" && is_of(key, kEmulatedNicParams); },
               [](const RunFacts& run) { return !run.machine.has_emulated_nics(); },
               "without emulated NICs (nic.emulation)"},
    UnusedRule{[](Key key) {
                 return is_one_of(key, {"nccl.local_channels", "nccl.channels_per_nic",
                                        "nccl.ll_max", "nccl.ll128_max"});
               },
               [](const RunFacts& run) { return !run.is_simple; },
               "without weft's simple rules (nccl.decisions=simple)"},
    UnusedRule{[](Key key) {
                 return is_one_of(key, {"nccl.local_channels", "nccl.channels_per_nic"});
               },
               [](const RunFacts& run) { return params_of(run).number("nccl.channels") > 0; },
               "beside nccl.channels"},
    UnusedRule{[](Key key) { return key == "nccl.local_channels"; },
               [](const RunFacts& run) { return run.machine.fabric().nodes() > 1; },
               "on several nodes"},
    UnusedRule{[](Key key) { return key == "nccl.channels_per_nic"; },
               [](const RunFacts& run) { return run.machine.fabric().nodes() == 1; },
               "inside one node"},
    UnusedRule{[](Key key) {
                 return is_one_of(key, {"nccl.ll_max", "nccl.ll128_max"});
               },
               [](const RunFacts& run) { return run.op && is_point_to_point(*run.op); },
               "on sends and receives"},
    UnusedRule{[](Key key) {
                 return is_one_of(key, {"nccl.ll_max", "nccl.ll128_max"});
               },
               [](const RunFacts& run) { return params_of(run).choice("nccl.proto") != "auto"; },
               "beside nccl.proto"},
    UnusedRule{[](Key key) { return key.starts_with("nccl.p2p_"); },
               [](const RunFacts& run) { return run.op && !is_point_to_point(*run.op); },
               "but on sends and receives"},
    UnusedRule{[](Key key) {
                 return key != "wire.seed" && key != "nic.emulation" &&
                        (key.starts_with("wire.") || key.starts_with("nic.") ||
                         key.starts_with("netswitch.") || key.starts_with("dcqcn."));
               },
               [](const RunFacts& run) { return run.machine.fabric().nodes() == 1; },
               "inside one node, where no NIC is used"},
    UnusedRule{[](Key key) { return key == "nic.collnet"; },
               [](const RunFacts& run) { return run.is_simple || !run.asks_collnet; },
               "without NCCL's decisions and NCCL_COLLNET_ENABLE=1"},
    UnusedRule{[](Key key) { return key == "wire.roce_overhead"; },
               [](const RunFacts& run) { return params_of(run).choice("wire.kind") != "roce"; },
               "with wire.kind=infiniband"},
    UnusedRule{[](Key key) { return key == "wire.ib_overhead"; },
               [](const RunFacts& run) { return params_of(run).choice("wire.kind") == "roce"; },
               "with wire.kind=roce"},
    UnusedRule{[](Key key) { return is_of(key, kDcqcnParams); },
               [](const RunFacts& run) {
                 return params_of(run).choice("wire.kind") != "roce" ||
                        params_of(run).choice("wire.congestion_control") != "dcqcn";
               },
               "without wire.kind=roce and wire.congestion_control=dcqcn"},
    UnusedRule{[](Key key) {
                 return is_one_of(key, {"cpu.dram_large_share", "cpu.dram_large_write_cost"});
               },
               [](const RunFacts& run) {
                 const DeviceParams& devices = run.machine.devices();
                 return !any_cpu(run, [&](DeviceId cpu) {
                   return devices.choice("cpu.dma_buffers", cpu) == "large";
                 });
               },
               "with cpu.dma_buffers=small"},
    UnusedRule{[](Key key) { return key != "cpu.iommu" && is_of(key, kIommuParams); },
               [](const RunFacts& run) {
                 return !any_cpu(run, [&](DeviceId cpu) {
                   return run.machine.model(cpu).root->iommu == IommuMode::kTranslate;
                 });
               },
               "without cpu.iommu=translate"},
    UnusedRule{[](Key key) { return key == "gpu.c2c_rate" || key == "gpu.c2c_copy_requests"; },
               [](const RunFacts& run) { return !has_link(run, LinkKind::kC2c); },
               "on a machine without NVLink-C2C"},
    UnusedRule{[](Key key) { return key == "gpu.xgmi_rate"; },
               [](const RunFacts& run) { return !has_link(run, LinkKind::kXgmi); },
               "on a machine without xGMI"},
    UnusedRule{[](Key key) { return key.starts_with("gpu.nvlink_"); },
               [](const RunFacts& run) { return !has_link(run, LinkKind::kNvlink); },
               "on a machine without NVLink"},
    UnusedRule{[](Key key) { return key.starts_with("cpu.socket_"); },
               [](const RunFacts& run) { return !has_link(run, LinkKind::kSocket); },
               "on a machine of one socket"},
};

/// The declared key of a setting: of one device, or of a tier's switches, that of its kind. The
/// setting's own where it is no parameter's.
std::string declared_key(const std::string& setting, const Machine& machine) {
  std::string key = of_all_nodes(setting);
  const Fabric& fabric = machine.fabric();
  const std::string scope = key.substr(0, key.find('.'));
  const auto kind_of = [&](const DeviceSpec& device) {
    return std::string(device.scope()) + key.substr(scope.size());
  };
  if (scope.size() == key.size()) return key;
  for (const DeviceSpec& device : fabric.spec().node.devices) {
    if (device.name == scope) return kind_of(device);
  }
  for (std::size_t tier = 0; tier < fabric.network_tiers().size(); ++tier) {
    const DeviceSpec& device = fabric.device(fabric.network_switch(tier, 0));
    if (device.name == scope) return kind_of(device);
  }
  return key;
}

/// "on a machine without virtual-root": the kind of devices that a key is of, and no one is.
std::string missing_kind(Key key, const Machine& machine) {
  const Key scope = key.substr(0, key.find('.'));
  const std::span<const DeviceRoom> rooms = device_rooms();
  const auto is_it = [&](const auto& of) { return of == scope; };
  if (std::none_of(rooms.begin(), rooms.end(),
                   [&](const DeviceRoom& room) { return is_it(room.kind); })) {
    return "";
  }
  const Fabric& fabric = machine.fabric();
  const auto& devices = fabric.spec().node.devices;
  const bool any = std::any_of(devices.begin(), devices.end(),
                               [&](const DeviceSpec& device) { return is_it(device.scope()); });
  const bool is_network =
      is_it(device_kind_name(DeviceKind::kNetSwitch)) && !fabric.network_tiers().empty();
  return any || is_network ? "" : fmt::format("on a machine without any {}", scope);
}

/// Of what is no parameter: the network's shape above a leaf that has all NICs.
bool is_above_the_leaf(const std::string& setting, const RunFacts& run) {
  const auto& tiers = run.machine.fabric().network_tiers();
  return is_one_of(setting, {"network.oversubscription", "network.leaf_up", "network.placement"}) &&
         tiers.size() > 1 && tiers.front().switches() == 1;
}

/// What the user set last of a parameter of all; null: nothing.
const ScenarioSetting* setting_of(const std::vector<ScenarioSetting>& settings, Key key) {
  const auto at = std::find_if(settings.rbegin(), settings.rend(),
                               [&](const ScenarioSetting& s) { return s.key == key; });
  return at == settings.rend() ? nullptr : &*at;
}

/// Of failures and spares: uplinks where there are none, and spares of what none has failed of.
std::string why_spare_is_unused(const std::string& setting,
                                const std::vector<ScenarioSetting>& settings, const RunFacts& run) {
  if (!is_spares_key(setting)) return "";
  if (setting.ends_with(".uplinks") && !has_leaves_below_spines(run.machine.fabric())) {
    return "without leaves that have links to spines";
  }
  if (is_failed_key(setting)) return "";
  const std::string failed = "failed" + setting.substr(setting.find('.'));
  const auto has_failed = [&](std::string_view key) {
    const ScenarioSetting* const said = setting_of(settings, key);
    return said != nullptr && !says_none(*said);
  };
  if (has_failed(failed) || (failed == "failed.nodes" && has_failed("failed.nics"))) return "";
  if (failed == "failed.uplinks" && !run.machine.fabric().spec().network.failed_uplinks.empty()) {
    return fmt::format(
        "on network.failed_uplinks, which they do not make good, nor on failed.uplinks {}",
        kSparesAreIdle);
  }
  return std::string(kSparesAreIdle);
}

/// Of links that are down: "of spine5, whose uplinks no message takes".
std::string why_failure_is_unused(const ScenarioSetting& setting, const RunFacts& run) {
  if (setting.key != "network.failed_uplinks") return "";
  std::vector<std::string> idle = idle_failed_uplinks(run.machine);
  std::erase_if(idle, [&](const std::string& name) {  // those of failed.uplinks
    return ("+" + setting.value).find("+" + name + ":") == std::string::npos;
  });
  if (idle.empty()) return "";
  constexpr std::size_t kShown = 4;
  const std::size_t shown = std::min(idle.size(), kShown);
  const std::string more =
      shown == idle.size() ? "" : fmt::format(" and {} more", idle.size() - shown);
  idle.resize(shown);
  return fmt::format("of {}{}, whose uplinks no message takes", fmt::join(idle, ", "), more);
}

std::string why_unused(const std::string& setting, const RunFacts& run) {
  if (is_above_the_leaf(setting, run)) return "with all NICs on one leaf";
  const std::string key = declared_key(setting, run.machine);
  if (params_of(run).catalog().find(key) == nullptr) return "";
  if (!run.has_packets && only_packets_see(key)) return "";
  for (const UnusedRule& rule : kRules) {
    if (rule.is_of(key) && rule.is_unused(run)) return std::string(rule.why);
  }
  return missing_kind(key, run.machine);
}

void add_wire_rate_note(const std::vector<ScenarioSetting>& settings, const Machine& machine,
                        std::vector<std::string>& notes) {
  const Fabric& fabric = machine.fabric();
  const ScenarioSetting* const asked = setting_of(settings, "wire.rate");
  const std::size_t nics = fabric.count(DeviceKind::kNic);
  // Links between switches take it too, and emulated NICs none of it.
  if (asked == nullptr || fabric.nodes() == 1 || !machine.has_one_switch() || nics == 0 ||
      machine.has_emulated_nics()) {
    return;
  }
  Bandwidth fastest = machine.model(fabric.device(0, DeviceKind::kNic, 0)).adapter->rate;
  for (std::size_t i = 1; i < nics; ++i) {
    fastest = std::max(fastest, machine.model(fabric.device(0, DeviceKind::kNic, i)).adapter->rate);
  }
  if (machine.devices().params().bandwidth("wire.rate") <= fastest) return;
  notes.push_back(fmt::format("wire.rate={}: no NIC sends more than nic.rate, {}", asked->value,
                              format_quantity(fastest.as_gigabytes_per_s(), Unit::kGigabytesPerS)));
}

void add_pcie_rate_note(const std::vector<ScenarioSetting>& settings, const Machine& machine,
                        std::vector<std::string>& notes) {
  const Fabric& fabric = machine.fabric();
  if (setting_of(settings, "nic.rate") == nullptr || fabric.nodes() == 1) return;
  for (std::size_t i = 0; i < fabric.count(DeviceKind::kNic); ++i) {
    const DeviceId nic = fabric.device(0, DeviceKind::kNic, i);
    const auto above = fabric.upstream_link(nic);
    if (!fabric.wire_link(nic) || !above) continue;
    const Bandwidth rate = machine.model(nic).adapter->rate;
    const Bandwidth link = machine.link_rate(*above);
    if (rate <= link) continue;
    notes.push_back(fmt::format(
        "nic.rate: {} has {:.1f} GB/s, and its PCIe link carries {:.1f} (nic.pcie_gen, with "
        "gpu.pcie_gen and switch.pcie_gen on the way)",
        fabric.device(nic).name, rate.as_gigabytes_per_s(), link.as_gigabytes_per_s()));
    return;
  }
}

/// What to set for a folded Clos of switches of so many ports, half of them up, that holds all
/// nodes; "" if none does. Two tiers have as many leaves as a spine has ports; of three a pod has
/// half as many, and so many pods.
std::string clos_that_holds(std::uint64_t nodes, std::uint64_t nics_of_node, std::uint64_t ports) {
  for (const bool has_cores : {false, true}) {
    const std::uint64_t most_leaves = has_cores ? ports * ports / 2 : ports;
    for (std::uint64_t leaves = 1; leaves <= nics_of_node; ++leaves) {
      if (nics_of_node % leaves != 0) continue;
      const std::uint64_t nodes_of_block = ports / 2 / (nics_of_node / leaves);
      if (nodes_of_block == 0 || (has_cores && leaves > ports / 2)) continue;
      if ((nodes + nodes_of_block - 1) / nodes_of_block * leaves > most_leaves) continue;
      return fmt::format("--set network.kind={} --set network.ports={}{}",
                         has_cores ? "fat-tree" : "leaf-spine", ports,
                         leaves == 1 ? "" : fmt::format(" --set network.node_leaves={}", leaves));
    }
  }
  return "";
}

void add_one_switch_note(const Machine& machine, std::vector<std::string>& notes) {
  const std::optional<Machine::SwitchLoad> load = machine.load_of_one_switch();
  if (!load || load->needed <= load->capacity * (1 + 1e-9)) return;
  const auto ports =
      static_cast<std::uint64_t>(std::floor(load->capacity / load->fastest * (1 + 1e-9)));
  const std::uint32_t nodes = machine.fabric().nodes();
  std::string ask = clos_that_holds(nodes, load->nics / nodes, ports);
  if (!ask.empty()) ask = "; ask with " + ask;
  notes.push_back(fmt::format(
      "one switch joins {} NICs, whose links carry {:.0f} GB/s, but {} carries {:.0f} "
      "(netswitch.capacity): networks of this size have several tiers, with further hops and "
      "uplinks that may fill{}",
      load->nics, load->needed, load->part.empty() ? "one switch" : "one " + load->part,
      load->capacity, ask));
}

}  // namespace

void add_unused_notes(const std::vector<ScenarioSetting>& settings, const RunFacts& run,
                      std::vector<std::string>& notes) {
  std::vector<std::pair<std::string, std::vector<std::string>>> keys;  // by reason, as they come
  for (const ScenarioSetting& s : settings) {
    std::string why = why_spare_is_unused(s.key, settings, run);
    if (why.empty()) why = why_failure_is_unused(s, run);
    if (why.empty()) why = why_unused(s.key, run);
    if (why.empty()) continue;
    auto at = std::find_if(keys.begin(), keys.end(),
                           [&](const auto& reason) { return reason.first == why; });
    if (at == keys.end()) at = keys.insert(at, {why, {}});
    if (std::find(at->second.begin(), at->second.end(), s.key) == at->second.end()) {
      at->second.push_back(s.key);
    }
  }
  for (const auto& [why, of] : keys) {
    notes.push_back(fmt::format("no effect {}: {}", why, fmt::join(of, ", ")));
  }
}

std::string no_effect_on(std::string_view what, const std::vector<ScenarioSetting>& settings,
                         const Machine& machine, std::initializer_list<std::string_view> scopes) {
  std::vector<std::string> keys;
  for (const ScenarioSetting& s : settings) {
    const std::string key = declared_key(s.key, machine);
    const std::string_view scope = std::string_view(key).substr(0, key.find('.'));
    if (std::ranges::find(scopes, scope) != scopes.end()) keys.push_back(s.key);
  }
  if (keys.empty()) return "";
  return fmt::format("no effect on {}: {}", what, fmt::join(keys, ", "));
}

void add_rate_notes(const std::vector<ScenarioSetting>& settings, const Machine& machine,
                    std::vector<std::string>& notes) {
  add_wire_rate_note(settings, machine, notes);
  add_pcie_rate_note(settings, machine, notes);
  add_one_switch_note(machine, notes);
}

void add_point_to_point_note(const std::vector<ScenarioSetting>& settings,
                             const std::vector<std::string>& env, std::vector<std::string>& notes) {
  std::vector<std::string> names;
  for (const std::string& variable : env) {
    if (variable.starts_with("NCCL_PROTO=") || variable.starts_with("NCCL_ALGO=")) {
      names.push_back(variable);
    }
  }
  for (const ScenarioSetting& s : settings) {
    if (s.key == "nccl.proto" || s.key == "nccl.algo") names.push_back(s.key + "=" + s.value);
  }
  if (names.empty()) return;
  notes.push_back(
      fmt::format("no effect on sends and receives, of which NCCL takes LL inside a node up to "
                  "NCCL_P2P_LL_THRESHOLD (nccl.p2p_ll_threshold) a channel, else Simple: {}",
                  fmt::join(names, ", ")));
}

}  // namespace weft
