// What people paste of nccl-tests is cut or without its head: what a row is then of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/result/nccl_tests.hpp"

namespace weft::test::result_pasted {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const StatedColumns kNvlink{{"transport", "nvlink"}};

std::string refusal(const std::string& text, const StatedColumns& stated = kNvlink) {
  try {
    parse_measured(text, "log", stated);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

constexpr const char* kHead =
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) validation: 1\n"
    "# Using devices\n";
constexpr const char* kAllReduce = "# Collective test starting: all_reduce_perf\n";
constexpr const char* kTable =
    "#  size count type redop root time algbw busbw error time algbw busbw error\n"
    "  1024 256 float sum -1 25.05 100.00 100.00 5e-07 25.04 100.00 100.00 5e-07\n"
    "  4096 256 float sum -1 25.04 0.01 0.01 N/A 25.04 0.01 0.01 N/A\n";

/// A list of devices of such ranks, all on one host.
std::string list_of(std::initializer_list<int> numbers) {
  std::string out = kHead;
  for (const int number : numbers) {
    out += "#  Rank " + std::to_string(number) + " Group  0 Pid 41 on a device 0 [0x1] H100\n";
  }
  return out;
}

// Its head is cut off, or it has an ellipsis.
TEST(Pasted, AListWithoutSomeRanksTellsNoCount) {
  const auto of_ranks = [](std::initializer_list<int> numbers) {
    return kAllReduce + list_of(numbers) + kTable;
  };
  const std::string last = of_ranks({71});
  EXPECT_EQ(refusal(last),
            "log:5: the list of devices above is without rank 0 to 70, so it tells neither ranks "
            "nor hosts; --as ranks=N,hosts=N says them");
  EXPECT_THAT(refusal(of_ranks({15, 0, 1, 3})), HasSubstr("without rank 2, 4 to 14, so"));
  EXPECT_THAT(refusal(last, {{"transport", "nvlink"}, {"ranks", "72"}}), HasSubstr("rank 0 to 70"));
  EXPECT_THAT(refusal(of_ranks({0, 1}) + list_of({71}) + kTable), HasSubstr("rank 0 to 70"))
      << "no more ranks of the run before";
  EXPECT_EQ(refusal(of_ranks({2, 1, 0})), "");
  EXPECT_THAT(refusal(of_ranks({1, 3, 5, 7, 9, 11, 13, 15, 17, 19})),
              HasSubstr("0, 2, 4, 6, 8, 10, 12, 14 and more, so"));
  const MeasuredTable table = parse_measured(
      list_of({71}) + kTable, "log",
      {{"transport", "nvlink"}, {"ranks", "72"}, {"hosts", "2"}, {"op", "broadcast"}});
  EXPECT_EQ(table.rows.at(0).ranks, 72);
}

// Hydra's -prepend-rank.
TEST(Pasted, ARanksPrefixMayStandInARow) {
  std::string text;
  for (const char c : "\n" + list_of({0, 1}) + kAllReduce + kTable) {
    text += c;
    if (c == '\n') text += "[0] ";
  }
  for (const std::string cut : {"sum -1", "100.00 5e-07"}) {
    const std::string joined = cut + "[0]   ";
    text.replace(text.find(cut + " "), cut.size() + 1, joined);
  }
  const MeasuredTable table = parse_measured(text, "log", kNvlink);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].us, 25.05);
}

/// Two tables that do not say their operation: of 64 ranks the first is all-reduce, the second
/// not.
constexpr const char* kTwoTables =
    "all_reduce result\n"
    "#  size count type redop time algbw busbw error time algbw busbw error\n"
    "  268435456 67108864 float sum 122131 2.20 4.33 2e-06 122165 2.20 4.33 2e-06\n"
    "alltoall result\n"
    "#  size count type redop time algbw busbw error time algbw busbw error\n"
    "  268435456 1048576 float 52094 5.15 5.07 0e+00 519562 0.52 0.51 1e+00\n";

