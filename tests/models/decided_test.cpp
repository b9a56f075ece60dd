#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/nccl/decide/tuning_input.hpp"
#include "models/nccl/decide/write_topo.hpp"
#include "models/params/device_params.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_decided {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Asked {
  std::string topology{"topologies/hgx-h100-8nic.yaml"};
  std::vector<Bytes> sizes{};
  std::vector<std::string> paths{"gdr"};
  std::vector<std::string> set{};
  std::map<std::string, std::string> env{{"NCCL_NVLS_ENABLE", "0"}};
  std::uint32_t nodes{2};
  std::string op{"allreduce"};
};

RunResult run(const Asked& asked) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.topology = shipped(asked.topology);
  scenario.nodes = asked.nodes;
  scenario.op = asked.op;
  scenario.sizes = asked.sizes;
  scenario.memory_paths = asked.paths;
  scenario.env = asked.env;
  PredictOptions options;
  options.threads = 1;
  for (const std::string& text : asked.set) options.set.push_back(parse_setting(text));
  return predict(scenario, options, make_catalog());
}

/// NCCL's own choice on the same machine, straight from the decisions.
Tuning tuning_of(const std::string& topology, const NcclEnv& env, std::uint32_t nodes) {
  const ParamCatalog catalog = make_catalog();
  const PartLibrary parts(catalog);
  Params params(catalog);
  TopologySpec spec = read_topology(shipped(topology), catalog);
  for (const auto& [key, value] : spec.defaults) params.set_by_topology(key, value);
  const Fabric fabric(std::move(spec), 1);
  const DeviceParams devices(fabric, params, parts);
  return Tuning(
      tuning_input(decide_nccl(nccl_tree_of(devices).tree, static_cast<int>(nodes), env, {})));
}

TEST(Decided, Release218RunsNoNvlsWithoutMulticast) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.nodes = 1;
  scenario.sizes = {Bytes::mib(64)};
  scenario.memory_paths = {"gdr"};
  scenario.env = {};
  scenario.nccl_version = "2.18.5";
  const auto algo_on = [&](const char* topology) {
    scenario.topology = shipped(topology);
    return predict(scenario, {}, make_catalog()).rows.at(0).algo;
  };
  EXPECT_EQ(algo_on("topologies/hgx-a100.yaml"), "Ring");
  EXPECT_EQ(algo_on("topologies/hgx-h100-8nic.yaml"), "NVLS");
}

TEST(Decided, EverySizeRunsAsNcclChooses) {
  Asked asked;
  for (int i = 10; i <= 28; i += 3) asked.sizes.push_back(Bytes{std::int64_t{1} << i});
  const Tuning nccl = tuning_of(asked.topology, parse_nccl_env(asked.env), asked.nodes);
  std::vector<std::string> seen;
  for (const ResultRow& row : run(asked).rows) {
    const auto choice = nccl.choose(NcclOp::kAllReduce, Bytes{row.bytes});
    ASSERT_TRUE(choice);
    EXPECT_EQ(row.algo, nccl_algo_name(choice->algo)) << row.bytes;
    EXPECT_EQ(row.proto, nccl_proto_name(choice->proto)) << row.bytes;
    EXPECT_EQ(row.channels, static_cast<std::uint32_t>(choice->channels)) << row.bytes;
    EXPECT_THAT(row.nccl_choice, IsEmpty());
    seen.push_back(row.algo + row.proto);
  }
  EXPECT_THAT(seen, Contains("TreeLL"));
  EXPECT_THAT(seen, Contains("RingSimple"));  // the sizes do reach over different choices
}

TEST(Decided, WhatTheUserForcesWins) {
  const ResultRow row = run({.sizes = {Bytes::mib(1)},
                             .set = {"nccl.algo=Ring", "nccl.proto=Simple", "nccl.channels=4"}})
                            .rows.at(0);
  EXPECT_EQ(row.algo, "Ring");
  EXPECT_EQ(row.proto, "Simple");
  EXPECT_LE(row.channels, 4U);
  EXPECT_THAT(run({.sizes = {Bytes::mib(1)}, .set = {"nccl.algo=Ring"}}).notes,
              Contains("set by the user in place of NCCL's own choice: nccl.algo=Ring"));
  const ResultRow by_env =
      run({.sizes = {Bytes::mib(1)}, .env = {{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "LL"}}})
          .rows.at(0);
  EXPECT_EQ(by_env.algo, "Ring");
  EXPECT_EQ(by_env.proto, "LL");
}

