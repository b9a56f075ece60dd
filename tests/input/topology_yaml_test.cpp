#include "sim/input/topology_yaml.hpp"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/topology/fabric.hpp"
#include "tests/input/catalog.hpp"

namespace weft::test::input_topology_yaml {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kSmall = R"(topology: small
source: a test
nodes: 3
defaults:
  wire.kind: roce
node:
  devices:
    cpu0: {kind: cpu, part: sapphire-rapids}
    sw0: {kind: switch, upstream: cpu0, host_bridge: "pci0000:15"}
    gpu0: {kind: gpu, part: h100-sxm, upstream: sw0, bus_id: "0000:18:00.0"}
    nic0:
      kind: nic
      upstream: sw0
      network: fabric
      set:
        pcie_width: 8
        rate: {value: 200 Gb/s, origin: measured, source: "ibstat, 2026-11-02"}
    nvs: {kind: nvswitch}
  links:
    - {kind: nvlink, between: [gpu0, nvs], count: 18}
network:
  fabric: {kind: one-switch, part: quantum-2}
)";

TopologySpec parse(const std::string& text) {
  return parse_topology_yaml(text, "f.yaml", test_catalog());
}

/// kSmall with one piece replaced.
std::string with(const std::string& piece, const std::string& by) {
  std::string text = kSmall;
  const std::size_t start = text.find(piece);
  if (start == std::string::npos) throw std::logic_error("test: no such piece");
  return text.replace(start, piece.size(), by);
}

std::string refused(const std::string& text) {
  return refusal([&] { parse(text); });
}

TEST(TopologyYaml, ReadsEveryKey) {
  const TopologySpec spec = parse(kSmall);
  EXPECT_EQ(spec.name, "small");
  EXPECT_EQ(spec.source, "a test");
  EXPECT_EQ(spec.file, "f.yaml");
  EXPECT_EQ(spec.nodes, 3U);
  EXPECT_EQ(spec.defaults.at("wire.kind").number, 1.0);
  ASSERT_EQ(spec.node.devices.size(), 5U);
  const DeviceSpec& pcie_switch = spec.node.devices[1];
  EXPECT_EQ(pcie_switch.kind, DeviceKind::kSwitch);
  EXPECT_EQ(pcie_switch.host_bridge, "pci0000:15");
  const DeviceSpec& gpu = spec.node.devices[2];
  EXPECT_EQ(gpu.name, "gpu0");
  EXPECT_EQ(gpu.part, "h100-sxm");
  EXPECT_EQ(gpu.upstream, "sw0");
  EXPECT_EQ(gpu.bus_id, "0000:18:00.0");
  EXPECT_EQ(gpu.place.text(), "f.yaml:10:5");
  ASSERT_EQ(spec.node.links.size(), 1U);
  EXPECT_EQ(spec.node.links[0].kind, LinkKind::kNvlink);
  EXPECT_EQ(spec.node.links[0].count, 18U);
  EXPECT_EQ(spec.network.kind, NetworkSpec::Kind::kOneSwitch);
  EXPECT_EQ(spec.network.name, "fabric");
  EXPECT_EQ(spec.network.part, "quantum-2");
}

TEST(TopologyYaml, KeepsWhereValuesComeFrom) {
  const TopologySpec spec = parse(kSmall);
  const ParamValues& settings = spec.node.devices[3].settings;
  EXPECT_EQ(settings.at("pcie_width").number, 8.0);
  EXPECT_EQ(settings.at("pcie_width").origin, Origin::kAssumed);
  EXPECT_EQ(settings.at("pcie_width").source, "f.yaml:16");
  EXPECT_DOUBLE_EQ(settings.at("rate").number, 25.0);  // GB/s
  EXPECT_EQ(settings.at("rate").origin, Origin::kMeasured);
  EXPECT_EQ(settings.at("rate").source, "ibstat, 2026-11-02");
}

