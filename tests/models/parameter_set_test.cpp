#include "models/collective/parameter_set.hpp"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::models_parameter_set {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kCalibration =
    "calibration: {schema: weft.params/1, origin: measured, machine: m.yaml, machine_fnv1a: 0a, "
    "date: 2026-11-22, weft: 0.1.0, set: [], env: [A=b],\n"
    "  data: [{file: t.csv, fnv1a: 0b, fitted: 3, held_out: 2}]}\n";

std::string refusal(const std::string& text) {
  try {
    parse_parameter_set(text, "p.yaml");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(ParameterSet, ByHandIsKeysAndValues) {
  const ParameterSet set = parse_parameter_set("wire.mtu: 1 KiB\nnodes: 3\n", "p.yaml");
  ASSERT_EQ(set.set.size(), 2U);
  EXPECT_EQ(set.set[0].key, "wire.mtu");
  EXPECT_EQ(set.set[0].value, "1 KiB");
  EXPECT_EQ(set.set[0].origin, Origin::kAssumed);
  EXPECT_EQ(set.set[1].place.text(), "p.yaml:2:1");
  EXPECT_TRUE(set.intervals.classes.empty());
}

TEST(ParameterSet, SaysWhereAValueComesFrom) {
  const ParameterSet set = parse_parameter_set(
      std::string(kCalibration) +
          "nccl.launch_ll: {value: 5 us, uncertainty: 20 ns, origin: measured, source: a run}\n"
          "intervals: {by: [op], classes: [{class: [reduce], rows: 10, configurations: 10, low: "
          "0.9, high: 1}]}\n",
      "p.yaml");
  ASSERT_EQ(set.set.size(), 1U);
  EXPECT_EQ(set.set[0].value, "5 us");
  EXPECT_EQ(set.set[0].origin, Origin::kMeasured);
  EXPECT_EQ(set.set[0].source, "a run");
  EXPECT_EQ(set.intervals.classes.at(0).interval.high, 1);
}

TEST(IntervalsOf, OlderFilesThatCountRowsOnlyAreLeftOut) {
  const ParameterSet set = parse_parameter_set(
      "intervals: {by: [op], classes: [{class: [reduce], rows: 10, low: 0.9, high: 1}]}\n",
      "p.yaml");
  std::vector<std::string> notes;
  EXPECT_TRUE(intervals_of(set, {}, notes).classes.empty());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("does not say of how many configurations they are")));
}

TEST(IntervalsOf, OtherReleasesThanThatOfTheFitAreLeftOut) {
  const auto left_out = [](const std::string& of_fit, const std::set<std::string>& now,
                           const std::string& by = "op", bool is_asked = false) {
    std::string text = std::string(kCalibration) + "intervals: {by: [" + by +
                       "], classes: [{class: [reduce], rows: 10, "
                       "configurations: 10, low: 0.9, high: 1}]}\n";
    text.insert(text.find("env: [A=b]"), of_fit);
    TopologySpec machine;
    machine.content_digest = 10;  // 0a
    std::vector<std::string> notes;
    ParameterSet set = parse_parameter_set(text, "p.yaml");
    set.machine_content_fnv1a = "000000000000000a";
    const ErrorIntervals got =
        intervals_of(set, {&machine, {}, {{"A", "b"}}, now, is_asked}, notes);
    EXPECT_EQ(got.classes.empty(), !notes.empty());
    return notes.empty() ? "" : notes.front();
  };
  const std::string older = "nccl_version: '2.21.5', ";
  EXPECT_EQ(left_out("", {"2.28.9"}), "") << "traces, perftest";
  EXPECT_EQ(left_out("", {"2.27.3"}, "op", true), "") << "likewise";
  EXPECT_EQ(left_out("nccl_version: '2.28.9', ", {"2.28.9"}), "");
  EXPECT_EQ(left_out(older, {"2.21.5"}), "");
  EXPECT_EQ(left_out(older, {}), "") << "a trace";
  EXPECT_THAT(left_out(older, {"2.21.5", "2.28.9"}),
              HasSubstr("NCCL 2.28.9 decides, 2.21.5 when it was fitted"));
  EXPECT_EQ(left_out("nccl_version: '2.21', ", {"2.21.0"}), "");
  EXPECT_THAT(left_out("nccl_version: '2.28.9', ", {"2.27.3"}),
              HasSubstr("2.27.3 decides, 2.28.9 when it was fitted"));
  EXPECT_EQ(left_out("", {"2.21.5", "2.28.9"}, "nccl"), "") << "classes say it";
  EXPECT_THAT(left_out("", {"2.21.5"}, "nccl", true), HasSubstr("releases that rows name"));
  EXPECT_THAT(left_out(older, {"2.28.9"}, "nccl"), HasSubstr("2.28.9 decides"));
}

