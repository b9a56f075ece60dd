// Outputs of real machines in forms that readers took for something else.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/evidence/imported.hpp"

namespace weft::test::evidence_captures {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Of a machine's devices "name bus-id", in order.
std::vector<std::string> devices(const ImportedMachine& machine, DeviceKind kind) {
  std::vector<std::string> out;
  for (const DeviceSpec& each : machine.spec.node.devices) {
    if (each.kind == kind) out.push_back(each.name + " " + each.bus_id);
  }
  return out;
}

TEST(Captures, RemoteEndsOfNvlinksCountThem) {
  const Evidence evidence = evidence_of(
      "GPU 5: NVIDIA H100 80GB HBM3 (UUID: GPU-a)\n"
      "\t Link 0: Remote Device 00000000:06:00.0: Link 45\n\t Link 1: <inactive>\n"
      "\t Link 2: Remote Device 00000000:08:00.0: Link 51\n"
      "GPU 6: NVIDIA H100 80GB HBM3 (UUID: GPU-b)\n"
      "\t Link 0: Remote Device 00000000:06:00.0: Link 57\n");
  EXPECT_EQ(said(evidence, "gpu5", fact::kNvlinks), "2");
  EXPECT_EQ(said(evidence, "gpu6", fact::kNvlinks), "none") << "its list is cut";
}

TEST(Captures, OtherListsOfNvlinksAreNoCount) {
  for (const std::string line :
       {"Link 0: Replay Errors: 0", "Link 0: P2P is supported: true",
        "Link 0: Rx0: 0 KBytes, Tx0: 0 KBytes", "Link 0: 00000000:06:00.0"}) {
    const Evidence evidence =
        evidence_of("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a)\n\t " + line + "\n");
    EXPECT_EQ(said(evidence, "gpu0", fact::kProduct), "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(said(evidence, "gpu0", fact::kNvlinks), "none") << line;
  }
}

/// Two GPUs of a product, "" where nothing names it, with as much NVLink to the switches.
ImportedMachine with_nvlink(const std::string& product, const std::string& rate) {
  std::string text;
  if (!product.empty()) {
    text = "| NVIDIA-SMI 570.124.06   Driver Version: 570.124.06   CUDA Version: 12.8 |\n";
    for (const std::string n : {"1", "2"}) {
      text += "|   " + n + "  " + product + "   Off |   00000000:0" + n + ":00.0 Off |   Off |\n";
    }
  }
  text += "NCCL INFO === System : maxBw 24.0 totalBw 24.0 ===\nNCCL INFO CPU/0-0 (1/1/2)\n";
  for (const std::string bus : {"1000", "2000"}) {
    text += "NCCL INFO + PCI[24.0] - PCI/0-7" + bus + " (1000c0101000100b)\n";
    text += "NCCL INFO               + PCI[24.0] - GPU/0-" + bus + " (0)\n";
    text += "NCCL INFO                             + NVL[" + rate + "] - NVS/0\n";
  }
  return imported(text);
}

// Each generation has its own rate a link in NCCL's src/graph/topo.h, some of them several.
TEST(Captures, NvlinksAreAsManyAsNcclsRateIsOf) {
  struct Case {
    std::string product;
    std::string rate;
    std::uint32_t count;
  };
  for (const Case& each :
       {Case{"NVIDIA H100 80GB HBM3", "370.8", 18}, Case{"NVIDIA H100 80GB HBM3", "360.0", 18},
        Case{"NVIDIA H800", "164.8", 8}, Case{"NVIDIA A40", "48.0", 4},
        Case{"NVIDIA RTX A6000", "48.0", 4}, Case{"NVIDIA B200", "721.8", 18},
        Case{"NVIDIA B200", "370.8", 18}, Case{"NVIDIA A100-SXM4-80GB", "240.0", 12},
        Case{"NVIDIA A100-SXM4-80GB", "264.0", 12}, Case{"Tesla V100-SXM2-16GB", "126.0", 6},
        Case{"Tesla P100-SXM2-16GB", "72.0", 4}, Case{"", "360.0", 18}, Case{"", "48.0", 4},
        Case{"", "721.8", 18}, Case{"", "240.0", 12}}) {
    const ImportedMachine machine = with_nvlink(each.product, each.rate);
    ASSERT_EQ(machine.spec.node.links.size(), 2U) << each.product << " " << each.rate;
    EXPECT_EQ(machine.spec.node.links[0].count, each.count) << each.product << " " << each.rate;
  }
}

TEST(Captures, RatesThatAreOfNoCountOfNvlinksAreNoted) {
  // 36 GB/s are two links of Pascal or three of the A40's; 25.3 GB/s none of any.
  for (const char* const rate : {"36.0", "25.3", "nan", "inf", "-18"}) {
    const ImportedMachine machine = with_nvlink("", rate);
    EXPECT_THAT(machine.spec.node.links, IsEmpty()) << rate;
    EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("do not say how many NVLinks"))) << rate;
  }
  EXPECT_EQ(with_nvlink("NVIDIA A40", "36.0").spec.node.links[0].count, 3U);
}

