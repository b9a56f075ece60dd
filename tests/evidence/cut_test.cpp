// What people paste is old, cut, quoted or of one GPU: how much of a machine it still tells.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/evidence/imported.hpp"

namespace weft::test::evidence_cut {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::size_t count(const ImportedMachine& machine, DeviceKind kind) {
  std::size_t out = 0;
  for (const DeviceSpec& each : machine.spec.node.devices) out += each.kind == kind ? 1 : 0;
  return out;
}

std::string above(const ImportedMachine& machine, const std::string& name) {
  return device(machine.spec, name).upstream;
}

constexpr const char* kFourGpus =
    "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV12\tNV12\tNV12\t0-31\t0\t\tN/A\n"
    "GPU1\tNV12\t X \tNV12\tNV12\t0-31\t0\t\tN/A\n"
    "GPU2\tNV12\tNV12\t X \tNV12\t32-63\t1\t\tN/A\n"
    "GPU3\tNV12\tNV12\tNV12\t X \t32-63\t1\t\tN/A\n";

TEST(Cut, GpusThatAListLeavesOutAreTheMatrixs) {
  const ImportedMachine machine =
      imported(std::string("==============NVSMI LOG==============\nAttached GPUs : 4\n"
                           "GPU 00000000:19:00.0\n    Product Name : NVIDIA A100-SXM4-80GB\n\n") +
               kFourGpus);
  EXPECT_EQ(count(machine, DeviceKind::kGpu), 4U);
  for (const DeviceSpec& each : machine.spec.node.devices) {
    if (each.kind == DeviceKind::kGpu) {
      EXPECT_EQ(each.part, "a100-sxm") << each.name;
    }
  }
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("topo -m has 4 GPUs, other evidence 1")));
}

TEST(Cut, GpusOfOneRanksTreeStayAndAreNoted) {
  const ImportedMachine machine = imported(
      std::string("<system version=\"1\">\n<cpu numaid=\"0\">\n<pci busid=\"0000:19:00.0\" "
                  "class=\"0x030200\"><gpu dev=\"0\"/></pci>\n</cpu>\n</system>\n") +
      kFourGpus);
  EXPECT_EQ(count(machine, DeviceKind::kGpu), 1U);
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("the machine has only these")));
}

TEST(Cut, GpusWithNumbersThatTheMatrixLacksAreNotMixedWithIts) {
  const ImportedMachine machine = imported(
      std::string(
          "| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2     |\n"
          "|   7  NVIDIA A100-SXM4-80GB    On   | 00000000:07:00.0 Off |               0 |\n") +
      kFourGpus);
  EXPECT_EQ(count(machine, DeviceKind::kGpu), 1U);
}

// Drivers before 455 print no "NVIDIA".
TEST(Cut, OldNamesOfGpusAreGpus) {
  const ImportedMachine machine = imported(
      "| NVIDIA-SMI 450.80.02    Driver Version: 450.80.02    CUDA Version: 11.0     |\n"
      "|   0  A100-SXM4-40GB      On   | 00000000:07:00.0 Off |                    0 |\n"
      "|   1  TITAN V             On   | 00000000:0B:00.0 Off |                  N/A |\n");
  EXPECT_EQ(count(machine, DeviceKind::kGpu), 2U);
}

TEST(Cut, GpusNearTheSameProcessorsShareACpu) {
  const ImportedMachine machine = imported(
      "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\n"
      "GPU0\t X \tNV1\tNV1\tNV2\t0-19,40-59\nGPU1\tNV1\t X \tNV2\tNV1\t0-19,40-59\n"
      "GPU2\tNV1\tNV2\t X \tNV1\t20-39,60-79\nGPU3\tNV2\tNV1\tNV1\t X \t20-39,60-79\n");
  EXPECT_EQ(count(machine, DeviceKind::kCpu), 2U);
  EXPECT_EQ(above(machine, "gpu0"), above(machine, "gpu1"));
  EXPECT_NE(above(machine, "gpu0"), above(machine, "gpu2"));
}

