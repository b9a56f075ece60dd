#include "sim/run/timeline_recorder.hpp"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/machine.hpp"
#include "tests/run/plans.hpp"

namespace weft::test::run_timeline_recorder {
namespace {

using ::testing::ElementsAre;

std::int64_t ns(Time time) { return time.since_start().count_ps() / 1000; }

/// "gpu0@0/thread block 0" -> "launch 0 50".
std::map<std::string, std::vector<std::string>> rows(const Timeline& timeline) {
  std::map<std::string, std::vector<std::string>> out;
  for (const Timeline::Slice& s : timeline.slices) {
    const Timeline::Track& track = timeline.tracks.at(s.track);
    std::string text = timeline.names.at(s.name) + ' ' + std::to_string(ns(s.begin)) + ' ' +
                       std::to_string(ns(s.end));
    if (s.bytes > 0) text += ' ' + std::to_string(s.bytes) + " B";
    out[timeline.tracks.at(track.parent).name + '/' + track.name].push_back(text);
  }
  return out;
}

class Recorded {
 public:
  explicit Recorded(Plan plan, std::size_t most_slices = 1000) : plan_{std::move(plan)} {
    for (std::size_t a = 0; a < plan_.actors.size(); ++a) {
      plan_.actors[a].device = fabric_.device(0, DeviceKind::kGpu, a);
    }
    EventQueue events;
    CauseTable causes;
    FixedRates transport(events, causes);
    TimelineRecorder recorder(plan_, fabric_, events, most_slices);
    time = run_plans({&plan_, 1}, transport, events, causes, nullptr, &recorder).front().time;
    timeline = std::move(recorder).timeline();
  }

  Duration time;
  Timeline timeline;

 private:
  Fabric fabric_{gpus_below_a_cpu(1, 2)};
  Plan plan_;
};

TEST(TimelineRecorder, SaysWhatEachActorWorksOnWaitsForAndMoves) {
  Plan plan = pipe(1, 2);
  plan.names.push_back({"gpu0@0 -> gpu1@0", "there", 0});
  plan.walks = {};
  Walk legs{write_leg(DeviceId{1}, DeviceId{2}, Leg::Medium::kNvlink)};
  plan.walks.add(legs);
  const Recorded got(std::move(plan));
  // Push 10, flight 100, notify 7, pull 10, credit 3; see runner_test.cpp.
  const std::string moves = "moves: NVLink write gpu0@0 -> gpu1@0";
  const auto all = rows(got.timeline);
  EXPECT_EQ(all.size(), 2U);
  EXPECT_THAT(
      all.at("gpu0@0/thread block 0"),
      ElementsAre("launch 0 50", moves + " 50 60 10 B", "waits 60 180", moves + " 180 190 10 B"));
  EXPECT_THAT(all.at("gpu1@0/thread block 1"),
              ElementsAre("launch 0 50", "waits for gpu0@0 -> gpu1@0: there 50 167",
                          moves + " 167 177 10 B", "waits for gpu0@0 -> gpu1@0: there 177 297",
                          moves + " 297 307 10 B"));
  EXPECT_EQ(got.time, Duration::ns(307));
  EXPECT_EQ(got.timeline.left_out, 0U);
}

TEST(TimelineRecorder, MessagesThatOverlapHaveRowsOfTheirOwn) {
  Plan plan;
  QueuePair q;
  q.number = 1;  // ns a byte
  q.writes = true;
  q.connection = 7;
  plan.queue_pairs = {q};
  Program& p = add_program(plan, Actor::Kind::kHostThread);
  for (int i = 0; i < 2; ++i) p.post(Verb::kWrite, 0, Bytes{10});
  p.compute(lag(plan, "pause", 500));
  p.post(Verb::kWrite, 0, Bytes{10});
  const Timeline timeline = Recorded(std::move(plan)).timeline;
  std::map<std::uint32_t, std::vector<std::int64_t>> ends;  // by row
  for (const Timeline::Slice& s : timeline.slices) {
    if (timeline.names[s.name] == "message") ends[s.track].push_back(ns(s.end));
  }
  ASSERT_EQ(ends.size(), 2U);
  // Both posted at 50: through at 60 and 70, there 100 later. The third finds the first row free.
  EXPECT_THAT(ends.begin()->second, ElementsAre(160, 660));
  EXPECT_THAT(ends.rbegin()->second, ElementsAre(170));
  EXPECT_THAT(timeline.tracks.back().name, ::testing::HasSubstr(", connection 7, "));
}

TEST(TimelineRecorder, KeepsNoMoreThanItMayAndCountsTheOthers) {
  const std::size_t all = Recorded(pipe(2, 50)).timeline.slices.size();
  const Timeline few = Recorded(pipe(2, 50), 10).timeline;
  EXPECT_EQ(few.slices.size(), 10U);
  EXPECT_EQ(few.slices.size() + few.left_out, all);
}

TEST(TimelineRecorder, RowsHaveNoOverlapAndChangeNothing) {
  const Plan plan = pipe(4, 40, 35);
  const Recorded got(plan);
  EXPECT_EQ(got.time, run(plan).time);
  std::map<std::uint32_t, Time> free;
  for (const Timeline::Slice& s : got.timeline.slices) {
    EXPECT_LT(s.begin, s.end);
    EXPECT_GE(s.begin, free[s.track]);
    free[s.track] = s.end;
  }
}

}  // namespace
}  // namespace weft::test::run_timeline_recorder
