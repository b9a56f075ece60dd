#include "models/collective/jobs.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/collective/effort.hpp"
#include "models/collective/separate_jobs.hpp"
#include "models/collective/settings.hpp"
#include "sim/base/stop.hpp"
#include "sim/report/csv_report.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Scenario two_jobs() {
  return parse_scenario(R"(scenario: jobs
topology: ../topologies/hgx-h100-8nic.yaml
nodes: 4
jobs:
  - {job: a, nodes: 0-1, op: alltoall, size: 1 KiB}
  - {job: b, nodes: 2-3, op: allreduce, size: 2 KiB}
memory_paths: [gdr, host-staged]
set: {gpu.count: 1, nic.count: 1}
)",
                        shipped("scenarios/jobs.yaml"));
}

TEST(Jobs, StoppedAfterOneMemoryPathTheyKeepItsRows) {
  Stop stop;
  std::vector<std::size_t> heard;
  PredictOptions options;
  options.stop = &stop;
  options.on_progress = [&](const RunProgress& p) {
    heard.push_back(p.rows_done);
    EXPECT_EQ(p.rows, 4);
    EXPECT_DOUBLE_EQ(p.work_done / p.work, static_cast<double>(p.rows_done) / 4);
    if (p.rows_done == 2) stop.request();
  };
  const RunResult stopped = predict(two_jobs(), options, make_catalog());
  EXPECT_THAT(heard, ElementsAre(0, 2));
  ASSERT_EQ(stopped.rows.size(), 2);
  ASSERT_EQ(stopped.not_run.size(), 2);
  EXPECT_EQ(stopped.not_run[0].job, "a");
  EXPECT_EQ(stopped.not_run[1].job, "b");
  EXPECT_EQ(stopped.not_run[1].op, "allreduce");
  EXPECT_EQ(stopped.not_run[1].bytes, 2048);
  EXPECT_EQ(stopped.not_run[1].memory_path, "host-staged");
  EXPECT_EQ(to_json(stopped).at("incomplete").items()[0].at("job").as_string(), "a");
  const RunResult whole = predict(two_jobs(), {}, make_catalog());
  ASSERT_EQ(whole.rows.size(), 4);
  EXPECT_EQ(whole.rows[1].trajectory, stopped.rows[1].trajectory);
  // Lines of one length, whether run or not.
  EXPECT_THAT(csv_text(stopped),
              ::testing::EndsWith("\nallreduce,2048,,,host-staged,,,,,,,,,,,b,\n"));
}

// Jobs that share uplinks, side by side and scattered over leaves: times are those of every rank
// simulated.
TEST(Jobs, FoldToTheTimesOfAllRanks) {
  using Nodes = std::array<const char*, 3>;
  for (const Nodes& of : {Nodes{"0-1", "2-3", "4-7"}, Nodes{"\"0,2\"", "\"1,3\"", "4-7"}}) {
    const std::string text = fmt::format(R"(scenario: jobs
topology: ../topologies/hgx-h100-2nic.yaml
nodes: 8
jobs:
  - {{job: a, nodes: {}, op: alltoall, size: 1 MiB}}
  - {{job: b, nodes: {}, op: alltoall, size: 1 MiB}}
  - {{job: c, nodes: {}, op: allreduce, size: 8 MiB}}
memory_paths: [gdr]
set: {{network.kind: leaf-spine, network.ports: 8, network.oversubscription: 2}}
)",
                                         of[0], of[1], of[2]);
    PredictOptions options;
    const RunResult folded =
        predict(parse_scenario(text, shipped("scenarios/jobs.yaml")), options, make_catalog());
    options.folds = false;
    const RunResult whole =
        predict(parse_scenario(text, shipped("scenarios/jobs.yaml")), options, make_catalog());
    ASSERT_EQ(folded.rows.size(), 3);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(folded.rows[i].time_us / whole.rows[i].time_us, 1, 1e-9) << of[0] << i;
      EXPECT_NEAR(folded.rows[i].alone_us / whole.rows[i].alone_us, 1, 1e-9) << of[0] << i;
      EXPECT_EQ(folded.rows[i].launches, whole.rows[i].launches) << of[0] << i;
    }
    EXPECT_GT(folded.rows[2].time_us, folded.rows[2].alone_us * 0.999);
  }
}

