#include "sim/topology/fabric.hpp"

#include <chrono>
#include <map>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topology/machines.hpp"

namespace weft::test::topology_fabric {
namespace {

DeviceId at(const Fabric& fabric, std::string_view name, std::uint32_t node = 0) {
  const auto found = fabric.find(node, name);
  if (!found) throw std::logic_error("test: no device " + std::string(name));
  return *found;
}

std::string label(const Fabric& fabric, std::string_view a, std::string_view b) {
  return fabric.path_label(at(fabric, a), at(fabric, b)).text();
}

/// "gpu0@0 sw0@0 cpu0@0": the devices on the way.
std::string text(const Fabric& fabric, DeviceId from, const std::optional<Route>& route) {
  if (!route) return "none";
  std::string out = fabric.full_name(from);
  DeviceId device = from;
  for (const Hop hop : *route) {
    const Link link = fabric.link(hop.link);
    EXPECT_EQ(hop.forward ? link.a : link.b, device) << "hops must join";
    device = hop.forward ? link.b : link.a;
    out += " " + fabric.full_name(device);
  }
  return out;
}

std::string pcie(const Fabric& fabric, std::string_view from, std::string_view to,
                 std::uint32_t node = 0) {
  const DeviceId start = at(fabric, from, node);
  return text(fabric, start, fabric.pcie_route(start, at(fabric, to, node)));
}

std::string nvlink(const Fabric& fabric, std::string_view from, std::string_view to) {
  const DeviceId start = at(fabric, from);
  return text(fabric, start, fabric.nvlink_route(start, at(fabric, to)));
}

TEST(Fabric, NumbersDevicesDenselyNodeByNode) {
  const Fabric fabric(small_machine(), 3);
  EXPECT_EQ(fabric.nodes(), 3U);
  EXPECT_EQ(fabric.devices_per_node(), 12U);
  EXPECT_EQ(fabric.device_count(), 3 * 12 + 1U);     // and the network's switch
  EXPECT_EQ(fabric.link_count(), 3 * (9 + 4 + 2U));  // PCIe, peer links, cabled NICs
  EXPECT_EQ(at(fabric, "gpu0", 2), DeviceId{std::size_t{2 * 12 + 5}});
  EXPECT_EQ(fabric.full_name(at(fabric, "gpu0", 2)), "gpu0@2");
  EXPECT_EQ(fabric.node_of(at(fabric, "gpu0", 2)), 2U);
  EXPECT_EQ(fabric.count(DeviceKind::kGpu), 3U);
  EXPECT_EQ(fabric.device(1, DeviceKind::kGpu, 2), at(fabric, "gpu2", 1));
  EXPECT_EQ(fabric.device(at(fabric, "nic1", 1)).name, "nic1");
  EXPECT_FALSE(fabric.find(0, "gpu7"));
  EXPECT_FALSE(fabric.find(3, "gpu0"));
}

TEST(Fabric, KeepsTheNetworksSwitchBehindAllNodes) {
  const Fabric fabric(small_machine(), 2);
  const DeviceId network = fabric.network_switch(0, 0);
  EXPECT_EQ(network.index(), fabric.device_count() - 1);
  EXPECT_EQ(fabric.full_name(network), "fabric");
  EXPECT_EQ(fabric.device(network).kind, DeviceKind::kNetSwitch);
  EXPECT_EQ(fabric.device(network).part, "quantum-2");
  EXPECT_FALSE(fabric.node_of(network));
  EXPECT_FALSE(fabric.upstream(network));
}

TEST(Fabric, KnowsTheTree) {
  const Fabric fabric(small_machine(), 2);
  EXPECT_EQ(fabric.upstream(at(fabric, "gpu1", 1)), at(fabric, "sw2", 1));
  EXPECT_EQ(fabric.upstream(at(fabric, "cpu0")), std::nullopt);
  EXPECT_EQ(fabric.upstream(at(fabric, "nvs")), std::nullopt);
  EXPECT_EQ(fabric.root_cpu(at(fabric, "gpu1", 1)), at(fabric, "cpu0", 1));
  EXPECT_EQ(fabric.root_cpu(at(fabric, "cpu1", 1)), at(fabric, "cpu1", 1));
  const Link link = fabric.link(fabric.upstream_link(at(fabric, "gpu1", 1)).value());
  EXPECT_EQ(link.kind, LinkKind::kPcie);
  EXPECT_EQ(link.a, at(fabric, "sw2", 1)) << "a is the upstream end";
  EXPECT_EQ(link.b, at(fabric, "gpu1", 1));
}

TEST(Fabric, RoutesOverPcieByTheFewestLinks) {
  const Fabric fabric(small_machine(), 2);
  EXPECT_EQ(pcie(fabric, "gpu0", "nic0"), "gpu0@0 sw0@0 nic0@0");
  EXPECT_EQ(pcie(fabric, "gpu1", "nic1"), "gpu1@0 sw2@0 sw1@0 nic1@0");
  EXPECT_EQ(pcie(fabric, "gpu0", "nic1"), "gpu0@0 sw0@0 cpu0@0 sw1@0 nic1@0");
  EXPECT_EQ(pcie(fabric, "gpu2", "nic2", 1), "gpu2@1 cpu1@1 cpu0@1 sw1@1 sw2@1 nic2@1");
  EXPECT_EQ(pcie(fabric, "gpu0", "cpu0"), "gpu0@0 sw0@0 cpu0@0");
  EXPECT_EQ(pcie(fabric, "gpu0", "gpu0"), "gpu0@0") << "no hop to itself";
  EXPECT_FALSE(fabric.pcie_route(at(fabric, "gpu0", 0), at(fabric, "gpu1", 1)));
  EXPECT_FALSE(fabric.pcie_route(at(fabric, "gpu0"), at(fabric, "nvs")));
}

TEST(Fabric, GivesExactHops) {
  const Fabric fabric(small_machine(), 2);
  // Links of a node: PCIe of sw0 sw1 sw2 gpu0 gpu1 gpu2 nic0 nic1 nic2 (0-8), peers (9-12), wires
  // of nic0 and nic1 (13, 14): 15 a node. Up is backward, for `a` is the upstream end.
  EXPECT_EQ(fabric.pcie_route(at(fabric, "gpu1", 1), at(fabric, "nic1", 1)),
            (Route{{LinkId{std::size_t{15 + 4}}, false},
                   {LinkId{std::size_t{15 + 2}}, false},
                   {LinkId{std::size_t{15 + 7}}, true}}));
  EXPECT_EQ(fabric.wire_route(at(fabric, "nic0", 0), at(fabric, "nic1", 1)),
            (Route{{LinkId{std::size_t{13}}, true}, {LinkId{std::size_t{15 + 14}}, false}}));
  EXPECT_EQ(fabric.nvlink_route(at(fabric, "gpu1"), at(fabric, "gpu0")),
            (Route{{LinkId{std::size_t{12}}, false}}));
}

TEST(Fabric, RoutesOverTheNetworkThroughItsSwitch) {
  const Fabric fabric(small_machine(), 2);
  const auto wire = [&](DeviceId from, DeviceId to) {
    return text(fabric, from, fabric.wire_route(from, to));
  };
  EXPECT_EQ(wire(at(fabric, "nic0", 0), at(fabric, "nic0", 1)), "nic0@0 fabric nic0@1");
  EXPECT_EQ(wire(at(fabric, "nic0", 1), at(fabric, "nic1", 1)), "nic0@1 fabric nic1@1");
  EXPECT_EQ(wire(at(fabric, "nic0"), at(fabric, "nic0")), "none");
  EXPECT_EQ(wire(at(fabric, "nic0"), at(fabric, "nic2", 1)), "none") << "nic2 is not cabled";
  EXPECT_EQ(wire(at(fabric, "gpu0"), at(fabric, "nic0", 1)), "none");
  EXPECT_FALSE(fabric.wire_link(at(fabric, "nic2")));
  EXPECT_EQ(fabric.link(fabric.wire_link(at(fabric, "nic1", 1)).value()).b,
            fabric.network_switch(0, 0));
}

TEST(Fabric, RoutesOverNvlinkDirectlyOrThroughOneSwitch) {
  TopologySpec spec = small_machine();
  EXPECT_EQ(nvlink(Fabric(spec, 1), "gpu0", "gpu1"), "gpu0@0 gpu1@0");
  spec.node.links.pop_back();
  EXPECT_EQ(nvlink(Fabric(spec, 1), "gpu0", "gpu1"), "gpu0@0 nvs@0 gpu1@0");
  EXPECT_EQ(nvlink(Fabric(spec, 1), "gpu0", "gpu2"), "none");
  EXPECT_EQ(nvlink(Fabric(spec, 1), "gpu0", "gpu0"), "none");
  EXPECT_EQ(nvlink(Fabric(spec, 1), "gpu0", "nvs"), "gpu0@0 nvs@0");
  EXPECT_EQ(nvlink(Fabric(spec, 1), "nvs", "gpu0"), "nvs@0 gpu0@0");
  EXPECT_EQ(nvlink(Fabric(spec, 1), "nvs", "gpu2"), "none");
  EXPECT_EQ(nvlink(Fabric(spec, 1), "nic0", "nvs"), "none");
}

TEST(Fabric, DoesNotRouteNvlinkThroughAGpu) {
  TopologySpec spec = small_machine();
  spec.node.links = {peer(LinkKind::kNvlink, "gpu0", "gpu1"),
                     peer(LinkKind::kNvlink, "gpu1", "gpu2")};
  EXPECT_EQ(nvlink(Fabric(spec, 1), "gpu0", "gpu2"), "none");
}

TEST(Fabric, TakesTheEarlierLinkOfWaysEquallyShort) {
  TopologySpec spec;
  spec.node.devices = {cpu("c0"), cpu("c1"), cpu("c2"), cpu("c3"), gpu("g", "c0"), gpu("h", "c3")};
  spec.node.links = {peer(LinkKind::kSocket, "c0", "c2"), peer(LinkKind::kSocket, "c0", "c1"),
                     peer(LinkKind::kSocket, "c1", "c3"), peer(LinkKind::kSocket, "c2", "c3")};
  EXPECT_EQ(pcie(Fabric(spec, 1), "g", "h"), "g@0 c0@0 c2@0 c3@0 h@0");
  std::swap(spec.node.links[0], spec.node.links[1]);
  EXPECT_EQ(pcie(Fabric(spec, 1), "g", "h"), "g@0 c0@0 c1@0 c3@0 h@0");
}

TEST(Fabric, NamesTheKindOfALinkBesidePcieWhicheverEndComesFirst) {
  for (const bool gpu_first : {true, false}) {
    TopologySpec spec;
    spec.node.devices = {cpu("c0"), cpu("c1"), gpu("g", "c0"), gpu("h", "c1")};
    spec.node.links = {peer(LinkKind::kC2c, gpu_first ? "g" : "c0", gpu_first ? "c0" : "g"),
                       peer(LinkKind::kSocket, "c0", "c1"), peer(LinkKind::kC2c, "h", "c0")};
    const Fabric fabric(spec, 2);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < fabric.links_per_node(); ++i) {
      names.push_back(fabric.direction_name({LinkId{fabric.links_per_node() + i}, true}));
      names.push_back(fabric.direction_name({LinkId{i}, false}));
    }
    const char* const there = gpu_first ? "g -> c0 (c2c)" : "c0 -> g (c2c)";
    const char* const back = gpu_first ? "c0 -> g (c2c)" : "g -> c0 (c2c)";
    EXPECT_THAT(names, testing::ElementsAre("c0 -> g", "g -> c0", "c1 -> h", "h -> c1", there, back,
                                            "c0 -> c1", "c1 -> c0", "h -> c0", "c0 -> h"));
  }
}

TEST(Fabric, PrefersC2cToPcieBetweenGpuAndCpu) {
  TopologySpec spec;
  spec.node.devices = {cpu("grace"), gpu("g", "grace"), nic("n", "grace", "none")};
  spec.node.links = {peer(LinkKind::kC2c, "g", "grace", 5)};
  const Fabric fabric(spec, 1);
  const Route route = fabric.pcie_route(at(fabric, "g"), at(fabric, "n")).value();
  EXPECT_EQ(fabric.link(route.at(0).link).kind, LinkKind::kC2c);
  EXPECT_EQ(fabric.link(route.at(1).link).kind, LinkKind::kPcie);
  EXPECT_EQ(label(fabric, "g", "n"), "NODE") << "classes are those of the PCIe tree";
}

TEST(Fabric, NamesPathClassesAsNvidiaSmiDoes) {
  const Fabric fabric(small_machine(), 1);
  EXPECT_EQ(label(fabric, "gpu0", "gpu0"), "X");
  EXPECT_EQ(label(fabric, "gpu0", "nic0"), "PIX");
  EXPECT_EQ(label(fabric, "gpu1", "nic2"), "PIX");
  EXPECT_EQ(label(fabric, "gpu1", "nic1"), "PXB") << "sw2 and sw1";
  EXPECT_EQ(label(fabric, "nic1", "nic2"), "PXB");
  EXPECT_EQ(label(fabric, "gpu0", "nic1"), "NODE");
  EXPECT_EQ(label(fabric, "gpu2", "nic1"), "SYS");
  EXPECT_EQ(label(fabric, "gpu0", "gpu2"), "SYS");
  // 2 direct ones, and the fewer of 4 and 3 through the NVSwitch.
  EXPECT_EQ(label(fabric, "gpu0", "gpu1"), "NV5");
  EXPECT_EQ(label(fabric, "gpu1", "gpu0"), "NV5");
}

TEST(Fabric, CallsOneHostBridgePhb) {
  TopologySpec spec;
  spec.node.devices = {cpu("c"),       pcie_switch("s", "c"), gpu("g0", "c"),
                       gpu("g1", "s"), gpu("g2", "c"),        gpu("g3", "c")};
  spec.node.devices[1].host_bridge = "pci0000:00";
  spec.node.devices[2].host_bridge = "pci0000:00";
  spec.node.devices[4].host_bridge = "pci0000:80";
  const Fabric fabric(spec, 1);
  EXPECT_EQ(label(fabric, "g0", "g1"), "PHB") << "the switch's bridge counts for what is below it";
  EXPECT_EQ(label(fabric, "g0", "g2"), "NODE");
  EXPECT_EQ(label(fabric, "g0", "g3"), "NODE") << "g3 has a host bridge of its own";
}

/// The matrix of shared/data/topo_m/azure_gb300_ndv6.txt (kubernetes-sigs/dranet@f258477): each GPU
/// and NIC in a PCI domain of its own, two of each a socket, all GPUs joined by 18 NVLinks.
TEST(Fabric, GivesTheMatrixOfAGb300Node) {
  TopologySpec spec;
  spec.node.devices = {cpu("cpu0"), cpu("cpu1"), device("nvs", DeviceKind::kNvSwitch)};
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    const std::string socket = i < 2 ? "cpu0" : "cpu1";
    spec.node.devices.push_back(gpu("gpu" + number, socket));
    spec.node.devices.push_back(nic("nic" + number, socket, "none"));
    spec.node.links.push_back(peer(LinkKind::kNvlink, "gpu" + number, "nvs", 18));
    spec.node.links.push_back(peer(LinkKind::kC2c, "gpu" + number, socket));
  }
  const Fabric fabric(spec, 1);
  for (std::size_t i = 0; i < 4; ++i) {
    const DeviceId gpu_i = fabric.device(0, DeviceKind::kGpu, i);
    for (std::size_t j = 0; j < 4; ++j) {
      const DeviceId gpu_j = fabric.device(0, DeviceKind::kGpu, j);
      const DeviceId nic_j = fabric.device(0, DeviceKind::kNic, j);
      EXPECT_EQ(fabric.path_label(gpu_i, gpu_j).text(), i == j ? "X" : "NV18");
      EXPECT_EQ(fabric.path_label(gpu_i, nic_j).text(), i / 2 == j / 2 ? "NODE" : "SYS");
    }
  }
}