TEST(TopologyYaml, HasDefaults) {
  const TopologySpec spec =
      parse("topology: t\nnode: {devices: {c: {kind: cpu}, g: {kind: gpu, upstream: c}}}\n");
  EXPECT_EQ(spec.nodes, 1U);
  EXPECT_EQ(spec.network.kind, NetworkSpec::Kind::kNone);
  EXPECT_NO_THROW(Fabric(spec, spec.nodes));
}

TEST(TopologyYaml, ReadsANetworkOfSwitches) {
  const NetworkSpec network =
      parse(
          with("{kind: one-switch, part: quantum-2}",
               "{spines: 8, leaf_down: 48, oversubscription: 1.5, kind: leaf-spine, ports: 128, "
               "placement: round-robin, part: quantum-2, spine: {part: x, set: {latency: 300 ns}}, "
               "leaf: {set: {uplink_length: 50 m}}}"))
          .network;
  EXPECT_EQ(network.kind, NetworkSpec::Kind::kLeafSpine);
  EXPECT_EQ(network.placement, NetworkSpec::Placement::kRoundRobin);
  EXPECT_EQ(network.ports, 128U);
  EXPECT_EQ(network.leaf_down, 48U);
  EXPECT_EQ(network.leaf_up, std::nullopt);
  EXPECT_EQ(network.oversubscription, 1.5);
  EXPECT_EQ(network.spines, 8U);
  EXPECT_EQ(network.spine.part, "x");
  EXPECT_EQ(network.spine.settings.at("latency").number, 300);
  EXPECT_EQ(network.leaf.settings.at("uplink_length").number, 50);
  EXPECT_EQ(network.leaf.settings.at("uplink_length").source, "f.yaml:22");
}

TEST(TopologyYaml, ReadsNetworksOfEveryShape) {
  const auto network = [](const std::string& body) {
    return parse(with("{kind: one-switch, part: quantum-2}", "{ports: 64, " + body + "}")).network;
  };
  const NetworkSpec torus = network("kind: torus, dims: 8x4x2, locals: 2, node_leaves: 2");
  EXPECT_EQ(torus.kind, NetworkSpec::Kind::kTorus);
  EXPECT_EQ(torus.dims, (std::vector<std::uint32_t>{8, 4, 2}));
  EXPECT_EQ(torus.locals, 2U);
  EXPECT_EQ(torus.node_leaves, 2U);
  const NetworkSpec dragonfly =
      network("kind: dragonfly, group_leaves: 8, groups: 9, globals: 4, paths: valiant");
  EXPECT_EQ(dragonfly.kind, NetworkSpec::Kind::kDragonfly);
  EXPECT_EQ(dragonfly.group_leaves, 8U);
  EXPECT_EQ(dragonfly.groups, 9U);
  EXPECT_EQ(dragonfly.globals, 4U);
  EXPECT_EQ(dragonfly.paths, NetworkSpec::Paths::kValiant);
  EXPECT_EQ(network("kind: dragonfly-plus").kind, NetworkSpec::Kind::kDragonflyPlus);
  const NetworkSpec racks =
      network("kind: fat-tree, planes: 2, inside: ring, rack_leaves: 16, locals: 4");
  EXPECT_EQ(racks.planes, 2U);
  EXPECT_EQ(racks.inside, NetworkSpec::Inside::kRing);
  EXPECT_EQ(racks.rack_leaves, 16U);
}