TEST(IntervalsOf, VariablesThatRowsSayByAColumnLeaveNoneOut) {
  ParameterSet set = parse_parameter_set(
      std::string(kCalibration) +
          "intervals: {by: [op], classes: [{class: [reduce], rows: 10, configurations: 10, low: "
          "0.9, high: 1}]}\n",
      "p.yaml");
  set.machine_content_fnv1a = "000000000000000a";
  TopologySpec machine;
  machine.content_digest = 10;  // 0a
  const auto left_out = [&](const std::string& variable, const std::string& value) {
    std::vector<std::string> notes;
    intervals_of(set, {&machine, {}, {{"A", "b"}, {variable, value}}}, notes);
    return notes.empty() ? "" : notes.front();
  };
  for (const char* const variable : {"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NRINGS",
                                     "NCCL_MAX_NRINGS", "NCCL_P2P_DISABLE"}) {
    EXPECT_EQ(left_out(variable, "1"), "") << variable;
  }
  for (const char* const local : {"LOC", "0"}) {
    EXPECT_EQ(left_out("NCCL_P2P_LEVEL", local), "") << local;
  }
  for (const std::string level : {"PIX", "1"}) {
    EXPECT_THAT(left_out("NCCL_P2P_LEVEL", level),
                HasSubstr("NCCL_P2P_LEVEL=" + level + " was not set when it was fitted"));
  }
}

TEST(ParameterSet, RefusesWhatIsDamaged) {
  EXPECT_THAT(refusal("[a]"), HasSubstr("p.yaml:1:1: expected a map"));
  EXPECT_THAT(refusal("nccl.launch_ll: {value: 5 us, origins: measured}\n"),
              HasSubstr("origins: unknown key (did you mean 'origin'?)"));
  EXPECT_THAT(refusal("nccl.launch_ll: {origin: measured}\n"), HasSubstr("value"));
  EXPECT_THAT(refusal("nccl.launch_ll: {value: 5 us, origin: guessed}\n"),
              HasSubstr("'guessed' is not an origin; known: "));
  EXPECT_THAT(refusal("nccl.launch_ll: {value: [5 us]}\n"), HasSubstr("p.yaml:1:"));
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = kCalibration;
    text.replace(text.find(from), from.size(), to);
    return refusal(text);
  };
  EXPECT_EQ(refusal(kCalibration), "");
  EXPECT_THAT(changed("params/1", "params/2"), HasSubstr("'weft.params/2'; known: weft.params/1"));
  EXPECT_THAT(changed("date: 2026-11-22, ", ""), HasSubstr("date"));
  EXPECT_THAT(changed("env: [A=b]", "env: A=b"), HasSubstr("calibration.env"));
  EXPECT_EQ(changed("env: [A=b]", "env: [A=b], nccl_version: 2.21.5"), "");
  for (const std::string release : {"2.28.x", "two", "2", "1.9.3", "[2.28.9]", "''"}) {
    const std::string said = changed("env: [A=b]", "env: [A=b], nccl_version: " + release);
    EXPECT_THAT(said, HasSubstr("p.yaml:1:")) << release;
    EXPECT_THAT(said, HasSubstr("calibration.nccl_version: ")) << release;
    EXPECT_EQ(said.find("p.yaml"), said.rfind("p.yaml")) << said;
  }
  EXPECT_THAT(changed("env: [A=b]", "env: [A=b], nccl_version: 2.28.x"),
              HasSubstr("NCCL version '2.28.x' is not modelled; known: 2.18, "));
  EXPECT_THAT(changed("fitted: 3", "fitted: -3"), HasSubstr("is not a whole number from 0 to "));
  EXPECT_THAT(changed("file: t.csv", "name: t.csv"), HasSubstr("name: unknown key"));
}

}  // namespace
}  // namespace weft::test::models_parameter_set