/// Renaming devices changes names only: classes and routes, as link numbers, stay.
TEST(Fabric, DoesNotCareForNames) {
  const TopologySpec plain = small_machine();
  TopologySpec renamed = plain;
  std::map<std::string, std::string> names{{"", ""}};
  int next = 99;
  for (const DeviceSpec& each : plain.node.devices) {
    names[each.name] = "x" + std::to_string(next--);  // against the file's order
  }
  for (DeviceSpec& each : renamed.node.devices) {
    each.name = names.at(each.name);
    each.upstream = names.at(each.upstream);
  }
  for (PeerLinkSpec& each : renamed.node.links) {
    each.a = names.at(each.a);
    each.b = names.at(each.b);
  }
  const Fabric one(plain, 2);
  const Fabric other(renamed, 2);
  const auto is_endpoint = [&](DeviceId id) {
    const DeviceKind kind = one.device(id).kind;
    return kind == DeviceKind::kGpu || kind == DeviceKind::kNic;
  };
  for (std::size_t i = 0; i < 2 * one.devices_per_node(); ++i) {
    for (std::size_t j = 0; j < 2 * one.devices_per_node(); ++j) {
      const DeviceId a{i};
      const DeviceId b{j};
      EXPECT_EQ(one.pcie_route(a, b), other.pcie_route(a, b));
      EXPECT_EQ(one.nvlink_route(a, b), other.nvlink_route(a, b));
      EXPECT_EQ(one.wire_route(a, b), other.wire_route(a, b));
      if (one.node_of(a) != one.node_of(b) || !is_endpoint(a) || !is_endpoint(b)) continue;
      EXPECT_EQ(one.path_label(a, b).text(), other.path_label(a, b).text());
    }
  }
}