// An uplink of leaves is shared by two jobs, of which one sends many messages at once and the other
// few. Ports of switches take turns, so on packets both get half; by messages one launch of the
// all-gather took 2.49 times its time alone. The shorter is launched while the other runs.
TEST(Jobs, ShareLinksAsOnPackets) {
  const Scenario scenario = parse_scenario(R"(scenario: jobs
topology: ../topologies/hgx-h100-8nic.yaml
nodes: 4
jobs:
  - {job: a, nodes: "0,2", op: alltoall, size: 4 MiB}
  - {job: b, nodes: "1,3", op: allgather, size: 4 MiB}
memory_paths: [gdr]
set:
  gpu.count: 4
  nic.count: 4
  network.kind: leaf-spine
  network.ports: 16
  network.leaf_down: 8
  network.oversubscription: 8
)",
                                           shipped("scenarios/jobs.yaml"));
  PredictOptions options;
  const RunResult rates = predict(scenario, options, make_catalog());
  options.fidelity = Fidelity::kPacket;
  const RunResult packets = predict(scenario, options, make_catalog());
  const auto slowdown = [](const RunResult& result, std::size_t job) {
    const ResultRow& row = result.rows.at(job);
    return row.time_us / row.alone_us;
  };
  for (const std::size_t job : {0U, 1U}) {
    EXPECT_NEAR(slowdown(rates, job) / slowdown(packets, job), 1, 0.05);
    EXPECT_GT(slowdown(packets, job), 1.6);
    EXPECT_EQ(rates.rows[job].launches, job + 1);
    EXPECT_EQ(packets.rows[job].launches, job + 1);
  }
  EXPECT_TRUE(packets.rows[0].probes && packets.rows[1].probes);
}

// Where they do not meet each takes its own time, however often; what is too short to be there for
// as long as the longest is said.
TEST(Jobs, TheShorterAreLaunchedAgainBesideTheLongest) {
  for (const bool has_room : {true, false}) {
    const std::string text =
        fmt::format(R"(scenario: jobs
topology: ../topologies/hgx-h100-2nic.yaml
nodes: 4
jobs:
  - {{job: a, nodes: 0-1, op: allreduce, size: {}}}
  - {{job: b, nodes: 2-3, op: allreduce, size: {}}}
memory_paths: [gdr]
)",
                    has_room ? "32 MiB" : "512 MiB", has_room ? "4 MiB" : "1 KiB");
    const RunResult result =
        predict(parse_scenario(text, shipped("scenarios/jobs.yaml")), {}, make_catalog());
    const ResultRow& longest = result.rows.at(0);
    const ResultRow& again = result.rows.at(1);
    EXPECT_EQ(longest.launches, 1U);
    for (const ResultRow& row : result.rows) EXPECT_NEAR(row.time_us / row.alone_us, 1, 1e-6);
    const double beside = again.launches * again.alone_us / longest.alone_us;
    const auto said = std::ranges::find_if(
        result.notes, [](const std::string& note) { return note.starts_with("gdr: alone, "); });
    if (has_room) {
      EXPECT_GT(again.launches, 1U);
      EXPECT_NEAR(beside, 1, 0.25);
      EXPECT_EQ(said, result.notes.end());
    } else {
      EXPECT_EQ(again.launches, 32U);
      EXPECT_LT(beside, 0.75);
      ASSERT_NE(said, result.notes.end());
      EXPECT_THAT(*said, HasSubstr("32 launches of b take"));
    }
  }
}

bool separate(const std::vector<std::string>& settings,
              const std::vector<std::vector<std::uint32_t>>& nodes) {
  const MachineUnderTest under("hgx-h100-8nic.yaml", settings, 16);
  std::vector<ScenarioJob> jobs;
  for (const auto& of_one : nodes) {
    jobs.push_back({.name = "", .nodes = of_one, .op = "allreduce", .size = Bytes{1}, .place = {}});
  }
  return are_separate(under.machine(), jobs);
}

