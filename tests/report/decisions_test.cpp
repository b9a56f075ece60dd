#include "sim/report/decisions.hpp"

#include <gtest/gtest.h>

#include "sim/report/diff.hpp"

namespace weft::test::report_decisions {
namespace {

DecisionKey choice(std::int64_t bytes, const std::string& of = "allreduce") {
  return {std::string(kChoice), of, bytes};
}

TEST(Decisions, SizesThatFollowOneAnotherAndChangeAlikeAreOneRange) {
  const Decision tree{"Tree LL128", 16};
  const Decision ring{"Ring Simple", 16};
  Decisions a;
  Decisions b;
  for (int i = 0; i < 6; ++i) a[choice(1024LL << (2 * i))] = tree;
  b = a;
  for (const int i : {1, 2, 4}) b[choice(1024LL << (2 * i))] = ring;
  const DecisionsDiff diff = diff_decisions(a, b);
  EXPECT_EQ(decisions_text(diff, ""),
            "choice allreduce, 4 KiB to 16 KiB: Tree LL128, 16 channels -> Ring Simple, 16 "
            "channels\n"
            "choice allreduce, 256 KiB: Tree LL128, 16 channels -> Ring Simple, 16 channels\n");
  EXPECT_EQ(decisions_json(diff).items().size(), 3U);
  EXPECT_EQ(decisions_json(diff).items()[2].at("bytes").as_integer(), 256 * 1024);
}

TEST(Decisions, ARangeEndsWithItsOperation) {
  Decisions a{{choice(1024, "allgather"), {"Ring LL", 1}},
              {choice(1024, "allreduce"), {"Ring LL", 1}}};
  Decisions b = a;
  for (auto& [key, decision] : b) decision.text = "Tree LL";
  EXPECT_EQ(decisions_text(diff_decisions(a, b), "# "),
            "# choice allgather, 1 KiB: Ring LL, 1 channel -> Tree LL, 1 channel\n"
            "# choice allreduce, 1 KiB: Ring LL, 1 channel -> Tree LL, 1 channel\n");
}

TEST(Decisions, ChannelsCountWhereBothSidesSayThem) {
  const Decisions old{{choice(1024), {"Ring LL", 0}}};
  const Decisions two{{choice(1024), {"Ring LL", 2}}};
  const Decisions four{{choice(1024), {"Ring LL", 4}}};
  EXPECT_EQ(decisions_text(diff_decisions(old, two), ""), "decided alike: choice (1)\n");
  EXPECT_EQ(decisions_text(diff_decisions(two, four), ""),
            "choice allreduce, 1 KiB: Ring LL, 2 channels -> Ring LL, 4 channels\n");
}

TEST(Decisions, WhatChangesAlikeIsToldOnceWithItsNumber) {
  Decisions a;
  Decisions b;
  for (const char* gpu : {"0", "1", "2", "3"}) {
    a[{"GPUDirect RDMA", gpu, 0}] = {"on", 0};
    b[{"GPUDirect RDMA", gpu, 0}] = {*gpu == '3' ? "on" : "off", 0};
  }
  b[{"GPUDirect RDMA", "4", 0}] = {"on", 0};
  EXPECT_EQ(decisions_text(diff_decisions(a, b), ""),
            "GPUDirect RDMA 0 and 2 more of 5: on -> off\nGPUDirect RDMA 4: (none) -> on\n");
}

TEST(Decisions, KindsWithoutACommonNameAreNotCompared) {
  const Decisions a{{{"ring", "00", 0}, {"0 1", 0}},
                    {{"GPUDirect RDMA", "gpu0-net0", 0}, {"on", 0}}};
  const Decisions b{{{"ring", "00", 0}, {"0 1", 0}},
                    {{"GPUDirect RDMA", "GPU/18000", 0}, {"off", 0}}};
  EXPECT_EQ(decisions_text(diff_decisions(a, b), ""),
            "decided alike: ring (1)\nnot told by both, or by other names: GPUDirect RDMA\n");
  EXPECT_EQ(decisions_text(diff_decisions(a, {}), ""),
            "not told by both, or by other names: GPUDirect RDMA, ring\n");
  EXPECT_EQ(decisions_text({}, ""), "");
}

TEST(Decisions, OfOneKindOnlyTheFirstLinesAreShown) {
  Decisions a;
  Decisions b;
  for (char c = 'a'; c <= 'i'; ++c) {
    a[{"ring", std::string(1, c), 0}] = {"0", 0};
    b[{"ring", std::string(1, c), 0}] = {std::string(1, c), 0};
  }
  const std::string text = decisions_text(diff_decisions(a, b), "");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7);
  EXPECT_NE(text.find("ring: 3 more changes, in --json\n"), std::string::npos) << text;
}

TEST(Decisions, ARowsPathIsNamedWhereItsChoiceIsAnother) {
  RunResult result;
  const auto add = [&result](std::int64_t bytes, const std::string& path, const std::string& algo) {
    ResultRow row;
    row.op = "allreduce";
    row.bytes = bytes;
    row.memory_path = path;
    row.algo = algo;
    row.proto = "LL";
    result.rows.push_back(row);
  };
  add(8, "gdr", "Ring");
  add(8, "host-staged", "Ring");
  add(64, "gdr", "Ring");
  add(64, "host-staged", "Tree");
  add(512, "gdr", "");  // a send has no algorithm
  const Decisions decisions = decisions_of(result);
  ASSERT_EQ(decisions.size(), 3U);
  EXPECT_TRUE(decisions.contains(choice(8)));
  EXPECT_EQ(decisions.at(choice(64, "allreduce over gdr")).text, "Ring LL");
  EXPECT_EQ(decisions.at(choice(64, "allreduce over host-staged")).text, "Tree LL");
}

TEST(Decisions, AResultAndALogOfItDoNotDifferInParameters) {
  RunResult predicted;
  predicted.provenance.weft_version = "0.1";
  predicted.provenance.params = {{"wire.rate", "", "50 GB/s", "assumed", ""}};
  EXPECT_TRUE(diff_results(predicted, {}).inputs.empty());
}

}  // namespace
}  // namespace weft::test::report_decisions
