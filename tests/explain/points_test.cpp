// Which sizes of two runs are compared.
#include "models/explain/points.hpp"

#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::explain_points {
namespace {

constexpr const char* kHead = "transport,memory_path,hosts,ranks,op,bytes,us\n";

MeasuredTable table(const std::string& rows, const std::string& file = "t.csv") {
  return parse_measured(kHead + rows, file);
}

std::string refusal(const MeasuredTable& slow, const MeasuredTable* healthy = nullptr) {
  try {
    measurement_of(slow, healthy, 8);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Measurement, WhatWasRunUnlikeWeftDoesIsRefused) {
  MeasuredTable slow = table("net,gdr,2,16,allreduce,1024,10\n");
  slow.rows[0].unlike = "run otherwise";
  EXPECT_EQ(refusal(slow), "t.csv:2: run otherwise");
}

TEST(Measurement, AHealthyLogMayBeOfAnotherRelease) {
  MeasuredTable slow = table("net,gdr,2,16,allreduce,1024,10\nnet,gdr,2,16,allreduce,2048,10\n");
  MeasuredTable healthy = slow;
  slow.is_log = healthy.is_log = true;
  for (MeasuredRow& row : healthy.rows) row.nccl = "2.21.5";
  EXPECT_EQ(refusal(slow, &healthy), "accepted");
  slow.rows[1].nccl = "2.21.5";
  EXPECT_NE(refusal(slow), "accepted") << "in one file";
}

TEST(Measurement, RunsOfOneFileAreNotAveraged) {
  const auto run = [](const std::string& us) {
    return "# Collective test starting: all_reduce_perf\n# Using devices\n"
           "#  Rank  0 Group  0 Pid 1 on a device  0 [0000:18:00] H100\n"
           "#  Rank  1 Group  0 Pid 2 on a device  1 [0000:19:00] H100\n"
           "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
           "1024 256 float sum -1 " +
           us +
           " 1 1 0 10 1 1 0\n"
           "1024 256 float sum -1 " +
           us + " 1 1 0 10 1 1 0\n";
  };
  EXPECT_EQ(refusal(parse_run(run("10"), "log", {})), "accepted") << "rounds of one run (-N)";
  EXPECT_EQ(refusal(parse_run(run("10") + run("30"), "log", {})),
            "log:13: allreduce of 1024 B again: one run begins at log:5 and another at log:12; "
            "explain takes one at a time, so split the file");
}

TEST(Measurement, TakesSizesThatBothHaveAndMeansOfThoseMeasuredAgain) {
  const MeasuredTable slow = table(
      "net,gdr,2,16,allreduce,1024,10\nnet,gdr,2,16,allreduce,1024,30\n"
      "net,gdr,2,16,allreduce,4096,50\nnet,gdr,2,16,allreduce,8192,60\n");
  const MeasuredTable healthy =
      table("net,gdr,2,16,allreduce,1024,5\nnet,gdr,2,16,allreduce,8192,7\n");
  const Measurement measured = measurement_of(slow, &healthy, 8);
  ASSERT_EQ(measured.points.size(), 2U);
  EXPECT_EQ(measured.points[0].slow_us, 20);
  EXPECT_EQ(measured.points[0].healthy_us, 5);
  EXPECT_EQ(measured.points[1].bytes, 8192);
  EXPECT_EQ(measured.hosts, 2);
  EXPECT_EQ(measured.points[0].path, "");
}

TEST(Measurement, SpreadsSizesOverTheirLogarithms) {
  std::string rows;
  for (std::int64_t bytes = 8; bytes <= (1LL << 33); bytes *= 2) {
    rows += "net,gdr,2,16,allreduce," + std::to_string(bytes) + ",9\n";
  }
  const Measurement measured = measurement_of(table(rows), nullptr, 7);
  ASSERT_EQ(measured.points.size(), 7U);
  EXPECT_EQ(measured.sizes, 31U);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(measured.points[i].bytes, std::int64_t{8} << (5 * i));
  }
}

TEST(Measurement, KeepsBothPathsApart) {
  const Measurement measured = measurement_of(
      table("net,gdr,2,16,allreduce,1024,10\nnet,host-staged,2,16,allreduce,1024,30\n"), nullptr,
      8);
  ASSERT_EQ(measured.points.size(), 2U);
  EXPECT_FALSE(measured.points[0].is_of(measured.points[1]));
}

TEST(Measurement, RefusesWhatCannotBeCompared) {
  EXPECT_EQ(refusal(table("net,gdr,2,16,allreduce,1024,10\nnet,gdr,2,8,allreduce,1024,10\n")),
            "t.csv:3: 8 GPUs on 2 hosts, and 16 on 2 in t.csv: one number of GPUs and hosts at a "
            "time");
  EXPECT_EQ(refusal(parse_measured(
                "transport,memory_path,hosts,ranks,op,bytes,us\nnet,gdr,2,2,write_bw,1024,10\n",
                "t.csv")),
            "t.csv:2: 'write_bw' is no collective: explain takes nccl-tests' runs");
  const MeasuredTable slow = table("net,gdr,2,16,allreduce,1024,10\n");
  const MeasuredTable healthy = table("net,gdr,2,16,allreduce,2048,10\n", "h.csv");
  EXPECT_EQ(refusal(slow, &healthy), "t.csv and h.csv have no operation and size in common");
  EXPECT_EQ(refusal(parse_measured("transport,memory_path,hosts,ranks,op,bytes,us,env\n"
                                   "net,gdr,2,16,allreduce,1024,10,NCCL_ALGO=Ring\n"
                                   "net,gdr,2,16,allreduce,2048,10,NCCL_ALGO=Tree\n",
                                   "t.csv")),
            "t.csv:3: another configuration than the first row of t.csv: rows may differ in op, "
            "memory_path and size only");
}

}  // namespace
}  // namespace weft::test::explain_points
