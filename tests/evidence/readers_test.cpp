// What each tool's output says: captures as they are in tests/data/evidence, else texts made of the
// tools' own format strings.
#include "sim/input/evidence/readers.hpp"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/io/text_kind.hpp"
#include "tests/evidence/evidence_data.hpp"

namespace weft::test::evidence_readers {
namespace {

using ::testing::HasSubstr;

TEST(TopoMatrix, ReadsTabsBlanksAndBars) {
  const Evidence tabs = evidence_of(captured("topo-m-ibm-h100-vm.txt"));
  EXPECT_EQ(said(tabs, "gpu0", "path to gpu1"), "NV18");
  EXPECT_EQ(said(tabs, "gpu0", "path to nic8"), "PIX");
  EXPECT_EQ(said(tabs, "gpu0", "path to nic7"), "NODE");
  EXPECT_EQ(said(tabs, "gpu4", fact::kNuma), "1");
  EXPECT_EQ(said(tabs, "nic0", "path to nic1"), "none");  // "?"
  const Evidence blanks = evidence_of(captured("topo-m-h200-nvl.txt"));
  EXPECT_EQ(said(blanks, "gpu1", "path to gpu0"), "NV18");
  EXPECT_EQ(said(blanks, "gpu3", "path to nic1"), "PIX");
  const Evidence bars = evidence_of(captured("topo-m-gb300.md"));
  EXPECT_EQ(said(bars, "gpu2", "path to nic2"), "NODE");
  EXPECT_EQ(said(bars, "gpu2", "path to nic1"), "SYS");
}

TEST(TopoMatrix, ReadsColouredHeadLegendAndNumaColumn) {
  const Evidence evidence = evidence_of(
      "\t\x1b[4mGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\r\n"
      "GPU0\t X \tPHB\t0-55,112-167\t0\t\tN/A\r\n"
      "NIC0\tPHB\t X \t\t\t\t\r\n"
      "\r\nLegend:\r\n\r\n  X    = Self\r\n\r\nNIC Legend:\r\n\r\n  NIC0: mlx5_3\r\n");
  EXPECT_EQ(said(evidence, "gpu0", "path to nic0"), "PHB");
  EXPECT_EQ(said(evidence, "gpu0", fact::kNuma), "0");
  EXPECT_EQ(said(evidence, "nic0", fact::kName), "mlx5_3");
}

TEST(TopoMatrix, NicsMayStandByTheirOwnNames) {
  const Evidence evidence = evidence_of(
      "        GPU0    mlx5_0  CPU Affinity\nGPU0     X      PIX     0-7\nmlx5_0  PIX      X\n");
  EXPECT_EQ(said(evidence, "mlx5_0", "path to gpu0"), "PIX");
}

TEST(TopoMatrix, NamesWithoutUnderscoreAndUnknownOnesAreColumns) {
  const Evidence evidence = evidence_of(
      "\tGPU0\tibP2p3s0\tFPGA0\tGPU1\tCPU Affinity\n"
      "GPU0\t X \tPIX\tSYS\tNV18\t0-7\n"
      "ibP2p3s0\tPIX\t X \tSYS\tNODE\n");
  EXPECT_EQ(said(evidence, "gpu0", "path to gpu1"), "NV18");
  EXPECT_EQ(said(evidence, "gpu0", "path to ibP2p3s0"), "PIX");
  EXPECT_EQ(said(evidence, "ibP2p3s0", "path to gpu1"), "NODE");
}

TEST(TopoMatrix, OfPeerToPeerStatusesSaysNoDistances) {
  EXPECT_THAT(refusal_of("        GPU0 GPU1\nGPU0    X    OK\nGPU1    NS   X\n"),
              HasSubstr("looks like nvidia-smi topo -m, but says nothing that weft reads"));
}

TEST(TopoMatrixBogus, RowsThatAreDamagedNameTheirLine) {
  EXPECT_EQ(refusal_of("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\n"),
            "f:3: cut off: 1 cells, not 2");
  EXPECT_EQ(refusal_of("\tGPU0\tGPU1\nGPU0\t X \tNEAR\n"),
            "f:2: 'NEAR' is no path class; known: X, NV#, PIX, PXB, PHB, NODE, SYS");
  EXPECT_THAT(refusal_of("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tN#4\t X \n"),
              HasSubstr("f:3: 'N#4' is no path class"));
  EXPECT_EQ(refusal_of("\tGPU0\tGPU1\nGPU2\tSYS\tSYS\n"), "f:2: no column for row 'GPU2'");
}

TEST(Lspci, ReadsLinksPortsAcsAndSizes) {
  const Evidence evidence = evidence_of(captured("lspci-vvv-dell-h100.txt"));
  const std::string gpu = "0000:19:00.0";
  EXPECT_EQ(said(evidence, gpu, fact::kClass), "0302");
  EXPECT_EQ(said(evidence, gpu, fact::kPciId), "10de:2330");
  EXPECT_EQ(said(evidence, gpu, fact::kParent), "0000:17:01.0");
  EXPECT_EQ(said(evidence, gpu, fact::kNuma), "0");
  EXPECT_EQ(said(evidence, gpu, fact::kGen), "5");
  EXPECT_EQ(said(evidence, gpu, fact::kTrainedWidth), "16");
  EXPECT_EQ(said(evidence, gpu, fact::kMps), "256");
  EXPECT_EQ(said(evidence, gpu, fact::kMrrs), "4096");
  EXPECT_EQ(said(evidence, gpu, fact::kExtendedTags), "on");
  EXPECT_EQ(said(evidence, gpu, fact::kBar1), "137438953472");  // 128 GiB
  EXPECT_EQ(said(evidence, gpu, fact::kDriver), "nvidia");
  EXPECT_EQ(said(evidence, "0000:1a:00.0", fact::kPciId), "15b3:1021");
  EXPECT_EQ(said(evidence, "0000:1a:00.0", fact::kRelaxedOrdering), "on");
  EXPECT_EQ(said(evidence, "0000:16:00.0", fact::kPort), "upstream");
  EXPECT_EQ(said(evidence, "0000:17:01.0", fact::kPort), "downstream");
  EXPECT_EQ(said(evidence, "0000:17:01.0", fact::kAcs), "none");
  EXPECT_EQ(said(evidence, "0000:15:01.0", fact::kPort), "root");
  EXPECT_EQ(said(evidence, "0000:15:01.0", fact::kRootBus), "0000:15");
}

TEST(Lspci, ReadsDowngradedLinksAcsBitsAndNumbers) {
  const Evidence evidence = evidence_of(
      "0001:3b:00.0 Infiniband controller [0207]: Mellanox Technologies MT28908 [15b3:101b]\n"
      "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported\n"
      "\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x8 (downgraded)\n"
      "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- "
      "DirectTrans-\n"
      "\tCapabilities: <access denied>\n");
  const std::string nic = "0001:3b:00.0";
  EXPECT_EQ(said(evidence, nic, fact::kPciId), "15b3:101b");
  EXPECT_EQ(said(evidence, nic, fact::kGen), "4");
  EXPECT_EQ(said(evidence, nic, fact::kTrainedGen), "3");
  EXPECT_EQ(said(evidence, nic, fact::kTrainedWidth), "8");
  EXPECT_EQ(said(evidence, nic, fact::kAcs), "SV+RR+CR+UF");
  EXPECT_EQ(said(evidence, "host", fact::kDenied), "yes");
}

// The PCI ID Repository's names where lspci prints no numbers; one may stand within another.
TEST(Lspci, TellsProductsByWholeWords) {
  const std::map<std::string, std::string> ids{
      {"GB100 [HGX GB200]", "10de:2941"},      {"GB100 [B200]", "10de:2901"},
      {"GB110 [GB300]", "10de:31c2"},          {"GB110 [B300 SXM6 AC]", "10de:3182"},
      {"GA104GL [RTX A4000]", "10de:"},        {"GA102GL [A40]", "10de:2235"},
      {"GH100 [H100 SXM5 80GB]", "10de:2330"}, {"TU104GL [Tesla T4]", "10de:1eb8"},
      {"GH100 [H200 SXM 141GB]", "10de:2335"}, {"GH100 [GH200 120GB / 480GB]", "10de:2342"}};
  for (const auto& [name, id] : ids) {
    const Evidence evidence =
        evidence_of("19:00.0 3D controller: NVIDIA Corporation " + name + " (rev a1)\n");
    EXPECT_EQ(said(evidence, "0000:19:00.0", fact::kPciId), id) << name;
  }
}

TEST(Lspci, TheLargestRegionIsBar1) {
  const Evidence evidence = evidence_of(
      "19:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
      "\tRegion 0: Memory at 1 (64-bit, prefetchable) [size=256M]\n"
      "\tRegion 2: Memory at 2 (64-bit, prefetchable) [size=128G]\n"
      "1a:00.0 Ethernet controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n");
  EXPECT_EQ(evidence.facts.find("", "0000:19:00.0", fact::kBar1).size(), 1U);
  EXPECT_EQ(said(evidence, "0000:19:00.0", fact::kBar1), "137438953472");
}

TEST(LspciTree, ReadsBranchesByTheirColumns) {
  const Evidence evidence = evidence_of(captured("lspci-tv-h200-vm.txt"));
  EXPECT_EQ(said(evidence, "0000:cb:00.0", fact::kPciId), "15b3:1021");
  EXPECT_EQ(said(evidence, "0000:cb:00.0", fact::kParent), "0000:ca:00.0");
  EXPECT_EQ(said(evidence, "0000:ca:00.0", fact::kParent), "0000:c9:00.0");
  EXPECT_EQ(said(evidence, "0000:c8:00.0", fact::kRootBus), "0000:c8");
  EXPECT_EQ(said(evidence, "0000:cc:00.0", fact::kParent), "0000:ca:01.0");
  EXPECT_EQ(said(evidence, "0000:cf:00.0", fact::kPciId), "10de:2335");
  EXPECT_EQ(said(evidence, "0000:74:00.0", fact::kParent), "0000:72:01.0");
  EXPECT_EQ(said(evidence, "0000:00:01.0", fact::kRootBus), "0000:00");
}

TEST(LspciTreeBogus, ASecondTreeIsOfAnotherHost) {
  EXPECT_EQ(refusal_of(captured("lspci-tv-flat-vm.txt") + captured("lspci-tv-h200-vm.txt")),
            "f:28: a second tree begins here; give each host's in a file of its own, as HOST=FILE");
}

TEST(NcclLog, ReadsItsTree) {
  const Evidence evidence = evidence_of(captured("nccl-graph-h200-vm.txt"));
  EXPECT_EQ(said(evidence, "0000:68:00.0", fact::kParent), "0000:65:00.0");
  EXPECT_EQ(said(evidence, "0000:65:00.0", fact::kParent), "numa0");
  EXPECT_EQ(said(evidence, "0000:65:00.0", fact::kPort), "switch");
  EXPECT_EQ(said(evidence, "0000:68:00.0", "NCCL's NVLink GB/s to nvswitch"), "370.8");
  EXPECT_EQ(said(evidence, "net12", fact::kBusId), "0000:67:00.0");  // NET/0-c
  EXPECT_EQ(said(evidence, "net12", fact::kRate), "400");
  EXPECT_EQ(said(evidence, "0000:d3:00.0", fact::kParent), "0000:d1:00.0");
  EXPECT_EQ(said(evidence, "0000:d1:00.0", fact::kParent), "numa1");
}

TEST(NcclLog, ReadsHostsNicsRanksAndChoices) {
  const Evidence evidence = evidence_of(
      "a1:10:10 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"
      "a1:10:10 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5.\n"
      "a1:10:10 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB "
      "eth0:10.0.0.7<0>\n"
      "a1:10:10 [0] NCCL INFO NET/IB: [1] mlx5_1:uverbs1:1/RoCE provider=Mlx5 speed=200000 "
      "context=0x1 pciPath=/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0 ar=1\n"
      "a1:10:10 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"
      "a1:10:11 [3] NCCL INFO ncclCommInitRank comm 0x5 rank 3 nranks 16 cudaDev 3 nvmlDev 5 busId "
      "8b000 commId 0x1 - Init START\n"
      "a1:10:11 [3] NCCL INFO comm 0x5 rank 3 nRanks 16 nNodes 2 localRanks 8 localRank 3 MNNVL 0\n"
      "b2:10:11 [3] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
      "b2:10:11 [3] NCCL INFO Trees [0] 1/8/-1->3->-1 [1] -1/-1/-1->3->8 [2] 1/2\n"
      "b2:10:11 [3] NCCL INFO Channel 01/02 : 0 1 2 3\n"
      "b2:10:11 [3] NCCL INFO AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n"
      "[2026-05-05 06:16:47] b2:10:11 [3] net.cc:9 NCCL WARN no route\n"
      "b2:1:1 [0] NCCL INFO NCCL b2:1:2 [1] NCCL INFO NCCL version 9\n");
  EXPECT_EQ(evidence.facts.hosts(), (std::vector<std::string>{"a1", "b2"}));
  EXPECT_EQ(said(evidence, "host", "version NCCL", "a1"), "2.28.9+cuda13.0");
  EXPECT_EQ(said(evidence, "host", "version NCCL", "b2"), "none");  // torn line
  EXPECT_EQ(said(evidence, "host", "env NCCL_IB_HCA", "a1"), "mlx5");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kLinkLayer, "a1"), "InfiniBand");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kLinkLayer, "a1"), "Ethernet");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kRelaxedOrdering, "a1"), "on");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kRate, "a1"), "200");
  EXPECT_EQ(said(evidence, "mlx5_1", fact::kBusId, "a1"), "0000:16:00.0");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kGdr, "a1"), "off");
  EXPECT_EQ(said(evidence, "gpu5", fact::kBusId, "a1"), "0000:8b:00.0");
  EXPECT_EQ(said(evidence, "host", fact::kNodes, "a1"), "2");
  EXPECT_EQ(said(evidence, "connection 0[0] -> 8[0] [send]", "log via", "b2"), "NET/IB/0/GDRDMA");
  EXPECT_EQ(said(evidence, "ring 01", "log ring", "b2"), "0 1 2 3");
  EXPECT_EQ(said(evidence, "trees of rank 3", "log trees", "b2"),
            "[0] 1/8/-1->3->-1 [1] -1/-1/-1->3->8 [2] 1/2");
  EXPECT_EQ(said(evidence, "choice AllReduce: 1024", "log choice", "b2"),
            "Algo RING proto LL channel{Lo..Hi}={0..1}");
  EXPECT_EQ(said(evidence, "host", fact::kAlert, "b2"), "NCCL: no route");
}