TEST(Pasted, ARowIsNotOfAnOperationThatItsBandwidthsContradict) {
  StatedColumns stated{{"transport", "net"}, {"memory_path", "gdr"}, {"ranks", "64"}};
  stated["op"] = "allreduce";
  EXPECT_EQ(refusal(kTwoTables, stated),
            "log:6: busbw 5.07 at algbw 5.15 is not that of allreduce on 64 ranks, but that of "
            "allgather, reducescatter, alltoall; --as op=OP,ranks=N says others of all rows: split "
            "the file where they differ");
  stated["op"] = "alltoall";
  EXPECT_THAT(refusal(kTwoTables, stated), HasSubstr("log:3: busbw 4.33 at algbw 2.2 is not that"));
  const std::string text = kTwoTables;
  stated["op"] = "allreduce";
  stated["ranks"] = "8";
  EXPECT_THAT(refusal(text.substr(0, text.find("alltoall")), stated),
              HasSubstr("on 8 ranks, nor that of any operation; --as"));
  EXPECT_EQ(refusal(kAllReduce + list_of({0, 1, 2}) + kTable), "") << "nccl-tests says both itself";
}

// One digit behind the point from 1000 GB/s on, none from 10000.
TEST(Pasted, LargeBandwidthsHaveFewerDigits) {
  const auto refused = [](const std::string& op, const std::string& ranks, const std::string& row) {
    return refusal(
        "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        "  17179869184 4294967296 float sum -1 9.9 " +
            row + " 0 9.9 " + row + " 0\n",
        {{"transport", "nvlink"}, {"ranks", ranks}, {"op", op}});
  };
  EXPECT_EQ(refused("allgather", "2", "1370.0 684.99"), "");
  EXPECT_EQ(refused("allreduce", "8", "635.92 1112.9"), "");
  EXPECT_EQ(refused("allreduce", "72", "6100.7 12032"), "");
  EXPECT_THAT(refused("allreduce", "2", "1370.0 684.99"), HasSubstr("but that of allgather"));
}

// Of 2019: algbw is without the part that a rank has itself.
TEST(Pasted, OfTheFirstReleasesAllGathersBandwidthsAreAlike) {
  const std::string text =
      "#  size count type time algbw busbw error time algbw busbw error\n"
      "  33554432 2097152 float 13058 1.93 1.93 0e+00 12866 1.96 1.96 0e+00\n";
  StatedColumns stated{{"transport", "shm"}, {"ranks", "4"}, {"op", "allgather"}};
  EXPECT_EQ(refusal(text, stated), "");
  stated["op"] = "broadcast";
  EXPECT_THAT(refusal(text, stated), HasSubstr("but that of allgather, reducescatter, alltoall"));
}

TEST(Pasted, OfRanksThatAreStatedTheOperationIsFoundToo) {
  const std::string text = kTwoTables;
  const StatedColumns stated{{"transport", "nvlink"}, {"ranks", "64"}};
  EXPECT_EQ(parse_measured(text.substr(0, text.find("alltoall")), "log", stated).rows.at(0).op,
            "allreduce");
  EXPECT_THAT(refusal(text, stated), HasSubstr("log:6: op: is not stated"));
}