constexpr const char* kGpu =
    "17:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5]\n";

TEST(Captures, OfAmazonsDevicesEfaIsANic) {
  const ImportedMachine machine = imported(
      "10:00.0 Ethernet controller: Amazon.com, Inc. Elastic Network Adapter (ENA)\n"
      "10:1b.0 Ethernet controller: Amazon.com, Inc. Device efa0\n"
      "10:1c.0 3D controller: NVIDIA Corporation Device 20b0 (rev a1)\n"
      "20:01.0 Ethernet controller: Amazon.com, Inc. Elastic Network Adapter (ENA)\n"
      "20:1b.0 Ethernet controller: Amazon.com, Inc. Elastic Fabric Adapter (EFA)\n"
      "hca_id: rdmap32s27\n\tport: 1\n\t\tstate: PORT_ACTIVE (4)\n");
  EXPECT_THAT(devices(machine, DeviceKind::kNic),
              ElementsAre("nic0 0000:10:1b.0", "rdmap32s27 0000:20:1b.0"));
}

constexpr const char* kHostEthernet =
    "b1:00.0 Ethernet controller [0200]: Intel Corporation Ethernet Controller E810-C [8086:1592]\n"
    "b3:00.0 Ethernet controller [0200]: Broadcom Inc. and subsidiaries BCM57508 [14e4:1750]\n";

TEST(Captures, NicsOfAnyVendorAreThoseThatVerbsName) {
  const ImportedMachine machine =
      imported(std::string(kGpu) + kHostEthernet +
               "b5:00.0 Ethernet controller [0200]: Intel Corporation Ethernet X722 [8086:37d1]\n"
               "link bnxt_re0/1 state ACTIVE physical_state LINK_UP netdev enp179s0f0np0 \n"
               "link irdma0/1 state ACTIVE physical_state LINK_UP netdev enp177s0f0 \n");
  EXPECT_THAT(devices(machine, DeviceKind::kNic),
              ElementsAre("irdma0 0000:b1:00.0", "bnxt_re0 0000:b3:00.0"));
  EXPECT_THAT(machine.spec.notes, Not(Contains(HasSubstr("network controller"))));
}

TEST(Captures, NetworkControllersThatNothingSaysRdmaOfAreNoted) {
  const ImportedMachine machine = imported(std::string(kGpu) + kHostEthernet);
  EXPECT_THAT(devices(machine, DeviceKind::kNic), IsEmpty());
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("2 network controllers are left out")));
}

TEST(Captures, NicsThatSayRdmaThemselvesAreNics) {
  EXPECT_THAT(
      devices(imported(std::string(kGpu) +
                       "18:00.0 Ethernet controller: Example Elastic RDMA Adapter\n"
                       "19:00.0 Infiniband controller [0207]: QLogic IBA7322 [1077:7322]\n"),
              DeviceKind::kNic),
      ElementsAre("nic0 0000:18:00.0", "nic1 0000:19:00.0"));
}

