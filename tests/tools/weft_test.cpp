#include "tools/weft.hpp"

#include <algorithm>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::test::tools_weft {
namespace {

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
  const std::string text = "scenario: s\ntopology: " + kTopologies +
                           "hgx-h100-8nic.yaml\nnodes: 31\nmemory_paths: [gdr]\n"
                           "workload: {op: allreduce, algo: Ring, sizes: [16 GiB]}\n"
                           "set: {nccl.decisions: simple, nccl.proto: Simple}\n";
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
  EXPECT_LT(narrow.rows[0].average_gbps, 0.6 * wide.rows[0].average_gbps);
}

TEST(ApiTopology, Copies) {
  api::CopiesOptions options;
  options.to = "gpu0,gpu1";
  options.bytes = {1 << 20, 1 << 26};
  const api::Copies pairs = topology().copies(options);
  ASSERT_EQ(pairs.rows.size(), 4U);
  EXPECT_EQ(pairs.rows[3].to, "gpu1");
  EXPECT_EQ(pairs.rows[3].kind, "h2d");
  EXPECT_GT(pairs.rows[3].gb_per_s, pairs.rows[1].gb_per_s);
  EXPECT_FALSE(pairs.rows[3].limited_by.empty());
  EXPECT_THAT(pairs.json, HasSubstr("\"weft.copies/1\""));
  EXPECT_THAT(topology().copies().text, HasSubstr("Running host_to_device_memcpy_ce."));
}

TEST(ApiErrors, AreOneTypeForEveryInput) {
  EXPECT_THAT(input_error([] { api::Scenario::load("nowhere.yaml"); }),
              HasSubstr("nowhere.yaml: no such file"));
  EXPECT_THAT(input_error([] { api::Scenario::parse("scenario: s\n", "f.yaml"); }),
              HasSubstr("f.yaml:1:1: missing key"));
  EXPECT_THAT(input_error([] { api::Topology::parse("<system", "f.xml"); }), HasSubstr("f.xml"));
  EXPECT_THAT(input_error([] { scenario().predict({.fidelity = "exact"}); }), HasSubstr("exact"));
  EXPECT_THAT(input_error([] { scenario().predict({.seed = ~std::uint64_t{0}}); }),
              HasSubstr("2^53"));
  const auto perftest = [](auto change) {
    return input_error([&] {
      api::PerftestOptions options;
      change(options);
      topology().perftest(options);
    });
  };
  EXPECT_THAT(perftest([](auto& o) { o.op = "atomic"; }), HasSubstr("known: read, send, write"));
  EXPECT_THAT(perftest([](auto& o) { o.bytes = {0}; }), HasSubstr("at least 1 B"));
  EXPECT_THAT(perftest([](auto& o) { o.bytes = {1LL << 40}; }), HasSubstr("64 MiB"));
  EXPECT_THAT(perftest([](auto& o) { o.tx_depth = 1U << 30; }), HasSubstr("at most 15000"));
  EXPECT_THAT(perftest([](auto& o) { o.from = "gpu99"; }), HasSubstr("no such device"));
  EXPECT_THAT(input_error([] { topology().copies({.by = "hand"}); }), HasSubstr("known: engine"));
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
