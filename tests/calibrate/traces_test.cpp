#include "replay/calibrate/traces.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/calibrate/calibrate.hpp"
#include "replay/calibrate/least_squares.hpp"
#include "replay/calibrate/selection.hpp"
#include "replay/simulate/simulate.hpp"
#include "tests/calibrate/synthetic.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/trace/traces.hpp"

namespace weft::test::calibrate_traces {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using trace::Opcode;

constexpr const char* kTopology = "hgx-h100-8nic.yaml";

/// What a run does: so many operations of a size, `depth` of them under way.
struct Work {
  Opcode opcode;
  std::uint32_t bytes;
  std::uint64_t depth;
};
constexpr std::uint64_t kOperations = 40;
constexpr std::uint64_t kThinkNs = 400;

/// The run as a trace: operations posted and done at the given times, in nanoseconds.
template <typename Times>
void write_run(const std::string& path, const Work& run, Times times) {
  TraceMaker maker(path, "h");
  maker.pair(7, 100, 200);
  struct Event {
    std::uint64_t ns;
    bool is_completion;
    std::uint64_t id;
  };
  std::vector<Event> events;
  for (std::uint64_t i = 0; i < kOperations; ++i) {
    const auto [posted, done] = times(i);
    events.push_back({posted, false, i});
    events.push_back({done, true, i});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.ns < b.ns; });
  for (const Event& e : events) {
    const TraceMaker::Request request{.id = e.id, .bytes = run.bytes};
    e.is_completion ? maker.completion(7, run.opcode, e.ns, request)
                    : maker.post(7, run.opcode, e.ns, request);
  }
  maker.finish();
}

std::uint64_t ns_of(const std::optional<Duration>& time) {
  return static_cast<std::uint64_t>(time.value().count_ps() / 1000);
}

class CalibrateTraces : public testing::Test {
 protected:
  /// A run as weft predicts it with some settings: a program that thinks kThinkNs after each
  /// completion, and then posts the next one. Its times are long, so that thought is all that the
  /// program itself brings.
  std::string predicted(const std::string& name, const Work& run,
                        const std::vector<std::string>& settings) {
    const std::string skeleton = folder_.file(name + ".skeleton");
    write_run(skeleton, run, [&](std::uint64_t i) {
      constexpr std::uint64_t kRound = 1'000'000;
      const std::uint64_t round = i / run.depth;
      const std::uint64_t within = i % run.depth;
      const std::uint64_t posted = round * (kRound + kThinkNs) + within;
      return std::pair(posted, round * (kRound + kThinkNs) + kRound - run.depth + within);
    });
    const replay::Recorded recorded = replay::read_recorded(skeleton);
    const MachineUnderTest m(kTopology, settings);
    const replay::Ends ends(m.machine(), recorded, {});
    const replay::Replay replayed = replay::simulate(
        m.machine(), recorded, ends, replay::Loop::kClosed, replay::ReplayFidelity::kFluid);
    const std::string path = folder_.file(name);
    write_run(path, run, [&](std::uint64_t i) {
      const replay::Predicted& p = replayed.operations[i];
      return std::pair(ns_of(p.posted), ns_of(p.done));
    });
    return path;
  }

  /// Pingpongs, reads and bandwidths.
  std::vector<std::string> runs(const std::vector<std::string>& settings) {
    std::vector<std::string> out;
    for (const Opcode opcode : {Opcode::kWrite, Opcode::kRead}) {
      for (const std::uint32_t bytes : {64U, 4096U, 65536U}) {
        for (const std::uint64_t depth : {1U, 8U}) {
          out.push_back(
              predicted("run" + std::to_string(out.size()), {opcode, bytes, depth}, settings));
        }
      }
    }
    return out;
  }

  CalibrationRequest request(const TraceRuns& traces, const std::vector<std::string>& keys) {
    CalibrationRequest out;
    out.tables = traces.tables();
    out.machine = read_topology(shipped(std::string("topologies/") + kTopology), catalog());
    out.keys = keys;
    out.predict = [this, &traces](const MeasuredTable& rows, const PredictOptions& options) {
      return traces.compare(rows, machine_, options, catalog());
    };
    return out;
  }

  TraceFolder folder_;
  TopologySpec machine_{read_topology(shipped(std::string("topologies/") + kTopology), catalog())};
};

TEST_F(CalibrateTraces, ARunHasTwoRowsForEachOperationAndSize) {
  const std::string path = folder_.file("t");
  write_run(path, {Opcode::kWrite, 3000, 1}, [](std::uint64_t i) {
    return std::pair(10'000 * i, 10'000 * i + (i == 0 ? 9000U : 2000U));
  });
  const TraceRuns traces({path}, {});
  ASSERT_EQ(traces.tables().size(), 1U);
  const std::vector<MeasuredRow>& rows = traces.tables()[0].rows;
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].op, "write_completion");
  EXPECT_EQ(rows[0].bytes, 4096);
  EXPECT_DOUBLE_EQ(rows[0].us, 2);
  EXPECT_EQ(rows[1].op, "write_interval");
  EXPECT_DOUBLE_EQ(rows[1].us, (390 + 2) / 40.0);
  EXPECT_DOUBLE_EQ(rows[1].algbw_gb_per_s, 3000 / rows[1].us / 1e3);
  EXPECT_EQ(rows[1].run, path);
}