// The list of devices is missing.
TEST(Pasted, RanksAndHostsAreThoseOfTheCommandAbove) {
  const std::string text = kTable;
  const std::string listed = list_of({0, 1}) + text;
  const auto size = [&](const std::string& command) -> std::string {
    try {
      const MeasuredTable table = parse_measured(command + "\n" + text, "log", kNvlink);
      return std::to_string(table.rows.at(0).ranks) + " on " +
             std::to_string(table.rows.at(0).hosts);
    } catch (const InputError& e) {
      return e.what();
    }
  };
  EXPECT_EQ(size("$ mpirun -n 2 -npernode 1 -x A ./sendrecv_perf -b 8 -g 1"), "2 on 2");
  EXPECT_EQ(size("mpirun -np 16 -N 8 ./sendrecv_perf -b 8 -G 1"), "16 on 2");
  EXPECT_EQ(size("/usr/bin/mpirun --np=16 --map-by ppr:4:node \\\n  -x B \\\n ./sendrecv_perf"),
            "16 on 4");
  EXPECT_EQ(size("mpiexec.hydra -n 4 -ppn 2 ./sendrecv_perf -g 4"), "16 on 2");
  EXPECT_EQ(size("srun -N 2 --ntasks-per-node=8 --gpus 8 ./sendrecv_perf"), "16 on 2");
  EXPECT_EQ(size("srun -N2 -n16 ./sendrecv_perf"), "16 on 2");
  EXPECT_EQ(size("srun -n16 --ntasks-per-node 8 ./sendrecv_perf -t 2"), "32 on 2");
  EXPECT_EQ(size("./build/sendrecv_perf -b 8 -g 8"), "8 on 1");
  EXPECT_EQ(size("$ sendrecv_perf -g 8 > log"), "8 on 1");
  EXPECT_EQ(size("NCCL_DEBUG=WARN sendrecv_perf -g 8"), "8 on 1");
  EXPECT_EQ(size("mpirun -H a:8,b:8 ./sendrecv_perf"), "16 on 2");
  EXPECT_EQ(size("mpirun -H a:8 -H b:8 -x A ./sendrecv_perf"), "16 on 2");
  EXPECT_EQ(size("mpirun -H a:8 ./sendrecv_perf"), "8 on 1");
  EXPECT_EQ(size("mpirun -np 2 -host a,b ./sendrecv_perf"), "2 on 2");
  EXPECT_EQ(size("mpirun -np 8 -H localhost:8 ./sendrecv_perf"), "8 on 1");
  EXPECT_THAT(size("mpirun -np 8 -H a:8,b:8 ./sendrecv_perf"), HasSubstr("hosts: the command"))
      << "all may be on the first";
  EXPECT_THAT(size("./build/sendrecv_perf -b 8"), HasSubstr("ranks: is not stated"))
      << "a launcher's script may have it";
  EXPECT_EQ(size("mpirun -np 16 ./sendrecv_perf"),
            "log:2: hosts: the command above starts 16 ranks, and does not say on how many; --as "
            "hosts=N says it");
  EXPECT_THAT(size("mpirun -np 1 -N 3 ./sendrecv_perf"), HasSubstr("hosts: "));
  EXPECT_THAT(size("mpirun -np 99999999999 -N 8 ./sendrecv_perf"), HasSubstr("not stated"));
  EXPECT_THAT(
      size("mpirun -np 16 -N 8 ./all_reduce_perf"),
      HasSubstr("busbw 100 at algbw 100 is not that of allreduce on 16 ranks, but that of "
                "broadcast, reduce, sendrecv; the ranks are those of the command above; --as "
                "ranks=N,hosts=N says others"));
  const std::string command = "mpirun -np 16 -N 8 ./sendrecv_perf\n";
  EXPECT_EQ(parse_measured(command + listed, "log", kNvlink).rows.at(0).ranks, 2)
      << "the table itself says it";
  EXPECT_EQ(parse_measured(command + listed + command + text, "log", kNvlink).rows.at(2).ranks, 16)
      << "the list is of the run before";
  const MeasuredTable stated =
      parse_measured(command + text, "log", {{"transport", "nvlink"}, {"ranks", "16"}});
  EXPECT_EQ(stated.rows.at(0).hosts, 2);
  EXPECT_THAT(stated.notes, ::testing::Contains("log:2: by the command above 2 hosts; --as "
                                                "hosts=N says another"));
  EXPECT_EQ(parse_measured(command + text, "log", {{"transport", "nvlink"}, {"ranks", "8"}})
                .rows.at(0)
                .hosts,
            1);
}

