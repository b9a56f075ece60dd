// Which files are read, those with nothing to say too, and of which kind.
#include "sim/input/evidence/evidence.hpp"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/registry/registry.hpp"
#include "sim/input/evidence/machine.hpp"
#include "tests/evidence/evidence_data.hpp"

namespace weft::test::evidence_evidence {
namespace {

using ::testing::ElementsAre;

const std::string kSummary =
    "\n## Summary: 12 nodes checked, 0 bad nodes found\n"
    "##          44 ports checked, 0 ports have errors beyond threshold\n"
    "## Thresholds: \n## Suppressed:\n";

void expect_kind(const std::string& text, EvidenceKind kind) {
  const Evidence evidence = evidence_of(text);
  ASSERT_EQ(evidence.sources.size(), 1U) << text;
  EXPECT_THAT(evidence.sources[0].kinds, ElementsAre(kind)) << text;
}

TEST(Evidence, WhatHasNothingToSayIsReadAllTheSame) {
  expect_kind(kSummary, EvidenceKind::kIbqueryerrors);
  EXPECT_EQ(said(evidence_of(kSummary), "network", "log counters"), "read");
  expect_kind("BOOT_IMAGE=/vmlinuz-5.15 root=/dev/sda1 ro\n", EvidenceKind::kCommandLine);
  expect_kind("initrd=initrd.img ip=dhcp\n", EvidenceKind::kCommandLine);
  expect_kind("ip=dhcp root=/dev/nfs rw\n", EvidenceKind::kCommandLine);
  expect_kind("[Tue Mar  5 10:11:12 2024] random: crng init done\n", EvidenceKind::kDmesg);
  expect_kind("-- Logs begin at Mon 2024-03-04 --\nMar 05 10:11:12 n7 kernel: random: done\n",
              EvidenceKind::kDmesg);
}

TEST(Evidence, ModulesThatGrepLeavesAreNotAllOfThem) {
  const std::string lines =
      "nvidia_uvm           1503232  0\nnvidia              56823808  117 nvidia_uvm\n";
  expect_kind(lines, EvidenceKind::kLsmod);
  const Evidence part = evidence_of(lines);
  EXPECT_EQ(said(part, "host", "module nvidia"), "loaded");
  EXPECT_EQ(said(part, "host", "module list"), "none");
  const Evidence all = evidence_of("Module                  Size  Used by\n" + lines);
  EXPECT_EQ(said(all, "host", "module list"), "complete");
  expect_kind("nvidia 56823808 1 nvidia_uvm, Live 0x0000000000000000 (POE)\n",
              EvidenceKind::kLsmod);
  for (const std::string line :
       {"step 1000 20 loss", "tmpfs 1024 0 1024", "dentry 123456 123456 192"}) {
    EXPECT_NE(refusal_of(line + "\n"), "accepted") << line;
  }
  EXPECT_NE(refusal_of("nvidia 8 1\n"), "accepted");
  EXPECT_NE(refusal_of("nvidia is 8192 times 1\n"), "accepted");
}

TEST(Evidence, TheKernelsLogIsReadInEachOfItsForms) {
  const std::string xid = "NVRM: Xid (PCI:0000:19:00): 79, pid=1";
  for (const std::string before :
       {"[  101.000000] ", "[  101.000000][   T17] ", "[Tue Mar  5 10:11:12 2024] ",
        "kern  :warn  : [  101.000000] "}) {
    EXPECT_EQ(said(evidence_of(before + xid + "\n"), "host", fact::kAlert), xid) << before;
  }
  const std::string journal = "Mar 05 10:11:12 n7.example.org kernel: " + xid + "\n";
  EXPECT_EQ(said(evidence_of(journal), "host", fact::kAlert, "n7"), xid);
  // With an ISO time before each line, too, which is no collector's.
  const std::string iso = "2024-03-05T10:11:12+0100 n7 kernel: ";
  EXPECT_EQ(said(evidence_of(iso + "x\n" + iso + xid + "\n"), "host", fact::kAlert, "n7"), xid);
  EXPECT_NE(refusal_of("[0.25] it\n"), "accepted");
  // What a journal has of others is not the kernel's.
  Evidence others;
  parse_evidence("Mar 05 10:11:12 n7 kernel: x\nMar 05 10:11:13 n7 nv-hostengine[1]: " + xid + "\n",
                 "f", "a", others);
  EXPECT_EQ(said(others, "host", fact::kAlert, "a"), "none");
  // Whose it is by the command line or the archive counts more.
  Evidence named;
  parse_evidence(journal, "f", "a", named);
  EXPECT_THAT(named.facts.hosts(), ElementsAre("a"));
}

TEST(Evidence, CountersOfInterfacesInOneFileAreKeptApart) {
  const auto statistics = [](int drops) {
    return "NIC statistics:\n     rx_discards_phy: " + std::to_string(drops) + "\n";
  };
  const Evidence named = evidence_of("$ ethtool -S ens1f0np0\n" + statistics(7) +
                                     "$ ethtool -S ens1f1np1\n" + statistics(9));
  EXPECT_EQ(said(named, "ens1f0np0", "counter rx_discards_phy"), "7");
  EXPECT_EQ(said(named, "ens1f1np1", "counter rx_discards_phy"), "9");
  const Evidence plain = evidence_of(statistics(7) + statistics(7) + statistics(0));
  EXPECT_EQ(said(plain, "netdev at f:1", "counter rx_discards_phy"), "7");
  EXPECT_EQ(said(plain, "netdev at f:3", "counter rx_discards_phy"), "7");
  EXPECT_EQ(said(plain, "netdev at f:5", "counter rx_discards_phy"), "none");
  EXPECT_EQ(said(plain, "netdev at f:5", "log counters"), "read");
  // Of two files, too.
  Evidence two;
  parse_evidence(statistics(7), "f", "", two);
  parse_evidence(statistics(9), "g", "", two);
  EXPECT_EQ(said(two, "netdev at f:1", "counter rx_discards_phy"), "7");
  EXPECT_EQ(said(two, "netdev at g:1", "counter rx_discards_phy"), "9");
  for (const std::string command : {"--statistics eth7", "-S 'eth7'", "-S \"eth7\""}) {
    EXPECT_EQ(said(evidence_of("$ ethtool " + command + "\n" + statistics(7)), "eth7",
                   "counter rx_discards_phy"),
              "7")
        << command;
  }
  EXPECT_EQ(said(evidence_of("for i; do ethtool -S \"$i\"; done\n" + statistics(7)),
                 "netdev at f:2", "counter rx_discards_phy"),
            "7");
}

// Two functions of one device: each has its own port, and both the one link.
TEST(Evidence, PortsOfOneCardShareItsLink) {
  const std::string card =
      " Ethernet controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"
      "\t\tLnkSta:\tSpeed 32GT/s, Width x16\n";
  const std::string above = " -> ../../devices/pci0000:15/0000:15:01.0/0000:1a:00.";
  const auto port = [](const std::string& name, const std::string& rate) {
    return "CA '" + name + "'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tRate: " + rate +
           "\n\t\tLink layer: Ethernet\n";
  };
  const ImportedMachine machine = import_machine(
      evidence_of("19:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
                  "1a:00.0" +
                  card + "1a:00.1" + card + "mlx5_0" + above + "0/infiniband/mlx5_0\n" + "mlx5_1" +
                  above + "1/infiniband/mlx5_1\n" + port("mlx5_0", "200") + port("mlx5_1", "100")),
      make_catalog());
  std::map<std::string, const DeviceSpec*> nics;
  for (const DeviceSpec& device : machine.spec.node.devices) {
    if (device.kind == DeviceKind::kNic) nics.emplace(device.name, &device);
  }
  ASSERT_EQ(nics.size(), 2U);
  EXPECT_EQ(nics.at("mlx5_0")->port_of, "");
  EXPECT_EQ(nics.at("mlx5_1")->port_of, "mlx5_0");
  EXPECT_EQ(nics.at("mlx5_0")->settings.find("rate")->second.number, 25);  // GB/s
  EXPECT_EQ(nics.at("mlx5_1")->settings.find("rate")->second.number, 12.5);
}

TEST(Evidence, MergedNicsAreTheirPorts) {
  const std::string info = "h:1:1 [0] NCCL INFO NET/IB : ";
  const Evidence log = evidence_of(
      info + "Using [0]mlx5_0+mlx5_1:1/RoCE [1]mlx5_2:1/RoCE [RO]; OOB eth0:10.0.0.7\n" + info +
      "GPU Direct RDMA Enabled for HCA 0 'mlx5_0+mlx5_1'\n");
  for (const char* const nic : {"mlx5_0", "mlx5_1"}) {
    EXPECT_EQ(said(log, nic, fact::kNetIndex, "h"), "0");
    EXPECT_EQ(said(log, nic, fact::kLinkLayer, "h"), "Ethernet");
    EXPECT_EQ(said(log, nic, fact::kRelaxedOrdering, "h"), "on");
    EXPECT_EQ(said(log, nic, fact::kGdr, "h"), "on");
  }
  EXPECT_EQ(said(log, "mlx5_2", fact::kNetIndex, "h"), "1");
  EXPECT_EQ(said(log, "mlx5_0+mlx5_1", fact::kNetIndex, "h"), "none");
}

}  // namespace
}  // namespace weft::test::evidence_evidence
