#include "models/workload/traffic.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/workload/traffic_matrix.hpp"
#include "sim/base/random.hpp"
#include "sim/io/file.hpp"
#include "tests/models/traffic_runs.hpp"

namespace weft::test::models_traffic {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using Kind = TrafficSpec::Kind;

// Tokens that go anywhere alike: what is told without drawing them is what is told of those drawn,
// but that the fullest link gets more than the mean.
TEST(TrafficMatrix, EvenTrafficIsTheMeanOfWhatIsDrawn) {
  TrafficSpec spec = dispatch(0);
  spec.experts = 8192;
  spec.tokens = 16;
  EXPECT_FALSE(even_traffic(spec, 512));
  spec.tokens = 1 << 17;  // too many choices to draw
  EXPECT_NEAR(even_traffic(spec, 512).value().share, 1, 1e-9);
  EXPECT_EQ(even_traffic(spec, 512).value().each, Bytes::kib(16) * ((4 << 17) / 512));
  spec.tokens = 2048;
  const EvenTraffic even = even_traffic(spec, 8192).value();
  EXPECT_NEAR(even.share, 1 - std::exp(-1.0), 1e-3);
  EXPECT_NEAR(even.each.as_double() / Bytes::kib(16).as_double(), 1 / even.share, 1e-3);
  EXPECT_NEAR(even.above_mean, std::sqrt(2 * std::log(8192.0) / 8192), 1e-9);
  spec.tokens = 1 << 16;
  spec.skew = 0.5;
  EXPECT_FALSE(even_traffic(spec, 8192));
  EXPECT_THROW(traffic_matrix(spec, 8192), TooLarge);
}

// What to ask for then is not an estimate.
TEST(Traffic, WhatIsStoppedWhileItIsEstimatedSaysSo) {
  TrafficSpec spec = dispatch(0.5);
  spec.experts = 1024;
  Stop stop;
  PredictOptions options;
  options.stop = &stop;
  options.on_estimate = [&](const std::string& text, double) {
    EXPECT_THAT(text, HasSubstr("estimated"));
    stop.request();
  };
  EXPECT_THROW(predicted(spec, 128, {"gdr"}, options), StoppedEstimate);
}

// Irregular traffic of nodes that are alike: each sends random sizes to random ranks of others, all
// nodes to those equally far away. Of what is alike one is run, and nothing of the result moves.
// The network does not know of the nodes' order, or its leaves have as many of each kind.
TEST(Traffic, WhatIsAlikeIsRunAsOneExactly) {
  const std::string file = ::testing::TempDir() + "/alike.csv";
  constexpr std::uint32_t kNodes = 8;
  constexpr std::uint32_t kRanks = 8 * kNodes;
  std::mt19937_64 random = random_stream(1, "alike");
  for (int round = 0; round < 8; ++round) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> sizes;  // by sender, distance
    for (int send = 0; send < 12; ++send) {
      const auto gpu = static_cast<std::uint32_t>(uniform_below(random, 8));
      const auto to = static_cast<std::uint32_t>(uniform_below(random, kRanks));
      sizes[{gpu, to}] = 1 + uniform_below(random, std::uint64_t{1} << (10 + 2 * round % 12));
    }
    std::string text = "from,to,bytes\n";
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      for (const auto& [pair, bytes] : sizes) {
        text += fmt::format("{},{},{}\n", 8 * node + pair.first, (8 * node + pair.second) % kRanks,
                            bytes);
      }
    }
    write_text_file(file, text);
    TrafficSpec spec;
    spec.matrix = file;
    PredictOptions options;
    if (round % 2 == 1) {
      for (const char* set : {"network.kind=leaf-spine", "network.leaf_down=32",
                              "network.leaf_up=16", "network.ports=48"}) {
        options.set.push_back(parse_setting(set));
      }
    }
    double work = 0;
    options.on_progress = [&](const RunProgress& p) { work = p.work; };
    const TrafficRow folded = predicted(spec, kNodes, {"gdr"}, options).rows.at(0);
    const double folded_work = work;
    options.folds = false;
    const TrafficRow whole = predicted(spec, kNodes, {"gdr"}, options).rows.at(0);
    EXPECT_GT(folded_work, 0);
    EXPECT_LT(folded_work, 0.5 * work);
    EXPECT_NEAR(folded.time_us / whole.time_us, 1, 1e-9) << text;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_NEAR(folded.ranks[rank].end_us, whole.ranks[rank].end_us, 1e-9 * whole.time_us);
    }
  }
}