TEST(NcclLog, OfOldReleasesHasDistancesOfNics) {
  const Evidence evidence =
      evidence_of("\tgpu0:18:19 [0] NCCL INFO CUDA Dev 0[0], IB NIC distance :  PIX\n");
  EXPECT_EQ(said(evidence, "CUDA Dev 0[0]", "log NIC distance", "gpu0"), "PIX");
}

TEST(NcclLog, ReadsMergedNicsAndHostsOfDigits) {
  const Evidence log = evidence_of(
      "10-0-0-5:1:2 [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} "
      "[1]={[2] mlx5_2:1/RoCE, [3] mlx5_3:1/RoCE} [RO]; OOB eth0:10.0.0.5<0>\n"
      "[2026-11-02 07:12:33] 10-0-0-6:1:2 [0] NCCL INFO NCCL_DEBUG set by environment to INFO\n");
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(said(log, "mlx5_" + std::to_string(i), fact::kNetIndex, "10-0-0-5"),
              std::to_string(i));
  }
  EXPECT_EQ(said(log, "host", "env NCCL_DEBUG", "10-0-0-6"), "INFO");
}

TEST(NcclLog, ReadsPathsOfEachRelease) {
  const Evidence evidence = evidence_of(
      "NCCL INFO GPU/2000 :GPU/2000 (0/5000.000000/LOC) GPU/3000 (2/12.0/PHB) NET/0 (3/1.2/PHB) "
      "GPU/84000 (3/9\n"
      "NCCL INFO GPU/0-1-4000 :GPU/0-1-5000 (2/370.8/NVL) NET/0-1-c (4/48.0/PXB) CPU/0-0 "
      "(2/24.0/PHB)\n");
  EXPECT_EQ(said(evidence, "0000:02:00.0", "NCCL path to 0000:03:00.0"), "PHB");
  EXPECT_EQ(said(evidence, "0000:02:00.0", "NCCL path to net0"), "PHB");
  EXPECT_EQ(said(evidence, "0000:02:00.0", "NCCL path to 0000:84:00.0"), "none");  // cut off
  EXPECT_EQ(said(evidence, "0000:04:00.0", "NCCL path to net12"), "PXB");
}

