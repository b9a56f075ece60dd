#include "sim/result/nccl_tests.hpp"

#include <array>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/base/random.hpp"
#include "tests/seeds.hpp"

namespace weft::test::result_nccl_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const StatedColumns kNvlink{{"transport", "nvlink"}};

// Made from the program's own format strings; the values are invented.
constexpr const char* kText =
    "# nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=23007\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 1 graph: 20 unalign: "
    "0\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid 225798 on      node0 device  0 [0000:18:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid 225799 on      node1 device  0 [0000:18:00] NVIDIA H100 80GB HBM3\n"
    "#\n"
    "#                                out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     "
    "time "
    "  algbw   busbw  #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             "
    "(us) "
    " (GB/s)  (GB/s)\n"
    "           0             0     float     sum      -1     3.10    0.00    0.00       0     "
    "3.10 "
    "   0.00    0.00       0\n"
    "node0:225798:225798 [0] NCCL INFO comm 0x55 rank 0 nranks 2\n"
    "  1073741824     268435456     float     sum      -1  22369.6   48.00   48.00       0  "
    "22350.1 "
    "  48.04   48.04       0\n"
    "  8589934592    2147483648     float     sum      -1   178956   48.00   48.00    N/A   178800 "
    "  48.04   48.04    N/A\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 48.02\n";

constexpr const char* kJson =
    R"({"version":3,"env":["SECRET=x"],"config":{"graph":0,"devices":[)"
    R"({"rank":0,"group":0,"hostname":"node0"},{"rank":1,"group":0,"hostname":"node0"}]},)"
    R"("results":[{"size":0,"experiment_name":"all_gather_perf","out_of_place":{"time":1.0}},)"
    R"({"size":4096,"experiment_name":"all_gather_perf","out_of_place":{"time":12.5}}]})";

std::string refusal(const std::string& text, const StatedColumns& stated = kNvlink) {
  try {
    parse_measured(text, "log", stated);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(NcclTests, PrintsRowsThatAreRead) {
  const MeasuredTable table = parse_measured(
      kText, "log", {{"transport", "net"}, {"memory_path", "gdr"}, {"algo", "Ring"}});
  ASSERT_EQ(table.rows.size(), 2U) << "0 bytes is no size";
  const MeasuredRow& row = table.rows[0];
  EXPECT_EQ(row.line, 14);
  EXPECT_EQ(row.op, "allreduce");
  EXPECT_EQ(row.ranks, 2);
  EXPECT_EQ(row.hosts, 2);
  EXPECT_EQ(row.bytes, 1073741824);
  EXPECT_EQ(row.us, 22369.6);
  EXPECT_NEAR(row.busbw_gb_per_s, 48, 0.01);
  EXPECT_EQ(row.launch, "graph");
  EXPECT_EQ(row.transport + row.memory_path + row.algo + row.proto, "netgdrRingauto");
  EXPECT_EQ(table.rows[1].us, 178956);
}

// dstack shows comments without their '#'; a page has the log in a block, or quotes it.
TEST(NcclTests, ReadsRowsHoweverTheyAreShown) {
  const std::string text = kText;
  std::string bare;
  std::string indented;
  std::string quoted;
  for (std::size_t at = 0; at < text.size();) {
    const std::string line = text.substr(at, text.find('\n', at) + 1 - at);
    at += line.size();
    bare += line.substr(line.starts_with("# ") ? 2 : line.starts_with('#') ? 1 : 0);
    indented += "    " + line;
    quoted += "> " + line;
  }
  EXPECT_EQ(parse_measured(bare + bare, "log", kNvlink).rows.at(3).ranks, 2) << "of its own run";
  EXPECT_EQ(parse_measured("Rank 0 started\n" + text, "log", kNvlink).rows.size(), 2U);
  for (const std::string& shown : {bare, indented, quoted}) {
    const MeasuredTable table = parse_measured(shown, "log", kNvlink);
    ASSERT_EQ(table.rows.size(), 2U) << shown;
    EXPECT_EQ(table.rows[0].op, "allreduce");
    EXPECT_EQ(table.rows[0].hosts, 2);
    EXPECT_EQ(table.rows[1].us, 178956);
  }
}

// As nccl-tests of 2020 prints it.
TEST(NcclTests, AllToAllMayLeaveRedopBlank) {
  std::string text = "# Using devices\n";
  for (const char rank : std::string("01234567")) {
    text += std::string("#   Rank  ") + rank + " Pid 1 on localhost device  0 [0x00] A100\n";
  }
  text +=
      "#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error\n"
      "  1048576  32768  float  87.42  11.99  10.50  N/A  88.90  11.79  10.32  N/A\n"
      "  67108864  2097152  float  396.8  169.13  147.99  N/A  387.0  173.41  151.73  N/A\n";
  const MeasuredTable table =
      parse_measured(text, "log", {{"transport", "nvlink"}, {"op", "alltoall"}});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].us, 87.42);
  EXPECT_EQ(table.rows[1].us, 396.8);
}

