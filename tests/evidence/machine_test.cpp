// From facts to a topology: the tree, its path classes, settings with their places, what disagrees.
#include "sim/input/evidence/machine.hpp"

#include <filesystem>
#include <regex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/registry/registry.hpp"
#include "sim/input/network_keys.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/input/topology_write.hpp"
#include "sim/input/topology_yaml.hpp"
#include "sim/topology/fabric.hpp"
#include "tests/evidence/evidence_data.hpp"
#include "tests/evidence/imported.hpp"

namespace weft::test::evidence_machine {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string path(const Fabric& fabric, const std::string& a, const std::string& b) {
  return fabric.path_label(*fabric.find(0, a), *fabric.find(0, b)).text();
}

std::string setting(const TopologySpec& spec, const std::string& name, const std::string& key) {
  const DeviceSpec& of = device(spec, name);
  const auto found = of.settings.find(key);
  if (found == of.settings.end()) return "none";
  const ParamCatalog catalog = make_catalog();
  return ParamCatalog::format(catalog.require(std::string(of.scope()) + "." + key),
                              found->second.number);
}

/// All cells of a matrix against the tree that was made for it; those that are not joined by a
/// common tree are conflicts, of which there are none here.
TEST(ImportedMatrix, GivesItsOwnClassesBack) {
  for (const char* name : {"topo-m-ibm-h100-vm.txt", "topo-m-dgx-a100.txt", "topo-m-h100-4nic.txt",
                           "topo-m-gb300.md", "topo-m-h200-nvl.txt", "topo-m-v100-mesh.txt"}) {
    const Evidence evidence = evidence_of(captured(name));
    const ImportedMachine machine = import_machine(evidence, make_catalog());
    EXPECT_THAT(machine.conflicts, IsEmpty()) << name;
    const Fabric fabric(machine.spec, 1);
    std::size_t cells = 0;
    for (const Fact* fact : evidence.facts.beginning("", fact::kPath)) {
      const std::string other = fact->what.substr(fact::kPath.size());
      EXPECT_EQ(path(fabric, fact->subject, other), fact->value)
          << name << " " << fact->subject << " " << other;
      ++cells;
    }
    EXPECT_GE(cells, 20U) << name;
  }
}

// The matrix has what was set up; what is up nvlink -s says.
TEST(ImportedMatrix, HasThoseOfItsNvlinksThatAreUp) {
  const auto links_of_gpu3 = [](int up) {
    std::string text =
        captured("topo-m-dgx-a100.txt") + "GPU 3: NVIDIA A100-SXM4-80GB (UUID: GPU-3)\n";
    for (int i = 0; i < 12; ++i) {
      text += "\t Link " + std::to_string(i) + (i < up ? ": 25 GB/s\n" : ": <inactive>\n");
    }
    const ImportedMachine machine = imported(text);
    for (const PeerLinkSpec& link : machine.spec.node.links) {
      if (link.kind == LinkKind::kNvlink && link.a == "gpu3") return link.count;
    }
    return 0U;
  };
  EXPECT_EQ(links_of_gpu3(12), 12U);
  EXPECT_EQ(links_of_gpu3(10), 10U);
  EXPECT_EQ(links_of_gpu3(0), 0U);
}

TEST(ImportedMatrix, ThatIsOfNoTreeIsAConflict) {
  // gpu0 shares a switch with nic0, and nic0 with gpu1, but gpu0 is far from gpu1.
  const ImportedMachine machine = imported(
      "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tSYS\tPIX\nGPU1\tSYS\t X \tPIX\nNIC0\tPIX\tPIX\t X \n");
  ASSERT_FALSE(machine.conflicts.empty());
  EXPECT_EQ(machine.conflicts[0].taken, "PIX");
  EXPECT_EQ(machine.conflicts[0].other, "SYS");
  EXPECT_EQ(machine.conflicts[0].other_place.line, 2);
}

TEST(ImportedLspci, FoldsPortsIntoSwitches) {
  const ImportedMachine machine = imported(captured("lspci-vvv-dell-h100.txt"));
  const Fabric fabric(machine.spec, 1);
  EXPECT_EQ(path(fabric, "gpu0", "nic0"), "PIX");
  EXPECT_EQ(path(fabric, "gpu0", "nic1"), "SYS");
  EXPECT_EQ(path(fabric, "gpu0", "gpu1"), "SYS");
  EXPECT_EQ(device(machine.spec, "gpu0").part, "h100-sxm");
  EXPECT_EQ(device(machine.spec, "nic0").part, "connectx-7");
  EXPECT_EQ(device(machine.spec, device(machine.spec, "gpu0").upstream).part, "pex89144");
  EXPECT_EQ(setting(machine.spec, "gpu0", "pcie_gen"), "5");
  EXPECT_EQ(setting(machine.spec, "gpu0", "port_acs"), "none");
  EXPECT_EQ(setting(machine.spec, "nic0", "mrrs"), "4096 B");
  const ParamValue& bar1 = device(machine.spec, "gpu0").settings.find("bar1_size")->second;
  EXPECT_EQ(bar1.number, 128.0 * (1 << 30));
  EXPECT_EQ(bar1.origin, Origin::kMeasured);
  EXPECT_THAT(bar1.source, HasSubstr("f:"));
}

TEST(ImportedTree, OfQemuPutsEachPairBelowItsSwitch) {
  const ImportedMachine machine = imported(captured("lspci-tv-h200-vm.txt"));
  const Fabric fabric(machine.spec, 1);
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    EXPECT_EQ(path(fabric, "gpu" + n, "nic" + n), "PIX") << i;
  }
  EXPECT_EQ(path(fabric, "gpu0", "nic1"), "PHB");  // one root bus
  EXPECT_EQ(path(fabric, "gpu0", "nic7"), "NODE");
}