TEST(Cut, ANumaNodeIsReadWhereProcessorsAreMissing) {
  const ImportedMachine machine = imported(
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tNV12\t\t0\t\tN/A\nGPU1\tNV12\t X \t\t1\t\tN/A\n");
  EXPECT_EQ(above(machine, "gpu0"), "cpu0");
  EXPECT_EQ(above(machine, "gpu1"), "cpu1");
}

TEST(Cut, RowsThatAreMissingAreNoted) {
  const std::string all = kFourGpus;
  EXPECT_THAT(imported(all).spec.notes, Not(Contains(HasSubstr("says nothing in rows"))));
  EXPECT_THAT(imported(all.substr(0, all.find("GPU2\tNV"))).spec.notes,
              Contains(HasSubstr("topo -m says nothing in rows of gpu2, gpu3, or lacks them")));
}

// The last GPU's links end with what was pasted, not with a defect.
TEST(Cut, AListOfNvlinksThatIsCutSaysNoCount) {
  const std::string whole =
      "GPU 0: A100-SXM4-40GB (UUID: GPU-a)\n\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n"
      "GPU 1: A100-SXM4-40GB (UUID: GPU-b)\n\t Link 0: 25 GB/s\n";
  const auto counts = [](const std::string& text) {
    return evidence_of(text).facts.beginning("", fact::kNvlinks).size();
  };
  EXPECT_EQ(counts(whole), 1U);
  EXPECT_EQ(counts(whole + "\t Link 1: <inactive>\n"), 2U);
  EXPECT_EQ(counts(whole + "\t Link 1: 25 GB/s\n\t......\n"), 1U);
  EXPECT_EQ(counts(whole + "GPU 2: A30 (UUID: GPU-c)\n\t Link 0: 25 GB/s\n"), 3U)
      << "the last one of its kind is whole";
  const ImportedMachine machine = imported(
      "| NVIDIA-SMI 450.80.02    Driver Version: 450.80.02    CUDA Version: 11.0     |\n"
      "|   0  A100-SXM4-40GB      On   | 00000000:07:00.0 Off |                    0 |\n"
      "|   1  A100-SXM4-40GB      On   | 00000000:0B:00.0 Off |                    0 |\n" +
      whole);
  ASSERT_EQ(machine.spec.node.links.size(), 2U);
  EXPECT_EQ(machine.spec.node.links[1].count, 2U);
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("nothing counts the NVLinks of gpu1")));
}

std::string dump(const char* target_class) {
  std::string out = "<system version=\"1\">\n<cpu numaid=\"0\">\n";
  for (const char* const own : {"07", "0b"}) {
    const std::string peer = own == std::string("07") ? "0b" : "07";
    out += std::string("<pci busid=\"0000:") + own + ":00.0\" class=\"0x038000\"><gpu dev=\"" +
           (peer == "0b" ? "0" : "1") + "\"><nvlink target=\"0000:" + peer +
           ":00.0\" count=\"4\" tclass=\"" + target_class + "\"/></gpu></pci>\n";
  }
  return out +
         "<pci busid=\"0000:0c:00.0\" class=\"0x020700\"><nic><net name=\"mlx5_0\" dev=\"0\" "
         "speed=\"200000\" port=\"1\" guid=\"0x1\" gdr=\"1\"/></nic></pci>\n</cpu>\n</system>\n";
}

TEST(Cut, NvlinksOfADumpLeadWhereItSays) {
  const ImportedMachine direct = imported(dump("0x030200"));
  ASSERT_EQ(direct.spec.node.links.size(), 1U);
  EXPECT_EQ(direct.spec.node.links[0].a, "gpu0");
  EXPECT_EQ(direct.spec.node.links[0].b, "gpu1");
  EXPECT_EQ(direct.spec.node.links[0].count, 4U);
  EXPECT_EQ(count(direct, DeviceKind::kNvSwitch), 0U);
  EXPECT_EQ(count(imported(dump("0x068000")), DeviceKind::kNvSwitch), 1U);
}

// An InfiniBand NIC is of class 0207, some GPUs are of 0380: the dump says so itself.
TEST(Cut, ADumpDoesNotContradictItself) {
  EXPECT_THAT(imported(dump("0x030200")).conflicts, IsEmpty());
}