TEST(NcclTests, RowsWithoutTheirHeadAreNoTable) {
  EXPECT_THAT(refusal("  1048576  32768  float  sum  -1  87.42  11.99  10.50  N/A\n"),
              HasSubstr("log: is neither a table"));
}

// What NCCL logs while the operation runs stands in the row whose beginning is printed already.
TEST(NcclTests, ReadsRowsThatNcclsLogCuts) {
  const std::string begin = "  1073741824     268435456     float     sum      -1";
  const std::string cut = changed(
      kText, begin,
      begin +
          "node0:5:6 [0] NCCL INFO Connected NVLS tree\n"
          "node0:5:6 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n");
  const MeasuredTable table = parse_measured(cut, "log", kNvlink);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].bytes, 1073741824);
  EXPECT_EQ(table.rows[0].us, 22369.6);
  EXPECT_EQ(table.rows[0].line, 14);
  EXPECT_EQ(table.rows[1].us, 178956);
  // Between out of place and in place too.
  const std::string twice = changed(cut, "22369.6   48.00   48.00       0  ",
                                    "22369.6   48.00   48.00       0node0:5:6 [0] NCCL INFO x\n"
                                    "node0:5:6 [0] NCCL INFO y\n  ");
  const MeasuredTable both = parse_measured(twice, "log", kNvlink);
  ASSERT_EQ(both.rows.size(), 2U);
  EXPECT_EQ(both.rows[0].us, 22369.6);
  const std::string late = changed(kText, "22369.6   48.00   48.00       0  ",
                                   "22369.6   48.00   48.00       0node0:5:6 [0] NCCL INFO x\n  ");
  EXPECT_EQ(parse_measured(late, "log", kNvlink).rows.at(0).us, 22369.6);
}

TEST(NcclTests, WrongValuesAreSaid) {
  EXPECT_TRUE(failures_of_wrong("log", parse_measured(kText, "log", kNvlink).rows).empty());
  const std::string in_place = changed(kText, "48.04   48.04       0", "48.04   48.04      12");
  const MeasuredTable table = parse_measured(in_place, "log", kNvlink);
  EXPECT_EQ(table.rows[0].wrong, 12);
  EXPECT_EQ(table.rows[1].wrong, 0) << "N/A: nothing was checked";
  EXPECT_EQ(failures_of_wrong("log", table.rows),
            std::vector<std::string>{"log:14: 12 wrong values (#wrong), 1 of 2 rows have some: "
                                     "results are corrupt, and their times not to be trusted"});
  const std::string json = changed(kJson, R"("time":12.5)", R"("time":12.5,"nwrong":3.0)");
  EXPECT_EQ(parse_measured(json, "log", kNvlink).rows[0].wrong, 3);
  EXPECT_EQ(parse_measured(changed(json, "3.0", "null"), "log", kNvlink).rows[0].wrong, 0);
}

// Each rank prints its own, behind the beginning of a row, too.
TEST(NcclTests, AnErrorByWhichItEndedIsAFailure) {
  const std::string text = kText;
  const std::string error = "node1: Test NCCL failure common.cu:303 'unhandled system error / '";
  const std::string way_out = "\n .. node1 pid 41: Test failure common.cu:401\n";
  const std::string before = text.substr(0, text.find("  8589934592"));
  const std::string said = "log:15: nccl-tests ended by an error: ";
  for (const std::string row : {"", "  8589934592    2147483648     float     sum      -1"}) {
    const MeasuredTable table = parse_measured(before + row + error + way_out, "log", kNvlink);
    EXPECT_EQ(table.rows.size(), 1U);
    ASSERT_EQ(table.failures.size(), 1U);
    EXPECT_THAT(table.failures[0], ::testing::StartsWith(said));
    EXPECT_THAT(table.failures[0], ::testing::EndsWith(error));
    EXPECT_EQ(table.notes, table.failures);
  }
  EXPECT_EQ(parse_measured(before + "n: Test timeout (9s) common.cu:7\n", "log", kNvlink).failures,
            std::vector<std::string>{said + "n: Test timeout (9s) common.cu:7"});
  EXPECT_EQ(parse_measured(before + error + way_out + kText, "log", kNvlink).failures.size(), 1U)
      << "of the first run";
  EXPECT_THAT(refusal(text.substr(0, text.find("  1073741824")) + error),
              HasSubstr("log: has no rows; log:14: nccl-tests ended by an error: " + error));
  EXPECT_TRUE(parse_measured(kText, "log", kNvlink).failures.empty());
}