TEST(TopologyYamlBogus, NetworksOfOtherShapes) {
  const auto refused_network = [](const std::string& body) {
    return refused(with("{kind: one-switch, part: quantum-2}", "{" + body + "}"));
  };
  EXPECT_THAT(refused_network("kind: torus, dims: 8x"), HasSubstr("'' is not a whole number"));
  EXPECT_THAT(refused_network("kind: torus, dims: 8xx8"), HasSubstr("'' is not a whole number"));
  EXPECT_THAT(refused_network("kind: torus, dims: 0x8"), HasSubstr("'0' is out of range"));
  EXPECT_THAT(refused_network("kind: torus, dims: [8, 8]"),
              HasSubstr("network.fabric.dims: expected a value, found a list"));
  EXPECT_THAT(refused_network("kind: fat-tree, inside: star"),
              HasSubstr("'star' is not a kind of rack; known: clique, ring, tree"));
  EXPECT_THAT(refused_network("kind: dragonfly, paths: long"),
              HasSubstr("'long' is not a kind of paths; known: minimal, valiant"));
  EXPECT_THAT(refused_network("kind: torus, ports: 8, dims: 2x2, spine: {part: quantum-2}"),
              HasSubstr("network.fabric.spine: a torus network has no such tier"));
  EXPECT_THAT(refused_network("kind: one-switch, spine: {part: quantum-2}"),
              HasSubstr("network.fabric.spine: a one-switch network has no such tier"));
  EXPECT_THAT(refused_network("kind: leaf-spine, ports: 8, core: {part: quantum-2}"),
              HasSubstr("network.fabric.core: a leaf-spine network has no such tier"));
  EXPECT_THAT(refused_network("kind: mesh"),
              HasSubstr("'mesh' is not a kind of network; known: dragonfly, dragonfly-plus, "));
}

TEST(TopologyYamlBogus, Networks) {
  const auto refused_network = [](const std::string& body) {
    return refused(with("{kind: one-switch, part: quantum-2}", "{kind: leaf-spine, " + body + "}"));
  };
  EXPECT_EQ(refused_network("ports: 64.5"),
            "f.yaml:22:30: network.fabric.ports: '64.5' is not a whole number");
  EXPECT_THAT(refused_network("ports: -1"), HasSubstr("'-1' is out of range; allowed: 1 to 4096"));
  EXPECT_THAT(refused_network("ports: 1e99"),
              HasSubstr("'1e99' is out of range; allowed: 1 to 4096"));
  EXPECT_THAT(refused_network("oversubscription: 0"), HasSubstr("is not a number above 0"));
  EXPECT_THAT(refused_network("oversubscription: nan"), HasSubstr("is not a number above 0"));
  EXPECT_THAT(refused_network("placement: random"),
              HasSubstr("'random' is not a kind of placement; known: packed, round-robin"));
  EXPECT_THAT(
      refused_network("radix: 64"),
      HasSubstr(
          "unknown key; allowed here: core, cores, dims, failed_uplinks, globals, "
          "group_leaves, groups, inside, kind, leaf, leaf_down, leaf_up, locals, node_leaves, "
          "oversubscription, part, paths, placement, planes, ports, rack_leaves"));
  EXPECT_THAT(
      refused_network("failed_uplinks: 3"),
      HasSubstr("failed_uplinks: '3': not a leaf or a spine and how many of its uplinks are down"));
  EXPECT_THAT(refused_network("failed_uplinks: 'leaf3:0'"),
              HasSubstr("failed_uplinks: 'leaf3:0': '0' is out of range"));
  EXPECT_THAT(refused_network("failed_uplinks: 'leaf3:1+leaf3:2'"),
              HasSubstr("'leaf3:2': leaf3 stands there twice"));
  EXPECT_THAT(refused_network("leaf_up: 8, oversubscription: 2"),
              HasSubstr("network.fabric.oversubscription: write either this or 'leaf_up'"));
  EXPECT_THAT(refused_network("spine: {set: {speed: 1 GB/s}}"),
              HasSubstr("no parameter 'netswitch.speed'"));
  EXPECT_THAT(refused_network("spine: {count: 3}"),
              HasSubstr("network.fabric.spine.count: unknown key; allowed here: part, set"));
}