TEST(Decided, ChannelsThatTheUserSetsAreNotNvlss) {
  const auto notes = [](const std::string& channels) {
    return run({.sizes = {Bytes::mib(64)},
                .set = {"nccl.algo=NVLS", "nccl.channels=" + channels},
                .env = {},
                .nodes = 1})
        .notes;
  };
  const auto named = HasSubstr("no effect on NVLS, which keeps 16 channels");
  EXPECT_THAT(notes("4"), Contains(named));
  EXPECT_THAT(notes("16"), Not(Contains(named)));
}

TEST(Decided, WhatLeavesNoAlgorithmIsNamedWithItsPlace) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.nodes = 1;
  scenario.op = "broadcast";
  scenario.sizes = {Bytes::mib(1)};
  const auto error = [&] {
    try {
      predict(scenario, {}, make_catalog());
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  scenario.set.push_back({"nccl.algo", "NVLS", {"s.yaml", 7, 3}});
  EXPECT_THAT(error(), ::testing::StartsWith("s.yaml:7:3: NCCL has no algorithm"));
  EXPECT_THAT(error(), HasSubstr("can run it: Ring"));
  scenario.set.clear();
  scenario.env["NCCL_ALGO"] = "NVLS";
  scenario.env_place["NCCL_ALGO"] = {"s.yaml", 9, 1};
  EXPECT_THAT(error(), ::testing::StartsWith("s.yaml:9:1: "));
}

TEST(Decided, NvlsRunsAsNcclChooses) {
  for (const std::uint32_t nodes : {1U, 2U}) {
    Asked asked{.env = {}, .nodes = nodes};
    for (int i = 10; i <= 28; i += 3) asked.sizes.push_back(Bytes{std::int64_t{1} << i});
    const Tuning nccl = tuning_of(asked.topology, {}, nodes);
    std::vector<std::string> seen;
    for (const ResultRow& row : run(asked).rows) {
      const auto choice = nccl.choose(NcclOp::kAllReduce, Bytes{row.bytes});
      ASSERT_TRUE(choice);
      EXPECT_EQ(row.algo, nccl_algo_name(choice->algo)) << row.bytes;
      EXPECT_EQ(row.channels, static_cast<std::uint32_t>(choice->channels)) << row.bytes;
      EXPECT_THAT(row.nccl_choice, IsEmpty());
      seen.push_back(row.algo);
    }
    EXPECT_THAT(seen, Contains(nodes == 1 ? "NVLS" : "NVLSTree"));
  }
}

TEST(Decided, CtasBoundNvlsChannelsToo) {
  const auto channels = [](const char* variable, const char* value) {
    const RunResult result =
        run({.sizes = {Bytes::mib(256)}, .env = {{variable, value}}, .nodes = 1});
    EXPECT_EQ(result.rows.at(0).algo, "NVLS");
    return result.rows.at(0).channels;
  };
  EXPECT_EQ(channels("NCCL_MAX_CTAS", "8"), 8U);
  EXPECT_EQ(channels("NCCL_MIN_CTAS", "20"), 20U);
}

TEST(Decided, PatRunsWithOneGpuANode) {
  for (const char* op : {"allgather", "reducescatter"}) {
    const Asked asked{.topology = "topologies/genoa-2p-same-switch.yaml",
                      .sizes = {Bytes::kib(512)},
                      .nodes = 4,
                      .op = op};
    const ResultRow row = run(asked).rows.at(0);
    EXPECT_EQ(row.algo, "PAT");
    EXPECT_EQ(row.proto, "Simple");
    EXPECT_THAT(row.nccl_choice, IsEmpty());
  }
}

TEST(Decided, WhatIsNotExecutedIsNamed) {
  // PAT with several GPUs a node, which NCCL takes where it is told to.
  const RunResult result =
      run({.sizes = {Bytes::kib(512)},
           .env = {{"NCCL_PAT_ENABLE", "1"}, {"NCCL_PROTO", "Simple"}, {"NCCL_NVLS_ENABLE", "0"}},
           .op = "allgather"});
  EXPECT_EQ(result.rows.at(0).nccl_choice, "PAT");
  EXPECT_EQ(result.rows.at(0).algo, "Ring");
  EXPECT_THAT(result.notes, Contains(HasSubstr("NCCL would run PAT")));
  try {
    run({.sizes = {Bytes::kib(512)},
         .env = {{"NCCL_PAT_ENABLE", "1"}, {"NCCL_ALGO", "PAT"}},
         .op = "allgather"});
    ADD_FAILURE() << "ran what the user excludes";
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("leave PAT for allgather, which weft does not execute here"));
  }
}