TEST_F(CalibrateTraces, FindsWhatTheyWereMadeWith) {
  const std::vector<std::string> keys{"nic.latency", "nic.rate"};
  const TraceRuns traces(runs({"nic.latency=260 ns", "nic.rate=20 GB/s"}), {});
  const Calibration got = calibrate(request(traces, keys), catalog());
  EXPECT_EQ(got.refusal, "");
  EXPECT_NEAR(param(got, "nic.latency").value, 260, 3);
  EXPECT_NEAR(param(got, "nic.rate").value, 20, 0.2);
  // A run is held out whole.
  std::set<std::string> fitted;
  for (const ComparedRow& row : joined(got.fitted.after).rows) fitted.insert(row.measured.run);
  for (const ComparedRow& row : joined(got.held_out.after).rows) {
    EXPECT_FALSE(fitted.contains(row.measured.run));
  }
  EXPECT_LT(summary_of(counted_rows(joined(got.held_out.after), {got.by, false})).median_abs, 0.01);
}

// Of those of a NIC and its path only what such rows tell apart; the rest is named.
TEST_F(CalibrateTraces, FitsWhatTheRowsTellApartUnlessTold) {
  const TraceRuns traces(runs({"nic.latency=260 ns", "nic.rate=20 GB/s"}), {});
  CalibrationRequest asked = request(traces, {});
  asked.candidates.assign(trace_keys().begin(), trace_keys().end());
  const Calibration got = calibrate(asked, catalog());
  EXPECT_EQ(got.refusal, "");
  EXPECT_GE(got.params.size(), 2U);
  EXPECT_TRUE(got.correlations.empty());
  for (const FittedParam& p : got.params) EXPECT_TRUE(p.told_apart) << p.spec.key;
  EXPECT_THAT(got.notes, testing::Contains(HasSubstr("do not tell from those that are")));
  EXPECT_LT(summary_of(counted_rows(joined(got.held_out.after), {got.by, false})).median_abs, 0.02);
}

TEST_F(CalibrateTraces, WhatDependsOnNothingIsRefused) {
  const TraceRuns traces(runs({}), {});
  EXPECT_EQ(calibrate(request(traces, {"nic.receive_time"}), catalog()).refusal,
            "no fitted row depends on nic.receive_time");
}

/// The errors' median size of the rows held out, by column or kind of time.
std::map<std::string, double> medians_by(const Calibration& calibration,
                                         const std::function<std::string(const MeasuredRow&)>& of) {
  std::map<std::string, std::vector<double>> errors;
  for (const ComparedRow& row : joined(calibration.held_out.after).rows) {
    errors[of(row.measured)].push_back(std::abs(row.error()));
  }
  std::map<std::string, double> out;
  for (auto& [key, values] : errors) {
    std::sort(values.begin(), values.end());
    out[key] = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
  }
  return out;
}

// Real verbs over a link of 20 Mbit/s and 10 ms (tests/data/rxe/calibration), every run twice: half
// of the runs are fitted. What netem was told is found again: the rate, and the delay with what the
// emulated machine takes beside it.
TEST_F(CalibrateTraces, RealVerbsOverALinkOfKnownRateAndDelay) {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(shipped("tests/data/rxe/calibration"))) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), 30U);
  machine_ = read_topology(shipped("tests/data/rxe/rxe-vm.yaml"), catalog());
  const TraceRuns traces(files, {});
  CalibrationRequest asked = request(traces, {});
  asked.machine = machine_;
  asked.candidates.assign(trace_keys().begin(), trace_keys().end());
  asked.options.set = {parse_setting("wire.rate=50 Mb/s"),
                       parse_setting("wire.cable_length=500000 m")};
  asked.holdout_share = 0.5;
  const Calibration got = calibrate(asked, catalog());
  EXPECT_EQ(got.refusal, "");
  EXPECT_EQ(got.params.size(), 2U);
  EXPECT_NEAR(param(got, "wire.rate").value, 0.0025, 0.02 * 0.0025);  // GB/s
  const double one_way_ms = 2 * param(got, "wire.cable_length").value * 5e-6;
  EXPECT_GT(one_way_ms, 10);
  EXPECT_LT(one_way_ms, 12.5);
  const auto by_size = medians_by(got, [](const MeasuredRow& row) {
    return row.op.substr(row.op.find('_') + 1) + ' ' + std::to_string(row.bytes);
  });
  EXPECT_EQ(by_size.size(), 8U) << "latency and bandwidth of four sizes";
  for (const auto& [key, median] : by_size) {
    std::printf("held out, %-18s %5.1f %%\n", key.c_str(), 100 * median);
    EXPECT_LT(median, 0.15) << key;
  }
}

TEST(ToldApart, TakesTheSteepestAndWhatIsLeftBesideIt) {
  // The second is the first times two; the third half of it; the fourth is its own; the last is
  // flat.
  const std::vector<std::vector<double>> slopes{
      {1, 1, 0, 0}, {2, 2, 0, 0}, {0.5, 0.5, 0.1, 0}, {0, 0, 0, 0.5}, {1e-4, 0, 0, 0}};
  EXPECT_THAT(told_apart(slopes, 0.9), ElementsAre(1, 3));
  EXPECT_THAT(told_apart({}, 0.9), ElementsAre());
}

// A limit that begins where the search does: upwards nothing moves.
TEST(Slopes, LookBackWhereNothingMovesUpwards) {
  const Residuals limited = [](const std::vector<double>& p) -> std::optional<std::vector<double>> {
    return std::vector<double>{std::min(p[0], 1.0)};
  };
  EXPECT_NEAR(slopes_at(limited, {{1}, {1}, {}}, {{0}, {2}, 0.01})[0][0], 1, 1e-9);
}

}  // namespace
}  // namespace weft::test::calibrate_traces