// The pair that belongs together: what NCCL's graph and lspci -tv say of one machine.
TEST(ImportedPair, OfNcclAndLspciAgree) {
  Evidence evidence = evidence_of(captured("lspci-tv-h200-vm.txt"), "tv");
  parse_evidence(captured("nccl-graph-h200-vm.txt"), "nccl", "", evidence);
  const ImportedMachine machine = import_machine(evidence, make_catalog());
  const Fabric fabric(machine.spec, 1);
  EXPECT_EQ(fabric.count(DeviceKind::kGpu), 8U);
  EXPECT_EQ(fabric.count(DeviceKind::kNic), 8U);
  EXPECT_EQ(path(fabric, "gpu0", "gpu7"), "NV18");
  for (const DeviceSpec& each : machine.spec.node.devices) {
    if (each.kind != DeviceKind::kNic) continue;
    EXPECT_EQ(setting(machine.spec, each.name, "rate"), "50 GB/s");
  }
}

/// Two GPUs of a product as nvidia-smi's table has them.
std::string smi_table(const std::string& product) {
  std::string out = "| NVIDIA-SMI 570.124.06   Driver Version: 570.124.06   CUDA Version: 12.8 |\n";
  for (int i = 0; i < 2; ++i) {
    out += "|   " + std::to_string(i) + "  " + product + "        Off |   00000000:0" +
           std::to_string(1 + i) + ":00.0 Off |                  Off |\n";
  }
  return out;
}

TEST(ImportedGpus, ThoseThatWeftDoesNotKnowAreNamedAsPrinted) {
  const auto note_of = [](const std::string& product) {
    const ImportedMachine machine = imported(smi_table(product));
    for (const std::string& note : machine.spec.notes) {
      if (note.starts_with("gpu0, gpu1: '" + product + "' (")) return note;
    }
    return std::string{};
  };
  EXPECT_EQ(note_of("NVIDIA H100 80GB HBM3"), "") << "is known";
  EXPECT_EQ(note_of("NVIDIA GeForce RTX 4090"),
            "gpu0, gpu1: 'NVIDIA GeForce RTX 4090' (f:2) is no GPU that weft knows; known: a10, "
            "a30, a40, a100-pcie, a100-sxm, b200-sxm, b300-sxm, gb200, gb300, gh200, h100-pcie, "
            "h100-sxm, h200-sxm, l4, l40s, mi50, mi100, mi250x, mi300x, rtx-pro-6000, t4, "
            "v100-sxm; without --gpu PART, or 'part: PART' in the topology, the declared defaults "
            "stand in");
  EXPECT_THAT(note_of("NVIDIA H20"), HasSubstr("is no GPU that weft knows; known: a10, "));
  EXPECT_THAT(note_of("NVIDIA H100 NVL"),
              HasSubstr("knows; nearest: h100-pcie, h100-sxm; known: "));
  EXPECT_THAT(note_of("NVIDIA H200 NVL"), HasSubstr("knows; nearest: h200-sxm; known: "));
  EXPECT_THAT(note_of("NVIDIA H800"), HasSubstr("knows; nearest: h100-sxm; known: "));
}