TEST(NvidiaSmi, ReadsItsTableQueryAndLinks) {
  const Evidence table = evidence_of(
      "| NVIDIA-SMI 535.183.01   Driver Version: 535.183.01   CUDA Version: 12.2     |\n"
      "|   0  NVIDIA H100 80GB HBM3          On  | 00000000:19:00.0 Off |                    0 "
      "|\n");
  EXPECT_EQ(said(table, "gpu0", fact::kBusId), "0000:19:00.0");
  EXPECT_EQ(said(table, "host", "version NVIDIA driver"), "535.183.01");
  const Evidence query = evidence_of(captured("nvidia-smi-q-h100.txt"));
  EXPECT_EQ(said(query, "gpu0", fact::kBusId), "0000:53:00.0");
  EXPECT_EQ(said(query, "0000:53:00.0", fact::kPciId), "10de:2330");
  EXPECT_EQ(said(query, "0000:53:00.0", fact::kGen), "5");
  EXPECT_EQ(said(query, "0000:53:00.0", fact::kWidth), "16");
  EXPECT_EQ(said(query, "0000:53:00.0", fact::kBar1), "137438953472");  // 131072 MiB
  const Evidence links = evidence_of(captured("nvlink-a100.txt"));
  EXPECT_EQ(said(links, "gpu0", fact::kNvlinks), "12");
  const Evidence down = evidence_of(
      "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n"
      "NVML: Unable to retrieve NVLink information as all links are inActive\n"
      "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n");
  EXPECT_EQ(said(down, "gpu0", fact::kNvlinks), "0");
  EXPECT_EQ(said(down, "gpu1", fact::kNvlinks), "1");
}