TEST(Cut, WhatIsIndentedOrQuotedIsRead) {
  const std::string text =
      "07:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 40GB] (rev a1)\n"
      "\tLnkSta: Speed 16GT/s, Width x16\n"
      "0b:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 40GB] (rev a1)\n"
      "\tLnkSta: Speed 16GT/s, Width x16\n";
  const auto before_each_line = [&](const std::string& prefix) {
    std::string out = prefix;
    for (const char c : text) {
      out += c;
      if (c == '\n') out += prefix;
    }
    return out;
  };
  for (const char* const prefix : {"", "    ", "> ", ">     "}) {
    EXPECT_EQ(count(imported(before_each_line(prefix)), DeviceKind::kGpu), 2U) << prefix;
  }
}

// eth1 of NET/Socket: its GUID is its number.
TEST(Cut, ASocketSaysNothingOfGpudirect) {
  std::string text = dump("0x030200");
  const std::string net = "port=\"1\" guid=\"0x1\" gdr=\"1\"";
  EXPECT_EQ(said(evidence_of(text), "mlx5_0", fact::kGdr), "on");
  text.replace(text.find(net), net.size(), "port=\"0\" guid=\"0x1\" gdr=\"0\"");
  EXPECT_EQ(said(evidence_of(text), "mlx5_0", fact::kGdr), "none");
}

TEST(Cut, ANicSaysWhetherCollnetTakesIt) {
  std::string text = dump("0x030200");
  EXPECT_EQ(said(evidence_of(text), "mlx5_0", fact::kCollnet), "none");
  const std::string gdr = "gdr=\"1\"";
  text.replace(text.rfind(gdr), gdr.size(), gdr + " coll=\"1\"");
  EXPECT_EQ(said(evidence_of(text), "mlx5_0", fact::kCollnet), "on");
}

TEST(Cut, ATreeMayBeginBehindItsFirstRootBus) {
  const std::string head = "+-[0000:97]-+-00.0  Intel Corporation Ice Lake Memory Map/VT-d\n";
  const std::string rest =
      " |           \\-01.0-[98]----00.0  NVIDIA Corporation GA100 [A100 SXM4 40GB]\n"
      " \\-[0000:00]---1f.0  Intel Corporation C621 Series Chipset LPC/eSPI Controller\n";
  for (const char* const before : {"-", " ", ""}) {  // the blank may be lost
    const Evidence evidence = evidence_of(before + head + rest);
    EXPECT_EQ(said(evidence, "0000:98:00.0", fact::kParent), "0000:97:01.0") << before;
    EXPECT_NE(said(evidence, "0000:00:1f.0", fact::kProduct), "none") << before;
  }
}

// The driver's name and the function may be cut off before it.
TEST(Cut, AModuleEventOfNobodyIsNone) {
  const Evidence evidence =
      evidence_of("[   12.000001] Port module event: module 0, Cable unplugged\n");
  EXPECT_TRUE(evidence.facts.beginning("", fact::kAlert).empty());
}

TEST(Cut, ACommandIsNoTuningOfNccl) {
  const Evidence evidence = evidence_of(
      "h:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled\n# lsmod | grep peermem\n"
      "nvidia_peermem 16384 0\n");
  for (const Fact& fact : evidence.facts.all()) EXPECT_THAT(fact.value, Not(HasSubstr("grep")));
}

TEST(Cut, StatisticsBehindGrepAreTheInterfacesThatTheCommandNames) {
  const Evidence evidence = evidence_of(
      "$ ethtool -S ens1f0 | grep prio3\n     rx_prio3_discards: 0\n"
      "     rx_prio3_pause: 41927                 <- received\n");
  EXPECT_EQ(said(evidence, "ens1f0", std::string(fact::kCounter) + "rx_prio3_pause"), "41927");
}

