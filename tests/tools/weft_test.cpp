#include "tools/weft.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <regex>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::test::tools_weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kTopologies = std::string(WEFT_SOURCE_DIR) + "/topologies/";
const std::string kScenario = "scenario: s\ntopology: " + kTopologies +
                              "hgx-h100-1nic.yaml\nnodes: 2\nmemory_paths: [gdr]\n"
                              "workload: {op: allreduce, sizes: [1 KiB, 64 KiB]}\n";

api::Scenario scenario() { return api::Scenario::parse(kScenario, "s.yaml"); }
api::Topology topology() { return api::Topology::load(kTopologies + "hgx-h100-1nic.yaml"); }

/// The message of the input error that `call` ends with; another end fails the test.
template <class Call>
std::string input_error(Call call) {
  try {
    call();
  } catch (const api::Error& e) {
    EXPECT_EQ(e.kind(), api::Error::Kind::kInput) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

TEST(ApiScenario, PredictsEverySize) {
  const api::Prediction prediction = scenario().predict();
  ASSERT_EQ(prediction.rows.size(), 2U);
  EXPECT_EQ(prediction.rows[0].bytes, 1024);
  EXPECT_EQ(prediction.rows[1].ranks, 16U);
  for (const api::Row& row : prediction.rows) {
    EXPECT_DOUBLE_EQ(row.busbw_gb_per_s, row.algbw_gb_per_s * 30 / 16);
    double shares = 0;
    for (const api::Cause& cause : row.limited_by) shares += cause.share;
    EXPECT_NEAR(shares, 1, 1e-9);
  }
  EXPECT_THAT(prediction.json, HasSubstr("\"weft.run/1\""));
}

TEST(ApiScenario, IsChangedBySettingsAndVariables) {
  const api::Prediction before = scenario().predict();
  EXPECT_EQ(scenario().set("nccl.proto", "Simple").predict().rows[0].proto, "Simple");
  EXPECT_EQ(scenario().env("NCCL_PROTO", "Simple").predict().rows[0].proto, "Simple");
  EXPECT_EQ(before.rows[0].proto, "LL");
  EXPECT_EQ(scenario().set("nodes", "4").predict().rows[0].ranks, 32U);
  const std::string eight =
      std::regex_replace(std::string(kScenario), std::regex("nodes: 2"), "nodes: 8");
  api::Scenario left = api::Scenario::parse(eight, "s.yaml");
  EXPECT_EQ(left.set("failed.nodes", "5").predict().rows[0].ranks, 24U);
  EXPECT_GT(scenario().set("wire.rate", "10 Gb/s").predict().rows[1].time_us,
            before.rows[1].time_us);
}

TEST(ApiScenario, StaysAsItWasWhereASettingIsRefused) {
  api::Scenario s = scenario();
  EXPECT_THAT(input_error([&] { s.set("wire.rte", "1 GB/s"); }), HasSubstr("wire.rate"));
  EXPECT_THAT(input_error([&] { s.set("wire.rate", "400"); }), HasSubstr("no unit"));
  EXPECT_THAT(input_error([&] { s.env("PATH", "/bin"); }), HasSubstr("PATH"));
  EXPECT_EQ(s.predict().json, scenario().predict().json);
}

TEST(ApiScenario, IsOneValueForManyThreads) {
  const api::Scenario s = scenario();
  const std::string alone = s.predict().json;
  std::vector<std::string> together(4);
  std::vector<std::thread> threads;
  for (std::string& json : together) threads.emplace_back([&] { json = s.predict().json; });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& json : together) EXPECT_EQ(json, alone);
}

TEST(ApiScenario, SaysWhichMemoryPathsAreNotRun) {
  const std::string both =
      std::string(kScenario).replace(kScenario.find("[gdr]"), 5, "[gdr, host-staged]");
  EXPECT_TRUE(api::Scenario::parse(both, "s.yaml").predict().not_run.empty());
  const api::Prediction prediction =
      api::Scenario::parse(both, "s.yaml").set("nodes", "1").predict();
  ASSERT_EQ(prediction.not_run.size(), 1U);
  EXPECT_EQ(prediction.not_run[0].op, "allreduce");
  EXPECT_EQ(prediction.not_run[0].memory_path, "host-staged");
  EXPECT_EQ(prediction.not_run[0].why, "inside one node no NIC is used");
  EXPECT_EQ(prediction.not_run[0].bytes, 0);
}

TEST(ApiScenario, AsksTheCallersThreadWhetherToStop) {
  std::vector<std::thread::id> asked;
  const auto never = [&asked] {
    asked.push_back(std::this_thread::get_id());
    return false;
  };
  EXPECT_EQ(scenario().predict({.stop = never}).json, scenario().predict().json);
  ASSERT_FALSE(asked.empty());
  for (const std::thread::id& thread : asked) EXPECT_EQ(thread, std::this_thread::get_id());
}

/// What a prediction that takes minutes ends with, if `stop` throws when asked the second time.
template <class Thrown>
std::string ended_by(const Thrown& thrown) {
  const std::string text =
      "scenario: s\ntopology: " + kTopologies +
      "hgx-h100-8nic.yaml\nnodes: 31\nmemory_paths: [gdr]\n"
      "workload: {op: allreduce, algo: Ring, sizes: [16 GiB]}\n"
      "set: {nccl.decisions: simple, nccl.proto: Simple, network.kind: leaf-spine, "
      "network.ports: 64}\n";
  int asked = 0;
  const auto stop = [&] {
    if (++asked == 2) throw thrown;
    return false;
  };
  try {
    api::Scenario::parse(text, "s.yaml").predict({.stop = stop});
  } catch (const api::Error& e) {
    EXPECT_EQ(e.kind(), api::Error::Kind::kInternal) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "runs on";
  return "";
}

TEST(ApiScenario, WhatStopThrowsEndsTheRunAndIsAnError) {
  EXPECT_EQ(ended_by(std::runtime_error("of stop")), "of stop");
  EXPECT_THAT(ended_by(7), HasSubstr("no std::exception"));
}

TEST(ApiScenario, StoppedBeforeTheFirstRowThrows) {
  try {
    scenario().predict({.stop = [] { return true; }});
    ADD_FAILURE() << "went on";
  } catch (const api::Error& e) {
    EXPECT_EQ(e.kind(), api::Error::Kind::kStopped) << e.what();
  }
}

TEST(ApiScenario, RowsOfJobsNameThem) {
  const api::Prediction prediction =
      api::Scenario::load(std::string(WEFT_SOURCE_DIR) + "/scenarios/planning/two-jobs.yaml")
          .predict();
  ASSERT_FALSE(prediction.rows.empty());
  for (const api::Row& row : prediction.rows) {
    EXPECT_FALSE(row.job.empty());
    EXPECT_GT(row.alone_us, 0);
    EXPECT_LE(row.alone_us, row.time_us * (1 + 1e-9));
  }
}

TEST(ApiTopology, ShowsPairsAndMeasuresOne) {
  const api::Shown shown = topology().show();
  ASSERT_EQ(shown.pairs.size(), 8U);
  EXPECT_EQ(shown.pairs[0].gpu, "gpu0");
  EXPECT_GT(shown.pairs[0].nic_writes_gpu_gb_per_s, 0);
  const api::Perftest wide = topology().perftest();
  ASSERT_EQ(wide.rows.size(), 1U);
  EXPECT_EQ(wide.from, "gpu0@0");
  const api::Perftest narrow = topology().set("nic.pcie_width", "4").perftest();
  EXPECT_LT(narrow.rows[0].average_gbit_per_s, 0.6 * wide.rows[0].average_gbit_per_s);
}

TEST(ApiTopology, PerftestSaysWhatHasNoEffect) {
  api::PerftestOptions options;
  options.iterations = 5;
  options.rx_depth = 4;
  options.seed = 2;
  const api::Perftest asked = topology().perftest(options);
  EXPECT_THAT(asked.notes,
              ::testing::ElementsAre("no effect on rates and latency with --op write --mem gpu: "
                                     "--rx-depth",
                                     "the seed has no effect: nothing in this run is random"));
  EXPECT_THAT(topology().perftest({.bytes = {4096}}).notes, ::testing::IsEmpty());
}

TEST(ApiTopology, SaysWhichSettingsHaveNoEffect) {
  const auto of_perftest = topology().set("nccl.launch", "graph").perftest({.bytes = {4096}});
  EXPECT_THAT(of_perftest.notes, ElementsAre("no effect on perftest: nccl.launch"));
  const auto of_copies = topology().set("nic.rate", "200 Gb/s").copies({.to = "gpu0"});
  EXPECT_THAT(of_copies.notes, ElementsAre("no effect on copies: nic.rate"));
}

TEST(ApiTopology, CopiesHaveTheRateOfEachWay) {
  const api::Copies both =
      topology().copies({.from = "cpu0", .to = "gpu0", .bidirectional = true, .bytes = {1 << 26}});
  const api::CopyRow& row = both.rows.at(0);
  ASSERT_TRUE(row.back_gb_per_s);
  EXPECT_GT(*row.back_gb_per_s, 0);
  EXPECT_NEAR(row.gb_per_s, 2 * std::min(row.forth_gb_per_s, *row.back_gb_per_s),
              1e-6 * row.gb_per_s);
}

TEST(ApiTopology, PerftestOfAllSizes) {
  const api::PerftestOptions options{.iterations = 24, .tx_depth = 8, .all = true};
  const api::Perftest all = topology().perftest(options);
  ASSERT_EQ(all.rows.size(), 23U);
  EXPECT_EQ(all.rows.front().bytes, 2);
  EXPECT_EQ(all.rows.back().bytes, 8 << 20);
  const auto one_by_one = HasSubstr("\"cq_moderation\": 1,");
  EXPECT_FALSE(::testing::Value(all.json, one_by_one));
  api::PerftestOptions large = options;
  large.all = false;
  EXPECT_TRUE(::testing::Value(topology().perftest(large).json, one_by_one));
}

TEST(ApiTopology, OptionsSayWhichGpusTheseAre) {
  EXPECT_EQ(topology().perftest({.gpu = "a100-sxm"}).json,
            topology().set("gpu.part", "a100-sxm").perftest().json);
  EXPECT_EQ(topology().copies({.to = "gpu0", .gpu = "a100-sxm"}).json,
            topology().set("gpu.part", "a100-sxm").copies({.to = "gpu0"}).json);
  EXPECT_EQ(topology().copies({.to = "gpu0", .all = true}).rows.size(), 25U);
}

TEST(ApiTopology, Copies) {
  api::CopiesOptions options;
  options.to = "gpu0,gpu1";
  options.bytes = {1 << 20, 1 << 26};
  const api::Copies pairs = topology().copies(options);
  ASSERT_EQ(pairs.rows.size(), 4U);
  EXPECT_EQ(pairs.rows[3].to, "gpu1");
  EXPECT_EQ(pairs.rows[3].kind, "h2d");
  EXPECT_EQ(pairs.rows[3].by, "engine");
  EXPECT_GE(pairs.rows[3].copies, 1U);
  EXPECT_GT(pairs.rows[3].gb_per_s, pairs.rows[1].gb_per_s);
  EXPECT_FALSE(pairs.rows[3].limited_by.empty());
  EXPECT_EQ(pairs.rows[3].forth_gb_per_s, pairs.rows[3].gb_per_s);
  EXPECT_FALSE(pairs.rows[3].back_gb_per_s);
  EXPECT_THAT(pairs.json, HasSubstr("\"weft.copies/1\""));
  EXPECT_THAT(topology().copies().text, HasSubstr("Running host_to_device_memcpy_ce."));
}

/// Two nodes of one GPU and NIC each, and what an all-reduce takes on them as a measured table.
const std::string kSmall =
    "topology: small\nnodes: 2\nnode:\n  devices:\n    cpu0: {kind: cpu, part: sapphire-rapids}\n"
    "    sw0: {kind: switch, part: pex89144, upstream: cpu0}\n"
    "    gpu0: {kind: gpu, part: h100-sxm, upstream: sw0}\n"
    "    nic0: {kind: nic, part: connectx-7, upstream: sw0, network: fabric}\n"
    "network:\n  fabric: {kind: one-switch, part: quantum-2}\n";

api::Topology small() { return api::Topology::parse(kSmall, "small.yaml"); }

api::ExpectOptions two_sizes() {
  api::ExpectOptions out;
  out.bytes = {1 << 20, 64 << 20};
  return out;
}

/// What would be measured where an all-reduce takes so many times longer.
api::Log measured(const std::vector<api::ExpectedRow>& rows, double times) {
  std::string text = "transport,memory_path,hosts,ranks,op,bytes,us\n";
  for (const api::ExpectedRow& row : rows) {
    text += "net,gdr,2,2,allreduce," + std::to_string(row.bytes) + "," +
            std::to_string(times * row.time_us) + "\n";
  }
  return api::Log::parse(text, "log.csv");
}

TEST(ApiExpect, GivesEachSizeAnInterval) {
  const api::Expected expected = small().expect(two_sizes());
  ASSERT_EQ(expected.rows.size(), 2U);
  for (const api::ExpectedRow& row : expected.rows) {
    EXPECT_EQ(row.state, "healthy");
    EXPECT_EQ(row.nodes, 2U);
    EXPECT_LE(row.floor_gb_per_s.value_or(0), row.low_gb_per_s);
    EXPECT_LE(row.low_gb_per_s, row.busbw_gb_per_s);
    EXPECT_GE(row.high_gb_per_s, row.busbw_gb_per_s);
    EXPECT_FALSE(row.limited_by.empty());
    EXPECT_EQ(row.qps, 0);
  }
  EXPECT_THAT(expected.json, HasSubstr("\"weft.expect/1\""));
  EXPECT_THAT(expected.text, HasSubstr("small.yaml"));
}

TEST(ApiExpect, ShowsTheMachineAsItWasSet) {
  const api::Expected expected = small().set("nic.trained_width", "2").expect(two_sizes());
  ASSERT_EQ(expected.rows.size(), 4U);
  EXPECT_EQ(expected.rows[3].state, "found");
  EXPECT_LT(expected.rows[3].busbw_gb_per_s, 0.7 * expected.rows[1].busbw_gb_per_s);
  EXPECT_THAT(expected.mended, ::testing::ElementsAre("without nic.trained_width=2"));
  api::ExpectOptions set = two_sizes();
  set.set = {{"nic.trained_width", "2"}};
  EXPECT_EQ(small().expect(set).json, expected.json);
}

TEST(ApiExpect, OfPerftestHasItsColumns) {
  api::ExpectOptions options;
  options.tool = "perftest";
  options.bytes = {65536};
  options.qps = 2;
  const api::Expected expected = small().expect(options);
  ASSERT_EQ(expected.rows.size(), 1U);
  EXPECT_EQ(expected.rows[0].op, "write_bw");
  EXPECT_EQ(expected.rows[0].qps, 2);
  EXPECT_EQ(expected.rows[0].tx_depth, 128);
}

TEST(ApiExpect, OfLatencyTestsHasTheIntervalInTime) {
  api::ExpectOptions options;
  options.tool = "perftest";
  options.op = {"write_lat", "write_bw"};
  options.bytes = {8};
  const api::Expected expected = small().expect(options);
  ASSERT_EQ(expected.rows.size(), 2U);
  const api::ExpectedRow& latency = expected.rows[expected.rows[0].op == "write_lat" ? 0 : 1];
  ASSERT_TRUE(latency.low_us && latency.high_us);
  EXPECT_LT(*latency.low_us, latency.time_us);
  EXPECT_GT(*latency.high_us, latency.time_us);
  const std::string in_json = std::to_string(*latency.low_us).substr(0, 5);
  EXPECT_THAT(expected.json, HasSubstr("\"low_us\": " + in_json));
  const api::ExpectedRow& bandwidth = expected.rows[expected.rows[0].op == "write_lat" ? 1 : 0];
  EXPECT_FALSE(bandwidth.low_us || bandwidth.high_us);
}

TEST(ApiExpect, HoldsWhatWasMeasuredAgainstFloors) {
  const api::Topology machine = topology().set("nodes", "2");
  const api::Expected expected = machine.expect(two_sizes());
  ASSERT_FALSE(expected.gate.empty());
  std::string log = "transport,memory_path,hosts,ranks,op,bytes,us\n";
  for (const api::ExpectedRow& row : expected.rows) {
    log += "net,gdr,2,16,allreduce," + std::to_string(row.bytes) + "," +
           std::to_string(row.bytes == 1 << 20 ? row.time_us : 9 * row.time_us) + "\n";
  }
  const std::string gate =
      ::testing::TempDir() + "/weft_gate_" + std::to_string(::getpid()) + ".json";
  std::ofstream(gate) << expected.gate;
  api::ExpectOptions options;
  options.measured = api::Log::parse(log, "log.csv");
  for (const api::Expected& held : {machine.expect(options), api::expect({gate}, options)}) {
    EXPECT_TRUE(held.rows.empty());
    ASSERT_EQ(held.judged.size(), 2U);
    EXPECT_EQ(held.judged[0].verdict, "ok");
    EXPECT_EQ(held.judged[0].line, 2);
    EXPECT_EQ(held.judged[1].verdict, "below the floor");
    ASSERT_TRUE(held.judged[1].floor_gb_per_s);
    EXPECT_LT(held.judged[1].measured_gb_per_s, *held.judged[1].floor_gb_per_s);
    EXPECT_FALSE(held.judged[1].found_low_gb_per_s);
    EXPECT_EQ(held.below_floor, 1U);
    EXPECT_TRUE(held.failures.empty());
    EXPECT_EQ(held.gate, "");
  }
  std::remove(gate.c_str());
}

TEST(ApiExpect, RefusesWhatTheCommandRefuses) {
  const auto refused = [](auto change) {
    return input_error([&] {
      api::ExpectOptions options;
      change(options);
      small().expect(options);
    });
  };
  EXPECT_THAT(refused([](auto& o) { o.tool = "iperf"; }), HasSubstr("known: nccl-tests"));
  EXPECT_THAT(refused([](auto& o) { o.op = {"write_bw"}; }), HasSubstr("not an operation"));
  EXPECT_THAT(refused([](auto& o) { o.bytes = {0}; }), HasSubstr("allowed: 1 B to 4 TiB"));
  EXPECT_THAT(refused([](auto& o) { o.bytes = {INT64_MAX}; }), HasSubstr("allowed: 1 B to 4 TiB"));
  EXPECT_THAT(refused([](auto& o) { o.bytes = {2, 1}; }), HasSubstr("must ascend"));
  EXPECT_THAT(refused([](auto& o) { o.qps = 2; }), HasSubstr("go with --tool perftest"));
  EXPECT_THAT(refused([](auto& o) { o.nodes = 1U << 20; }), HasSubstr("--nodes 1048576: at most"));
  EXPECT_THAT(refused([](auto& o) { o.as = "ranks=2"; }), HasSubstr("--as goes with --measured"));
  EXPECT_THAT(refused([](auto& o) { o.seed = ~std::uint64_t{0}; }),
              HasSubstr("from 0 to 9007199254740991"));
  EXPECT_THAT(input_error([] { api::expect({}); }), HasSubstr("machine is required"));
  EXPECT_THAT(input_error([] { api::expect({"nowhere.yaml"}); }), HasSubstr("no such file"));
}

std::vector<api::ExpectedRow> with_narrow_links(const char* width,
                                                const api::ExpectOptions& sizes) {
  std::vector<api::ExpectedRow> slow;
  for (const api::ExpectedRow& row : small().set("nic.trained_width", width).expect(sizes).rows) {
    if (row.state == "found") slow.push_back(row);
  }
  return slow;
}

std::vector<std::string> causes_of(const api::Answer& answer) {
  std::vector<std::string> ids;
  for (const api::Suspect& suspect : answer.causes) ids.push_back(suspect.id);
  for (const auto& causes : answer.alternatives) ids.push_back(causes.front().id);
  return ids;
}

TEST(ApiExplain, NamesTheCauseThatTheRunHas) {
  api::ExpectOptions sizes;
  for (int log2 = 18; log2 <= 28; log2 += 2) sizes.bytes.push_back(std::int64_t{1} << log2);
  const std::vector<api::ExpectedRow> healthy = small().expect(sizes).rows;
  const std::vector<api::ExpectedRow> slow = with_narrow_links("8", sizes);
  api::ExplainOptions options;
  options.machine = small();
  options.healthy = measured(healthy, 1);
  const api::Explanation explanation = api::explain(measured(slow, 1), options);
  EXPECT_EQ(explanation.verdict, "explained");
  EXPECT_EQ(explanation.machine, "small.yaml");
  ASSERT_EQ(explanation.points.size(), sizes.bytes.size());
  EXPECT_GT(explanation.points[1].slow_us, explanation.points[1].healthy_us);
  ASSERT_FALSE(explanation.answers.empty());
  const api::Answer& first = explanation.answers.front();
  EXPECT_TRUE(first.alike);
  EXPECT_EQ(first.effects.size(), sizes.bytes.size());
  ASSERT_TRUE(first.explains);
  EXPECT_NEAR(*first.explains, 1, 0.1);
  EXPECT_THAT(causes_of(first), ::testing::Contains("nic-link"));
  EXPECT_FALSE(first.causes.front().verify.empty());
  EXPECT_FALSE(explanation.not_looked_at.empty());
  EXPECT_THAT(explanation.json, HasSubstr("\"weft.explain/1\""));
  EXPECT_EQ(api::explain(measured(healthy, 1), options).verdict, "not slower");
}

// Of two sizes much is left to how often a cause is reported: it need not be the first.
TEST(ApiExplain, NamesTheCauseAmongOthersOfTwoSizes) {
  api::ExplainOptions options;
  options.machine = small();
  options.healthy = measured(small().expect(two_sizes()).rows, 1);
  const api::Explanation explanation =
      api::explain(measured(with_narrow_links("4", two_sizes()), 1), options);
  EXPECT_EQ(explanation.verdict, "explained");
  std::vector<std::string> all;
  for (const api::Answer& answer : explanation.answers) {
    const std::vector<std::string> ids = causes_of(answer);
    if (answer.alike) all.insert(all.end(), ids.begin(), ids.end());
  }
  EXPECT_THAT(all, ::testing::Contains("nic-link"));
}

TEST(ApiExplain, TakesTheMachineThatEvidenceShows) {
  const std::string lspci =
      std::string(WEFT_SOURCE_DIR) + "/tests/data/evidence/lspci-vvv-dell-h100.txt";
  api::ExplainOptions options;
  options.machine = small();
  options.evidence = {lspci};
  const std::vector<api::ExpectedRow> healthy = small().expect(two_sizes()).rows;
  const api::Explanation explanation = api::explain(measured(healthy, 3), options);
  EXPECT_NE(explanation.verdict, "not slower");
  ASSERT_FALSE(explanation.ruled_out.empty());
  EXPECT_FALSE(explanation.ruled_out.front().said.empty());
}

TEST(ApiExplain, MendsTheMachineThatEvidenceShowsWhereNoneIsGiven) {
  api::ExplainOptions options;
  options.evidence = {std::string(WEFT_SOURCE_DIR) +
                      "/tests/data/evidence/lspci-vvv-dell-h100.txt"};
  options.gpu = "h100-sxm";
  const api::Log log = api::Log::parse(
      "transport,hosts,ranks,op,bytes,us\nnvlink,1,2,allreduce,1048576,500\n"
      "nvlink,1,2,allreduce,67108864,5000\n",
      "log.csv");
  const api::Explanation explanation = api::explain(log, options);
  EXPECT_EQ(explanation.machine, "the evidence's machine, mended");
  EXPECT_EQ(explanation.nodes, 1);
  ASSERT_EQ(explanation.points.size(), 2U);
  EXPECT_FALSE(explanation.points[0].healthy_us);
  EXPECT_DOUBLE_EQ(explanation.points[1].busbw_gb_per_s, 67108864 / 5000e3);
}

TEST(ApiExplain, RefusesWhatTheCommandRefuses) {
  const api::Log log = measured(small().expect(two_sizes()).rows, 1);
  EXPECT_THAT(input_error([&] { api::explain(log); }), HasSubstr("which machine is it?"));
  EXPECT_THAT(input_error([] { api::Log::load("nowhere.txt"); }), HasSubstr("no such file"));
  api::ExplainOptions options;
  options.machine = small();
  EXPECT_THAT(input_error([&] { api::explain(api::Log::parse("?", "odd.txt"), options); }),
              HasSubstr("odd.txt"));
  options.set = {{"nic.trained_wdth", "2"}};
  EXPECT_THAT(input_error([&] { api::explain(log, options); }), HasSubstr("nic.trained_width"));
}

TEST(ApiExpect, OptionsBeatWhatTheMachineWasSetTo) {
  api::ExpectOptions options = two_sizes();
  const auto first_of = [&](api::Topology machine) {
    return machine.expect(options).rows.front().time_us;
  };
  const double graph = first_of(small().set("nccl.launch", "graph"));
  const double single = first_of(small().set("nccl.launch", "single"));
  EXPECT_NE(graph, single);
  options.launch = "single";
  EXPECT_EQ(first_of(small().set("nccl.launch", "graph")), single);
}

TEST(ApiStop, ComesBeforeAllIsPredicted) {
  const auto kind = [](auto call) {
    try {
      call([] { return true; });
    } catch (const api::Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("stopped before all"));
      return e.kind();
    }
    ADD_FAILURE() << "went on";
    return api::Error::Kind::kInput;
  };
  EXPECT_EQ(kind([](auto stop) {
              api::ExpectOptions options = two_sizes();
              options.stop = stop;
              small().expect(options);
            }),
            api::Error::Kind::kStopped);
  EXPECT_EQ(kind([](auto stop) {
              api::ExpectOptions options;
              options.tool = "perftest";
              options.stop = stop;
              small().expect(options);
            }),
            api::Error::Kind::kStopped);
  EXPECT_EQ(kind([](auto stop) { small().perftest({.stop = stop}); }), api::Error::Kind::kStopped);
  EXPECT_EQ(kind([](auto stop) { small().copies({.stop = stop}); }), api::Error::Kind::kStopped);
  const api::Log log = measured(small().expect(two_sizes()).rows, 1);
  EXPECT_EQ(kind([&](auto stop) {
              api::ExplainOptions options;
              options.machine = small();
              options.stop = stop;
              api::explain(log, options);
            }),
            api::Error::Kind::kStopped);
}

TEST(ApiStop, ComesInTheMiddleOfASize) {
  const auto is_stopped = [](auto call) {
    int asked = 0;
    try {
      call([&] { return ++asked > 1; });
    } catch (const api::Error& e) {
      EXPECT_EQ(e.kind(), api::Error::Kind::kStopped) << e.what();
      EXPECT_GT(asked, 1);
      return true;
    }
    return false;
  };
  EXPECT_TRUE(
      is_stopped([](auto stop) { small().perftest({.iterations = 100'000, .stop = stop}); }));
  EXPECT_TRUE(is_stopped([](auto stop) {
    small().copies({.to = "gpu0", .fidelity = "packet", .bytes = {1 << 30}, .stop = stop});
  }));
}

TEST(ApiStop, WhatItThrowsComesOutAsItIsIfItIsAnError) {
  try {
    small().perftest(
        {.stop = []() -> bool { throw api::Error(api::Error::Kind::kInput, "of stop"); }});
    ADD_FAILURE() << "went on";
  } catch (const api::Error& e) {
    EXPECT_EQ(e.kind(), api::Error::Kind::kInput);
    EXPECT_STREQ(e.what(), "of stop");
  }
}

TEST(ApiErrors, AreOneTypeForEveryInput) {
  EXPECT_THAT(input_error([] { api::Scenario::load("nowhere.yaml"); }),
              HasSubstr("nowhere.yaml: no such file"));
  EXPECT_THAT(input_error([] { api::Scenario::parse("scenario: s\n", "f.yaml"); }),
              HasSubstr("f.yaml:1:1: missing key"));
  EXPECT_THAT(input_error([] { api::Topology::parse("<system", "f.xml"); }), HasSubstr("f.xml"));
  EXPECT_THAT(input_error([] { scenario().predict({.fidelity = "exact"}); }), HasSubstr("exact"));
  EXPECT_THAT(input_error([] { scenario().predict({.seed = ~std::uint64_t{0}}); }),
              HasSubstr("from 0 to 9007199254740991"));
  const auto perftest = [](auto change) {
    return input_error([&] {
      api::PerftestOptions options;
      change(options);
      topology().perftest(options);
    });
  };
  EXPECT_THAT(perftest([](auto& o) { o.op = "atomic"; }), HasSubstr("known: read, send, write"));
  EXPECT_THAT(perftest([](auto& o) { o.bytes = {0}; }), HasSubstr("allowed are 1 B"));
  EXPECT_THAT(perftest([](auto& o) { o.bytes = {1LL << 40}; }), HasSubstr("64 MiB"));
  EXPECT_THAT(perftest([](auto& o) { o.bytes = {}; }), HasSubstr("--size: name a message size"));
  EXPECT_THAT(perftest([](auto& o) { o.seed = ~std::uint64_t{0}; }), HasSubstr("--seed '1844"));
  EXPECT_THAT(perftest([](auto& o) { o.tx_depth = 1U << 30; }), HasSubstr("at most 15000"));
  EXPECT_THAT(perftest([](auto& o) { o.from = "gpu99"; }), HasSubstr("no such device"));
  EXPECT_THAT(input_error([] { topology().copies({.by = "hand"}); }), HasSubstr("known: engine"));
  EXPECT_THAT(input_error([] { topology().copies({.bytes = {64}, .all = true}); }),
              HasSubstr("--all and --size: give one"));
  EXPECT_THAT(input_error([] { topology().copies({.to = "nic0"}); }), HasSubstr("not a GPU"));
}

TEST(ApiParameters, AreWhatMayBeSet) {
  const std::vector<api::Parameter> all = api::parameters();
  for (const char* key : {"nodes", "nic.count", "network.kind", "gpu.part", "wire.rate"}) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const auto& p) { return p.key == key; }))
        << key;
  }
  EXPECT_THAT(api::version(), ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_FALSE(api::commit().empty());
}

}  // namespace
}  // namespace weft::test::tools_weft