TEST(ImportedNccl, GivesThePathsThatItPrints) {
  const ImportedMachine machine = imported(captured("nccl-graph-4090.txt"));
  EXPECT_THAT(machine.conflicts, IsEmpty());
  // NCCL goes by the CPU between GPUs of one switch: the driver has no peer to peer.
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("NCCL takes 6 pairs that share a switch")));
  const Fabric fabric(machine.spec, 1);
  EXPECT_EQ(path(fabric, "gpu0", "gpu1"), "PIX");
  EXPECT_EQ(path(fabric, "gpu0", "gpu4"), "SYS");
  EXPECT_EQ(setting(machine.spec, "gpu0", "pcie_gen"), "4");  // 24 GB/s: x16 of 16 GT/s
}

// A log of which only the paths are left (NVIDIA/nccl-tests#100, shortened): CPUs say who is where.
TEST(ImportedNccl, PortsOfOneFunctionAreNics) {
  const ImportedMachine machine = imported(
      "=== System : maxWidth 1.2 ===\nCPU/0 (1/1/1)\n+ PCI[12.0] - GPU/2000 (0)\n"
      "+ PCI[3.0] - NIC/1000\n"
      "             + NET[1.2] - NET/0 (0/0/1.250000)\n"
      "             + NET[1.2] - NET/1 (1/0/1.250000)\n");
  EXPECT_EQ(device(machine.spec, "net1").port_of, "net0");
  EXPECT_EQ(setting(machine.spec, "net1", "rate"), "1.25 GB/s");
}

TEST(ImportedNccl, PathsAloneMakeAMachine) {
  const ImportedMachine machine = imported(
      "GPU/E000 :GPU/E000 (0/5000.000000/LOC) GPU/91000 (2/252.000000/NVL) CPU/0 (4/24.000000/PHB) "
      "CPU/1 (5/24.000000/SYS)\n"
      "GPU/91000 :GPU/E000 (2/252.000000/NVL) GPU/91000 (0/5000.000000/LOC) CPU/0 (5/24.0/SYS) "
      "CPU/1 (4/24.000000/PHB)\n");
  EXPECT_THAT(machine.conflicts, IsEmpty());
  const Fabric fabric(machine.spec, 1);
  EXPECT_EQ(path(fabric, "gpu0", "gpu1"), "NV12");  // 252 GB/s
  EXPECT_EQ(device(machine.spec, "gpu1").upstream, "cpu1");
}

TEST(ImportedNccl, ContradictingTreesAreConflicts) {
  const ImportedMachine machine = imported(
      "NCCL INFO === System : maxBw 24.0 totalBw 24.0 ===\nNCCL INFO CPU/0-0 (1/1/2)\n"
      "NCCL INFO + PCI[24.0] - PCI/0-4b000 (1000c0101000100b)\n"
      "NCCL INFO               + PCI[24.0] - GPU/0-4e000 (0)\n"
      "NCCL INFO               + PCI[24.0] - GPU/0-4f000 (1)\n"
      "NCCL INFO GPU/0-4e000 :GPU/0-4f000 (4/24.0/SYS)\n");
  ASSERT_EQ(machine.conflicts.size(), 1U);
  EXPECT_EQ(machine.conflicts[0].taken, "PIX");
  EXPECT_EQ(machine.conflicts[0].other, "NCCL: SYS");
  EXPECT_EQ(machine.conflicts[0].other_place.text(), "f:6");
}