// The BAR1 of an instance is not the GPU's.
TEST(NvidiaSmi, AMigInstanceIsNoGpu) {
  std::string text = captured("nvidia-smi-q-h100.txt");
  const std::size_t at = text.find("    FB Memory Usage");
  ASSERT_NE(at, std::string::npos);
  text.insert(at,
              "    MIG Mode\n        Current                           : Enabled\n"
              "    MIG Device\n        Index                             : 0\n"
              "        BAR1 Memory Usage\n            Total                         : 16383 MiB\n");
  EXPECT_EQ(said(evidence_of(text), "0000:53:00.0", fact::kBar1), "137438953472");
}

TEST(NvidiaSmi, ReadsXml) {
  const Evidence evidence = evidence_of(
      "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n"
      "<nvidia_smi_log>\n<attached_gpus>1</attached_gpus>\n<gpu id=\"00000000:18:00.0\">\n"
      "<product_name>NVIDIA H100</product_name>\n<pci><pci_device_id>233010DE</pci_device_id>\n"
      "<pci_gpu_link_info><pcie_gen><max_link_gen>5</max_link_gen></pcie_gen></pci_gpu_link_info>"
      "</pci>\n<bar1_memory_usage><total>131072 MiB</total></bar1_memory_usage>\n"
      "</gpu></nvidia_smi_log>\n");
  EXPECT_EQ(said(evidence, "gpu0", fact::kBusId), "0000:18:00.0");
  EXPECT_EQ(said(evidence, "0000:18:00.0", fact::kPciId), "10de:2330");
  EXPECT_EQ(said(evidence, "0000:18:00.0", fact::kGen), "5");
  EXPECT_EQ(said(evidence, "0000:18:00.0", fact::kBar1), "137438953472");
}

