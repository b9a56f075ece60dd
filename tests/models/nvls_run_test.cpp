// NVLS in runs: what they come to where nothing but the links costs, and metamorphic ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_nvls_run {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Packets of 128 B with 27 B of overhead; a request is such overhead alone.
constexpr double kData = 155.0 / 128;
constexpr double kRequest = 27.0 / 128;

/// The row of an all-reduce with NVLS on, as NCCL decides.
RunResult run(const std::vector<std::string>& settings, Bytes bytes, std::uint32_t nodes = 1,
              Fidelity fidelity = Fidelity::kFluid, const std::string& op = "allreduce",
              const std::string& nccl_algo = "") {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.nodes = nodes;
  scenario.op = op;
  scenario.sizes = {bytes};
  scenario.memory_paths = {"gdr"};
  if (nccl_algo.empty()) scenario.env = {};
  if (!nccl_algo.empty()) scenario.env = {{"NCCL_ALGO", nccl_algo}};
  PredictOptions options;
  options.threads = 1;
  options.fidelity = fidelity;
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  return predict(scenario, options, make_catalog());
}

const std::vector<std::string> kFree{"nccl.work_simple=0 ns", "nccl.sync_simple=0 ns",
                                     "gpu.nvlink_latency=10 ns", "gpu.sm_load_latency=0 ns",
                                     "nccl.launch_simple=0 ns"};

std::vector<std::string> with(std::vector<std::string> settings, const std::string& more) {
  settings.push_back(more);
  return settings;
}

// Without latencies and barriers the busier direction of a GPU's NVLinks is the limit, into the
// GPU: 450 GB/s / (requests 27/128 + reduced 155/128 / n + copies 155/128) of the size a second; of
// 8 GPUs 286.2 GB/s, a bus bandwidth of 500.9.
TEST(NvlsRun, ComesToWhatTheLinksIntoAGpuTake) {
  for (const double n : {4.0, 6.0, 8.0}) {
    std::vector<std::string> settings = with(kFree, "nccl.algo=NVLS");  // of 4 GPUs NCCL takes Ring
    settings.push_back("gpu.count=" + std::to_string(static_cast<int>(n)));
    const RunResult result = run(settings, Bytes::gib(4));
    const ResultRow& row = result.rows.at(0);
    EXPECT_EQ(row.algo, "NVLS");
    EXPECT_THAT(row.nccl_choice, IsEmpty());
    const double expected = 450 / (kRequest + kData / n + kData) * 2 * (n - 1) / n;
    EXPECT_NEAR(row.busbw_gb_per_s / expected, 1, 0.005) << n;
    EXPECT_EQ(row.limited_by.at(0).cause, "NVLink, NVSwitch to GPU");
  }
}

TEST(NvlsRun, MoreOfAnythingNeverHurts) {
  const double base = run({}, Bytes::mib(64)).rows.at(0).time_us;
  for (const char* better : {"gpu.nvlink_rate=50 GB/s", "gpu.nvlink_overhead=16 B",
                             "gpu.sm_store_rate=120 GB/s", "gpu.nvlink_latency=250 ns"}) {
    EXPECT_LE(run({better}, Bytes::mib(64)).rows.at(0).time_us, base * 1.001) << better;
  }
  // With links twice as fast the SMs of 16 blocks are the limit: a byte of the size is loaded and
  // stored twice, 2 x (1/220 + 1/60), and an eighth of it once more, 1/220 + 1/51: 353 GB/s.
  const ResultRow fast = run({"gpu.nvlink_rate=50 GB/s"}, Bytes::gib(4)).rows.at(0);
  const double bound = 16 / (2 * (1 / 220.0 + 1 / 60.0) + (1 / 220.0 + 1 / 51.0) / 8);
  EXPECT_LT(fast.algbw_gb_per_s, bound);
  EXPECT_GT(fast.algbw_gb_per_s, 0.94 * bound);
  EXPECT_EQ(fast.limited_by.at(0).cause, "SM of a thread block");
}