// Other programs have options of the same names.
TEST(Pasted, OptionsOfOtherProgramsSayNothingOfRanks) {
  const auto size = [&](const std::string& command) {
    const std::string refused = refusal(command + "\n" + kTable);
    if (!refused.empty()) return refused;
    const MeasuredRow row = parse_measured(command + "\n" + kTable, "log", kNvlink).rows.at(0);
    return std::to_string(row.ranks) + " on " + std::to_string(row.hosts);
  };
  EXPECT_EQ(size("mpirun -np 8 -N 4 numactl -N 1 ./sendrecv_perf"), "8 on 2");
  EXPECT_EQ(size("mpirun --allow-run-as-root -np 8 -N 4 --tag-output numactl -N 1 ./sendrecv_perf"),
            "8 on 2");
  EXPECT_EQ(size("srun -N 2 -n 16 nsys profile -n 4 ./sendrecv_perf"), "16 on 2");
  EXPECT_EQ(size("mpirun -np 8 -N 8 -genv A 1 nice -n 10 ./sendrecv_perf"), "8 on 1");
  EXPECT_EQ(size("mpirun -np 8 -N 8 ./sendrecv_perf -n 100 > log; grep sendrecv_perf log"),
            "8 on 1");
  EXPECT_EQ(size("cd a && mpirun -np 8 -N 8 ./sendrecv_perf | grep -g 2"), "8 on 1");
  EXPECT_EQ(size("mpirun -np 8 -N 8 ./sendrecv_perf > sendrecv_perf -g 2"), "8 on 1");
  EXPECT_THAT(size("I ran sendrecv_perf -g 8 on each of 2 nodes:"), HasSubstr("is not stated"));
  EXPECT_THAT(size("mpirun -np 1048576 ./sendrecv_perf -g 1048576 -t 1048576"),
              HasSubstr("is not stated"));
}

TEST(Pasted, VariablesOfTheCommandAboveAreTakenOrNoted) {
  const auto table = [](const std::string& before, const StatedColumns& stated = kNvlink) {
    return parse_measured("$ " + before + " ./all_reduce_perf\n" + list_of({0, 1}) + kTable, "log",
                          stated);
  };
  const auto notes = [&](const std::string& before) {
    std::vector<std::string> all = table(before).notes;
    all.erase(all.begin());  // which operation it is
    return all;
  };
  const MeasuredTable set = table("mpirun -x NCCL_ALGO=Tree");
  EXPECT_EQ(set.rows.at(0).algo, "Tree");
  EXPECT_EQ(set.rows.at(0).proto, "auto");
  EXPECT_THAT(notes("mpirun -x NCCL_DEBUG=INFO -x  NCCL_ALGO=Tree -x A -x NCCL_X=3"),
              ElementsAre("log:6: by the command above algo Tree; --as algo=VALUE says another",
                          "log:6: by the command above NCCL ran with other variables; give weft "
                          "--env NCCL_X=3"));
  EXPECT_EQ(table("mpiexec.hydra -genv NCCL_PROTO simple").rows.at(0).proto, "Simple");
  EXPECT_EQ(table("env NCCL_ALGO=ring").rows.at(0).algo, "Ring");
  EXPECT_THAT(notes("NCCL_ALGO=^Tree"), ElementsAre(HasSubstr("--env NCCL_ALGO=^Tree")));
  EXPECT_EQ(table("NCCL_ALGO=Tree", {{"transport", "nvlink"}, {"algo", "Ring"}}).rows[0].algo,
            "Ring");
  EXPECT_TRUE(notes("mpirun -x NCCL_DEBUG=WARN -x NCCL_ALGO -x NCCL_PROTO=$PROTO").empty());
  EXPECT_THAT(notes("export NCCL_ALGO=Tree && mpirun -np 2"), ElementsAre(HasSubstr("algo Tree")));
  EXPECT_TRUE(notes("NCCL_ALGO=Tree ./all_reduce_perf;").empty());
}

// As NCCL has it: another algorithm would leave the row without a prediction.
TEST(Pasted, AnAlgorithmIsTakenForOperationsThatItGoverns) {
  const auto algo = [](const std::string& value, const std::string& program) {
    const std::string text =
        "$ NCCL_ALGO=" + value + " ./" + program + "\n" + list_of({0}) + kTable;
    const MeasuredTable table = parse_measured(text, "log", kNvlink);
    return table.rows.at(0).algo + ", " + table.notes.back();
  };
  EXPECT_EQ(algo("Tree", "all_gather_perf"),
            "auto, log:5: by the command above NCCL_ALGO=Tree, not taken for allgather; --as "
            "algo=VALUE says it");
  EXPECT_THAT(algo("Ring", "all_gather_perf"), HasSubstr("Ring, log:5: by the command above algo"));
  EXPECT_THAT(algo("NVLS", "all_reduce_perf"), HasSubstr("auto, "));
  EXPECT_THAT(algo("Ring", "sendrecv_perf"), HasSubstr("auto, "));
}

}  // namespace
}  // namespace weft::test::result_pasted
