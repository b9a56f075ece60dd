#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/collective/task.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_shared_runs {
namespace {

/// What a prediction says of each row: its time to the last bit, and what took it.
std::string said(const RunResult& result) {
  std::string out;
  for (const ResultRow& row : result.rows) {
    out +=
        fmt::format("{} {} {} {}", row.memory_path, row.time_us, row.nic_gb_per_s, row.trajectory);
    for (const CauseShare& share : row.limited_by) {
      out += fmt::format(", {} of {} {}", share.share, share.cause, share.where);
    }
    out += '\n';
  }
  return out;
}

/// Predictions on a small machine, alone and with runs shared by all of them.
class Compared {
 public:
  Compared() {
    scenario_ = read_scenario(shipped("scenarios/quickstart.yaml"));
    scenario_.topology = shipped("topologies/genoa-2p-same-switch.yaml");
    scenario_.sizes = {Bytes::kib(256)};
    scenario_.memory_paths = {"gdr", "host-staged"};
  }

  /// Whether there is something to compare: not where the machine cannot be so.
  bool compare(PredictOptions options) {
    options.threads = 1;
    try {
      const std::string alone = said(predict(scenario_, options, catalog_));
      options.shared = runs_;
      EXPECT_EQ(said(predict(scenario_, options, catalog_)), alone);
      outcomes_.insert(alone);
      return true;
    } catch (const InputError&) {
      return false;
    }
  }
  const ParamCatalog& catalog() const { return catalog_; }
  std::size_t different() const { return outcomes_.size(); }

 private:
  ParamCatalog catalog_ = make_catalog();
  Scenario scenario_;
  std::shared_ptr<SharedRuns> runs_ = make_shared_runs();
  std::set<std::string> outcomes_;
};

// Whatever a parameter changes in a run is in the key by which runs are shared: each parameter
// halved in turn, and each word of those that are one of several, gives what it gives alone.
TEST(SharedRuns, EveryParameterThatChangesARunIsInItsKey) {
  Compared compared;
  std::size_t predicted = 0;
  for (const ParamSpec& spec : compared.catalog().specs()) {
    SCOPED_TRACE(std::string(spec.key));
    if (spec.choices.empty()) {
      PredictOptions options;
      options.scale = {std::string(spec.key), 0.5};
      if (compared.compare(options)) ++predicted;
    }
    std::istringstream words{std::string(spec.choices)};
    for (std::string word; words >> word;) {
      PredictOptions options;
      try {
        options.set = {parse_setting(fmt::format("{}={}", spec.key, word))};
      } catch (const InputError&) {
        continue;
      }
      if (compared.compare(options)) ++predicted;
    }
  }
  EXPECT_GT(predicted, 200u);
  EXPECT_GT(compared.different(), 40u);
}

// What does not change it is run once: the same again, and more switches that samples do not see.
TEST(SharedRuns, WhatIsAlikeRunsOnce) {
  RunsByKey<int> runs;
  int made = 0;
  const auto make = [&made] {
    PlanRun out;
    out.op = std::to_string(++made);
    return out;
  };
  EXPECT_EQ(runs.of(1, make).op, "1");
  EXPECT_EQ(runs.of(1, make).op, "1");
  EXPECT_EQ(runs.of(2, make).op, "2");
  EXPECT_THROW(runs.of(3, []() -> PlanRun { throw Stopped("stopped"); }), Stopped);
  EXPECT_EQ(runs.of(3, make).op, "3");
}

}  // namespace
}  // namespace weft::test::models_shared_runs
