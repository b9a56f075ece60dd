// How GPUs of a node exchange data, by NCCL's log, against the NVLinks between them.
#include "models/doctor/p2p.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/doctor/doctor_data.hpp"

namespace weft::test::doctor_p2p {
namespace {

using ::testing::HasSubstr;

const std::string kInfo = "h1:1:1 [0] NCCL INFO ";

/// A direction's line, as NCCL writes it.
std::string channel(const std::string& from, const std::string& to, const std::string& via) {
  return kInfo + "Channel 00 : " + from + " -> " + to + " via " + via + "\n";
}

Diagnosis with(const std::string& lines) {
  return diagnosis_of(evidence_of_both(dell_lspci(), dell_rest() + lines));
}

const Finding* finding(const Diagnosis& diagnosis, std::string_view check = "P2P") {
  for (const Finding& each : diagnosis.findings) {
    if (each.check == check) return &each;
  }
  return nullptr;
}

const Outcome& outcome(const Diagnosis& diagnosis) {
  for (const Checked& each : diagnosis.checks) {
    if (each.name == "P2P") return each.outcome;
  }
  throw std::logic_error("no check P2P");
}

Verdict verdict(const Diagnosis& diagnosis) {
  return finding(diagnosis) ? Verdict::kFinding : outcome(diagnosis).verdict;
}

TEST(P2p, HostMemoryBetweenGpusThatNvlinkJoinsIsAnError) {
  const std::string both =
      channel("0[0]", "1[1]", "SHM/direct/direct") + channel("1[1]", "0[0]", "SHM/direct/direct");
  const Diagnosis diagnosis = with(both);
  const Finding* const found = finding(diagnosis);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(found->what,
            "NVLink isn't used: 2 connections between GPUs that it joins go by host memory (SHM)");
  ASSERT_EQ(found->evidence.size(), 3U);
  EXPECT_EQ(found->evidence[0].text, "connection 0[0] -> 1[1] SHM/direct/direct");
  EXPECT_EQ(found->evidence[0].place, "rest:30");
  EXPECT_EQ(found->evidence[1].text, "gpu0 to gpu1: 18 NVLinks");
  EXPECT_EQ(found->evidence[1].place, "rest:22");
  EXPECT_TRUE(found->is_error);
  EXPECT_THAT(found->remedy, HasSubstr("container"));
}

TEST(P2p, OlderLogsNameGpusByBusId) {
  for (const std::string via : {"direct shared memory", "SHM/direct/direct"}) {
    EXPECT_NE(finding(with(channel("0[19000]", "1[9b000]", via))), nullptr) << via;
    EXPECT_EQ(finding(with(channel("0[19000]", "1[9c000]", via))), nullptr) << via;  // a NIC
  }
}

TEST(P2p, WhereGpusOrNvlinksAreNotToldNothingIsSaid) {
  const Diagnosis untold = with(channel("0[39000]", "1[9b000]", "SHM/direct/direct"));
  EXPECT_EQ(verdict(untold), Verdict::kUnknown);
  EXPECT_THAT(outcome(untold).text, HasSubstr("which GPUs exchange data by host memory (rest:30)"));
  EXPECT_EQ(outcome(untold).command, "sudo lspci -vvv");
  const Diagnosis unlinked = diagnosis_of(
      evidence_of_both(dell_lspci(), channel("0[19000]", "1[9b000]", "SHM/direct/direct")));
  EXPECT_EQ(verdict(unlinked), Verdict::kUnknown);
  EXPECT_THAT(outcome(unlinked).text, HasSubstr("nothing says their NVLinks"));
}

TEST(P2p, ADirectionCountsOnceWhateverStandsBetween) {
  const std::string to = channel("0[0]", "1[1]", "SHM/direct/direct");
  const std::string back = channel("1[1]", "0[0]", "SHM/direct/direct");
  const std::string other = channel("0[0]", "1[1]", "SHM/CUMEM");
  const Diagnosis diagnosis = with(to + back + other);
  ASSERT_NE(finding(diagnosis), nullptr);
  EXPECT_THAT(finding(diagnosis)->what, HasSubstr(": 2 connections between"));
}

TEST(P2p, AVariableIsTheCause) {
  for (const auto& [name, value] :
       {std::pair{"NCCL_P2P_DISABLE", "1"}, std::pair{"NCCL_P2P_LEVEL", "LOC"}}) {
    const Diagnosis diagnosis = with(kInfo + name + " set by environment to " + value + ".\n" +
                                     channel("0[0]", "1[1]", "SHM/direct/direct"));
    const Finding* const found = finding(diagnosis);
    ASSERT_NE(found, nullptr);
    EXPECT_THAT(found->what, HasSubstr(std::string(": ") + name + "=" + value));
    EXPECT_EQ(found->remedy, std::string("unset ") + name);
    EXPECT_EQ(found->evidence[1].place, "rest:30");
    EXPECT_FALSE(found->is_error);  // the variable's price says whether it matters
    EXPECT_NE(finding(diagnosis, "environment"), nullptr);
  }
}

TEST(P2p, SomeConnectionsAreAnError) {
  const Diagnosis diagnosis = with(channel("0[0]", "1[1]", "SHM/direct/direct") +
                                   channel("1[1]", "0[0]", "P2P/CUMEM/read"));
  ASSERT_NE(finding(diagnosis), nullptr);
  EXPECT_THAT(finding(diagnosis)->what, HasSubstr("1 connection between"));
  EXPECT_TRUE(finding(diagnosis)->is_error);
}

TEST(P2p, HealthyLogsAreNoFinding) {
  EXPECT_EQ(verdict(with("")), Verdict::kUnknown);
  EXPECT_EQ(verdict(with(channel("0[0]", "1[1]", "P2P/IPC"))), Verdict::kOk);
  EXPECT_EQ(verdict(with(channel("1[1]", "2[0]", "NET/IB/0/GDRDMA"))), Verdict::kUnknown);
  // Without NVLinks host memory is NCCL's choice; of one pair of four there are none.
  EXPECT_EQ(verdict(diagnosis_of(evidence_of(captured("nccl-graph-4090.txt")))), Verdict::kNotHere);
  const Evidence mixed = evidence_of(
      "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\t X \tNV4\tNODE\tNODE\nGPU1\tNV4\t X \tNODE\tNODE\n"
      "GPU2\tNODE\tNODE\t X \tNV4\nGPU3\tNODE\tNODE\tNV4\t X \n" +
      channel("1[1]", "2[2]", "SHM/direct/direct") + channel("0[0]", "1[1]", "P2P/CUMEM/read"));
  EXPECT_EQ(verdict(diagnosis_of(mixed)), Verdict::kNotHere);
}

}  // namespace
}  // namespace weft::test::doctor_p2p
