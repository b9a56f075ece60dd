#include <set>
#include <sstream>
#include <string>
#include <vector>

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

/// Predictions of a scenario, alone and with runs shared by all of them.
class Compared {
 public:
  Compared(const std::string& topology, std::uint32_t nodes,
           const std::vector<std::string>& settings) {
    scenario_ = read_scenario(shipped("scenarios/quickstart.yaml"));
    scenario_.topology = shipped(topology);
    scenario_.nodes = nodes;
    scenario_.sizes = {Bytes::kib(256)};
    scenario_.memory_paths = {"gdr", "host-staged"};
    for (const std::string& text : settings) scenario_.set.push_back(parse_setting(text));
  }

  /// Whether there is something to compare: not where the machine cannot be so.
  bool compare(PredictOptions options) {
    options.threads = 1;
    std::string alone;
    try {
      alone = said(predict(scenario_, options, catalog_));
    } catch (const InputError&) {
      return false;
    }
    options.shared = runs_;
    EXPECT_EQ(said(predict(scenario_, options, catalog_)), alone);
    outcomes_.insert(alone);
    return true;
  }
  const ParamCatalog& catalog() const { return catalog_; }
  std::size_t different() const { return outcomes_.size(); }
  std::size_t runs() const { return runs_->size(); }

 private:
  ParamCatalog catalog_ = make_catalog();
  Scenario scenario_;
  std::shared_ptr<SharedRuns> runs_ = make_shared_runs();
  std::set<std::string> outcomes_;
};

PredictOptions with(const std::string& setting) {
  PredictOptions options;
  options.set = {parse_setting(setting)};
  return options;
}

/// How many parameters' changes `compared` predicts: each halved in turn, and each word of those
/// that are one of several.
std::size_t change_each(Compared& compared) {
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
      try {
        if (compared.compare(with(fmt::format("{}={}", spec.key, word)))) ++predicted;
      } catch (const InputError&) {
        continue;  // a word that is not set so
      }
    }
  }
  return predicted;
}

// Whatever a parameter changes in a run is in the key by which runs are shared: what is predicted
// then is what it is alone.
TEST(SharedRuns, EveryParameterThatChangesARunIsInItsKey) {
  Compared whole("topologies/genoa-2p-same-switch.yaml", 2, {});
  EXPECT_GT(change_each(whole), 200u);
  EXPECT_GT(whole.different(), 40u);
  EXPECT_LT(whole.runs(), 2 * whole.different() + 40) << "the others change no run";
  Compared sampled("topologies/genoa-2p-same-switch.yaml", 40,
                   {"network.kind=leaf-spine", "network.ports=64", "nccl.algo=Ring"});
  EXPECT_GT(change_each(sampled), 200u);
  EXPECT_GT(sampled.different(), 40u);
}

// Switches that samples do not see make no other run.
TEST(SharedRuns, MorePortsOfSwitchesRunTheSame) {
  Compared trees("topologies/genoa-2p-same-switch.yaml", 64, {"network.kind=fat-tree"});
  EXPECT_TRUE(trees.compare(with("network.ports=8")));
  const std::size_t once = trees.runs();
  EXPECT_GT(once, 0u);
  EXPECT_TRUE(trees.compare(with("network.ports=12")));
  EXPECT_EQ(trees.runs(), once);
}

// What fails is run again when it is asked for again.
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