TEST(Imported, ValuesThatDisagreeNameBothPlaces) {
  Evidence evidence = evidence_of(captured("lspci-vvv-dell-h100.txt"), "lspci");
  parse_evidence("/sys/bus/pci/devices/0000:1a:00.0/max_link_width:8\n", "sysfs", "", evidence);
  const ImportedMachine machine = import_machine(evidence, make_catalog());
  ASSERT_EQ(machine.conflicts.size(), 1U);
  EXPECT_EQ(machine.conflicts[0].what, "0000:1a:00.0: PCIe lanes");
  EXPECT_EQ(machine.conflicts[0].taken, "16");
  EXPECT_EQ(machine.conflicts[0].other, "8");
  EXPECT_EQ(machine.conflicts[0].other_place.text(), "sysfs:1");
}

TEST(Imported, LinksThatTrainedLowerAreSet) {
  const std::string nic =
      "\n3b:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"
      "\tNUMA node: 0\n"
      "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
      "\t\tLnkSta:\tSpeed 32GT/s (ok), Width x8 (downgraded)\n";
  const ImportedMachine machine = imported(captured("lspci-vvv-dell-h100.txt") + nic);
  EXPECT_EQ(setting(machine.spec, "nic1", "pcie_width"), "16");
  EXPECT_EQ(setting(machine.spec, "nic1", "trained_width"), "8");
  EXPECT_EQ(setting(machine.spec, "nic1", "trained_gen"), "none");
}

// A GPU passed through: QEMU's pcie-root-port says 16 GT/s x32; another's port says less than the
// link runs at.
TEST(Imported, PortsOfHypervisorsDoNotSlowLinks) {
  for (const std::string port :
       {"Red Hat, Inc. QEMU PCIe Root port [1b36:000c]", "Bridge [1234:5678]"}) {
    const std::string link = port.starts_with("Red") ? "16GT/s, Width x32" : "16GT/s, Width x16";
    const ImportedMachine machine =
        imported("00:02.0 PCI bridge [0604]: " + port +
                 "\n"
                 "\tBus: primary=00, secondary=01, subordinate=01, sec-latency=0\n"
                 "\tCapabilities: [54] Express (v2) Root Port (Slot+), MSI 00\n"
                 "\t\tLnkCap:\tPort #0, Speed " +
                 link +
                 "\n"
                 "01:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330]\n"
                 "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16\n"
                 "\t\tLnkSta:\tSpeed 32GT/s, Width x16\n");
    EXPECT_EQ(setting(machine.spec, "gpu0", "pcie_gen"), "5") << port;
    EXPECT_EQ(setting(machine.spec, "gpu0", "pcie_width"), "16") << port;
  }
}

// hwloc prints the link as it runs: x16 of 2.5 GT/s is an idle GPU's.
TEST(Imported, AnIdleGpusRateIsNotItsLink) {
  const ImportedMachine machine = imported(
      "<topology version=\"2.0\">\n<object type=\"Machine\" nodeset=\"0x1\">\n"
      "<object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0000:[97-9e]\">\n"
      "<object type=\"PCIDev\" pci_busid=\"0000:98:00.0\" "
      "pci_type=\"0302 [10de:2330] [10de:16c1] a1\" pci_link_speed=\"4.000000\"/>\n"
      "<object type=\"PCIDev\" pci_busid=\"0000:99:00.0\" "
      "pci_type=\"0302 [10de:2330] [10de:16c1] a1\" pci_link_speed=\"63.015385\"/>\n"
      "</object></object></topology>\n");
  EXPECT_EQ(setting(machine.spec, "gpu0", "pcie_gen"), "none");
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("gpu0: its link runs at 4")));
  EXPECT_EQ(setting(machine.spec, "gpu1", "pcie_gen"), "5");
  EXPECT_EQ(setting(machine.spec, "gpu1", "pcie_width"), "16");
}

TEST(Imported, RdmaCoresNamesArePaired) {
  const ImportedMachine machine = imported(
      captured("lspci-vvv-dell-h100.txt") +
      "\nCA 'ibp26s0'\n\tPort 1:\n\t\tRate: 400\nCA 'rocep156s0f0'\n\tPort 1:\n\t\tRate: 200\n");
  EXPECT_EQ(device(machine.spec, "ibp26s0").bus_id, "0000:1a:00.0");
  EXPECT_EQ(setting(machine.spec, "rocep156s0f0", "rate"), "25 GB/s");
}