TEST(Decided, AFarNicIsNamedWithWhatAllowingItWouldBring) {
  // Without switches each GPU reaches its NIC through the host bridge: PHB, which NCCL declines.
  const RunResult result = run({.topology = "tests/models/far_nic.yaml",
                                .sizes = {Bytes::mib(64)},
                                .paths = {"gdr", "host-staged"}});
  EXPECT_THAT(result.notes, Contains(::testing::AllOf(
                                HasSubstr("GDR off for gpu0-nic0"), HasSubstr("distance PHB > PXB"),
                                HasSubstr("NCCL_NET_GDR_LEVEL=PHB would allow it: "),
                                HasSubstr("% busbw at 64 MiB by this model"))));
}

TEST(Decided, AsNcclDecidesIsOneOfThePathsOrBetweenThem) {
  const auto times = [](const std::string& topology, std::map<std::string, std::string> env) {
    const RunResult result = run({.topology = topology,
                                  .sizes = {Bytes::mib(64)},
                                  .paths = {"gdr", "nccl", "host-staged"},
                                  .env = std::move(env)});
    std::vector<double> us;
    for (const ResultRow& row : result.rows) us.push_back(row.time_us);
    return us;
  };
  const std::vector<double> all = times("topologies/hgx-a100.yaml", {});
  EXPECT_EQ(all.at(1), all.at(0)) << "each NIC is near its GPU";
  const std::vector<double> none = times("tests/models/far_nic.yaml", {});
  EXPECT_EQ(none.at(1), none.at(2)) << "no NIC is near enough";
  // What is sent is staged, what is received is not: each way costs.
  const std::vector<double> some =
      times("topologies/hgx-a100.yaml", {{"NCCL_NET_GDR_READ", "0"}, {"NCCL_ALGO", "Ring"}});
  EXPECT_GT(some.at(1), some.at(0));
  EXPECT_LT(some.at(1), some.at(2));
}

TEST(Decided, SendsGoByTheNicsThatNcclIsLeft) {
  // Half of what 8 GPUs have leaves the node, by two NICs of 50 GB/s.
  const RunResult two = run({.sizes = {Bytes::mib(64)},
                             .paths = {"gdr", "nccl"},
                             .env = {{"NCCL_IB_HCA", "nic0,nic4"}},
                             .op = "alltoall"});
  const double form_us = Bytes::mib(64).as_double() * 8 / 2 / (2 * 50e9) * 1e6;
  for (const ResultRow& row : two.rows) {
    EXPECT_GT(row.time_us, form_us) << row.memory_path;
    EXPECT_LT(row.time_us, 1.1 * form_us) << row.memory_path;
  }
}

TEST(Decided, WhatNcclDoesNotPinNeedsNoBar1) {
  // NICs write GPUs' memory and read the hosts'. Of a GPU one channel comes in: 9.2 MiB of FIFOs.
  const auto paths = [](const char* bar1) {
    const RunResult result = run({.topology = "topologies/hgx-a100.yaml",
                                  .sizes = {Bytes::mib(64)},
                                  .paths = {"nccl"},
                                  .set = {std::string("gpu.bar1_size=") + bar1},
                                  .env = {{"NCCL_NET_GDR_READ", "0"}, {"NCCL_ALGO", "Ring"}}});
    return result.rows.at(0).memory_path;
  };
  EXPECT_EQ(paths("24 MiB"), "nccl");
  EXPECT_EQ(paths("8 MiB"), "host-staged");
}