TEST(NcclTests, ValuesOutOfBoundsAreAFailure) {
  const std::string text = changed(kText, "values : 0 OK", "values : 10 FAILED");
  EXPECT_EQ(parse_measured(text, "log", kNvlink).failures,
            std::vector<std::string>{"log:16: 10 values out of bounds: results are corrupt, and "
                                     "their times not to be trusted"});
}

TEST(NcclTests, OfJsonErrorsAndValuesOutOfBoundsAreFailures) {
  const std::string json = kJson;
  const auto failures = [&](const std::string& more) {
    return parse_measured(json.substr(0, json.size() - 1) + more + "}", "log", kNvlink).failures;
  };
  EXPECT_THAT(failures(R"(,"errors":[],"out_of_bounds":{"count":0,"okay":"true"})"), ElementsAre());
  EXPECT_THAT(failures(R"(,"errors":null,"out_of_bounds":null)"), ElementsAre());
  EXPECT_THAT(failures(R"(,"errors":["Test NCCL failure","b"])"),
              ElementsAre("log: nccl-tests ended by an error: Test NCCL failure"));
  for (const std::string okay : {"false", "\"false\""}) {
    EXPECT_THAT(failures(R"(,"out_of_bounds":{"count":3,"okay":)" + okay + "}"),
                ElementsAre(HasSubstr("log: 3 values out of bounds")));
  }
}

TEST(NcclTests, HowItWasLaunchedIsAsTheHeaderOrTheCommandSays) {
  const auto launch = [](const std::string& text) {
    return parse_measured(text, "log", kNvlink).rows.back().launch;
  };
  const std::string text = changed(kText, "graph: 20 ", "");
  const auto by = [&](const std::string& options) {
    return launch("$ mpirun -np 2 ./all_reduce_perf -b 8 " + options + "\n" + text);
  };
  EXPECT_EQ(launch(text), "");
  for (const char* const options : {"-z 1", "-z1 -w 5", "--blocking 1", "--blocking=1\""}) {
    EXPECT_EQ(by(options), "single") << options;
  }
  EXPECT_EQ(by("-z 0"), "");
  EXPECT_EQ(by("-z"), "");
  EXPECT_EQ(by("-G 10"), "graph");
  EXPECT_EQ(by("--cudagraph=10"), "graph");
  EXPECT_EQ(launch("$ mpirun -z 1 ./all_reduce_perf -b 8\n" + text), "") << "of mpirun";
  EXPECT_EQ(launch("$ ./all_reduce_perf -G 9\n" + changed(kText, "graph: 20", "graph: 0")), "");
  EXPECT_EQ(launch("$ ./all_reduce_perf -z 1\n" + text + text), "") << "of the first run";
  EXPECT_EQ(launch(changed(kJson, "\"graph\":0", R"("graph":0,"blocking_collectives":"true")")),
            "single");
  EXPECT_EQ(launch(changed(kJson, "\"graph\":0", R"("graph":0,"blocking_collectives":"false")")),
            "");
}

TEST(NcclTests, SeveralOperationsALaunchAreRunUnlikeWeftDoes) {
  const auto unlike = [](const std::string& text) {
    return parse_measured(text, "log", kNvlink).rows.at(0).unlike;
  };
  const std::string why = "16 operations a launch (nccl-tests -m): weft launches each by itself";
  EXPECT_EQ(unlike(kText), "");
  EXPECT_EQ(unlike(changed(kText, "graph: 20", "iters: 20 agg iters: 16 graph: 0")), why);
  EXPECT_EQ(unlike(changed(kText, "graph: 20", "iters: 20 agg iters: 1 graph: 0")), "");
  EXPECT_EQ(unlike(std::string("$ ./all_reduce_perf -m 16\n") + kText), why);
  EXPECT_EQ(unlike(changed(kJson, "\"graph\":0", "\"aggregated_iterations\":16")), why);
}