TEST(Ports, ReadsEachToolsForm) {
  const Evidence ibstat = evidence_of(captured("ibstat-h100-down.txt"));
  EXPECT_EQ(said(ibstat, "mlx5_0", fact::kRate), "400");
  EXPECT_EQ(said(ibstat, "mlx5_5", fact::kState), "down");
  EXPECT_EQ(said(ibstat, "mlx5_0", fact::kState), "up");
  const Evidence status = evidence_of(captured("ibstatus-a100.txt"));
  EXPECT_EQ(said(status, "mlx5_1", fact::kRate), "200");
  EXPECT_EQ(said(status, "mlx5_1", fact::kLinkLayer), "InfiniBand");
  const Evidence devinfo = evidence_of(
      "hca_id:\tmlx5_2\n\ttransport:\t\t\tInfiniBand (0)\n\t\tport:\t1\n"
      "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n"
      "\t\t\tactive_mtu:\t\t2048 (4)\n\t\t\tlink_layer:\t\tInfiniBand\n"
      "\t\t\tactive_width:\t\t4X (2)\n\t\t\tactive_speed:\t\t100.0 Gbps (128)\n"
      "\t\tport:\t2\n\t\t\tstate:\t\t\tPORT_DOWN (1)\n");
  EXPECT_EQ(said(devinfo, "mlx5_2", fact::kMtu), "2048");
  EXPECT_EQ(said(devinfo, "mlx5_2", fact::kRate), "400");
  EXPECT_EQ(said(devinfo, "mlx5_2:2", fact::kState), "down");
  const Evidence rdma = evidence_of(
      "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 1 sm_lid 1 lmc 0 state ACTIVE "
      "physical_state LINK_UP\nlink mlx5_1/1 state DOWN physical_state DISABLED netdev eth2\n");
  EXPECT_EQ(said(rdma, "mlx5_0", fact::kLinkLayer), "InfiniBand");
  EXPECT_EQ(said(rdma, "mlx5_1", fact::kState), "down");
  const Evidence mlxlink = evidence_of(
      "# weft-collect: mlxlink -d mlx5_4\n\nOperational Info\n----------------\n"
      "State                           : Active\nSpeed                           : IB-HDR\n"
      "Width                           : 2x\n");
  EXPECT_EQ(said(mlxlink, "mlx5_4", fact::kRate), "100");
  EXPECT_EQ(
      refusal_of("Operational Info\nState : Active\nSpeed : IB-NDR\nWidth : 4x\n"),
      "f: mlxlink does not say of which device this is; write the command on a line above it, "
      "such as 'mlxlink -d mlx5_0'");
  const Evidence netdev = evidence_of("mlx5_0 port 1 ==> ens1np0 (Up)\n");
  EXPECT_EQ(said(netdev, "mlx5_0", fact::kState), "up");
  const Evidence ipoib = evidence_of(
      "mlx5_0 port 1 ==> ib0 (Down)\nmlx5_1 port 1 ==> ibp24s0 (Up)\n"
      "mlx5_2 port 1 ==> ens2 (Down)\n");
  EXPECT_EQ(said(ipoib, "mlx5_0", fact::kState), "none");
  EXPECT_EQ(said(ipoib, "mlx5_1", fact::kState), "up");
  EXPECT_EQ(said(ipoib, "mlx5_2", fact::kState), "down");
}

// A port that is down has neither rate nor link layer.
TEST(Ports, MlxlinkOfAPortThatIsDownSaysNoLinkLayer) {
  const Evidence link = evidence_of(
      "# weft-collect: mlxlink -d mlx5_1\nOperational Info\n----------------\n"
      "State                              : Polling\n"
      "Physical state                     : ETH_AN_FSM_ENABLE\n"
      "Speed                              : N/A\nWidth                              : N/A\n");
  EXPECT_EQ(said(link, "mlx5_1", fact::kState), "down");
  EXPECT_EQ(said(link, "mlx5_1", fact::kLinkLayer), "none");
  EXPECT_EQ(said(link, "mlx5_1", fact::kRate), "none");
}