TEST(Imported, TheOddHostIsNamed) {
  Evidence evidence;
  for (const char* host : {"a", "b", "c"}) {
    parse_evidence(captured("lspci-vvv-dell-h100.txt"), std::string(host) + ".txt", host, evidence);
    parse_evidence(
        host[0] == 'a' ? "BOOT_IMAGE=/v ro intel_iommu=on\n" : "BOOT_IMAGE=/v ro iommu=pt\n",
        std::string(host) + ".boot", host, evidence);
  }
  const ImportedMachine machine = import_machine(evidence, make_catalog());
  EXPECT_EQ(machine.hosts.reference, "b");
  EXPECT_EQ(machine.spec.nodes, 3U);
  ASSERT_FALSE(machine.hosts.odd.empty());
  for (const HostDifference& odd : machine.hosts.odd) EXPECT_EQ(odd.host, "a");
  EXPECT_EQ(machine.hosts.odd[0].place.text(), "a.boot:1");
}

TEST(Imported, NodesAreTheLargestCommunicators) {
  const ImportedMachine machine =
      imported(captured("nccl-graph-4090.txt") +
               "NCCL INFO comm 0x5 rank 3 nRanks 8 nNodes 1 localRanks 8 localRank 3 MNNVL 0\n"
               "NCCL INFO comm 0x6 rank 3 nRanks 16 nNodes 2 localRanks 8 localRank 3 MNNVL 0\n");
  EXPECT_EQ(machine.spec.nodes, 2U);
}

TEST(Imported, AHostThatLacksADeviceOrModuleIsOdd) {
  const std::string full = captured("lspci-vvv-dell-h100.txt");
  const std::string lost = full.substr(0, full.find("9b:00.0 3D controller"));
  const std::string modules = "Module                  Size  Used by\nnvidia 1 0\n";
  Evidence evidence;
  for (const char* host : {"a", "b", "c"}) {
    const bool odd = host[0] == 'b';
    parse_evidence(odd ? lost : full, std::string(host) + ".pci", host, evidence);
    parse_evidence(modules + (odd ? "" : "nvidia_peermem 1 0\n"), std::string(host) + ".mod", host,
                   evidence);
  }
  const ImportedMachine machine = import_machine(evidence, make_catalog());
  EXPECT_EQ(machine.hosts.reference, "a");
  std::vector<std::string> absent;
  for (const HostDifference& odd : machine.hosts.odd) {
    EXPECT_EQ(odd.host, "b");
    if (odd.value == "absent") absent.push_back(odd.subject + " " + odd.what);
  }
  EXPECT_THAT(absent, ::testing::UnorderedElementsAre("0000:9b:00.0 class", "0000:9c:00.0 class",
                                                      "host module nvidia_peermem"));
}

TEST(Imported, PartsFollowFromNamesWhereNoIdIsKnown) {
  const ImportedMachine machine = imported(
      "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV12\tPXB\nGPU1\tNV12\t X \tPXB\nNIC0\tPXB\tPXB\t X \n"
      "NIC Legend:\n  NIC0: mlx5_0\n" +
      captured("nvlink-a100.txt") + "CA 'mlx5_0'\n\tCA type: MT4123\n\tPort 1:\n\t\tRate: 200\n");
  EXPECT_EQ(device(machine.spec, "gpu0").part, "a100-sxm");
  EXPECT_EQ(device(machine.spec, "mlx5_0").part, "connectx-6");
  EXPECT_EQ(setting(machine.spec, "mlx5_0", "rate"), "25 GB/s");
}

TEST(Imported, NamesJoinByWhatPlacesThem) {
  const ImportedMachine machine = imported(
      captured("lspci-vvv-dell-h100.txt") +
      "\nmlx5_7 -> ../../devices/pci0000:97/0000:97:01.0/0000:98:00.0/0000:99:02.0/0000:9c:00.0/"
      "infiniband/mlx5_7\n"
      "/sys/class/infiniband/mlx5_7/ports/1/rate:200 Gb/sec (4X HDR)\n"
      "/sys/class/infiniband/mlx5_7/ports/1/state:4: ACTIVE\n");
  EXPECT_EQ(device(machine.spec, "mlx5_7").bus_id, "0000:9c:00.0");
  EXPECT_EQ(setting(machine.spec, "mlx5_7", "rate"), "25 GB/s");
  const Fabric fabric(machine.spec, 1);
  EXPECT_EQ(path(fabric, "gpu1", "mlx5_7"), "PIX");
}

