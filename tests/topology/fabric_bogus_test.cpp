/// What Fabric refuses, and in which words.

#include <gtest/gtest.h>

#include "sim/topology/fabric.hpp"
#include "sim/topology/require_gpu.hpp"
#include "tests/topology/machines.hpp"

namespace weft::test::topology_fabric_bogus {
namespace {

/// The message with which a topology is refused; "accepted" if it is not.
std::string refusal(const TopologySpec& spec, std::uint32_t nodes = 1) {
  try {
    const Fabric fabric(placed(spec), nodes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

DeviceSpec& named(TopologySpec& spec, std::string_view name) {
  for (DeviceSpec& each : spec.node.devices) {
    if (each.name == name) return each;
  }
  throw std::logic_error("test: no such device");
}

TEST(FabricBogus, UnknownUpstream) {
  TopologySpec spec = small_machine();
  named(spec, "gpu1").upstream = "sw9";
  EXPECT_EQ(refusal(spec),
            "f.yaml:7:5: gpu1: upstream 'sw9' is not a device; known: cpu0, cpu1, sw0, sw1, sw2");
}

TEST(FabricBogus, UpstreamThatDoesNotForward) {
  TopologySpec spec = small_machine();
  named(spec, "gpu1").upstream = "nic0";
  EXPECT_EQ(refusal(spec),
            "f.yaml:7:5: gpu1: upstream 'nic0' is a nic; allowed: a cpu or a switch: cpu0, cpu1, "
            "sw0, sw1, sw2");
}

TEST(FabricBogus, TwoDevicesWithOneBusId) {
  TopologySpec spec = small_machine();
  named(spec, "gpu0").bus_id = "0000:1b:00.0";
  named(spec, "gpu1").bus_id = "0000:1B:00.1";
  EXPECT_EQ(refusal(spec), "accepted");
  named(spec, "gpu1").bus_id = "1B:00.0";
  TopologySpec there = placed(spec);
  const std::string first = named(there, "gpu0").place.text();
  const std::string second = named(there, "gpu1").place.text();
  EXPECT_EQ(refusal(spec), second + ": gpu1: bus id 1B:00.0 is that of gpu0 too (" + first + ")");
}

TEST(FabricBogus, BusIdsAreThoseOfAHost) {
  // Two trays of one domain have the same ids; sockets of one host do not.
  TopologySpec spec;
  spec.node.devices = {cpu("c0"), cpu("c1"), gpu("g0", "c0"), gpu("g1", "c1")};
  named(spec, "g0").bus_id = named(spec, "g1").bus_id = "0000:1b:00.0";
  EXPECT_EQ(refusal(spec), "accepted");
  spec.node.links = {{LinkKind::kSocket, "c0", "c1", 1, {}}};
  EXPECT_NE(refusal(spec), "accepted");
}

TEST(FabricBogus, PcieCycle) {
  TopologySpec spec = small_machine();
  named(spec, "sw1").upstream = "sw2";
  EXPECT_EQ(refusal(spec), "f.yaml:4:5: PCIe cycle: sw1 -> sw2 -> sw1");
  named(spec, "sw1").upstream = "sw1";
  EXPECT_EQ(refusal(spec), "f.yaml:4:5: PCIe cycle: sw1 -> sw1");
}

TEST(FabricBogus, PcieCycleFoundFromBelowIsToldFromItsFirstDevice) {
  TopologySpec spec;
  spec.node.devices = {cpu("c"), gpu("g", "s2"), pcie_switch("s0", "s2"), pcie_switch("s1", "s0"),
                       pcie_switch("s2", "s1")};
  EXPECT_EQ(refusal(spec), "f.yaml:3:5: PCIe cycle: s0 -> s2 -> s1 -> s0");
}

TEST(FabricBogus, LongPcieCycleIsCutShort) {
  TopologySpec spec;
  spec.node.devices = {gpu("g", "s0")};
  for (int i = 0; i < 3000; ++i) {
    spec.node.devices.push_back(
        pcie_switch("s" + std::to_string(i), "s" + std::to_string((i + 1) % 3000)));
  }
  EXPECT_EQ(refusal(spec),
            "f.yaml:2:5: PCIe cycle: s0 -> s1 -> s2 -> s3 -> s4 -> s5 -> s6 -> s7 -> ... -> s0");
}

TEST(FabricBogus, UnboundPciePort) {
  TopologySpec spec = small_machine();
  named(spec, "gpu2").upstream = "";
  EXPECT_EQ(refusal(spec),
            "f.yaml:8:5: gpu2: its PCIe port is not bound; write 'upstream: DEVICE' (known: cpu0, "
            "cpu1, sw0, sw1, sw2)");
}

TEST(FabricBogus, UnboundNetworkPort) {
  TopologySpec spec = small_machine();
  named(spec, "nic0").network = "";
  EXPECT_EQ(refusal(spec),
            "f.yaml:9:5: nic0: its network port is not bound; write 'network: NAME' (known: "
            "fabric) or 'network: none'");
  spec.network = {};
  EXPECT_EQ(refusal(spec),
            "f.yaml:9:5: nic0: its network port is not bound; write 'network: none', or declare a "
            "network");
}

TEST(FabricBogus, UnknownNetwork) {
  TopologySpec spec = small_machine();
  named(spec, "nic0").network = "rail3";
  EXPECT_EQ(refusal(spec), "f.yaml:9:5: nic0: network 'rail3' is not known; known: fabric, none");
}

// Nodes of cabled NICs alone carry verbs; collectives and copies ask for a GPU.
TEST(FabricBogus, NoGpuButACabledNic) {
  TopologySpec spec = small_machine();
  std::erase_if(spec.node.devices,
                [](const DeviceSpec& device) { return device.kind == DeviceKind::kGpu; });
  spec.node.links.clear();
  ASSERT_EQ(refusal(spec), "accepted");
  const Fabric fabric(placed(spec), 1);
  EXPECT_EQ(fabric.count(DeviceKind::kGpu), 0U);
  EXPECT_THROW(require_gpu(fabric), InputError);
  EXPECT_NO_THROW(require_gpu(Fabric(placed(small_machine()), 1)));
}

TEST(FabricBogus, NoGpu) {
  TopologySpec spec;
  EXPECT_EQ(refusal(spec), "f.yaml: no GPU in the node");
  spec.node.devices = {cpu("cpu0"), nic("nic0", "cpu0", "none")};
  EXPECT_EQ(refusal(spec), "f.yaml: no GPU in the node");
}

TEST(FabricBogus, NodeCounts) {
  EXPECT_EQ(refusal(small_machine(), 0), "f.yaml: 0 nodes; allowed: 1 to 1048576");
  EXPECT_EQ(refusal(small_machine(), (1U << 20) + 1),
            "f.yaml: 1048577 nodes; allowed: 1 to 1048576");
}

TEST(FabricBogus, TooManyDevices) {
  TopologySpec spec;
  spec.node.devices = {cpu("cpu0")};
  while (spec.node.devices.size() < 4097) {
    spec.node.devices.push_back(gpu("gpu" + std::to_string(spec.node.devices.size()), "cpu0"));
  }
  EXPECT_EQ(refusal(spec), "f.yaml:4097:5: 4097 devices in the node; allowed: up to 4096");
  spec.node.devices.pop_back();
  EXPECT_EQ(refusal(spec), "accepted");
  EXPECT_EQ(refusal(spec, 1U << 20),
            "f.yaml: 1048576 nodes of 4096 devices and 4095 links; allowed: fewer than 2^32 of "
            "each in all");
}

TEST(FabricBogus, Names) {
  TopologySpec spec = small_machine();
  named(spec, "gpu1").name = "gpu0";
  EXPECT_EQ(refusal(spec), "f.yaml:7:5: gpu0: the node has two devices of this name");
  spec = small_machine();
  named(spec, "gpu1").name = "gpu@1";
  EXPECT_EQ(refusal(spec),
            "f.yaml:7:5: device name 'gpu@1': a name is made of letters, digits, '_', '-', '+' and "
            "':'");
  spec = small_machine();
  named(spec, "gpu1").name = "fabric";
  EXPECT_EQ(refusal(spec), "f.yaml:7:5: fabric: the network has this name too");
}

TEST(FabricBogus, KeysThatDoNotFitTheKind) {
  TopologySpec spec = small_machine();
  named(spec, "cpu1").upstream = "cpu0";
  EXPECT_EQ(refusal(spec), "f.yaml:2:5: cpu1: a cpu takes no 'upstream'");
  spec = small_machine();
  named(spec, "nvs").upstream = "cpu0";
  EXPECT_EQ(refusal(spec), "f.yaml:12:5: nvs: a nvswitch takes no 'upstream'");
  spec = small_machine();
  named(spec, "gpu0").network = "fabric";
  EXPECT_EQ(refusal(spec), "f.yaml:6:5: gpu0: a gpu takes no 'network'");
  spec = small_machine();
  named(spec, "gpu0").host_bridge = "pci0000:00";
  EXPECT_EQ(refusal(spec),
            "f.yaml:6:5: gpu0: 'host_bridge' belongs to devices directly below a CPU");
}

TEST(FabricBogus, PeerLinks) {
  const auto with = [](const PeerLinkSpec& link) {
    TopologySpec spec = small_machine();
    spec.node.links.push_back(link);
    return refusal(spec);
  };
  const std::string allowed =
      "; allowed: socket cpu-cpu, nvlink gpu-gpu or gpu-nvswitch, xgmi gpu-gpu, c2c gpu-cpu; a "
      "PCIe link is written as 'upstream'";
  EXPECT_EQ(with(peer(LinkKind::kNvlink, "gpu0", "nic0")),
            "f.yaml:17:7: nvlink link: cannot join gpu0 (gpu) and nic0 (nic)" + allowed);
  EXPECT_EQ(with(peer(LinkKind::kNvlink, "cpu0", "gpu0")),
            "f.yaml:17:7: nvlink link: cannot join cpu0 (cpu) and gpu0 (gpu)" + allowed);
  EXPECT_EQ(with(peer(LinkKind::kSocket, "cpu0", "gpu0")),
            "f.yaml:17:7: socket link: cannot join cpu0 (cpu) and gpu0 (gpu)" + allowed);
  EXPECT_EQ(with(peer(LinkKind::kPcie, "cpu0", "gpu0")),
            "f.yaml:17:7: pcie link: cannot join cpu0 (cpu) and gpu0 (gpu)" + allowed);
  EXPECT_EQ(with(peer(LinkKind::kNvlink, "gpu0", "gpu0")),
            "f.yaml:17:7: nvlink link: joins gpu0 to itself");
  EXPECT_EQ(with(peer(LinkKind::kNvlink, "gpu1", "gpu0")),
            "f.yaml:17:7: nvlink link: gpu1 and gpu0 are joined twice; write one link with their "
            "'count'");
  EXPECT_EQ(with(peer(LinkKind::kNvlink, "gpu2", "gpu0", 0)),
            "f.yaml:17:7: nvlink link: count 0; allowed: 1 or more");
  EXPECT_EQ(
      with(peer(LinkKind::kNvlink, "gpu0", "gpu8")),
      "f.yaml:17:7: nvlink link: 'gpu8' is not a device; known: cpu0, cpu1, gpu0, gpu1, gpu2, "
      "nic0, nic1, nic2, nvs, sw0, sw1, sw2");
}

TEST(FabricBogus, PortsOfNics) {
  const auto with = [](const std::string& port_of, const std::string& upstream) {
    TopologySpec spec = small_machine();
    DeviceSpec port = nic("port", upstream);
    port.port_of = port_of;

    spec.node.devices.push_back(port);
    return refusal(spec);
  };
  EXPECT_EQ(with("nic0", ""), "accepted");
  EXPECT_EQ(with("gpu0", ""),
            "f.yaml:13:5: port: 'port_of: gpu0' joins a NIC's port to another NIC that is no such "
            "port itself; known: nic0, nic1, nic2");
  EXPECT_EQ(with("port", "").substr(0, 20), "f.yaml:13:5: port: '");
  EXPECT_EQ(with("nic0", "sw0"),
            "f.yaml:13:5: port: a port of nic0 takes no 'upstream' or 'host_bridge' of its own");
}

}  // namespace
}  // namespace weft::test::topology_fabric_bogus