TEST(Ports, MlxlinkIsOfTheDeviceOfTheCommandAboveIt) {
  const std::string output =
      "Operational Info\n----------------\nState              : Active\nSpeed              : "
      "IB-HDR\n"
      "Width              : 4x\n\nPhysical Counters and BER Info\n"
      "Time Since Last Clear [Min]        : 1234.5\nSymbol Errors                      : 12\n"
      "Effective Physical Errors          : 0\nLink Down Counter                  : 17\n";
  const std::string mst =
      "MST modules:\n------------\n    MST PCI configuration module loaded\nPCI devices:\n"
      "DEVICE_TYPE             MST                           PCI       RDMA      NET        NUMA\n"
      "ConnectX7(rev:0)        /dev/mst/mt4129_pciconf3      5d:00.0   mlx5_3    net-ibp93  0\n"
      "ConnectX7(rev:0)        NA                            19:00.0   mlx5_0    net-ibp25  0\n";
  for (const char* command :
       {"# mlxlink -d mlx5_3 -c", "[root@n1 ~]# sudo mlxlink --device mlx5_3",
        "$ mlxlink -m -c -d mlx5_3", "# mlxlink -d /dev/mst/mt4129_pciconf3"}) {
    const Evidence evidence = evidence_of(mst + command + "\n" + output + output);
    EXPECT_EQ(said(evidence, "mlx5_3", fact::kRate), "200") << command;
    EXPECT_EQ(said(evidence, "mlx5_3", "counter Symbol Errors"), "12") << command;
    EXPECT_EQ(said(evidence, "mlx5_3", "counter Link Down Counter"), "17") << command;
    EXPECT_EQ(said(evidence, "mlx5_3", "counter Effective Physical Errors"), "none") << command;
    EXPECT_EQ(said(evidence, "mlx5_3", fact::kBusId), "0000:5d:00.0");
    EXPECT_EQ(said(evidence, "mlx5_0", fact::kBusId), "0000:19:00.0");
    EXPECT_THAT(evidence.notes,
                ElementsAre(HasSubstr("mlxlink does not say of which device this is")));
  }
  EXPECT_EQ(said(evidence_of("$ mlxlink -d 5d:00.0\n" + output), "0000:5d:00.0", fact::kRate),
            "200");
  EXPECT_EQ(said(evidence_of("# mlxlink -d /dev/mst/mt4129_pciconf3\n" + output),
                 "/dev/mst/mt4129_pciconf3", fact::kState),
            "up")
      << "nothing says which NIC that is";
  EXPECT_EQ(said(evidence_of("MST modules:\nMST devices:\n"
                             "/dev/mst/mt4129_pciconf3         - PCI configuration cycles access.\n"
                             "                                   domain:bus:dev.fn=0000:5d:00.0 "
                             "addr.reg=88 data.reg=92\n# mlxlink -d /dev/mst/mt4129_pciconf3\n" +
                             output),
                 "0000:5d:00.0", fact::kState),
            "up");
}

TEST(Networks, ReadNodesCablesAndRates) {
  const Evidence tree = evidence_of(captured("ibnetdiscover-ibsim.txt"));
  EXPECT_EQ(said(tree, "0000000000200001", fact::kNode), "switch 16");
  EXPECT_EQ(said(tree, "0000000000200001", fact::kName), "leaf1");
  EXPECT_EQ(said(tree, "0000000000200001", "cable 9"), "0000000000200002 2");
  EXPECT_EQ(said(tree, "0000000000200001", "rate of port 9"), "4xEDR");
  const Evidence ports = evidence_of(captured("ibnetdiscover-ports.txt"));
  EXPECT_EQ(said(ports, "0000000000100007", "cable 1"), "0000000000200001 2");
  // 4 lanes of 25.78125 Gb/s
  EXPECT_EQ(said(evidence_of(captured("iblinkinfo.txt")), "h3", "rate of port 1"), "103.125");
  EXPECT_EQ(said(evidence_of(captured("iblinkinfo-line.txt")), "leaf1", "rate of port 2"),
            "103.125");
}

TEST(Networks, KeepCountersThatAreNotZero) {
  const Evidence errors = evidence_of(
      "Errors for 0x200001 \"leaf1\"\n"
      "   GUID 0x200001 port 3: [SymbolErrorCounter == 5] [PortXmitWait == 70]\n");
  EXPECT_EQ(said(errors, "200001 port 3", "counter SymbolErrorCounter"), "5");
  EXPECT_EQ(said(errors, "200001 port 3", "counter PortXmitWait"), "70");
  const Evidence query = evidence_of(
      "# Port counters: Lid 1 port 1 (CapMask: 0x1200)\nPortSelect:......................1\n"
      "SymbolErrorCounter:..............0\nPortXmitWait:....................9\n");
  EXPECT_EQ(said(query, "Lid 1 port 1", "counter PortXmitWait"), "9");
  EXPECT_EQ(said(query, "Lid 1 port 1", "counter SymbolErrorCounter"), "none");
  const Evidence ethtool = evidence_of(
      "# weft-collect: ethtool -S eth2\nNIC statistics:\n     rx_prio3_pause: 12\n"
      "     rx_bytes: 99\n     outbound_pci_stalled_wr: 3\n");
  EXPECT_EQ(said(ethtool, "eth2", "counter rx_prio3_pause"), "12");
  EXPECT_EQ(said(ethtool, "eth2", "counter rx_bytes"), "none");
}