TEST(NcclTests, RanksThatAreNotSpreadEvenlyAreRunUnlikeWeftDoes) {
  const auto of_hosts = [](const std::string& letters) {
    std::string ranks;
    int rank = 0;
    for (const char host : letters) {
      ranks += "#  Rank  " + std::to_string(rank++) + " Group  0 Pid 41 on " +
               std::string(1, host) + " device  0 [0x1b] H100\n";
    }
    const std::string text = kText;
    const std::size_t begin = text.find("#  Rank  0");
    const std::size_t end = text.find("#\n#    ");
    return parse_measured(text.substr(0, begin) + ranks + text.substr(end), "log", kNvlink).rows[0];
  };
  EXPECT_EQ(of_hosts("aabb").unlike, "");
  EXPECT_EQ(of_hosts("baaa").unlike, "ranks are not spread evenly over hosts: 3 + 1");
  EXPECT_EQ(of_hosts("aab").unlike, "ranks are not spread evenly over hosts: 2 + 1");
  EXPECT_EQ(of_hosts("aab").ranks, 3);
  EXPECT_EQ(of_hosts("abcdefghiji").unlike, "ranks are not spread evenly over hosts: 1 to 2 on 10");
  const std::string json = changed(kJson, R"({"rank":1,)",
                                   R"({"rank":2,"group":0,"hostname":"b"},)"
                                   R"({"rank":1,)");
  EXPECT_EQ(parse_measured(json, "log", kNvlink).rows.at(0).unlike,
            "ranks are not spread evenly over hosts: 2 + 1");
}

TEST(NcclTests, TheReleaseIsThatOfTheLibrary) {
  const auto release = [](const std::string& text) {
    return parse_measured(text, "log", kNvlink).rows.back().nccl;
  };
  EXPECT_EQ(release(kText), "2.30.7");
  EXPECT_EQ(release(changed(kText, "nccl-library=23007", "nccl-library=22105")), "2.21.5");
  EXPECT_EQ(release(changed(kText, "nccl-library=23007", "nccl-library=2804")), "2.8.4");
  EXPECT_EQ(release(changed(kText, "nccl-library=23007", "nccl-library=?")), "");
  EXPECT_EQ(release(changed(kText, "# nccl-tests version", "# tests")), "");
  EXPECT_EQ(release(kText + changed(kText, "# nccl-tests version", "# tests")), "") << "its own";
  EXPECT_EQ(release(changed(kJson, "\"version\":3", R"("version":3,"nccl_version":22809)")),
            "2.28.9");
  EXPECT_EQ(release(kJson), "");
}

TEST(NcclTests, WhatCollectorsPutBeforeLinesIsNotRead) {
  for (const std::string prefix :
       {"[1,0]<stdout>:", "[pod/launcher-x7f2p/main] ", " 0: ", "[0] ",
        "  | 2024-12-04T07:19:43.480Z | ", "10.3.35.83: ", "launcher-x7f2p main ",
        "2025-11-03T10:15:32.123456789Z ", "\x1b[0;32m"}) {
    std::string text = "+ srun all_reduce_perf\n" + prefix;
    for (const char* c = kText; *c != '\0'; ++c) {
      text += *c;
      if (*c == '\n') text += prefix;
    }
    const MeasuredTable table = parse_measured(text, "log", kNvlink);
    ASSERT_EQ(table.rows.size(), 2U) << prefix;
    EXPECT_EQ(table.rows[0].line, 15) << prefix;
    EXPECT_EQ(table.rows[0].us, 22369.6) << prefix;
    EXPECT_EQ(table.rows[0].hosts, 2) << prefix;
  }
}

