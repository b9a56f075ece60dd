#include "sim/report/decisions.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "sim/report/diff.hpp"

namespace weft::test::report_decisions {
namespace {

using All = std::map<DecisionKey, Decision>;

DecisionKey choice(std::int64_t bytes, const std::string& of = "allreduce",
                   const std::string& path = "") {
  return {std::string(kChoice), of, bytes, path};
}

std::string text(const Decisions& a, const Decisions& b) {
  return decisions_text(diff_decisions(a, b), "");
}

TEST(Decisions, SizesThatFollowOneAnotherAndChangeAlikeAreOneRange) {
  const Decision tree{"Tree LL128", 16};
  const Decision ring{"Ring Simple", 16};
  Decisions a;
  for (int i = 0; i < 6; ++i) a.all[choice(1024LL << (2 * i))] = tree;
  Decisions b = a;
  for (const int i : {1, 2, 4}) b.all[choice(1024LL << (2 * i))] = ring;
  EXPECT_EQ(text(a, b),
            "choice allreduce, 4 KiB to 16 KiB: Tree LL128, 16 channels -> Ring Simple, 16 "
            "channels\n"
            "choice allreduce, 256 KiB: Tree LL128, 16 channels -> Ring Simple, 16 channels\n");
  const Json json = decisions_json(diff_decisions(a, b));
  ASSERT_EQ(json.at("changes").items().size(), 3U);
  EXPECT_EQ(json.at("changes").items()[2].at("bytes").as_integer(), 256 * 1024);
  EXPECT_EQ(json.at("compared").at("choice").as_integer(), 6);
}

TEST(Decisions, ARangeEndsWithItsOperation) {
  Decisions a{{{choice(1024, "allgather"), {"Ring LL", 1}}, {choice(1024), {"Ring LL", 1}}}, {}};
  Decisions b = a;
  for (auto& [key, decision] : b.all) decision.text = "Tree LL";
  EXPECT_EQ(text(a, b),
            "choice allgather, 1 KiB: Ring LL, 1 channel -> Tree LL, 1 channel\n"
            "choice allreduce, 1 KiB: Ring LL, 1 channel -> Tree LL, 1 channel\n");
}

TEST(Decisions, ChannelsCountWhereBothSidesSayThem) {
  const Decisions old{{{choice(1024), {"Ring LL", 0}}}, {}};
  const Decisions two{{{choice(1024), {"Ring LL", 2}}}, {}};
  const Decisions four{{{choice(1024), {"Ring LL", 4}}}, {}};
  EXPECT_EQ(text(old, two), "decided alike: choice (1)\n");
  EXPECT_EQ(text(two, four),
            "choice allreduce, 1 KiB: Ring LL, 2 channels -> Ring LL, 4 channels\n");
}

TEST(Decisions, WhatChangesAlikeIsToldOnceWithItsNumber) {
  Decisions a;
  Decisions b;
  for (const char* gpu : {"0", "1", "2", "3"}) {
    a.all[{"GPUDirect RDMA", gpu}] = {"on"};
    b.all[{"GPUDirect RDMA", gpu}] = {*gpu == '3' ? "on" : "off"};
  }
  b.all[{"GPUDirect RDMA", "4"}] = {"on"};
  EXPECT_EQ(text(a, b),
            "GPUDirect RDMA 0 and 2 more of 4: on -> off\n"
            "told by one side only, or by other names: GPUDirect RDMA (1)\n");
}

TEST(Decisions, WhatOneSideDoesNotTellIsNoChangeUnlessItTellsAll) {
  const Decisions none{{}, {"environment"}};
  const Decisions set{{{{"environment", "NCCL_NET_GDR_LEVEL"}, {"LOC"}}}, {"environment"}};
  EXPECT_EQ(text(none, set), "environment NCCL_NET_GDR_LEVEL: (none) -> LOC\n");
  EXPECT_EQ(text(set, none), "environment NCCL_NET_GDR_LEVEL: LOC -> (none)\n");
  EXPECT_EQ(text({}, set), "told by one side only, or by other names: environment (1)\n");
  EXPECT_EQ(text({}, {}), "");
}

TEST(Decisions, OfRingsThatAreCutWhatBothTellIsCompared) {
  const Decisions whole{{{{"ring", "00"}, {"0 1 2 3"}}}, {}};
  const Decisions cut{{{{"ring", "00"}, {"0 1", 0, true}}}, {}};
  const Decisions other{{{{"ring", "00"}, {"0 2", 0, true}}}, {}};
  EXPECT_EQ(text(whole, cut), "decided alike: ring (1)\n");
  EXPECT_EQ(text(whole, other), "ring 00: 0 1 ... -> 0 2 ...\n");
}

TEST(Decisions, OfOneKindOnlyTheFirstLinesAreShown) {
  Decisions a;
  Decisions b;
  constexpr int kMany = 100'000;  // at once, though all differ
  for (int i = 0; i < kMany; ++i) {
    a.all[{"ring", std::to_string(i)}] = {"0"};
    b.all[{"ring", std::to_string(i)}] = {std::to_string(i + 1)};
  }
  const std::string out = text(a, b);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 7);
  EXPECT_NE(out.find("ring: 99994 more changes, in --json\n"), std::string::npos) << out;
}

ResultRow row(std::int64_t bytes, const std::string& path, const std::string& algo) {
  ResultRow out;
  out.op = "allreduce";
  out.bytes = bytes;
  out.memory_path = path;
  out.algo = algo;
  out.proto = "LL";
  out.time_us = 1;
  out.busbw_gb_per_s = 1;
  return out;
}

TEST(Decisions, ARowsPathIsNamedWhereItsChoiceIsAnother) {
  RunResult both;
  both.rows = {row(8, "gdr", "Ring"), row(8, "host-staged", "Ring"), row(64, "gdr", "Ring"),
               row(64, "host-staged", "Tree"), row(512, "gdr", "")};  // a send has no algorithm
  const Decisions decisions = decisions_of(both);
  ASSERT_EQ(decisions.all.size(), 3U);
  EXPECT_TRUE(decisions.all.contains(choice(8)));
  EXPECT_EQ(decisions.all.at(choice(64, "allreduce", "gdr")).text, "Ring LL");
  EXPECT_EQ(decisions.all.at(choice(64, "allreduce", "host-staged")).text, "Tree LL");
  // Against a run over one of them, and a log, which does not tell the path.
  RunResult gdr;
  gdr.rows = {row(8, "gdr", "Ring"), row(64, "gdr", "Ring")};
  EXPECT_EQ(text(decisions, decisions_of(gdr)),
            "decided alike: choice (2)\ntold by one side only, or by other names: choice (1)\n");
  const Decisions log{{{choice(64), {"Tree LL"}}}, {}};
  EXPECT_EQ(text(decisions, log),
            "choice allreduce over gdr, 64 B: Ring LL -> Tree LL\n"
            "told by one side only, or by other names: choice (1)\n");
}

TEST(Decisions, AResultAndALogOfItDifferInTheReleaseAndTheirRanksOnly) {
  RunResult predicted;
  predicted.provenance.weft_version = "0.1";
  predicted.provenance.nccl_version = "2.28.9";
  predicted.provenance.params = {{"wire.rate", "", "50 GB/s", "assumed", ""}};
  predicted.rows = {row(8, "gdr", "Ring")};
  predicted.rows[0].ranks = 16;
  RunResult log;
  log.rows = {row(8, "", "")};
  log.rows[0].ranks = 8;
  const std::vector<InputChange> changes = diff_results(predicted, log).inputs;
  ASSERT_EQ(changes.size(), 2U);  // the memory path, which a log does not tell, and ranks
  EXPECT_EQ(changes[1].what, "ranks");
  log.provenance.nccl_version = "2.27.7";
  EXPECT_EQ(diff_results(predicted, log).inputs[0].b, "2.27.7");
}

TEST(Decisions, ManyRowsWithoutACounterpartAreFoundAtOnce) {
  RunResult a;
  RunResult b;
  for (int i = 1; i <= 50'000; ++i) {
    a.rows.push_back(row(2LL * i, "gdr", "Ring"));
    b.rows.push_back(row(2LL * i + 1, "gdr", "Ring"));
  }
  const ResultDiff diff = diff_results(a, b);
  EXPECT_EQ(diff.only_a.size(), 50'000U);
  EXPECT_EQ(diff.only_b.size(), 50'000U);
}

}  // namespace
}  // namespace weft::test::report_decisions