TEST(HostTools, ReadBootOptionsModulesAndCpus) {
  EXPECT_EQ(said(evidence_of("BOOT_IMAGE=/vmlinuz root=/dev/sda ro iommu=pt intel_iommu=on\n"),
                 "host", fact::kIommu),
            "passthrough");
  EXPECT_EQ(said(evidence_of("BOOT_IMAGE=/vmlinuz ro intel_iommu=on\n"), "host", fact::kIommu),
            "translate");
  const Evidence dmesg = evidence_of(
      "[    0.000000] Linux version 6.1\n[    1.500000] x\n"
      "[    2.123456] iommu: Default domain type: Translated\n"
      "[    2.200000] pci 0000:1a:00.0: Adding to iommu group 3\n"
      "[   12.123456] mlx5_core 0000:1a:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 "
      "GT/s PCIe x8 link at 0000:17:02.0\n");
  EXPECT_EQ(said(dmesg, "host", fact::kIommu), "translate");
  EXPECT_THAT(said(dmesg, "host", fact::kAlert), HasSubstr("limited by 8.0 GT/s PCIe x8"));
  // Every kernel says so, with an IOMMU or without.
  EXPECT_EQ(said(evidence_of("[    0.000000] Linux version 6.1\n[    1.500000] x\n"
                             "[    2.123456] iommu: Default domain type: Translated\n"),
                 "host", fact::kIommu),
            "none");
  for (const char* alert :
       {"pcieport 0000:0e:00.0: AER: Multiple Uncorrectable (Fatal) error message received",
        "nvidia 0000:0f:00.0: BAR 1 [mem size 0x2000000000 64bit pref]: can't assign; no space",
        "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        "mlx5_core 0000:4c:00.0: poll_health:801:(pid 0): device's health compromised",
        "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:0f:00.0)",
        "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)"}) {
    EXPECT_EQ(
        said(evidence_of("[    0.000000] Linux version 6.1\n[    1.500000] x\n[    2.100000] " +
                         std::string(alert) + "\n"),
             "host", fact::kAlert),
        alert);
  }
  EXPECT_EQ(said(evidence_of("[    0.000000] Linux version 6.1\n[    1.500000] x\n"
                             "[    2.100000] pcieport 0000:0e:00.0: AER: enabled with IRQ 26\n"
                             "[    2.200000] pcieport 0000:80:01.0: BAR 13: no space for [io]\n"),
                 "host", fact::kAlert),
            "none");
  const std::string event = "] mlx5_core 0000:4c:00.0: Port module event: module 0, Cable ";
  const std::string unplugged = "[ 9200.000000" + event + "unplugged\n";
  EXPECT_EQ(said(evidence_of(unplugged), "host", fact::kAlert),
            "mlx5_core 0000:4c:00.0: Port module event: module 0, Cable unplugged");
  EXPECT_EQ(
      said(evidence_of(unplugged + "[ 9300.000000" + event + "plugged\n"), "host", fact::kAlert),
      "none");
  const Evidence modules =
      evidence_of("Module                  Size  Used by\nnvidia_peermem         16384  0\n");
  EXPECT_EQ(said(modules, "host", "module nvidia_peermem"), "loaded");
  const Evidence lscpu = evidence_of(
      "Architecture:            x86_64\nVendor ID:               AuthenticAMD\n"
      "  CPU family:            25\n  Model:                 17\n");
  EXPECT_EQ(said(lscpu, "host", fact::kCpu), "AuthenticAMD 175 17");  // NCCL's way to count
  EXPECT_EQ(said(evidence_of("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.1\n"),
                 "host", fact::kKernelModules),
            "open");
}

TEST(Sysfs, ReadsAttributesAndLinks) {
  const Evidence evidence = evidence_of(
      "/sys/bus/pci/devices/0000:19:00.0/max_link_speed:32.0 GT/s PCIe\n"
      "/sys/bus/pci/devices/0000:19:00.0/numa_node:1\n"
      "/sys/bus/pci/devices/0000:19:00.0/class:0x030200\n"
      "/sys/class/infiniband/mlx5_0/ports/1/rate:400 Gb/sec (4X NDR)\n"
      "mlx5_0 -> ../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/infiniband/mlx5_0\n"
      "mlx5_5 = /sys/devices/pci0000:b7/0000:b7:01.0/0000:b8:00.0\n");
  EXPECT_EQ(said(evidence, "0000:19:00.0", fact::kGen), "5");
  EXPECT_EQ(said(evidence, "0000:19:00.0", fact::kNuma), "1");
  EXPECT_EQ(said(evidence, "0000:19:00.0", fact::kClass), "0302");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kRate), "400");
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kBusId), "0000:16:00.0");
  EXPECT_EQ(said(evidence, "0000:16:00.0", fact::kParent), "0000:15:01.0");
  EXPECT_EQ(said(evidence, "mlx5_5", fact::kBusId), "0000:b8:00.0");
}

TEST(Sysfs, LinksOfOtherClassesNameNoNic) {
  const std::string function = "../../devices/pci0000:15/0000:15:01.0/0000:16:00.0";
  const Evidence evidence = evidence_of(
      "nvme0 -> " + function + "/nvme/nvme0\ncard1 -> " + function + "/drm/card1\nuverbs0 -> " +
      function + "/infiniband_verbs/uverbs0\nibp22s0 -> " + function + "/infiniband/ibp22s0\n");
  for (const char* other : {"nvme0", "card1", "uverbs0"}) {
    EXPECT_EQ(said(evidence, other, fact::kBusId), "none") << other;
  }
  EXPECT_EQ(said(evidence, "ibp22s0", fact::kBusId), "0000:16:00.0");
}