/// What a release before "Collective test starting" and the columns redop and root of all tests
/// prints, on `ranks` ranks: `columns` as its header has them, `cells` as the row, then `busbw` of
/// 100 GB/s algbw.
std::string old_text(int ranks, const std::string& columns, const std::string& cells,
                     double busbw) {
  std::string out = "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) validation: 1\n";
  for (int i = 0; i < ranks; ++i) {
    out += "#   Rank  " + std::to_string(i) + " Pid  41 on node" + std::to_string(i / 8) +
           " device  0 [0x1b] NVIDIA H100\n";
  }
  const std::string figures = " 100.00 " + std::to_string(busbw) + " 5e-07";
  return out + "#  size count type " + columns +
         " time algbw busbw error time algbw busbw error\n" + "  1024 256 float " + cells +
         " 25.05" + figures + " 25.04" + figures + "\n" + "  4096 256 float " + cells +
         " 25.04 0.01 0.01 N/A 25.04 0.01 0.01 N/A\n";
}

TEST(NcclTests, OfOldReleasesTheOperationIsThatWhichAloneHasSuchColumns) {
  const auto op_of = [](const std::string& text) {
    try {
      return parse_measured(text, "log", kNvlink).rows.at(0).op;
    } catch (const InputError& e) {
      EXPECT_THAT(e.what(), HasSubstr("op: is not stated"));
      return std::string{};
    }
  };
  EXPECT_EQ(op_of(old_text(16, "redop", "sum", 187.5)), "allreduce");
  EXPECT_EQ(op_of(old_text(16, "redop root", "sum -1", 187.5)), "allreduce");
  EXPECT_EQ(op_of(old_text(16, "redop root", "sum -1", 93.75)), "reducescatter");
  EXPECT_EQ(op_of(old_text(16, "redop root", "sum -1", 100)), "sendrecv");
  EXPECT_EQ(op_of(old_text(16, "redop root", "sum 0", 100)), "reduce");
  EXPECT_EQ(op_of(old_text(16, "redop root", "none 0", 100)), "broadcast");
  EXPECT_EQ(op_of(old_text(16, "root", "0", 100)), "broadcast");
  EXPECT_EQ(op_of(old_text(16, "redop root", "none -1", 93.75)), "") << "gathers or all-to-all";
  EXPECT_EQ(op_of(old_text(16, "redop root", "none 0", 93.75)), "") << "gather or scatter";
  EXPECT_EQ(op_of(old_text(16, "redop", "sum", 93.75)), "") << "all-to-all had a redop";
  EXPECT_EQ(op_of(old_text(16, "", "", 93.75)), "");
  EXPECT_EQ(op_of(old_text(2, "redop root", "sum -1", 100)), "") << "on 2 ranks both are 1";
  EXPECT_EQ(op_of(old_text(16, "redop root", "sum -1", 42)), "");
  const MeasuredTable table = parse_measured(old_text(16, "redop", "sum", 187.5), "log", kNvlink);
  EXPECT_THAT(table.notes, ElementsAre("log:18: op allreduce, by busbw / algbw on 16 ranks, redop "
                                       "and root; --as op=OP says another"));
  EXPECT_EQ(table.rows[0].us, 25.05);
  EXPECT_EQ(table.rows[0].hosts, 2);
  EXPECT_EQ(table.rows[0].ranks, 16);
}

TEST(NcclTests, OfOldReleasesTheOperationIsThatOfTheCommandAbove) {
  const std::string text = old_text(16, "redop root", "none -1", 93.75);
  const MeasuredTable table = parse_measured(
      "+ mpirun -np 16 '/opt/nccl-tests/build/alltoall_perf_mpi' -b 8\n" + text, "log", kNvlink);
  EXPECT_EQ(table.rows.at(0).op, "alltoall");
  EXPECT_THAT(table.notes,
              ElementsAre("log:19: op alltoall, by '/opt/nccl-tests/build/alltoall_perf_mpi' "
                          "above; --as op=OP says another"));
  EXPECT_THAT(refusal("all_gather_perf alltoall_perf\n" + text), HasSubstr("op: is not stated"))
      << "either";
  EXPECT_EQ(refusal("$ ./gather_perf\n" + text),
            "log:19: './gather_perf' is no test that weft predicts; known: all_gather_perf, "
            "all_reduce_perf, alltoall_perf, broadcast_perf, reduce_perf, reduce_scatter_perf, "
            "sendrecv_perf");
  EXPECT_EQ(
      parse_measured(text, "log", {{"transport", "nvlink"}, {"op", "allgather"}}).notes.size(), 0U);
}

TEST(NcclTests, ProgramsBuiltForMpiAreThoseTests) {
  EXPECT_EQ(
      parse_measured(changed(kText, "all_reduce_perf", "reduce_scatter_perf_mpi"), "log", kNvlink)
          .rows.at(0)
          .op,
      "reducescatter");
}