// nccl-tests lists its devices before NCCL logs, of the hosts' GPUs often the only names.
TEST(Cut, GpusThatNcclTestsListsAreTheHosts) {
  const std::string log =
      "# Using devices\n"
      "#  Rank  0 Group  0 Pid 41 on a device  0 [0000:11:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  1 Group  0 Pid 42 on a device  1 [0000:21:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  2 Group  0 Pid 67 on b device  0 [0000:11:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  3 Group  0 Pid 68 on b device  1 [0000:21:00] NVIDIA H100 80GB HBM3\n"
      "a:41:41 [0] NCCL INFO NCCL version 2.27.6+cuda13.0\n";
  const ImportedMachine machine = imported(log);
  ASSERT_EQ(count(machine, DeviceKind::kGpu), 2U);
  EXPECT_EQ(device(machine.spec, "gpu1").bus_id, "0000:21:00.0");
  EXPECT_EQ(device(machine.spec, "gpu1").part, "h100-sxm");
  EXPECT_EQ(machine.spec.nodes, 2U);
  EXPECT_THAT(machine.spec.notes, Not(Contains(HasSubstr("NCCL ran"))));
  EXPECT_THAT(imported(log.substr(log.find("#  Rank  3"))).spec.notes,
              Contains(HasSubstr("NCCL ran 4 ranks, and nodes x GPUs are 2 x 1 here")));
  const std::string between = "a:41:41 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.2<0>\n" + log;
  EXPECT_EQ(count(imported(between), DeviceKind::kGpu), 2U);
}

// Also of a run without NCCL_DEBUG, which is measured rows.
TEST(Cut, GpusThatMeasuredRowsAreOfAreTheHosts) {
  const std::string head = "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)\n#\n";
  const std::string list =
      "# Using devices\n"
      "#  Rank  0 Group  0 Pid 41 on    a device  0 [0x07] NVIDIA A100-SXM4-80GB\n"
      "#  Rank  1 Group  0 Pid 42 on    a device  1 [0x0f] NVIDIA A100-SXM4-80GB\n";
  const std::string rows =
      "#  size  count  type  redop  root  time  algbw  busbw #wrong\n"
      "8388608 2097152 float sum -1 214.3 39.14 73.39 0\n";
  for (const std::string& log : {head + list, head + list + rows}) {
    const ImportedMachine machine =
        imported(log + "\tGPU0\tGPU1\nGPU0\t X \tNV12\nGPU1\tNV12\t X \n");
    ASSERT_EQ(count(machine, DeviceKind::kGpu), 2U);
    EXPECT_EQ(device(machine.spec, "gpu1").bus_id, "0000:0f:00.0");
    EXPECT_EQ(device(machine.spec, "gpu1").part, "a100-sxm");
    EXPECT_EQ(count(imported(log), DeviceKind::kGpu), 2U);
  }
  EXPECT_THAT(refusal_of(head + rows), HasSubstr("is measured rows, not another tool's output"));
  const std::string others = "#  Rank  0 Pid 41 on a device  0 [0000:c1:00] AMD Instinct MI300X\n";
  EXPECT_THAT(refusal_of(head + others + rows), HasSubstr("is measured rows"));
}

// A list has all hosts that ran, which others' evidence may call otherwise.
TEST(Cut, HostsThatAreOnlyListedAreNotTheMachine) {
  Evidence evidence;
  parse_evidence(captured("lspci-vvv-dell-h100.txt"), "lspci", "n1", evidence);
  parse_evidence(
      "#  Rank  0 Pid 41 on  g1 device  0 [0000:19:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  1 Pid 67 on  g2 device  0 [0000:19:00] NVIDIA H100 80GB HBM3\n",
      "log", "", evidence);
  const ImportedMachine machine = import_machine(evidence, make_catalog());
  EXPECT_EQ(machine.hosts.reference, "n1");
  EXPECT_EQ(machine.spec.nodes, 2U);
  EXPECT_THAT(hosts_with_more(evidence, machine.hosts), ElementsAre("n1"));
  EXPECT_THAT(machine.hosts.odd, IsEmpty());
  Evidence listed;
  parse_evidence(
      "#  Rank  0 Pid 41 on  g1 device  0 [0000:19:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  1 Pid 67 on  g2 device  0 [0000:19:00] NVIDIA H100 80GB HBM3\n",
      "log", "", listed);
  EXPECT_THAT(hosts_with_more(listed, compare_hosts(listed.facts)), ElementsAre("g1"));
  // Names agree where more is known of one that is listed, the reference or not.
  for (const char* host : {"a0", "g2"}) {
    parse_evidence(captured("lspci-vvv-dell-h100.txt"), "lspci", host, evidence);
  }
  const ImportedMachine all = import_machine(evidence, make_catalog());
  EXPECT_EQ(all.hosts.reference, "a0");
  EXPECT_EQ(all.spec.nodes, 4U);
}