// Alibaba's eRDMA has no class of its own: 00ff.
TEST(Captures, ANicOfADumpMayHaveNoClass) {
  const ImportedMachine machine = imported(
      "<system version=\"1\">\n<cpu numaid=\"0\">\n"
      "<pci busid=\"0000:03:00.0\" class=\"0x030000\" vendor=\"0x10de\" device=\"0x2bb3\">"
      "<gpu dev=\"0\" sm=\"120\"/></pci>\n"
      "<pci busid=\"0000:1a:00.0\" class=\"0x00ff00\" vendor=\"0x1ded\" device=\"0x107f\">"
      "<nic><net name=\"erdma_0\" dev=\"0\" speed=\"100000\" port=\"1\" gdr=\"1\"/></nic></pci>\n"
      "</cpu>\n</system>\n");
  EXPECT_THAT(devices(machine, DeviceKind::kNic), ElementsAre("erdma_0 0000:1a:00.0"));
}

/// Two GPUs of two NUMA nodes, near to these processors, a NIC with NODE to both.
std::string two_nodes(const std::string& near0, const std::string& near1) {
  return "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
         "GPU0\t X \tNV18\tNODE\t" +
         near0 + "\t0\t\tN/A\nGPU1\tNV18\t X \tNODE\t" + near1 +
         "\t1\t\tN/A\nNIC0\tNODE\tNODE\t X \t\t\t\t\n";
}

TEST(Captures, NodeBetweenSocketsIsAConflict) {
  const auto conflicts = [](const std::string& text) {
    std::vector<std::string> out;
    for (const Conflict& each : imported(text).conflicts) out.push_back(text_of(each));
    return out;
  };
  const std::string lscpu = "Architecture:        x86_64\nSocket(s):           ";
  const auto conflict =
      ElementsAre("gpu0 and gpu1: NODE (f:2) is taken, not NUMA nodes 0 and 1 (f:3)");
  EXPECT_THAT(conflicts(two_nodes("0-47", "48-95")), conflict);
  EXPECT_THAT(conflicts(two_nodes("", "1")), conflict) << "a container has the second's alone";
  EXPECT_THAT(conflicts(two_nodes("", "")), IsEmpty()) << "nothing says where";
  EXPECT_THAT(conflicts(two_nodes("0-47", "0-47")), IsEmpty());
  EXPECT_THAT(conflicts(two_nodes("0-47,96-143", "40-50")), IsEmpty());
  EXPECT_THAT(conflicts(lscpu + "2\nNUMA node(s):        2\n" + two_nodes("", "")),
              ElementsAre("gpu0 and gpu1: NODE (f:5) is taken, not NUMA nodes 0 and 1 (f:6)"));
  EXPECT_THAT(conflicts(lscpu + "1\nNUMA node(s):        4\n" + two_nodes("0-9", "10-19")),
              IsEmpty());
  EXPECT_THAT(conflicts(lscpu + "2\nNUMA node(s):        8\n" + two_nodes("0-9", "10-19")),
              IsEmpty())
      << "both of the first socket";
}

// One that has SYS tells sockets apart: NODE is within one, which has several NUMA nodes.
TEST(Captures, NodeBetweenNumaNodesOfOneSocketIsNone) {
  const std::string matrix =
      "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tNODE\tSYS\t0-15\t0\nGPU1\tNODE\t X \tSYS\t16-31\t1\n"
      "GPU2\tSYS\tSYS\t X \t64-79\t4\n";
  EXPECT_THAT(imported(matrix).conflicts, IsEmpty());
}

TEST(Captures, ATreesGpusAreThoseCalledByChipAndProduct) {
  const ImportedMachine machine = imported(
      "-+-[e532:00]---00.0  NVIDIA Corporation GV100GL [Tesla V100 PCIe 16GB]\n"
      " +-[0001:00]-+-00.0  NVIDIA Corporation AD102 [GeForce RTX 4090]\n"
      " |           +-00.1  NVIDIA Corporation AD102 High Definition Audio Controller\n"
      " |           +-01.0  NVIDIA Corporation LR10 [NVSwitch]\n"
      " |           \\-02.0  NVIDIA Corporation Device 22a3\n"
      " \\-[0000:00]---02.0  Mellanox Technologies MT27700 Family [ConnectX-4]\n");
  EXPECT_THAT(devices(machine, DeviceKind::kGpu),
              ElementsAre("gpu0 0001:00:00.0", "gpu1 e532:00:00.0"));
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("'NVIDIA Corporation AD102 [GeForce RTX")));
}

