// Which files are read, those with nothing to say too, and which are passed over.
#include "sim/input/evidence/evidence.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_NE(refusal_of("nvidia 8 1\n"), "accepted");
  EXPECT_NE(refusal_of("nvidia is 8192 times 1\n"), "accepted");
}

TEST(Evidence, TheKernelsLogIsReadInEachOfItsForms) {
  const std::string xid = "NVRM: Xid (PCI:0000:19:00): 79, pid=1";
  for (const std::string before :
       {"[  101.000000] ", "[Tue Mar  5 10:11:12 2024] ", "kern  :warn  : [  101.000000] "}) {
    EXPECT_EQ(said(evidence_of(before + xid + "\n"), "host", fact::kAlert), xid) << before;
  }
  const std::string journal = "Mar 05 10:11:12 n7.example.org kernel: " + xid + "\n";
  EXPECT_EQ(said(evidence_of(journal), "host", fact::kAlert, "n7"), xid);
  // Whose it is by the command line or the archive counts more.
  Evidence named;
  parse_evidence(journal, "f", "a", named);
  EXPECT_THAT(named.facts.hosts(), ElementsAre("a"));
}

}  // namespace
}  // namespace weft::test::evidence_evidence
