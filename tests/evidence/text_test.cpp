// What terminals and collectors put around evidence, archives, and what is no evidence.
#include "sim/input/evidence/text.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/evidence/evidence_data.hpp"

namespace weft::test::evidence_text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kMatrix =
    "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-7\nGPU1\tNV4\t X \t0-7\n";

std::string prefixed(const std::string& text, const std::string& prefix) {
  std::string out = prefix;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += prefix;
  }
  return out.substr(0, out.size() - prefix.size());
}

TEST(EvidenceText, PrefixesOfCollectorsAreTakenAway) {
  struct Case {
    std::string prefix;
    std::string host;
  };
  for (const Case& each :
       {Case{"[pod/gpu-7/main] ", "gpu-7"}, Case{"[1,0]<stdout>:", ""},
        Case{"worker-1  | ", "worker-1"}, Case{"node12: ", "node12"}, Case{"3: ", ""},
        Case{"[3] ", ""}, Case{"  | 2024-12-04T07:19:43.480Z | ", ""},
        Case{"  | 2025-05-16T16:39:51.208-07:00", ""}, Case{"2026-05-05T06:16:47.123Z ", ""},
        Case{"10.3.35.83: ", "10.3.35.83"}, Case{"node12: 2026-05-05 06:16:47,123 ", "node12"}}) {
    const Evidence evidence = evidence_of(prefixed(kMatrix, each.prefix));
    EXPECT_EQ(said(evidence, "gpu0", "path to gpu1", each.host), "NV4") << each.prefix;
    EXPECT_EQ(evidence.facts.all()[0].place.line, 2) << each.prefix;
  }
}

/// With blanks before every line, as a page has a block of code.
std::string indented(const std::string& text) { return prefixed(text, "    "); }