// Leaves of 4 nodes.
TEST(Jobs, AreSeparateOnLeavesOfTheirOwn) {
  const std::vector<std::string> clos{"network.kind=leaf-spine", "network.ports=64"};
  EXPECT_TRUE(separate(clos, {{0, 1, 2, 3, 4, 5}, {8, 9, 10, 11}}));
  EXPECT_FALSE(separate(clos, {{0, 1, 4, 5}, {2, 3, 6, 7}}));  // share leaves
  EXPECT_FALSE(separate(clos, {{0, 1, 2, 3}, {6, 7, 8, 9}}));  // 2 and 2: no cluster is so
  EXPECT_FALSE(separate({}, {{0, 1}, {1, 2}}));                // share a node
  EXPECT_TRUE(separate({}, {{0, 2}, {1, 3}}));                 // one switch
  auto drawn = clos;
  drawn.emplace_back("wire.routing=ecmp");
  EXPECT_FALSE(separate(drawn, {{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_FALSE(separate({"nic0@3.trained_width=4"}, {{0, 1}, {2, 3}}));
}

// Leaves of 4 nodes, pods of two leaves: jobs share links if they cross the same pod's cores.
TEST(Jobs, AreSeparateInPodsThatOneOfThemLeaves) {
  const std::vector<std::string> pods{"network.kind=fat-tree", "network.ports=64",
                                      "network.spine_down=2"};
  EXPECT_TRUE(separate(pods, {{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_TRUE(separate(pods, {{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}));
  EXPECT_FALSE(separate(pods, {{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}));
  EXPECT_FALSE(separate(pods, {{4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3}}))
      << "a cluster of 8 nodes has them in one pod";
  auto one_leaf = pods;
  one_leaf.back() = "network.spine_down=1";
  EXPECT_TRUE(separate(one_leaf, {{4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3}}));
}

// A leaf a rail for two nodes each, pods of four.
TEST(Jobs, AreSeparateInPodsOfRails) {
  const std::vector<std::string> rails{
      "network.kind=rail-optimised", "network.tiers=3",   "network.ports=32",
      "network.leaf_down=2",         "network.leaf_up=8", "network.spine_down=16"};
  EXPECT_TRUE(separate(rails, {{0, 1}, {2, 3}}));
  EXPECT_TRUE(separate(rails, {{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}));
  EXPECT_FALSE(separate(rails, {{0, 2}, {1, 3}}));  // share leaves
  EXPECT_FALSE(separate(rails, {{0, 1, 4, 5}, {2, 3, 6, 7}})) << "both leave the same pods";
}

/// Jobs on leaves of their own, of 4 nodes each.
Scenario apart(const std::string& more) {
  return parse_scenario(fmt::format(R"(scenario: apart
topology: ../topologies/hgx-h100-8nic.yaml
nodes: 16
jobs:
  - {{job: a, nodes: "0-7", op: allreduce, size: 64 MiB}}
  - {{job: b, nodes: "8-11", op: allreduce, size: 72 MiB}}
memory_paths: [gdr]
set: {{nccl.algo: Ring, network.kind: leaf-spine, network.ports: 64{}}}
)",
                                    more),
                        shipped("scenarios/jobs.yaml"));
}

/// Its jobs one by one.
RunResult one_by_one(const Scenario& scenario, const PredictOptions& options = {}) {
  const ParamCatalog catalog = make_catalog();
  const TopologySpec asked = read_topology(scenario.topology, catalog);
  TopologySpec spec = asked;
  spec.nodes = scenario.nodes.value();
  Params params(catalog);
  std::vector<ScenarioSetting> settings = scenario.set;
  settings.insert(settings.end(), options.set.begin(), options.set.end());
  apply_settings(settings, spec, params);
  RunResult out;
  predict_separately(scenario, asked, Fabric(spec, spec.nodes), options, catalog, out);
  return out;
}

// Jobs together are one launch each; launches behind each other overlap by 0.2 % more where a job
// is on two leaves.
TEST(Jobs, ThatDoNotMeetAreTogetherAsFastAsOneByOne) {
  const Scenario scenario = apart(", nccl.launch: single, nccl.host_wait: 0 us");
  const RunResult together = predict(scenario, {}, make_catalog());
  const RunResult each = one_by_one(scenario);
  ASSERT_EQ(together.rows.size(), 2U);
  ASSERT_EQ(each.rows.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(together.rows[i].launches, 1U);
    EXPECT_NEAR(together.rows[i].time_us / each.rows[i].time_us, 1, 1e-9);
  }
}

// Likewise over cores.
TEST(Jobs, ThatLeaveTheirPodsAreTogetherAsFastAsOneByOne) {
  const Scenario scenario = apart(", nccl.launch: single, nccl.host_wait: 0 us");
  PredictOptions options;
  for (const char* set : {"network.kind=fat-tree", "network.spine_down=1", "network.spine_up=1",
                          "spine.uplink_rate=25 Gb/s"}) {
    options.set.push_back(parse_setting(set));
  }
  const RunResult together = predict(scenario, options, make_catalog());
  const RunResult each = one_by_one(scenario, options);
  ASSERT_EQ(together.rows.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(together.rows[i].time_us / each.rows.at(i).time_us, 1, 1e-9);
  }
  EXPECT_GT(each.rows[0].time_us, 1.2 * one_by_one(scenario).rows[0].time_us) << "cores limit it";
}

// Nodes that have failed are the cluster's, not each job's.
TEST(Jobs, OneByOneHaveAllTheirNodes) {
  const Scenario scenario = apart(", failed.nodes: 2");
  PredictOptions options;
  options.set.push_back({"failed.nics", "2", {}});
  const RunResult each = one_by_one(scenario, options);
  EXPECT_EQ(each.rows.at(0).nodes, 8U);
  EXPECT_EQ(each.rows.at(1).nodes, 4U);
  EXPECT_THAT(each.notes, ::testing::Not(::testing::Contains(HasSubstr("out of service"))));
}

// On the leaves that the cluster has, where nodes go to one after another, whatever has failed.
TEST(Jobs, OneByOneHaveTheLeavesOfTheCluster) {
  const Scenario scenario = parse_scenario(R"(scenario: by-turns
topology: ../topologies/hgx-h100-8nic.yaml
nodes: 64
jobs:
  - {job: a, nodes: "0,2,4,6", op: allreduce, size: 64 MiB}
  - {job: b, nodes: "1,3,5,7", op: allreduce, size: 64 MiB}
memory_paths: [gdr]
set: {gpu.count: 1, nic.count: 1, nccl.algo: Tree, nccl.launch: single, nccl.host_wait: 0 us,
      network.kind: leaf-spine, network.ports: 16, network.oversubscription: 8,
      network.placement: round-robin, leaf.uplink_rate: 100 Gb/s, failed.nodes: 1}
)",
                                           shipped("scenarios/jobs.yaml"));
  const RunResult together = predict(scenario, {}, make_catalog());
  const RunResult each = one_by_one(scenario);
  EXPECT_NEAR(together.rows.at(0).time_us / each.rows.at(0).time_us, 1, 1e-9);
}

/// Two jobs of 2,432 nodes of one GPU each, on leaves of 128: 5.9e6 connections of the all-to-all
/// are too many to run.
Scenario large_jobs(const std::string& first, const std::string& second) {
  return parse_scenario(fmt::format(R"(scenario: jobs
topology: ../topologies/hgx-h100-8nic.yaml
nodes: 4864
jobs:
  - {{job: a, nodes: "{}", op: alltoall, size: 64 MiB}}
  - {{job: b, nodes: "{}", op: allreduce, size: 64 MiB}}
memory_paths: [gdr]
set:
  gpu.count: 1
  nic.count: 1
  network.kind: leaf-spine
  network.ports: 256
  netswitch.capacity: 1000000 GB/s
)",
                                    first, second),
                        shipped("scenarios/jobs.yaml"));
}

TEST(Jobs, TooLargeOnesThatDoNotMeetAreClustersOfTheirOwn) {
  const RunResult jobs = predict(large_jobs("0-2431", "2432-4863"), {}, make_catalog());
  ASSERT_EQ(jobs.rows.size(), 2U);
  EXPECT_THAT(jobs.notes, ::testing::Contains(HasSubstr("jobs share no link between switches")));
  EXPECT_THAT(jobs.notes, ::testing::Not(::testing::Contains(HasSubstr("jobs share links"))));
  for (const ResultRow& row : jobs.rows) {
    Scenario alone = large_jobs("0", "1");
    alone.jobs.clear();
    alone.op = row.op;
    alone.sizes = {Bytes{row.bytes}};
    alone.nodes = 2432;
    EXPECT_EQ(predict(alone, {}, make_catalog()).rows.at(0).time_us, row.time_us) << row.job;
    EXPECT_EQ(row.alone_us, row.time_us);
    EXPECT_EQ(row.nodes, 2432U);
  }
  EXPECT_EQ(jobs.rows[0].job, "a");
  EXPECT_EQ(jobs.rows[1].job, "b");
}

// Jobs that share leaves, of so many bytes that 16 nodes take hours to simulate: what is named is
// answered, and twice as much is not.
TEST(Jobs, TooLargeOnesThatMeetNameASmallerQuestion) {
  const Scenario scenario = parse_scenario(R"(scenario: jobs
topology: ../topologies/hgx-h100-8nic.yaml
nodes: 32
jobs:
  - {job: a, nodes: "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30", op: allreduce, size: 512 GiB}
  - {job: b, nodes: "1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31", op: allreduce, size: 512 GiB}
memory_paths: [gdr]
set: {gpu.count: 1, nic.count: 1, nccl.algo: Ring, network.kind: leaf-spine, network.ports: 16}
)",
                                           shipped("scenarios/jobs.yaml"));
  const ParamCatalog catalog = make_catalog();
  PredictOptions options;
  options.check_only = true;
  EXPECT_THROW(predict(scenario, options, catalog), TooLarge);
  const Predictor rows = [](const Scenario& s, TopologySpec spec, const PredictOptions& o,
                            const ParamCatalog& c) { return predict(s, std::move(spec), o, c); };
  const auto hint = [&](const Scenario& of) {
    return smaller_question(of, read_topology(of.topology, catalog), options, rows, catalog);
  };
  const auto with = [&](std::size_t parts, std::int64_t times, std::int64_t less = 1) {
    Scenario out = scenario;
    for (ScenarioJob& job : out.jobs) {
      job.nodes.resize(job.nodes.size() / parts);
      job.size = Bytes{job.size.count() * times / less};
    }
    return out;
  };
  const std::string said = hint(scenario);
  std::size_t parts = 2;
  while (said != fmt::format("each job on the first 1/{} of its nodes would be answered", parts)) {
    parts *= 2;
    ASSERT_LE(parts, 8U) << said;
  }
  EXPECT_NO_THROW(predict(with(parts, 1), options, catalog));
  EXPECT_THROW(predict(with(parts / 2, 1), options, catalog), TooLarge);
  // Twice as many bytes are too many even for two nodes.
  EXPECT_EQ(hint(with(1, 2)), "1/16 of each job's size would be answered");
  EXPECT_NO_THROW(predict(with(1, 2, 16), options, catalog));
}

TEST(Jobs, PacketsThatTakeTooLongAreRefused) {
  Scenario scenario = two_jobs();
  PredictOptions options;
  options.fidelity = Fidelity::kPacket;
  options.check_only = true;
  EXPECT_TRUE(predict(scenario, options, make_catalog()).rows.empty());
  for (ScenarioJob& job : scenario.jobs) job.size = Bytes::gib(64);
  EXPECT_THROW(predict(scenario, options, make_catalog()), TooLarge);
  options.force = true;
  EXPECT_TRUE(predict(scenario, options, make_catalog()).rows.empty());
}

TEST(Jobs, StoppedBeforeAnyRowTheyHaveNothingToKeep) {
  Stop stop;
  stop.request();
  PredictOptions options;
  options.stop = &stop;
  EXPECT_THROW(predict(two_jobs(), options, make_catalog()), Stopped);
}

}  // namespace
}  // namespace weft::test::models_jobs