TEST(NvlsRun, MoreGpusHaveMoreBusBandwidth) {
  double before = 0;
  for (const char* gpus : {"3", "4", "6", "8"}) {
    const double busbw = run({std::string("gpu.count=") + gpus, "nccl.algo=NVLS"}, Bytes::gib(1))
                             .rows.at(0)
                             .busbw_gb_per_s;
    EXPECT_GT(busbw, before) << gpus;
    before = busbw;
  }
}

TEST(NvlsRun, MoreNodesTakeLonger) {
  double before = 0;
  for (const std::uint32_t nodes : {2U, 4U}) {
    const ResultRow row = run({"nccl.algo=NVLSTree"}, Bytes::mib(16), nodes).rows.at(0);
    EXPECT_EQ(row.algo, "NVLSTree");
    EXPECT_GT(row.time_us, before);
    before = row.time_us;
  }
}

TEST(NvlsRun, GathersAndScattersToo) {
  for (const char* op : {"allgather", "reducescatter"}) {
    const ResultRow row =
        run({"nccl.algo=NVLS"}, Bytes::gib(1), 1, Fidelity::kFluid, op).rows.at(0);
    EXPECT_EQ(row.algo, "NVLS");
    EXPECT_LT(row.busbw_gb_per_s, 450 / kData);
    EXPECT_GT(row.busbw_gb_per_s, 0.7 * 450 / kData * 7 / 8);
  }
}

// Where NCCL would pick it packets run another algorithm and say so; where the user forces it they
// refuse it. Of what the user excludes nothing is run instead.
TEST(NvlsRun, PacketsRunAnotherAlgorithmAndSaySo) {
  for (const std::uint32_t nodes : {1U, 2U}) {
    const RunResult result = run({"nccl.launch=graph"}, Bytes::mib(4), nodes, Fidelity::kPacket);
    const std::string name = nodes == 1 ? "NVLS" : "NVLSTree";
    EXPECT_EQ(result.rows.at(0).nccl_choice, name);
    EXPECT_THAT(result.rows.at(0).algo, testing::AnyOf("Ring", "Tree"));
    EXPECT_THAT(result.notes, testing::Contains(HasSubstr("would run " + name +
                                                          " between 4 MiB and 4 MiB; weft "
                                                          "does not execute it on packets")));
  }
}

TEST(NvlsRun, PacketsRunInItsPlaceWhatTheUserLeaves) {
  const auto on_packets = [](std::uint32_t nodes, const char* nccl_algo) {
    return run({"nccl.launch=graph"}, Bytes::mib(4), nodes, Fidelity::kPacket, "allreduce",
               nccl_algo)
        .rows.at(0);
  };
  const ResultRow not_nvls = on_packets(2, "^NVLS");  // which leaves NVLSTree to NCCL
  EXPECT_EQ(not_nvls.nccl_choice, "NVLSTree");
  EXPECT_THAT(not_nvls.algo, testing::AnyOf("Ring", "Tree"));
  for (const auto& [excluded, left] : {std::pair{"^Ring", "Tree"}, std::pair{"^Tree", "Ring"}}) {
    const ResultRow row = on_packets(1, excluded);
    EXPECT_EQ(row.nccl_choice, "NVLS") << excluded;
    EXPECT_EQ(row.algo, left);
  }
}

TEST(NvlsRun, PacketsRefuseItByName) {
  for (const std::uint32_t nodes : {1U, 2U}) {
    try {
      run({nodes == 1 ? "nccl.algo=NVLS" : "nccl.algo=NVLSTree"}, Bytes::mib(4), nodes,
          Fidelity::kPacket);
      ADD_FAILURE() << "ran";
    } catch (const InputError& e) {
      EXPECT_THAT(e.what(), HasSubstr(nodes == 1 ? "leave NVLS for allreduce, which weft"
                                                 : "leave NVLSTree for allreduce, which weft"));
      EXPECT_THAT(e.what(), HasSubstr("does not execute here (--fidelity fluid does"));
      EXPECT_THAT(e.what(), testing::EndsWith("algorithms that can run it: Ring, Tree"));
    }
  }
}

TEST(NvlsRun, SimpleRulesHaveNone) {
  EXPECT_THROW(run({"nccl.algo=NVLS", "nccl.decisions=simple"}, Bytes::mib(4)), InputError);
}

}  // namespace
}  // namespace weft::test::models_nvls_run
