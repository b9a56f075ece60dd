#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_metamorphic {
namespace {

constexpr const char* kPaths[] = {"gdr", "host-staged"};

TEST(Metamorphic, DoublingEveryRateAndHalvingEveryTimeHalvesTheAnswer) {
  for (const char* path : kPaths) {
    for (const Bytes bytes : {Bytes{8}, Bytes::mib(1), Bytes::mib(256)}) {
      const double slow = predict_one(path, bytes, everything_scaled(1)).time_us;
      const double fast = predict_one(path, bytes, everything_scaled(2)).time_us;
      // A picosecond of rounding an event, thousands of events on the critical path.
      EXPECT_NEAR(slow / fast, 2.0, 1e-5) << path << " " << bytes.count();
    }
  }
}

TEST(Metamorphic, MoreOfAnythingNeverHurtsMuch) {
  // Max-min sharing of a pipelined ring has no anomalies larger than its rounding.
  for (const char* path : kPaths) {
    const double base = predict_one(path, Bytes::mib(256)).time_us;
    for (const char* better : {"nic.rate=800 Gb/s", "switch.pcie_gen=6", "cpu.dram_rate=9600 MT/s",
                               "gpu.nvlink_rate=50 GB/s", "nic.read_tags=768", "nic.mrrs=4096 B"}) {
      EXPECT_LE(predict_one(path, Bytes::mib(256), {better}).time_us, base * 1.001)
          << path << " " << better;
    }
  }
}

TEST(Metamorphic, LargerMessagesTakeLongerWithinOneProtocol) {
  for (const char* path : kPaths) {
    double before = 0;
    for (int i = 25; i <= 30; ++i) {
      const double time = predict_one(path, Bytes{std::int64_t{1} << i}).time_us;
      EXPECT_GT(time, before);
      before = time;
    }
  }
}

TEST(Metamorphic, ThreadsDoNotChangeTheResult) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.sizes = {Bytes{8}, Bytes::mib(1), Bytes::mib(64)};
  PredictOptions options;
  options.threads = 1;
  const std::string one = to_json(predict(scenario, options, make_catalog())).dump();
  options.threads = 4;
  EXPECT_EQ(to_json(predict(scenario, options, make_catalog())).dump(), one);
}

TEST(Metamorphic, SharesSumToOne) {
  for (const char* path : kPaths) {
    for (const Bytes bytes : {Bytes{8}, Bytes::mib(2), Bytes::gib(1)}) {
      double sum = 0;
      for (const CauseShare& c : predict_one(path, bytes).limited_by) sum += c.share;
      EXPECT_NEAR(sum, 1.0, 1e-12);
    }
  }
}

/// Of racks joined side by side, one of them not full, nothing smaller stands for the whole.
TEST(Predict, RefusesAtOnceWhatWouldRunForHours) {
  EXPECT_THROW(predict_one("gdr", Bytes::gib(1), {}, "topologies/racks-32k.yaml", 4095, "alltoall"),
               InputError);
}

}  // namespace
}  // namespace weft::test::models_metamorphic