// With kernels that cost nothing but launch and flags. A full-bisection network: each GPU sends to
// its like on the next node, by a NIC of its own, and all are as fast as the wire: 400 Gb/s less
// what frames the packets of 4 KiB, InfiniBand's 26 to 30 B each (1 %), and what a kernel's begin
// and end take of 256 MiB.
TEST(Traffic, APermutationRunsAtLineRate) {
  const TrafficRow row = run(permutation(Bytes::mib(256), 8), 4, free_kernels());
  const double bytes = static_cast<double>(Bytes::mib(256).count());
  for (const TrafficRank& rank : row.ranks) {
    EXPECT_EQ(rank.received, Bytes::mib(256).count());
    EXPECT_LT(bytes / rank.end_us / 1e3, 50);
    EXPECT_GT(bytes / rank.end_us / 1e3, 0.97 * 50);
  }
  const auto [first, last] = std::minmax_element(
      row.ranks.begin(), row.ranks.end(),
      [](const TrafficRank& a, const TrafficRank& b) { return a.end_us < b.end_us; });
  EXPECT_NEAR(first->end_us / last->end_us, 1, 1e-3);
  EXPECT_THAT(row.links.front().cause, HasSubstr("wire"));
}

// Likewise. N to one: the receiver's NIC is shared evenly, so that all end together, N times as
// late as one.
TEST(Traffic, IncastSharesTheReceiversNic) {
  const auto time = [](std::uint32_t senders) {
    return run(incast(Bytes::mib(64), senders, 8), 5, free_kernels()).time_us;
  };
  const double one = time(1);
  for (const std::uint32_t senders : {2U, 4U})
    EXPECT_NEAR(time(senders) / one, senders, 0.06 * senders);
  const TrafficRow row = run(incast(Bytes::mib(64), 4, 8), 5, free_kernels());
  EXPECT_EQ(row.ranks[0].received, 4 * Bytes::mib(64).count());
  for (std::uint32_t rank = 8; rank < 40; rank += 8) {
    EXPECT_EQ(row.ranks[rank].sent, Bytes::mib(64).count());
    EXPECT_NEAR(row.ranks[rank].end_us / row.time_us, 1, 0.02);
  }
  EXPECT_THAT(row.links.front().where, HasSubstr("nic0@0"));
  EXPECT_NEAR(row.links.front().busy_us / row.time_us, 1, 0.03);
}

// The hot expert's rank: what comes into its NIC from other nodes at the rate of its wire bounds
// the time, and is most of it.
TEST(Traffic, AHotExpertIsBoundByItsNic) {
  const TrafficSpec spec = dispatch(1.2);
  const TrafficMatrix matrix = traffic_matrix(spec, 32);
  std::vector<double> into(32, 0);
  for (const TaskSend& send : matrix) {
    if (send.from / 8 != send.to / 8) into[send.to] += send.bytes.as_double();
  }
  const auto hot =
      static_cast<std::uint32_t>(std::max_element(into.begin(), into.end()) - into.begin());
  const TrafficRow row = run(spec, 4);
  const double bound_us = into[hot] / 50e3;
  EXPECT_GT(row.time_us, bound_us);
  EXPECT_LT(row.time_us, 1.08 * bound_us);
  EXPECT_GE(row.links.front().busy_us, bound_us);
  EXPECT_THAT(row.links.front().where,
              HasSubstr("nic" + std::to_string(hot % 8) + "@" + std::to_string(hot / 8)));
  for (const TrafficRank& rank : row.ranks) EXPECT_LE(rank.end_us, row.ranks[hot].end_us + 1e-6);
}