TEST(Imported, AFunctionOfAnotherClassIsNoNic) {
  const ImportedMachine machine = imported(
      captured("lspci-vvv-dell-h100.txt") +
      "\n02:00.0 Non-Volatile memory controller [0108]: Samsung PM9A3 [144d:a80a]\n"
      "/sys/class/nvme/nvme0/device = /sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0\n");
  for (const DeviceSpec& each : machine.spec.node.devices) EXPECT_NE(each.bus_id, "0000:02:00.0");
}

/// Two leaves and two spines, as ibnetdiscover writes them; h0 and h1 have two NICs each, by rail
/// or not.
std::string clos(bool rails) {
  std::string out;
  const auto line = [&](int port, const std::string& peer, int peer_port) {
    out += "[" + std::to_string(port) + "]\t\"" + peer + "\"[" + std::to_string(peer_port) +
           "](1) \t\t# \"x\" lid 2 4xNDR\n";
  };
  for (int leaf = 0; leaf < 2; ++leaf) {
    out += "Switch\t40 \"S-000" + std::to_string(leaf) + "\"\t\t# \"leaf\" base port 0\n";
    for (int nic = 0; nic < 2; ++nic) {
      const int host = rails ? nic : leaf;
      const int rail = rails ? leaf : nic;
      line(nic + 1, "H-10" + std::to_string(host) + std::to_string(rail), 1);
    }
    for (int spine = 0; spine < 2; ++spine)
      line(9 + spine, "S-001" + std::to_string(spine), leaf + 1);
  }
  for (int spine = 0; spine < 2; ++spine) {
    out += "Switch\t40 \"S-001" + std::to_string(spine) + "\"\t\t# \"spine\" base port 0\n";
    for (int leaf = 0; leaf < 2; ++leaf) line(leaf + 1, "S-000" + std::to_string(leaf), 9 + spine);
  }
  for (int host = 0; host < 2; ++host) {
    for (int rail = 0; rail < 2; ++rail) {
      const std::string id = std::to_string(host) + std::to_string(rail);
      out += "Ca\t1 \"H-10" + id + "\"\t\t# \"h" + std::to_string(host) + " mlx5_" +
             std::to_string(rail) + "\"\n";
    }
  }
  return out;
}

TEST(ImportedNetwork, IsTheTreeThatIbnetdiscoverShows) {
  for (const bool rails : {true, false}) {
    Evidence evidence = evidence_of(captured("lspci-vvv-dell-h100.txt"), "lspci");
    parse_evidence(clos(rails), "net", "", evidence);
    const NetworkSpec network = import_machine(evidence, make_catalog()).spec.network;
    EXPECT_EQ(network.kind,
              rails ? NetworkSpec::Kind::kRailOptimised : NetworkSpec::Kind::kLeafSpine);
    EXPECT_EQ(network.leaf_down, 2U);
    EXPECT_EQ(network.leaf_up, 2U);
    EXPECT_EQ(network.spines, 2U);
  }
}

// Two hosts bring it: each cable once. A leaf that lost an uplink is named.
TEST(ImportedNetwork, CountsCablesOnceAndNamesThinLeaves) {
  std::string text = clos(true);
  for (const std::string lost : {"[10]\t\"S-0011\"[1]", "[1]\t\"S-0000\"[10]"}) {
    const std::size_t at = text.find(lost);
    text.erase(at, text.find('\n', at) + 1 - at);
  }
  Evidence evidence = evidence_of(captured("lspci-vvv-dell-h100.txt"), "lspci");
  for (const char* host : {"h0", "h1"}) parse_evidence(text, host, host, evidence);
  const ImportedMachine machine = import_machine(evidence, make_catalog());
  EXPECT_EQ(machine.spec.network.leaf_up, 2U);
  EXPECT_EQ(machine.spec.network.leaf_down, 2U);
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("fewer uplinks than 2: leaf (1)")));
}