TEST(NcclTests, ALastRowThatIsCutOffIsLeftOutAndNoted) {
  const std::string text = kText;
  const std::string cut = text.substr(0, text.find("   178956") + 6);
  const MeasuredTable table = parse_measured(cut, "log", kNvlink);
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_THAT(table.notes,
              ElementsAre("log:15: the last row is cut off behind 6 of 13 columns: left out"));
  EXPECT_EQ(parse_measured(cut + "\nsrun: error: node0: task 0: Killed\n", "log", kNvlink).notes,
            table.notes);
  EXPECT_EQ(refusal(cut.substr(0, cut.find("  1073741824") + 20)),
            "log: has no rows; log:14: the last row is cut off behind 2 of 13 columns: left out");
}

TEST(NcclTests, RunsOfOneFileAreToldApart) {
  const MeasuredTable table = parse_measured(std::string(kText) + kText, "log", kNvlink);
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_THAT(table.runs, ElementsAre(10, 27));
  EXPECT_EQ(table.run_place(table.rows[1]).text(), "log:10");
  EXPECT_EQ(table.run_place(table.rows[2]).text(), "log:27");
}

// Several processes of nccl-tests without MPI, each a run of rank 0, at once.
TEST(NcclTests, RunsThatArePrintedIntoOneAnotherAreRefused) {
  const std::string rank = "#  Rank  0 Pid 41 on node1 device  0 [0x18] NVIDIA H100\n";
  const std::string doubled = changed(kText, "#  Rank  1", rank + "#  Rank  1");
  EXPECT_EQ(refusal(doubled),
            "log:7: a second rank 0 in one list of devices: several runs, printed into one "
            "another (is nccl-tests built with MPI=1?); give each run in a file of its own");
  const std::string head = "#  size count type redop root time algbw busbw #wrong\n";
  const std::string row = "  1024 256 float sum -1 25.05 0.04 0.00 0\n";
  const std::string begun = "# Using devices\n" + rank;
  const StatedColumns stated{{"transport", "nvlink"}, {"op", "allreduce"}};
  EXPECT_EQ(refusal(begun + begun + head + head + row + row).substr(0, 26),
            "log:6: a second table of r");
  EXPECT_EQ(refusal(begun + begun + head + row + row, stated), "") << "one that failed at once";
  EXPECT_EQ(refusal(begun + begun + head + begun + head + row, stated), "") << "and one more";
  EXPECT_EQ(refusal(begun + begun + head + row + head + row, stated), "");
}

TEST(NcclTests, ColumnsAreFoundByTheirHeader) {
  std::string text = changed(kText, "root     time", "root  cputime");
  EXPECT_EQ(parse_measured(text, "log", {{"transport", "shm"}, {"memory_path", ""}}).rows[0].us,
            22369.6);
}

TEST(NcclTests, WritesJsonThatIsRead) {
  const MeasuredTable table = parse_measured(kJson, "log", kNvlink);
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].line, 2);
  EXPECT_EQ(table.rows[0].op, "allgather");
  EXPECT_EQ(table.rows[0].ranks, 2);
  EXPECT_EQ(table.rows[0].hosts, 1);
  EXPECT_EQ(table.rows[0].us, 12.5);
  EXPECT_EQ(table.rows[0].launch, "");
}

TEST(NcclTests, WhatIsMissingIsToBeStatedAndNothingTwice) {
  EXPECT_EQ(refusal(kText, {}),
            "log:14: transport: is not stated; --as transport=VALUE says it: one of: nvlink, shm, "
            "net, copy");
  EXPECT_EQ(refusal(kText, {{"transport", "nvlink"}, {"ranks", "8"}}),
            "log:14: ranks: 2 in the file, 8 by --as");
  EXPECT_EQ(refusal(kText, {{"transport", "nvlink"}, {"ranks", "2"}, {"op", "allreduce"}}), "")
      << "the same is no conflict";
  EXPECT_THAT(refusal(changed(kText, "Collective test starting", "Collective"), kNvlink),
              HasSubstr("log:14: op: is not stated; --as op=VALUE says it: one of: allreduce, "
                        "allgather, reducescatter, broadcast, reduce, alltoall, sendrecv, "));
  EXPECT_EQ(parse_stated("transport=nvlink,algo=Ring"),
            (StatedColumns{{"algo", "Ring"}, {"transport", "nvlink"}}));
  EXPECT_THROW(parse_stated("transport"), InputError);
  EXPECT_THROW(parse_stated("transport=wire"), InputError);
  EXPECT_THROW(parse_stated("colour=red"), InputError);
  EXPECT_THROW(parse_stated("algo=Ring,algo=Ring"), InputError);
}