TEST(Captures, Ibdev2netdevMayHaveColumnsAndRemarks) {
  const Evidence evidence = evidence_of(
      "$ ibdev2netdev | column -t\n"
      "mlx5_0   port  1  ==>  ibp26s0        (Down)  # CX-7 1/8 infiniband\n"
      "mlx5_1   port  1  ==>  enp27s0f0np0   (Up)    # CX-6 2/2 *ethernet* port 1/2\n"
      "mlx5_2   port  2  ==>  enp27s0f1np1   (Down)\n");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kState), "none") << "IPoIB's";
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kBusId), "0000:1a:00.0");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kState), "up");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kBusId), "0000:1b:00.0");
  EXPECT_EQ(said(evidence, "mlx5_2:2", fact::kState), "down");
}

TEST(Captures, Ibdev2netdevSaysFunctionAndPortWithV) {
  const Evidence evidence = evidence_of(
      "0002:00:02.0 mlx5_0 (MT4129 - NA)  fw 28.43.7008 port 1 (ACTIVE) ==> ib0 (Down)\n"
      "0003:00:02.0 mlx5_1 (MT4129 - MCX755106AS-HEAT) ConnectX-7 VPI fw 28.43.7008 port 1 "
      "(DOWN  ) ==> ens1f0np0 (Down)\n");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kBusId), "0002:00:02.0");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kState), "up");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kProduct), "MT4129");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kBusId), "0003:00:02.0");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kState), "down");
}

// Netdevs that are no place: of a slot, a virtual function, a bond.
TEST(Captures, NamesSayPlacesAsTheKernelAndRdmaCoreGiveThem) {
  EXPECT_EQ(bus_id_of_name("enp179s0f0np0"), "0000:b3:00.0");
  EXPECT_EQ(bus_id_of_name("enP2p3s0d1"), "0002:03:00.0");
  EXPECT_EQ(bus_id_of_name("rdmap16s27"), "0000:10:1b.0");
  EXPECT_EQ(bus_id_of_name("rocep25s0f1"), "0000:19:00.1");
  for (const char* const name :
       {"ens1f0np0", "enp27s0f0v0", "enp27s0f0npf0vf1", "bond0", "ib0", "enp1", "enp300s0",
        "enp1s32", "enp1s0f8", "enp-1s0", "enP99999p1s0", "mlx5_0", ""}) {
    EXPECT_EQ(bus_id_of_name(name), "") << name;
  }
}

TEST(Captures, ADevinfoWithoutPortsSaysItsPart) {
  const Evidence evidence = evidence_of(
      "hca_id:\tmlx5_1\n\ttransport:\t\t\tInfiniBand (0)\n\tvendor_id:\t\t\t0x02c9\n"
      "\tvendor_part_id:\t\t\t4119\n\tphys_port_cnt:\t\t\t1\n"
      "hca_id: mlx5_2\nvendor_id: 0x02c9\nvendor_part_id: 41692\n"
      "hca_id: mlx5_3\nvendor_part_id: 4119\n");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kPciId), "15b3:1017");
  EXPECT_EQ(said(evidence, "mlx5_2", fact::kPciId), "15b3:a2dc");
  EXPECT_EQ(said(evidence, "mlx5_3", fact::kPciId), "none") << "its vendor is not said";
  const ImportedMachine machine = imported(
      "\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n\nNIC Legend:\n\n  NIC0: mlx5_1\n"
      "hca_id:\tmlx5_1\n\tvendor_id:\t\t\t0x02c9\n\tvendor_part_id:\t\t\t4119\n");
  EXPECT_EQ(device(machine.spec, "mlx5_1").part, "connectx-5");
}