TEST(TopologyYamlBogus, Keys) {
  EXPECT_EQ(refused(with("nodes: 3", "node_count: 3")),
            "f.yaml:3:1: node_count: unknown key; allowed here: defaults, network, node, nodes, "
            "source, topology");
  EXPECT_EQ(refused(with("part: h100-sxm, up", "prat: h100-sxm, up")),
            "f.yaml:10:23: node.devices.gpu0.prat: unknown key; allowed here: bus_id, host_bridge, "
            "kind, model, network, part, port_of, repeat, set, upstream");
  EXPECT_EQ(refused(with("nvs: {kind", "sw0: {kind")),
            "f.yaml:18:5: node.devices.sw0: key given twice");
  EXPECT_EQ(refused(with("topology: small\n", "")), "f.yaml:1:1: missing key 'topology'");
  EXPECT_EQ(refused(with("{kind: nvswitch}", "{part: nvswitch-3}")),
            "f.yaml:18:5: node.devices.nvs: missing key 'kind'");
}

TEST(TopologyYamlBogus, Words) {
  EXPECT_EQ(refused(with("kind: gpu", "kind: tpu")),
            "f.yaml:10:12: node.devices.gpu0.kind: 'tpu' is not a kind of device; known: cpu, gpu, "
            "nic, nvswitch, switch");
  EXPECT_EQ(refused(with("kind: nvlink", "kind: pcie")),
            "f.yaml:20:8: node.links[0].kind: 'pcie' is not a kind of link; known: c2c, nvlink, "
            "socket, xgmi");
  EXPECT_EQ(refused(with("kind: one-switch", "kind: hypercube")),
            "f.yaml:22:12: network.fabric.kind: 'hypercube' is not a kind of network; known: "
            "dragonfly, dragonfly-plus, fat-tree, leaf-spine, one-switch, rail-optimised, torus");
}

TEST(TopologyYamlBogus, Values) {
  EXPECT_EQ(refused(with("value: 200 Gb/s", "value: 200")),
            "f.yaml:17:16: node.devices.nic0.set.rate.value: nic.rate: '200' has no unit; write a "
            "rate with its unit, such as 400 Gb/s or 50 GB/s");
  EXPECT_THAT(refused(with("value: 200 Gb/s", "value: 200 ns")),
              StartsWith("f.yaml:17:16: node.devices.nic0.set.rate.value: nic.rate: '200 ns' has "
                         "unit 'ns', which does not fit"));
  EXPECT_THAT(refused(with("pcie_width: 8", "pcie_width: 64")),
              HasSubstr("f.yaml:16:9: node.devices.nic0.set.pcie_width: nic.pcie_width: 64 is out "
                        "of range"));
  EXPECT_THAT(refused(with("pcie_width: 8", "width: 8")),
              StartsWith("f.yaml:16:9: node.devices.nic0.set.width: no parameter 'nic.width'; "
                         "known: nic.gdr, nic.pcie_gen"));
  EXPECT_THAT(refused(with("origin: measured", "origin: guessed")),
              HasSubstr("17:33: node.devices.nic0.set.rate.origin: 'guessed' is not an origin"));
  EXPECT_THAT(refused(with("origin: measured", "from: measured")), HasSubstr("unknown key"));
  EXPECT_THAT(
      refused(with("wire.kind: roce", "wire.kind: token-ring")),
      StartsWith("f.yaml:5:3: defaults.wire.kind: wire.kind: 'token-ring' is not a choice"));
  EXPECT_THAT(refused(with("wire.kind: roce", "wire.kind: [roce]")),
              HasSubstr("f.yaml:5:3: defaults.wire.kind: expected a value, found a list"));
}

TEST(TopologyYamlBogus, Shapes) {
  EXPECT_EQ(refused(with("[gpu0, nvs]", "[gpu0]")),
            "f.yaml:20:22: node.links[0].between: expected two devices, such as [gpu0, gpu1]");
  EXPECT_THAT(refused(with("count: 18", "count: 0")), HasSubstr("whole number from 1 to 1024"));
  EXPECT_THAT(refused(with("nodes: 3", "nodes: 0")), HasSubstr("whole number from 1 to 1048576"));
  EXPECT_THAT(refused(with("  fabric: {kind: one-switch, part: quantum-2}", "  {}")),
              HasSubstr("expected one network"));
  EXPECT_THAT(refused("just text"), HasSubstr("expected a map"));
}