TEST(Decided, WhereARingGoesRoundANicItsSendsMayNot) {
  // GPU 3's own NIC has no GPUDirect RDMA. Rings go by others; sends by the next one.
  const RunResult result = run({.sizes = {Bytes::mib(64)},
                                .paths = {"nccl", "host-staged"},
                                .set = {"nic3.gdr=off"},
                                .op = "alltoall"});
  const RunResult all = run({.sizes = {Bytes::mib(64)}, .paths = {"nccl"}, .op = "alltoall"});
  EXPECT_GT(result.rows.at(0).time_us, 1.5 * all.rows.at(0).time_us);
  EXPECT_LT(result.rows.at(0).time_us, 0.7 * result.rows.at(1).time_us);
}

TEST(Decided, SimpleRulesDoNotSayWhereNcclTakesGdr) {
  try {
    run({.sizes = {Bytes::mib(1)}, .paths = {"nccl"}, .set = {"nccl.decisions=simple"}});
    ADD_FAILURE() << "ran";
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("the memory path is gdr or host-staged"));
  }
}

TEST(Decided, WithPxnAGpuSendsFromTheMemoryOfTheGpuNearTheNic) {
  // Each GPU shares a switch with one NIC. A ring enters by a NIC at its GPU and leaves at that
  // GPU's neighbour by the same NIC: over NVLink and the first GPU, not through CPUs and sockets.
  // What bounds it is then a GPU's Gen5 x16 link: reads of 256 B TLPs (20 B framing) in one
  // direction, 63.015 x 256 / 276 = 58.4 GB/s, and writes of 256 B (24 B) in the other.
  const ResultRow row =
      run({.topology = "topologies/hgx-b200-8nic-cx8.yaml", .sizes = {Bytes::gib(1)}}).rows.at(0);
  EXPECT_EQ(row.algo, "Ring");
  EXPECT_THAT(row.limited_by.at(0).cause, ::testing::AnyOf(HasSubstr("GPU"), HasSubstr("SM")));
  EXPECT_THAT(row.limited_by.at(0).cause, Not(HasSubstr("socket")));
  EXPECT_GT(row.busbw_gb_per_s / 8, 50.0);
  EXPECT_LT(row.busbw_gb_per_s / 8, 58.4);
}

// NCCL reads what a NIC's link can do (max_link_width), not at how many lanes it runs. A NIC made
// with 8 lanes gets no ring: seven wires are left, of 49.68 GB/s. One that trained at 8 keeps its
// rings, and all wait for its link: Gen5 x8 as in Quickstart.HalfTheNicsLink..., 27.25 GB/s.
TEST(Decided, ANicOfEightLanesIsLeftOutAndOneThatTrainedAtEightIsNot) {
  const auto with = [](const char* setting) {
    return run({.sizes = {Bytes::gib(8)}, .set = {setting}}).rows.at(0);
  };
  const ResultRow narrow = with("nic3.pcie_width=8");
  EXPECT_NEAR(narrow.busbw_gb_per_s, 7 * 49.68, 0.015 * 7 * 49.68);
  EXPECT_TRUE(narrow.limited_by.at(0).cause.starts_with("wire, "));
  const ResultRow trained = with("nic3.trained_width=8");
  EXPECT_NEAR(trained.busbw_gb_per_s, 8 * 27.25, 0.015 * 8 * 27.25);
  EXPECT_EQ(trained.limited_by.at(0).cause, "PCIe link, NIC to switch");
  EXPECT_EQ(trained.limited_by.at(0).where, "nic3@0 -> pcisw1@0");
}

TEST(Decided, SimpleRulesRunWhereTheUserWantsThem) {
  const RunResult result = run({.sizes = {Bytes{8}}, .set = {"nccl.decisions=simple"}});
  EXPECT_EQ(result.rows.at(0).algo, "Ring");  // NCCL picks Tree here
  EXPECT_THAT(result.notes, Not(Contains(HasSubstr("simple rules"))));
  EXPECT_THAT(
      run({.sizes = {Bytes{8}}, .set = {"nccl.decisions=simple", "nic0.reported_rate=100 Gb/s"}})
          .notes,
      Contains("nic0.reported_rate=100 Gb/s has no effect on weft's simple rules"));
}

}  // namespace
}  // namespace weft::test::models_decided
