// Rings over an odd number of nodes, of which one hop is out of turn: rings over an even number
// stand for them.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_odd_rings {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

struct OddRing {
  const char* topology;
  std::uint32_t nodes;
  const char* op;
  Bytes bytes;
  std::vector<std::string> settings;
  const char* memory_path;
};

RunResult run(const OddRing& ring, bool folds) {
  Scenario scenario = scenario_of(ring.topology, ring.nodes, ring.op, ring.bytes);
  scenario.memory_paths = {ring.memory_path};
  PredictOptions options;
  options.threads = 1;
  options.folds = folds;
  options.set.push_back(parse_setting("nccl.algo=Ring"));
  for (const std::string& text : ring.settings) options.set.push_back(parse_setting(text));
  return predict(scenario, options, make_catalog());
}

/// Of the sample's time over the whole run's.
void expect_alike(const OddRing& ring, double tolerance) {
  const RunResult few = run(ring, true);
  const RunResult whole = run(ring, false);
  const std::string what = std::string(ring.topology) + " " + ring.op;
  EXPECT_NEAR(few.rows.at(0).time_us, whole.rows.at(0).time_us,
              tolerance * whole.rows.at(0).time_us)
      << what;
  EXPECT_THAT(few.rows.at(0).extended, Contains(Field(&ResultRow::Extended::by, "ring"))) << what;
  EXPECT_THAT(few.notes, Contains(HasSubstr("as rings over even numbers of nodes"))) << what;
  EXPECT_TRUE(whole.rows.at(0).extended.empty()) << what;
}

TEST(OddRings, OverOneSwitchTheyTakeAsLongAsEvenOnes) {
  for (const char* protocol : {"nccl.proto=LL", "nccl.proto=LL128", "nccl.proto=Simple"}) {
    for (const char* path : {"gdr", "host-staged"}) {
      expect_alike({"genoa-2p.yaml", 37, "allreduce", Bytes::mib(1), {protocol}, path}, 1e-4);
      expect_alike({"genoa-2p.yaml", 41, "allgather", Bytes::mib(16), {protocol}, path}, 1e-4);
    }
  }
  expect_alike({"hgx-h100-8nic.yaml", 33, "allreduce", Bytes::mib(4), {}, "gdr"}, 0.01);
}

TEST(OddRings, OverSeveralSwitchesNearlySo) {
  for (const char* routing : {"wire.routing=spread", "wire.routing=ecmp"}) {
    expect_alike({"hgx-h100-2nic.yaml",
                  33,
                  "reducescatter",
                  Bytes::mib(8),
                  {"network.kind=leaf-spine", "network.ports=32", routing},
                  "gdr"},
                 0.02);
  }
}

// With one GPU a node what follows what differs there from one ring of few bytes to another: such
// rings run whole, which takes less than a second.
TEST(OddRings, OverSeveralSwitchesShortOnesRunWhole) {
  for (const std::uint32_t nodes : {40U, 41U}) {
    const OddRing ring{"genoa-2p-same-switch.yaml",
                       nodes,
                       "allreduce",
                       Bytes::kib(32),
                       {"network.kind=leaf-spine", "network.ports=64"},
                       "gdr"};
    const ResultRow row = run(ring, true).rows.at(0);
    EXPECT_EQ(row.time_us, run(ring, false).rows.at(0).time_us);
    EXPECT_TRUE(row.extended.empty());
  }
}

}  // namespace
}  // namespace weft::test::models_odd_rings