TEST(Hwloc, ReadsTheTreeNumaNodesAndNames) {
  const Evidence evidence = evidence_of(
      "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
      "<topology version=\"2.0\">\n<object type=\"Machine\" nodeset=\"0x3\">\n"
      "<object type=\"Package\" nodeset=\"0x00000002\">\n"
      "<info name=\"CPUVendor\" value=\"GenuineIntel\"/>\n"
      "<info name=\"CPUFamilyNumber\" value=\"6\"/>\n"
      "<info name=\"CPUModelNumber\" value=\"143\"/>\n"
      "<object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0000:[97-9e]\">\n"
      "<object type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"0000:97:01.0\" "
      "pci_type=\"0604 [8086:352a] [0000:0000] 04\" pci_link_speed=\"63.0\">\n"
      "<object type=\"PCIDev\" pci_busid=\"0000:98:00.0\" "
      "pci_type=\"0302 [10de:2330] [10de:16c1] a1\" pci_link_speed=\"63.0\">\n"
      "<object type=\"OSDev\" name=\"nvml4\" osdev_type=\"1\"/>\n"
      "</object></object></object></object></object></topology>\n");
  EXPECT_EQ(said(evidence, "0000:98:00.0", fact::kParent), "0000:97:01.0");
  EXPECT_EQ(said(evidence, "0000:97:01.0", fact::kRootBus), "0000:97");
  EXPECT_EQ(said(evidence, "0000:98:00.0", fact::kNuma), "1");
  EXPECT_EQ(said(evidence, "gpu4", fact::kBusId), "0000:98:00.0");
  EXPECT_EQ(said(evidence, "host", fact::kCpu), "GenuineIntel 6 143");
}

TEST(RdmaTopo, PairsNicsOfOtherDomains) {
  const Evidence evidence = evidence_of(captured("rdma-topo-gb300.txt"));
  EXPECT_EQ(said(evidence, "ibp3s0", fact::kBusId), "0000:03:00.0");
  EXPECT_EQ(said(evidence, "0000:03:00.0", "log data direct to"), "0009:06:00.0");
}

TEST(Evidence, OfAKnownKindIsNotATopology) {
  EXPECT_THROW(refuse_other_kind(captured("topo-m-dgx-a100.txt"), "f", TextKind::kTopology),
               InputError);
  EXPECT_EQ(kind_of(captured("lspci-vvv-dell-h100.txt")), TextKind::kEvidence);
  EXPECT_EQ(kind_of("<system version=\"1\"><cpu numaid=\"0\"/></system>"), TextKind::kUnknown);
}

TEST(Dmesg, OfSeveralLinesTheFirstNamesTheGpu) {
  const Evidence evidence = evidence_of(
      "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0\n"
      "               NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
      "               NVRM: fallen off the bus and is not responding to commands.\n"
      "[ 1843.439669] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release "
      "Build  (dvs@U22)\n");
  EXPECT_EQ(said(evidence, "host", fact::kAlert),
            "NVRM: The NVIDIA GPU 0000:b3:00.0 NVRM: fallen off the bus and is not responding to "
            "commands.");
  EXPECT_EQ(said(evidence, "host", fact::kKernelModules), "open");
  EXPECT_EQ(said(evidence, "host", "version NVIDIA driver"), "570.158.01");
}

TEST(Dmesg, AGpuThatXid79NamesFellOnce) {
  const std::string xid = "NVRM: Xid (PCI:0000:b3:00): 79, pid=7, GPU has fallen off the bus.";
  const auto alerts = [&](const std::string& gpu) {
    return evidence_of(xid + "\nNVRM: GPU " + gpu + ": GPU has fallen off the bus.\n")
        .facts.beginning("", fact::kAlert)
        .size();
  };
  EXPECT_EQ(alerts("0000:b3:00.0"), 1U);
  EXPECT_EQ(alerts("0000:b4:00.0"), 2U);
}

TEST(Dmesg, MessagesMayHaveNoTimes) {
  const std::string message = "NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1";
  EXPECT_EQ(said(evidence_of(message + "\n" + message + "\n"), "host", fact::kAlert), message)
      << "NVRM is no host";
  EXPECT_EQ(said(evidence_of("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat\n"),
                 "host", "version NVIDIA driver"),
            "535.104.05");
}

TEST(Ethtool, AHeadingsWordIsNoNetdev) {
  const auto subject = [](const std::string& above) {
    return evidence_of(above + "\n\n```\nNIC statistics:\n     rx_discards_phy: 7\n")
        .facts.all()
        .back()
        .subject;
  };
  EXPECT_EQ(subject("# ethtool -S output"), "netdev at f:4");
  EXPECT_EQ(subject("# ethtool -S eth0"), "eth0");
  EXPECT_EQ(subject("# ethtool -S of the second NIC"), "netdev at f:4");
  EXPECT_EQ(subject("$ ethtool -S lan"), "lan");
  EXPECT_EQ(subject("# ethtool -S ibs"), "ibs") << "a root's prompt";
}

TEST(Ibqueryerrors, APortsLineAloneIsRead) {
  EXPECT_EQ(
      said(evidence_of(" GUID 0x1070fd0300370ea2 port ALL: [LinkDownedCounter == 25 (25.000)] "
                       "[PortXmitWait == 14681376621 (13.673G)]\n"),
           "1070fd0300370ea2 port ALL", "counter LinkDownedCounter"),
      "25");
}

}  // namespace
}  // namespace weft::test::evidence_readers