TEST(Imported, AHostUnderTwoNamesIsNoted) {
  Evidence evidence;
  parse_evidence(captured("lspci-vvv-dell-h100.txt"), "pci", "a", evidence);
  parse_evidence("BOOT_IMAGE=/v ro intel_iommu=on\n", "boot", "a.cluster", evidence);
  parse_evidence(clos(true), "net", "login", evidence);
  const ImportedMachine machine = import_machine(evidence, make_catalog());
  EXPECT_THAT(machine.spec.notes,
              Contains(HasSubstr("evidence of a.cluster is of no kind that a's")));
  EXPECT_EQ(machine.spec.nodes, 2U);  // "login" only asked the network
}

TEST(ImportedNetwork, ThatIsNoTreeIsNoted) {
  Evidence evidence = evidence_of(captured("lspci-vvv-dell-h100.txt"), "lspci");
  parse_evidence(
      clos(true) + "Switch\t40 \"S-0001\"\t\t# \"leaf\"\n[20]\t\"S-0000\"[20]\t\t# \"x\" 4xNDR\n",
      "net", "", evidence);
  const ImportedMachine machine = import_machine(evidence, make_catalog());
  EXPECT_EQ(machine.spec.network.kind, NetworkSpec::Kind::kOneSwitch);
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("one switch stands for it: is no tree")));
}

// Three functions, of which NCCL names two without saying where they are.
TEST(ImportedNetwork, KeepsNicsThatNcclsNamesDoNotFit) {
  const std::string log =
      "a1:10:10 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB "
      "eth0:10.0.0.7<0>\n";
  const std::string nic =
      "\n3b:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"
      "\tNUMA node: 0\n";
  const ImportedMachine machine = imported(captured("lspci-vvv-dell-h100.txt") + nic + log);
  for (const char* name : {"nic0", "nic1", "nic2"}) {
    EXPECT_EQ(device(machine.spec, name).network, "fabric") << name;
  }
  EXPECT_THAT(machine.spec.notes,
              Contains(HasSubstr("mlx5_0, mlx5_1, which no NIC here is called")));
}

TEST(ImportedNetwork, IsOfOneLinkLayer) {
  const auto nic = [](const std::string& number, const std::string& address,
                      const std::string& layer, const std::string& mtu) {
    return "mlx5_" + number + " -> ../../devices/" + address + "/infiniband/mlx5_" + number +
           "\nhca_id:\tmlx5_" + number + "\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n" +
           "\t\t\tactive_mtu:\t\t" + mtu + " (3)\n\t\t\tlink_layer:\t\t" + layer + "\n";
  };
  const std::string one = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1a:00.0";
  const std::string two = "pci0000:97/0000:97:01.0/0000:98:00.0/0000:99:02.0/0000:9c:00.0";
  const std::string three = "pci0000:37/0000:37:01.0/0000:38:00.0";
  const ImportedMachine machine =
      imported(captured("lspci-vvv-dell-h100.txt") + "\n" + nic("0", one, "InfiniBand", "4096") +
               nic("1", two, "InfiniBand", "4096") + nic("2", three, "Ethernet", "1024"));
  EXPECT_EQ(device(machine.spec, "mlx5_0").network, "fabric");
  EXPECT_EQ(device(machine.spec, "mlx5_2").network, "none");
  EXPECT_THAT(machine.spec.notes,
              Contains(HasSubstr("mlx5_2 is on no network: it is on Ethernet")));
  EXPECT_EQ(machine.spec.defaults.at("wire.mtu").number, 4096);
}

TEST(ImportedNetwork, OfLeavesWithoutSpinesIsNoted) {
  std::string text;
  for (const std::string id : {"0", "1"}) {
    text += "Switch\t40 \"S-000" + id + "\"\t\t# \"leaf\"\n[1]\t\"H-10" + id +
            "0\"[1](1) \t\t# \"x\" lid 2 4xNDR\n";
    text += "Ca\t1 \"H-10" + id + "0\"\t\t# \"h" + id + " mlx5_0\"\n";
  }
  const ImportedMachine machine = imported(captured("lspci-vvv-dell-h100.txt") + "\n" + text);
  EXPECT_EQ(machine.spec.network.kind, NetworkSpec::Kind::kOneSwitch);
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("has leaves that nothing joins")));
}