// No run is shorter than its busiest link is busy.
TEST(Traffic, TheBusiestLinkBoundsTheTime) {
  TrafficSpec random = permutation(Bytes::mib(16), 1);
  random.shift.reset();
  for (const TrafficSpec& spec : {permutation(Bytes::mib(64), 1), permutation(Bytes::kib(64), 9),
                                  incast(Bytes::mib(8), 15, 1), dispatch(0), random}) {
    const TrafficRow row = run(spec, 2);
    EXPECT_GE(row.time_us, row.links.front().busy_us);
    double causes = 0;
    for (const CauseShare& cause : row.limited_by) causes += cause.share;
    EXPECT_NEAR(causes, 1, 1e-9);
  }
}

TEST(Traffic, TellsHowFarItIs) {
  std::vector<RunProgress> told;
  PredictOptions options;
  options.on_progress = [&](const RunProgress& p) { told.push_back(p); };
  predicted(permutation(Bytes::mib(64), 8), 2, {"gdr", "host-staged"}, options);
  ASSERT_GT(told.size(), 4U);
  EXPECT_TRUE(std::ranges::is_sorted(told, {}, &RunProgress::rows_done));
  EXPECT_EQ(told.back().rows_done, 1U);
  for (std::size_t i = 0; i < told.size(); ++i) {
    const double share = told[i].work_done / told[i].work;
    EXPECT_EQ(told[i].rows, 2U);
    EXPECT_GE(share, 0.5 * static_cast<double>(told[i].rows_done));
    EXPECT_LE(share, 0.5 * static_cast<double>(told[i].rows_done + 1));
    if (i == 0) continue;
    EXPECT_GE(share, told[i - 1].work_done / told[i - 1].work);
  }
}

TEST(Traffic, WhatTakesLongIsToldBeforehandOrRefused) {
  std::vector<std::string> told;
  PredictOptions options;
  options.check_only = true;
  options.on_estimate = [&](const std::string& text, double) { told.push_back(text); };
  EXPECT_THAT(predicted(permutation(Bytes::mib(1), 8), 2, {"gdr"}, options).rows, IsEmpty());
  EXPECT_THAT(told, IsEmpty());
  predicted(permutation(Bytes::gib(4096), 8), 2, {"gdr"}, options);
  EXPECT_THAT(told, ElementsAre(MatchesRegex("gdr: about .* transfers, .* s of one core")));
  EXPECT_THROW(predicted(incast(Bytes::gib(4096), 15, 1), 2, {"gdr"}, options), TooLarge);
}

// All alike: what NCCL's all-to-all takes, launched once.
TEST(Traffic, AnEvenMatrixIsAnAllToAll) {
  std::string text;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 16; ++column) text += column == 0 ? "1M" : ",1048576";
    text += '\n';
  }
  const std::string file = ::testing::TempDir() + "/even.csv";
  write_text_file(file, text);
  TrafficSpec spec;
  spec.matrix = file;
  const TrafficRow row = run(spec, 2);
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.op = "alltoall";
  scenario.sizes = {Bytes::mib(16)};
  scenario.memory_paths = {"gdr"};
  PredictOptions options;
  for (const char* set : {"nccl.launch=single", "nccl.host_wait=0 ns"}) {
    options.set.push_back(parse_setting(set));
  }
  EXPECT_NEAR(row.time_us, predict(scenario, options, make_catalog()).rows.at(0).time_us, 1e-6);
}

TEST(TrafficMatrix, TokensGoToTheirExperts) {
  for (const double skew : {0.0, 1.0, 4.0}) {
    const TrafficSpec spec = dispatch(skew);
    std::vector<std::int64_t> sent(16, 0);
    std::vector<std::int64_t> received(16, 0);
    for (const TaskSend& send : traffic_matrix(spec, 16)) {
      sent[send.from] += send.bytes.count();
      received[send.to] += send.bytes.count();
    }
    for (const std::int64_t bytes : sent) EXPECT_EQ(bytes, 2048 * 4 * Bytes::kib(16).count());
    // Without skew each of 16 ranks gets 1/16 of 131,072 choices: 8,192, whose deviation is at most
    // 88 (binomial); five of them. A token's four experts are different, so the most wanted one's
    // rank gets at most a token for each of its four experts, and at least one for the hot one if
    // it has nearly all weight.
    const auto [least, most] = std::minmax_element(received.begin(), received.end());
    const double unit = Bytes::kib(16).as_double();
    if (skew == 0) {
      EXPECT_NEAR(static_cast<double>(*least) / unit, 8192, 5 * 88);
      EXPECT_NEAR(static_cast<double>(*most) / unit, 8192, 5 * 88);
    } else {
      EXPECT_GT(static_cast<double>(*most) / unit, 1.5 * 8192);
    }
    if (skew == 4.0) {
      EXPECT_GT(static_cast<double>(*most) / unit, 0.99 * 2048 * 16);
    }
  }
}