TEST(Fabric, HoldsTheLargestClusterInTheMemoryOfOneNode) {
  const auto start = std::chrono::steady_clock::now();
  for (const std::uint32_t nodes : {4096U, 1U << 20}) {
    const Fabric fabric(small_machine(), nodes);
    const DeviceId last = at(fabric, "nic1", nodes - 1);
    EXPECT_EQ(text(fabric, last, fabric.wire_route(last, at(fabric, "nic0"))),
              "nic1@" + std::to_string(nodes - 1) + " fabric nic0@0");
  }
  // Nothing is kept for each node, so even a million must be built at once. The bound is generous:
  // the test also runs under sanitizers on busy machines.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Fabric, BuildsTheLargestNodeFast) {
  TopologySpec spec;
  spec.node.devices = {cpu("cpu0")};
  for (int i = 0; i < 4000; ++i) {  // a chain, the deepest tree there is
    const std::string above = i == 0 ? "cpu0" : "sw" + std::to_string(i - 1);
    spec.node.devices.push_back(pcie_switch("sw" + std::to_string(i), above));
  }
  spec.node.devices.push_back(gpu("gpu0", "sw3999"));
  const auto start = std::chrono::steady_clock::now();
  const Fabric fabric(spec, 1);
  EXPECT_EQ(fabric.pcie_route(at(fabric, "gpu0"), at(fabric, "cpu0")).value().size(), 4001U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Fabric, TreatsForeignIdsAsABug) {
  const Fabric fabric(small_machine(), 1);
  EXPECT_THROW(fabric.device(DeviceId{fabric.device_count()}), std::logic_error);
  EXPECT_THROW(fabric.link(LinkId{fabric.link_count()}), std::logic_error);
  EXPECT_THROW(fabric.device(0, DeviceKind::kGpu, 3), std::logic_error);
  EXPECT_THROW(fabric.device(1, DeviceKind::kGpu, 0), std::logic_error);
  EXPECT_THROW(fabric.root_cpu(at(fabric, "nvs")), std::logic_error);
  EXPECT_THROW(fabric.path_label(at(fabric, "gpu0"), at(fabric, "cpu0")), std::logic_error);
}

}  // namespace
}  // namespace weft::test::topology_fabric