// The file has lines of its own, so not all begin with blanks.
TEST(EvidenceText, BlocksOfAMixedFileMayBeIndented) {
  const std::string lspci =
      "17:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 80GB] (rev a1)\n"
      "\tLnkCap: Port #0, Speed 16GT/s, Width x16\n";
  const std::string tree =
      "-[0000:00]-+-01.0-[17]----00.0  NVIDIA Corporation GA100\n"
      "           \\-02.0-[19]----00.0  Mellanox MT28908\n";
  const std::string ethtool = "# ethtool -S output\nNIC statistics:\n     rx_prio3_pause: 41927\n";
  const std::string modules = "Module                  Size  Used by\ngdrdrv    24576  0\n";
  const std::string query =
      "==============NVSMI LOG==============\nAttached GPUs             : 1\n"
      "GPU 00000000:18:00.0\n    Product Name              : NVIDIA H100 80GB HBM3\n";
  const std::string table =
      "| NVIDIA-SMI 570.124.06   Driver Version: 570.124.06   |\n"
      "|   3  NVIDIA H20      Off |   00000000:1a:00.0 Off |   Off |\n";
  const Evidence evidence =
      evidence_of("My machine:\n\n" + indented(lspci) + "its tree:\n\n" + indented(tree) +
                  "and:\n\n" + indented(ethtool) + "\n" + indented(modules) + "so\n" +
                  indented(query) + "or\n" + indented(table));
  EXPECT_EQ(said(evidence, "0000:17:00.0", fact::kClass), "0302");
  EXPECT_EQ(said(evidence, "0000:17:00.0", fact::kWidth), "16");
  EXPECT_EQ(said(evidence, "0000:19:00.0", fact::kParent), "0000:00:02.0");
  EXPECT_EQ(said(evidence, "netdev at f:12", "counter rx_prio3_pause"), "41927");
  EXPECT_EQ(said(evidence, "host", "module gdrdrv"), "loaded");
  EXPECT_EQ(said(evidence, "host", "module list"), "complete");
  EXPECT_EQ(said(evidence, "0000:18:00.0", fact::kProduct), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(said(evidence, "gpu3", fact::kBusId), "0000:1a:00.0");
}

TEST(EvidenceText, WhatGrepLeavesMayStandInABlockOfCode) {
  EXPECT_EQ(said(evidence_of("Before:\n`ethtool -S eth2 |grep prio`\n```\n     rx_prio3_pause: 7\n"
                             "     rx_prio4_pause: 0\n```\nAfter:\n"),
                 "eth2", "counter rx_prio3_pause"),
            "7");
}

// Nearly all lines are of ports then.
TEST(EvidenceText, PortsOfIbnetdiscoverAreNoRanks) {
  std::string text;
  for (int leaf = 0; leaf < 3; ++leaf) {
    const std::string guid = "b83fd203000000f" + std::to_string(leaf);
    text += "vendid=0x2c9\nswitchguid=0x" + guid + "(" + guid + ")\n";
    text += "Switch\t64 \"S-" + guid + "\"\t\t# \"leaf\" enhanced port 0 lid 1 lmc 0\n";
    for (int port = 1; port <= 64; ++port) {
      text += "[" + std::to_string(port) + "]\t\"H-b83fd203000" + std::to_string(leaf * 64 + port) +
              "\"[1](b83fd203) \t\t# \"n mlx5_0\" lid 101 4xNDR\n";
    }
  }
  const Evidence evidence = evidence_of(text);
  const auto first = "b83fd203000000f0";
  EXPECT_EQ(said(evidence, first, "cable 64"), "b83fd20300064 1");
  EXPECT_EQ(evidence.facts.beginning("", "cable ").size(), 192U);
}

TEST(EvidenceText, HostsMayStandInOneFile) {
  const std::string two = prefixed(kMatrix, "a: ") + prefixed(kMatrix, "b: ");
  EXPECT_THAT(evidence_of(two).facts.hosts(), ElementsAre("a", "b"));
  const std::string rule = "----------------\n";
  const std::string dshbak = rule + "a\n" + rule + kMatrix + rule + "b\n" + rule + kMatrix;
  EXPECT_THAT(evidence_of(dshbak).facts.hosts(), ElementsAre("a", "b"));
  const std::string tail = "==> a <==\n" + kMatrix + "\n==> b <==\n" + kMatrix;
  EXPECT_THAT(evidence_of(tail).facts.hosts(), ElementsAre("a", "b"));
}

TEST(EvidenceText, ToolsMayFollowOneAnother) {
  const Evidence evidence = evidence_of("$ nvidia-smi topo -m\n" + kMatrix + "$ ibstat\n" +
                                        captured("ibstat-h100-down.txt"));
  EXPECT_THAT(evidence.sources[0].kinds,
              ElementsAre(EvidenceKind::kTopoMatrix, EvidenceKind::kIbstat));
  EXPECT_EQ(said(evidence, "mlx5_0", fact::kRate), "400");
}

TEST(EvidenceText, WindowsLineEndsAndByteOrderMark) {
  std::string text = "\xEF\xBB\xBF";
  for (const char c : kMatrix) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(said(evidence_of(text), "gpu0", "path to gpu1"), "NV4");
}

TEST(EvidenceText, TailsHeadsOfPathsAreNoHosts) {
  const Evidence evidence = evidence_of(
      "==> /sys/bus/pci/devices/0000:01:00.0/current_link_speed <==\n16.0 GT/s PCIe\n\n"
      "==> /sys/bus/pci/devices/0000:01:00.0/current_link_width <==\n8\n\n"
      "==> /sys/bus/pci/devices/0000:01:00.0/max_link_width <==\n16\n");
  EXPECT_THAT(evidence.facts.hosts(), ElementsAre(""));
  EXPECT_EQ(said(evidence, "0000:01:00.0", fact::kTrainedGen), "4");
  EXPECT_EQ(said(evidence, "0000:01:00.0", fact::kTrainedWidth), "8");
  EXPECT_EQ(said(evidence, "0000:01:00.0", fact::kWidth), "16");
  const Evidence mixed = evidence_of(
      "==> node7.txt <==\nCA 'mlx5_9'\n\tPort 1:\n\t\tRate: 100\n"
      "==> /sys/class/infiniband/mlx5_0/ports/1/rate <==\n400 Gb/sec (4X NDR)\n\n"
      "==> /proc/cmdline <==\nBOOT_IMAGE=/boot/vmlinuz-5.15.0-100-generic ro iommu=pt\n\n"
      "==> /sys/class/infiniband/mlx5_1/ports/1/rate <==\n200 Gb/sec (4X HDR)\n");
  EXPECT_THAT(mixed.facts.hosts(), ElementsAre("", "node7.txt"));
  EXPECT_EQ(said(mixed, "mlx5_0", fact::kRate), "400");
  EXPECT_EQ(said(mixed, "mlx5_1", fact::kRate), "200");
  EXPECT_EQ(said(mixed, "host", fact::kIommu), "passthrough");
}

TEST(EvidenceTextBogus, IsRefusedWithTheReason) {
  EXPECT_EQ(refusal_of(""), "f: is empty");
  EXPECT_EQ(refusal_of(" \t\r\n \n"), "f: is empty");
  EXPECT_EQ(refusal_of("\x1f\x8b\x08"), "f: is compressed; decompress it first");
  EXPECT_EQ(refusal_of("\xff\xfeG"), "f: is UTF-16; write it as UTF-8");
  EXPECT_EQ(refusal_of(std::string("a\nb\0c", 5)), "f:2: is no text: a byte 0");
  EXPECT_EQ(refusal_of(std::string(70'000, 'x')), "f:1: more than 65536 bytes in a line");
  EXPECT_THAT(
      refusal_of("\nhello\nyou"),
      HasSubstr("f: is no output that weft knows (it begins 'hello'); known: /proc/cmdline,"));
  // What is quoted is whole characters, in place of bytes that are none U+FFFD.
  const std::string almost(39, 'x');
  EXPECT_THAT(refusal_of(almost + "\xC3\xA9t\xC3\xA9"), HasSubstr("'" + almost + "')"));
  EXPECT_THAT(refusal_of("caf\xE9 \xC3\xA9"), HasSubstr("'caf\xEF\xBF\xBD \xC3\xA9')"));
  EXPECT_THAT(refusal_of("# nccl-tests version 2.19.6\n"), HasSubstr("weft compare"));
  EXPECT_THAT(refusal_of("topology: a\nnode: {}\n"), HasSubstr("is a topology"));
}

TEST(EvidenceTar, MembersAreOfTheirFoldersHost) {
  const std::string tar = tar_of("a/topo.txt", kMatrix) + tar_of("a/notes", "hello") +
                          tar_of("b/topo.txt", kMatrix) + std::string(1024, '\0');
  const Evidence evidence = evidence_of(tar, "c.tar");
  EXPECT_THAT(evidence.facts.hosts(), ElementsAre("a", "b"));
  ASSERT_EQ(evidence.sources.size(), 2U);
  ASSERT_EQ(evidence.notes.size(), 2U);
  EXPECT_EQ(evidence.notes[0],
            "c.tar:a/notes: is no output that weft knows (it begins 'hello'): not read");
  EXPECT_THAT(evidence.notes[1], HasSubstr("of other tools' output weft knows: /proc/cmdline, "));
  EXPECT_EQ(evidence.facts.all()[0].place.text(), "c.tar:a/topo.txt:2");
}

TEST(EvidenceTar, MembersThatAreNoTextArePassedOver) {
  const Evidence evidence = evidence_of(tar_of("a/core", std::string("\x7f"
                                                                     "ELF\0\0",
                                                                     6)) +
                                            tar_of("a/topo.txt", kMatrix) + std::string(1024, '\0'),
                                        "c.tar");
  EXPECT_EQ(evidence.sources.size(), 1U);
  ASSERT_EQ(evidence.notes.size(), 1U);
  EXPECT_THAT(evidence.notes[0], HasSubstr("c.tar:a/core"));
}

TEST(EvidenceTarBogus, CutOffOrDamaged) {
  const std::string tar = tar_of("a/topo.txt", kMatrix) + std::string(1024, '\0');
  EXPECT_EQ(refusal_of(tar.substr(0, 520)), "f: at byte 0: cut off");
  std::string damaged = tar_of("a/t", kMatrix) + tar_of("a/u", kMatrix);
  damaged[1024] = 'x';
  EXPECT_EQ(refusal_of(damaged), "f: at byte 1024: damaged: no header of a tar's member");
  EXPECT_THAT(refusal_of(tar_of("a/notes", "hello")),
              HasSubstr("f: nothing in this tar is read; the first, f:a/notes: is no output that "
                        "weft knows (it begins 'hello'); known: "));
  EXPECT_EQ(refusal_of(std::string(512, '\0') + "x"), "f:1: is no text: a byte 0");
}

}  // namespace
}  // namespace weft::test::evidence_text