TEST(ImportedBogus, WithoutAGpuNothingIsMade) {
  try {
    imported(captured("ibstatus-a100.txt"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no GPU in f (ibstatus): a machine needs"));
  }
}

TEST(TopologyWrite, ReadsBackAsItWas) {
  const ParamCatalog catalog = make_catalog();
  for (const char* name :
       {"lspci-vvv-dell-h100.txt", "topo-m-dgx-a100.txt", "nccl-graph-4090.txt"}) {
    const TopologySpec spec = imported(captured(name)).spec;
    const std::string text = topology_yaml(spec, catalog, "head\nof two lines");
    const TopologySpec back = parse_topology_yaml(text, "back", catalog);
    ASSERT_EQ(back.node.devices.size(), spec.node.devices.size());
    for (std::size_t i = 0; i < spec.node.devices.size(); ++i) {
      const DeviceSpec& a = spec.node.devices[i];
      const DeviceSpec& b = back.node.devices[i];
      EXPECT_EQ(a.name, b.name);
      EXPECT_EQ(a.upstream, b.upstream);
      EXPECT_EQ(a.host_bridge, b.host_bridge);
      EXPECT_EQ(a.bus_id, b.bus_id);
      ASSERT_EQ(a.settings.size(), b.settings.size());
      for (const auto& [key, value] : a.settings) {
        EXPECT_DOUBLE_EQ(value.number, b.settings.find(key)->second.number) << key;
        EXPECT_EQ(value.source, b.settings.find(key)->second.source);
      }
    }
    const std::regex places("  # .*");
    EXPECT_EQ(std::regex_replace(topology_yaml(back, catalog, "head\nof two lines"), places, ""),
              std::regex_replace(text, places, ""))
        << name;
  }
}

TEST(TopologyWrite, ReadsShippedTopologiesBackAsTheyWere) {
  const ParamCatalog catalog = make_catalog();
  const std::regex places("  # .*");
  int networks = 0;
  const std::string folder = std::string(WEFT_SOURCE_DIR) + "/topologies";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    const TopologySpec spec = read_topology(entry.path().string(), catalog);
    const std::string text = topology_yaml(spec, catalog, "");
    const TopologySpec back = parse_topology_yaml(text, "back", catalog);
    EXPECT_EQ(back.nodes, spec.nodes);
    EXPECT_EQ(back.node.devices.size(), spec.node.devices.size());
    EXPECT_EQ(back.node.links.size(), spec.node.links.size());
    EXPECT_EQ(back.defaults.size(), spec.defaults.size());
    EXPECT_EQ(back.network.leaf.settings.size(), spec.network.leaf.settings.size());
    for (const KeySpec& key : network_keys()) {
      EXPECT_EQ(network_text(back.network, key.name), network_text(spec.network, key.name))
          << entry.path() << " " << key.name;
    }
    EXPECT_EQ(std::regex_replace(topology_yaml(back, catalog, ""), places, ""),
              std::regex_replace(text, places, ""))
        << entry.path();
    networks += spec.network.kind == NetworkSpec::Kind::kNone ? 0 : 1;
  }
  EXPECT_GT(networks, 20);
}

TEST(TopologyWrite, SaysEveryKeyOfANetworkThatIsSet) {
  for (const KeySpec& key : network_keys()) {
    NetworkSpec network;
    bool said = false;
    for (const char* value :
         {"3", "round-robin", "torus", "ring", "valiant", "2x3", "leaf3:2+leaf7:1"}) {
      try {
        set_network(network, key.name, value);
        said = true;
        EXPECT_EQ(network_text(network, key.name), value);
      } catch (const InputError&) {
        continue;  // a value of another key's kind
      }
    }
    EXPECT_TRUE(said) << key.name;
    EXPECT_TRUE(key.name == "kind" || network_text({}, key.name).empty()) << key.name;
  }
}

}  // namespace
}  // namespace weft::test::evidence_machine
