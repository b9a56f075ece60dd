// Faults put into a machine are named; healthy runs are called healthy; what nothing explains is
// said so; what cannot be told apart is said so.
#include "models/explain/explain.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/explain/explain_data.hpp"

namespace weft::test::explain_explain {
namespace {

const std::vector<std::int64_t> kSizes{64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30};

const Case& small() {
  static const Case known(parse_topology(kSmallMachine, "small.yaml", make_catalog()), 2,
                          points_at("allreduce", kSizes));
  return known;
}

std::vector<double> sum(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out(a);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += b[i];
  return out;
}

TEST(Explain, CallsAHealthyRunHealthy) {
  const Explanation made = small().of(std::vector<double>(kSizes.size(), 0.0));
  EXPECT_EQ(made.verdict, Explained::kNotSlower);
  EXPECT_TRUE(made.answers.empty());
  EXPECT_NEAR(made.healthy.tail, 1, 1e-6);
}

TEST(Explain, CallsAFasterRunNotSlower) {
  const Explanation made = small().of(std::vector<double>(kSizes.size(), -0.5));
  EXPECT_EQ(made.verdict, Explained::kNotSlower);
}

TEST(Explain, AnswersOfOneEffectAreOne) {
  // GPUDirect RDMA that is off is the same whoever turned it off.
  const Effects& effects = small().effects();
  const Explanation made = small().of(small().effect(small().suspect("gdr-missing")));
  ASSERT_EQ(made.verdict, Explained::kExplained);
  for (const char* id : {"gdr-missing", "staged", "gdr-level"}) {
    EXPECT_TRUE(has_cause(made.answers.front(), effects, id)) << id;
  }
  EXPECT_NEAR(made.answers.front().best().match.share, 1, 0.01);
  EXPECT_LT(made.answers.front().best().match.low, 1);
  EXPECT_GT(made.answers.front().best().match.high, 1);
}

TEST(Explain, SaysWhereNothingExplainsIt) {
  // Twice as slow at every second size: no cause does that.
  std::vector<double> gaps;
  for (std::size_t i = 0; i < kSizes.size(); ++i) gaps.push_back(i % 2 == 0 ? 1.5 : -0.3);
  const Explanation made = small().of(gaps);
  EXPECT_EQ(made.verdict, Explained::kNone);
  EXPECT_FALSE(made.answers.empty());
  EXPECT_LT(made.answers.front().best().match.tail, 0.01);
}

TEST(Explain, WhatDoesNothingIsNoAnswer) {
  // So small a gap that what changes nothing suffices.
  constexpr double kTail = 0.03;
  const ErrorModel errors = small().errors(true);
  const Gaussian noise = noise_of(small().points(), errors);
  std::vector<double> gaps(kSizes.size());
  const auto tail = [&] { return GapMatcher(gaps, noise, errors.effect).healthy().tail; };
  for (double gap = 0; tail() > kTail; gap += 0.0001) std::fill(gaps.begin(), gaps.end(), gap);
  const Explanation made = small().of(gaps);
  EXPECT_NEAR(made.healthy.tail, kTail, 0.001);
  ASSERT_NE(made.verdict, Explained::kNotSlower);
  ASSERT_FALSE(made.no_effect.empty());
  for (const Answer& answer : made.answers) {
    for (const Combination& each : answer.same) {
      EXPECT_GT(*std::max_element(each.effect.begin(), each.effect.end()), 0);
      for (const std::size_t i : each.suspects) {
        EXPECT_EQ(std::count(made.no_effect.begin(), made.no_effect.end(), i), 0)
            << small().effects().suspects()[i].entry->id;
      }
    }
  }
}

TEST(Explain, WithoutSuspectsNothingExplainsIt) {
  const Effects none(small().healthy(), small().context(), small().points(), {}, 0, nullptr);
  const Explanation made =
      explain(std::vector<double>(kSizes.size(), 1.0), none, small().errors(true));
  EXPECT_EQ(made.verdict, Explained::kNone);
  EXPECT_TRUE(made.answers.empty());
  EXPECT_EQ(made.pairs, 0U);
}

TEST(Explain, WhatIsFarLessLikelyIsNoAnswer) {
  const Case on(parse_topology(kSmallMachine, "small.yaml", make_catalog()), 2,
                points_at("allreduce", {1 << 20, 256 << 20}), {}, {}, {"gdr-missing", "staged"});
  const std::vector<double> gaps = on.effect(on.suspect("staged"));
  for (const double weight : {100.0, 1e4}) {
    std::vector<Suspect> suspects = on.effects().suspects();
    for (Suspect& suspect : suspects) {
      if (suspect.entry->id == "staged") suspect.weight = weight;
    }
    const Effects weighed(on.healthy(), on.context(), on.points(), suspects, 0, nullptr);
    const Explanation made = explain(gaps, weighed, on.errors(true));
    ASSERT_EQ(made.verdict, Explained::kExplained);
    EXPECT_TRUE(has_cause(made.answers.front(), weighed, "staged"));
    EXPECT_EQ(has_cause(made.answers.front(), weighed, "gdr-missing"), weight < 1000);
  }
}

TEST(Explain, FindsTwoFaultsAtOnce) {
  const Effects& effects = small().effects();
  const std::size_t a = small().suspect("nic-rate", "25 %");
  const std::size_t b = small().suspect("host-launch", "a launch takes 10");
  const std::vector<double> gaps = small().effect({a, b});
  ASSERT_FALSE(gaps.empty());
  // Of errors so small no single cause is left.
  ErrorModel sharp = small().errors(true);
  sharp.large = sharp.small = 0.01;
  sharp.effect = 0.01;
  const Explanation made = explain(gaps, effects, sharp);
  ASSERT_EQ(made.verdict, Explained::kExplained);
  EXPECT_TRUE(made.two_at_once);
  EXPECT_EQ(made.answers.front().best().suspects.size(), 2U);
  EXPECT_TRUE(has_cause(made.answers.front(), effects, "nic-rate"));
  EXPECT_TRUE(has_cause(made.answers.front(), effects, "host-launch"));
}

TEST(Explain, PairsThatTakeTooLongAreLeftOut) {
  std::vector<double> gaps = small().effect(
      {small().suspect("nic-rate", "25 %"), small().suspect("host-launch", "a launch takes 10")});
  ErrorModel sharp = small().errors(true);
  sharp.large = sharp.small = 0.01;
  sharp.effect = 0.01;
  const Explanation all = explain(gaps, small().effects(), sharp);
  EXPECT_GT(all.pairs, 10U);
  EXPECT_EQ(all.pairs_left, 0U);
  Thresholds hurried;
  hurried.pair_seconds = 0;
  const Effects again(small().healthy(), small().context(), small().points(),
                      small().effects().suspects(), 0, nullptr);
  const Explanation few = explain(gaps, again, sharp, hurried);
  EXPECT_EQ(few.pairs, all.pairs);
  EXPECT_GT(few.pairs_left, few.pairs / 2);
  EXPECT_LT(few.pairs_left, few.pairs) << "a few are predicted always";
}

TEST(Explain, StoppedAmongPairsItKeepsWhatSingleCausesExplain) {
  const std::vector<double> gaps = small().effect(
      {small().suspect("nic-rate", "25 %"), small().suspect("host-launch", "a launch takes 10")});
  ErrorModel sharp = small().errors(true);
  sharp.large = sharp.small = 0.01;
  sharp.effect = 0.01;
  Stop stop;
  const Effects effects(small().healthy(), small().context(), small().points(),
                        small().effects().suspects(), 0, &stop);
  std::vector<Together> singles;
  for (std::size_t i = 0; i < effects.suspects().size(); ++i) singles.push_back({i});
  std::vector<std::size_t> points(effects.points().size());
  std::iota(points.begin(), points.end(), std::size_t{0});
  effects.predict(singles, points);
  stop.request();
  const Explanation made = explain(gaps, effects, sharp);
  EXPECT_TRUE(made.was_stopped);
  EXPECT_EQ(made.verdict, Explained::kNone);
  ASSERT_FALSE(made.answers.empty());
  EXPECT_EQ(made.answers.front().best().suspects.size(), 1U);
}

TEST(Explain, EvidenceDecidesBetweenWhatIsAlike) {
  Case with(parse_topology(kSmallMachine, "small.yaml", make_catalog()), 2,
            points_at("allreduce", {1 << 20, 256 << 20}), {}, {},
            {"gdr-missing", "staged", "gdr-level"});
  std::vector<Suspect> suspects = with.effects().suspects();
  const std::vector<double> gaps = with.effect(with.suspect("staged"));
  for (Suspect& suspect : suspects) {
    if (suspect.entry->id == "gdr-missing") suspect.weight = 0;  // ruled out
    if (suspect.entry->id == "staged") suspect.weight = 20;
  }
  const Effects weighed(with.healthy(), with.context(), with.points(), suspects, 0, nullptr);
  const Explanation made = explain(gaps, weighed, with.errors(true));
  ASSERT_EQ(made.verdict, Explained::kExplained);
  const Answer& first = made.answers.front();
  EXPECT_EQ(weighed.suspects()[first.best().suspects.front()].entry->id, "staged");
  EXPECT_FALSE(has_cause(first, weighed, "gdr-missing"));
}

TEST(Explain, IsTheSameOnAnyNumberOfThreads) {
  const Case on(parse_topology(kSmallMachine, "small.yaml", make_catalog()), 2,
                points_at("allreduce", kSizes), {}, {}, {"mtu", "nic-rate", "nic-link", "staged"});
  const std::vector<double> gaps =
      sum(on.effect(on.suspect("mtu", "256")), std::vector<double>(kSizes.size(), 0.1));
  const auto of = [&](unsigned threads) {  // each predicts for itself
    const Effects effects(on.healthy(), on.context(), on.points(), on.effects().suspects(), threads,
                          nullptr);
    return explain(gaps, effects, on.errors(true));
  };
  const Explanation a = of(1);
  const Explanation b = of(4);
  ASSERT_FALSE(a.answers.empty());
  ASSERT_EQ(a.answers.size(), b.answers.size());
  for (std::size_t i = 0; i < a.answers.size(); ++i) {
    EXPECT_EQ(a.answers[i].best().suspects, b.answers[i].best().suspects);
    EXPECT_EQ(a.answers[i].best().effect, b.answers[i].best().effect);
    EXPECT_EQ(a.answers[i].times_less, b.answers[i].times_less);
  }
}

TEST(Effects, NoteWhatThePredictionDoesOtherwiseThanAsked) {
  const Case on(parse_topology(kSmallMachine, "small.yaml", make_catalog()), 2,
                points_at("allreduce", {1 << 20}), {{"nccl.channels", "2", {}}}, {}, {"mtu"});
  const std::vector<std::string>& notes = on.effects().notes();
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("in place of NCCL's own choice: nccl.channels=2") != std::string::npos;
  }));
}

TEST(Effects, OfAMachineThatCannotBePredictedAreRefused) {
  TopologySpec spec = parse_topology(kSmallMachine, "small.yaml", make_catalog());
  const auto make = [&] {
    return Case(spec, 2, points_at("allreduce", {1 << 20}), {{"nic.cable_loss", "0.1", {}}});
  };
  EXPECT_THROW(make(), InputError);
}

}  // namespace
}  // namespace weft::test::explain_explain