TEST(TopologyYamlBogus, DeepNestingIsRefusedQuickly) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(refused(std::string(100'000, '[')), StartsWith("f.yaml:1:1: "));
  EXPECT_THAT(refused("topology: " + std::string(100'000, '[')), StartsWith("f.yaml:1:"));
  EXPECT_THAT(refused("topology: " + std::string(1'000, '[') + std::string(1'000, ']')),
              HasSubstr("nested deeper than 64 levels"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

std::string topology(const std::string& name) {
  return std::string(WEFT_SOURCE_DIR) + "/topologies/" + name;
}

Fabric load(const std::string& name) {
  TopologySpec spec = read_topology_yaml(topology(name), test_catalog());
  const std::uint32_t nodes = spec.nodes;
  return Fabric(std::move(spec), nodes);
}

std::string label(const Fabric& fabric, std::string_view a, std::string_view b) {
  return fabric.path_label(fabric.find(0, a).value(), fabric.find(0, b).value()).text();
}

TEST(Topologies, HgxH100With8Nics) {
  const Fabric fabric = load("hgx-h100-8nic.yaml");
  EXPECT_EQ(fabric.nodes(), 2U);
  EXPECT_EQ(fabric.count(DeviceKind::kGpu), 8U);
  EXPECT_EQ(fabric.count(DeviceKind::kNic), 8U);
  EXPECT_EQ(label(fabric, "gpu0", "nic0"), "PIX");
  EXPECT_EQ(label(fabric, "gpu0", "nic2"), "NODE") << "another switch of the same CPU";
  EXPECT_EQ(label(fabric, "gpu0", "nic4"), "SYS");
  EXPECT_EQ(label(fabric, "gpu0", "gpu7"), "NV18");
  EXPECT_EQ(label(fabric, "nic6", "nic7"), "PIX");
  const DeviceId gpu = fabric.find(0, "gpu0").value();
  const DeviceId far_nic = fabric.find(0, "nic4").value();
  // gpu0 - pcisw0 - cpu0 - cpu1 - pcisw2 - nic4
  EXPECT_EQ(fabric.pcie_route(gpu, far_nic).value().size(), 5U);
  EXPECT_EQ(fabric.nvlink_route(gpu, fabric.find(0, "gpu7").value()).value().size(), 2U);
  EXPECT_EQ(fabric.spec().defaults.at("wire.kind").number, 0.0);
}

TEST(Topologies, HgxH100With4Nics) {
  const Fabric fabric = load("hgx-h100-4nic.yaml");
  EXPECT_EQ(fabric.count(DeviceKind::kGpu), 8U);
  EXPECT_EQ(fabric.count(DeviceKind::kNic), 4U);
  EXPECT_EQ(label(fabric, "gpu0", "nic0"), "PIX");
  EXPECT_EQ(label(fabric, "gpu1", "nic0"), "PIX");
  EXPECT_EQ(label(fabric, "gpu0", "nic1"), "NODE");
  EXPECT_EQ(label(fabric, "gpu0", "nic2"), "SYS");
}

TEST(Topologies, H200Vm) {
  const Fabric fabric = load("h200-vm.yaml");
  EXPECT_EQ(fabric.nodes(), 1U);
  EXPECT_EQ(fabric.count(DeviceKind::kGpu), 4U);
  EXPECT_EQ(fabric.count(DeviceKind::kNic), 4U);  // emulated
  EXPECT_EQ(label(fabric, "gpu0", "gpu3"), "NV18");
  TopologySpec without_nvlink = fabric.spec();
  without_nvlink.node.links.clear();
  EXPECT_EQ(label(Fabric(without_nvlink, 1), "gpu0", "gpu3"), "PHB") << "one host bridge";
}

}  // namespace
}  // namespace weft::test::input_topology_yaml