// Virtual machines number PCI's domains as they like.
TEST(Cut, AListsDomainsMayBeAny) {
  const std::string log =
      "#  Rank  0 Pid 41 on a device  0 [8545:c1:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  1 Pid 41 on a device  1 [9001:c6:00] NVIDIA H100 80GB HBM3\n"
      "a:41:41 [0] NCCL INFO NCCL version 2.27.6+cuda13.0\n";
  const ImportedMachine machine = imported(log);
  ASSERT_EQ(count(machine, DeviceKind::kGpu), 2U);
  EXPECT_EQ(device(machine.spec, "gpu0").bus_id, "8545:c1:00.0");
  EXPECT_EQ(device(machine.spec, "gpu1").bus_id, "9001:c6:00.0");
}

// rccl-tests has the same list.
TEST(Cut, GpusOfAnotherMakerAreNotTakenFromAList) {
  const Evidence evidence = evidence_of(
      "#  Rank  0 Pid 41 on a device  0 [0000:c1:00] AMD Instinct MI300X\n"
      "a:41:41 [0] NCCL INFO NCCL version 2.18.3+hip6.0\n");
  EXPECT_THAT(evidence.facts.beginning("a", fact::kProduct), IsEmpty());
  EXPECT_THAT(evidence.facts.beginning("a", fact::kClass), IsEmpty());
}

TEST(Cut, ABusAloneIsAGpusWhereNoOtherHasIt) {
  const auto listed = [](const std::string& a, const std::string& b) {
    return "#   Rank  0 Pid  9 on a device  0 [" + a +
           "] Tesla T4\n#   Rank  1 Pid  9 on a device" + "  1 [" + b +
           "] Tesla T4\na:9:9 [0] NCCL INFO NCCL version 2.8.3+cuda10.0\n";
  };
  const ImportedMachine machine = imported(listed("0x86", "0xaf"));
  ASSERT_EQ(count(machine, DeviceKind::kGpu), 2U);
  EXPECT_EQ(device(machine.spec, "gpu0").bus_id, "0000:86:00.0");
  EXPECT_THAT(evidence_of(listed("0x01", "0x01")).facts.beginning("a", fact::kClass), IsEmpty());
  EXPECT_THAT(evidence_of(listed("0x00", "0x00")).facts.beginning("a", fact::kClass), IsEmpty());
  const std::string with_domain = listed("0x01", "0x02") +
                                  "a:9:9 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev "
                                  "0 busId 801000 - Init START\n";
  const ImportedMachine both = imported(with_domain);
  ASSERT_EQ(count(both, DeviceKind::kGpu), 2U);
  EXPECT_EQ(device(both.spec, "gpu0").bus_id, "0008:01:00.0");
}

TEST(Cut, NicsAndRanksThatOnlyNcclsLogNamesAreNotLost) {
  const std::string ranks =
      "h:5:7 [0] NCCL INFO comm 0x5 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 1c000 commId 0x6\n";
  const std::string nics =
      "h:5:7 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB x:10.0.0.1\n";
  const ImportedMachine machine = imported(nics + ranks);
  EXPECT_EQ(count(machine, DeviceKind::kGpu), 1U);
  EXPECT_EQ(count(machine, DeviceKind::kNic), 0U) << "an assumed place must decide nothing";
  const std::string note =
      "NICs mlx5_0, mlx5_1 are those that NCCL names, not where they hang: the machine is without "
      "them; `lspci -vvv` and `ls -l /sys/class/infiniband` would tell";
  EXPECT_THAT(machine.spec.notes, Contains(note));
  EXPECT_THAT(machine.spec.notes, Contains(HasSubstr("NCCL ran 16 ranks, and nodes x GPUs are 1 x "
                                                     "1 here")));
  const ImportedMachine of_matrix = imported(nics + kFourGpus);
  EXPECT_EQ(count(of_matrix, DeviceKind::kNic), 0U);
  EXPECT_THAT(of_matrix.spec.notes, Contains(note));
  EXPECT_THAT(imported(ranks + kFourGpus + nics).spec.notes, Contains(HasSubstr("16 ranks")));
}

}  // namespace
}  // namespace weft::test::evidence_cut