TEST(NcclTests, ACsvTakesStatedColumnsToo) {
  EXPECT_EQ(refusal("transport,ranks,op,bytes,us\nnvlink,2,reduce,8,5\n"), "");
  const MeasuredTable table = parse_measured("ranks,op,bytes,us\n2,reduce,8,5\n", "m.csv", kNvlink);
  EXPECT_EQ(table.rows.at(0).transport, "nvlink");
  EXPECT_EQ(refusal("transport,ranks,op,bytes,us\nshm,2,reduce,8,5\n"),
            "log:2:1: transport: shm in the file, nvlink by --as");
}

TEST(NcclTests, RefusesWhatIsDamaged) {
  EXPECT_EQ(refusal(changed(kText, "all_reduce_perf", "hypercube_perf")),
            "log:2: 'hypercube_perf' is no test that weft predicts; known: all_gather_perf, "
            "all_reduce_perf, alltoall_perf, broadcast_perf, reduce_perf, reduce_scatter_perf, "
            "sendrecv_perf");
  EXPECT_THAT(refusal(changed(kText, "Rank  1 Group  0", "Rank  1 Group  1")),
              HasSubstr("log:7: several groups of ranks"));
  EXPECT_THAT(refusal(changed(kText, "  22369.6", "      N/A")), HasSubstr("log:14: us: 'N/A'"));
  EXPECT_THAT(refusal(changed(kText, "  48.04   48.04       0\n", "\n")),
              HasSubstr("log:14: 10 columns, not 13"));
  EXPECT_THAT(refusal(changed(kJson, "12.5", "\"nan\"")), HasSubstr("log: results, number 2: "));
  EXPECT_THAT(refusal(changed(kJson, "\"size\":4096", "\"size\":-1")), HasSubstr("bytes: '-1'"));
  EXPECT_THAT(refusal("{\"nvbandwidth\": {}}"), HasSubstr("log: "));
  EXPECT_THAT(refusal(std::string(kJson).substr(0, 120)), HasSubstr("log:1:"));
}

TEST(NcclTests, HasNoMoreRowsThanATable) {
  const std::string text = kText;
  const std::size_t at = text.find("  1073741824");
  const std::string row = text.substr(at, text.find('\n', text.find("48.04", at)) + 1 - at);
  std::string many = text.substr(0, at);
  for (std::size_t i = 0; i <= kMostMeasuredRows; ++i) many += row;
  EXPECT_THAT(refusal(many), HasSubstr("more than 100000 rows; split the log"));
}

TEST(NcclTests, DamageIsRefusedOrRead) {
  constexpr std::string_view kBytes = "#\n {}[]\",:0-9e.\tN/A\xff";
  for (std::uint64_t seed = 1; seed <= seeds(3000); ++seed) {
    std::mt19937_64 dice = random_stream(seed, "damage");
    const std::array<std::string, 5> texts{
        kText, kJson, old_text(3, "redop", "sum", 133.33), kText + old_text(3, "root", "0", 100),
        "$ mpirun -np 2 --map-by ppr:1:node -x NCCL_ALGO=Tree \\\n ./all_reduce_perf -g 1\n" +
            std::string(kText).substr(std::string(kText).find("#       size"))};
    std::string text = texts.at(seed % texts.size());
    for (std::uint64_t i = 0; i <= uniform_below(dice, 4); ++i) {
      const std::size_t at = uniform_below(dice, text.size());
      text.replace(at, uniform_below(dice, 30),
                   std::string(uniform_below(dice, 4), kBytes[uniform_below(dice, kBytes.size())]));
    }
    try {
      for (const MeasuredRow& row : parse_measured(text, "log", kNvlink).rows) {
        EXPECT_GT(row.bytes, 0);
        EXPECT_GT(row.us, 0);
        EXPECT_TRUE(row.ranks % row.hosts == 0 || !row.unlike.empty());
      }
    } catch (const InputError& e) {
      EXPECT_THAT(e.what(), ::testing::StartsWith("log")) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace weft::test::result_nccl_tests