// Of two experts with weights 1 and 1/2 one token takes the first with 2/3; with all it takes both.
TEST(TrafficMatrix, ExpertsAreChosenByTheirWeights) {
  TrafficSpec spec = dispatch(1);
  spec.experts = 2;
  spec.top_k = 1;
  spec.tokens = 100'000;
  std::vector<double> received(2, 0);
  for (const TaskSend& send : traffic_matrix(spec, 2)) received[send.to] += send.bytes.as_double();
  const double share = std::max(received[0], received[1]) / (received[0] + received[1]);
  EXPECT_NEAR(share, 2.0 / 3, 0.006);  // five deviations of 200,000 draws
  spec.top_k = 2;
  for (const TaskSend& send : traffic_matrix(spec, 2)) {
    EXPECT_EQ(send.bytes, Bytes::kib(16) * 100'000);
  }
}

TEST(TrafficMatrix, CombineIsDispatchBackwards) {
  TrafficSpec spec = dispatch(0.7);
  const TrafficMatrix there = traffic_matrix(spec, 16);
  spec.kind = Kind::kCombine;
  std::set<std::tuple<std::uint32_t, std::uint32_t, Bytes>> back;
  for (const TaskSend& send : traffic_matrix(spec, 16))
    back.emplace(send.to, send.from, send.bytes);
  ASSERT_EQ(back.size(), there.size());
  for (const TaskSend& send : there) EXPECT_TRUE(back.contains({send.from, send.to, send.bytes}));
}

TEST(TrafficMatrix, ADrawnPermutationIsOneCycle) {
  TrafficSpec spec;
  spec.kind = Kind::kPermutation;
  spec.bytes = Bytes{1};
  std::set<std::vector<std::uint32_t>> seen;
  for (spec.seed = 0; spec.seed < 20; ++spec.seed) {
    std::vector<std::uint32_t> to;
    for (const TaskSend& send : traffic_matrix(spec, 9)) to.push_back(send.to);
    ASSERT_EQ(to.size(), 9u);
    std::uint32_t at = 0;
    for (int step = 1; step < 9; ++step) ASSERT_NE(at = to[at], 0u);
    EXPECT_EQ(to[at], 0u);
    seen.insert(to);
  }
  EXPECT_GT(seen.size(), 15u);
}

TEST(TrafficMatrix, RefusesWhatDoesNotFit) {
  const auto refused = [](const auto& make) {
    try {
      make();
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused([] { traffic_matrix(permutation(Bytes{1}, 16), 8); }), HasSubstr("multiple"));
  EXPECT_THAT(refused([] { traffic_matrix(incast(Bytes{1}, 8, 1), 8); }), HasSubstr("come round"));
  EXPECT_THAT(refused([] { traffic_matrix(incast(Bytes{1}, 4, 4), 12); }), HasSubstr("come round"));
  EXPECT_THAT(refused([] { traffic_matrix(dispatch(0), 24); }),
              HasSubstr("no multiple of 24 ranks"));
  TrafficSpec many = dispatch(0);
  many.tokens = 1 << 24;
  EXPECT_THAT(refused([&] { traffic_matrix(many, 16); }), HasSubstr("fewer tokens"));
  many.tokens = 4096;  // some of 16 ranks tell that they would be
  many.skew = 0.5;
  many.experts = 8192;
  EXPECT_THAT(refused([&] { traffic_matrix(many, 8192); }), HasSubstr("16 million pairs"));
  many = dispatch(0);
  many.tokens = 1 << 16;
  many.token_bytes = Bytes::gib(1);
  EXPECT_THAT(refused([&] { traffic_matrix(many, 16); }), HasSubstr("more than 4 TiB"));
}

}  // namespace
}  // namespace weft::test::models_traffic