TEST(Captures, EfaIsNoInfiniBand) {
  const std::string text =
      "hca_id:\tefa_0\n\ttransport:\t\t\tunspecified (4)\n\tvendor_id:\t\t\t0x1d0f\n"
      "\tvendor_part_id:\t\t\t61344\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n"
      "\t\t\tlink_layer:\t\tInfiniBand\n"
      "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\t\tport:\t1\n"
      "\t\t\tlink_layer:\t\tInfiniBand\n";
  const Evidence evidence = evidence_of(text);
  EXPECT_EQ(said(evidence, "efa_0", fact::kPciId), "1d0f:efa0");
  EXPECT_EQ(said(evidence, "efa_0", fact::kState), "up");
  EXPECT_EQ(said(evidence, "efa_0", fact::kLinkLayer), "none");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kLinkLayer), "InfiniBand");
}

TEST(Captures, SysHasPortsBeyondTheFirst) {
  const Evidence evidence = evidence_of(
      "/sys/class/infiniband/mlx4_0/hca_type:MT4099\n"
      "/sys/class/infiniband/mlx4_0/ports/1/state:1: DOWN\n"
      "/sys/class/infiniband/mlx4_0/ports/2/rate:40 Gb/sec (4X QDR)\n"
      "/sys/class/infiniband/mlx4_0/ports/2/counters/symbol_error:0\n"
      "/sys/class/infiniband/mlx4_0/ports/2/state:4: ACTIVE\n");
  EXPECT_EQ(said(evidence, "mlx4_0", fact::kProduct), "MT4099");
  EXPECT_EQ(said(evidence, "mlx4_0", fact::kState), "down");
  EXPECT_EQ(said(evidence, "mlx4_0", fact::kRate), "none");
  EXPECT_EQ(said(evidence, "mlx4_0:2", fact::kState), "up");
  EXPECT_EQ(said(evidence, "mlx4_0:2", fact::kRate), "40");
}

TEST(Captures, TailsHeadsOfSysAreNoHosts) {
  const Evidence evidence = evidence_of(
      "==> /sys/bus/pci/devices/0000:01:00.0/current_link_speed <==\n16.0 GT/s PCIe\n\n"
      "==> /sys/bus/pci/devices/0000:01:00.0/current_link_width <==\n8\n\n"
      "==> /sys/bus/pci/devices/0000:01:00.0/max_link_width <==\n16\n");
  EXPECT_THAT(evidence.facts.hosts(), ElementsAre(""));
  EXPECT_EQ(said(evidence, "0000:01:00.0", fact::kTrainedGen), "4");
  EXPECT_EQ(said(evidence, "0000:01:00.0", fact::kTrainedWidth), "8");
  EXPECT_EQ(said(evidence, "0000:01:00.0", fact::kWidth), "16");
}

TEST(Captures, AServersVgaIsNoGpu) {
  const ImportedMachine machine = imported(
      "<topology version=\"2.0\">\n<object type=\"Machine\" nodeset=\"0x1\">\n"
      "<object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0000:[00-9e]\">\n"
      "<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\" pci_type=\"0300 [1002:515e]\"/>\n"
      "<object type=\"PCIDev\" pci_busid=\"0000:02:00.0\" pci_type=\"0380 [1002:66a1]\"/>\n"
      "</object></object></topology>\n"
      "03:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] ES1000 (rev 02)\n"
      "04:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Vega 20\n");
  EXPECT_THAT(devices(machine, DeviceKind::kGpu),
              ElementsAre("gpu0 0000:02:00.0", "gpu1 0000:04:00.0"));
}

TEST(Captures, NotesNameDevicesInTheOrderOfTheirNumbers) {
  std::string text =
      "| NVIDIA-SMI 570.124.06   Driver Version: 570.124.06   CUDA Version: 12.8 |\n";
  for (int i = 1; i <= 11; ++i) {
    const std::string n = std::to_string(i);
    text += "|   " + n + "  NVIDIA H20      Off |   00000000:" + (i < 10 ? "0" : "") + n +
            ":00.0 Off |   Off |\n";
  }
  EXPECT_THAT(imported(text).spec.notes,
              Contains(HasSubstr("gpu1, gpu2, gpu3, gpu4, gpu5, gpu6, gpu7, gpu8, gpu9, gpu10, "
                                 "gpu11: 'NVIDIA H20'")));
}

}  // namespace
}  // namespace weft::test::evidence_captures
