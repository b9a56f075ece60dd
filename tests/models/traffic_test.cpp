#include "models/workload/traffic.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/workload/traffic_estimate.hpp"
#include "models/workload/traffic_matrix.hpp"
#include "sim/base/random.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_traffic {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using Kind = TrafficSpec::Kind;

TrafficResult predicted(const TrafficSpec& spec, std::uint32_t nodes,
                        std::vector<std::string> memory_paths, const PredictOptions& options,
                        TrafficBy by = TrafficBy::kRun,
                        const std::string& topology = "hgx-h100-8nic") {
  const ParamCatalog catalog = make_catalog();
  Scenario scenario;
  scenario.topology = shipped("topologies/" + topology + ".yaml");
  scenario.nodes = nodes;
  scenario.memory_paths = std::move(memory_paths);
  scenario.traffic = spec;
  return predict_traffic(scenario, read_topology(scenario.topology, catalog), options, catalog, by);
}

TrafficRow run(const TrafficSpec& spec, std::uint32_t nodes,
               const std::vector<std::string>& settings = {}) {
  PredictOptions options;
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  return predicted(spec, nodes, {"gdr"}, options).rows.at(0);
}

TrafficSpec permutation(Bytes bytes, std::uint32_t shift) {
  TrafficSpec spec;
  spec.kind = Kind::kPermutation;
  spec.bytes = bytes;
  spec.shift = shift;
  return spec;
}

TrafficSpec incast(Bytes bytes, std::uint32_t senders, std::uint32_t stride) {
  TrafficSpec spec;
  spec.kind = Kind::kIncast;
  spec.bytes = bytes;
  spec.senders = senders;
  spec.stride = stride;
  return spec;
}

TrafficSpec dispatch(double skew) {
  TrafficSpec spec;
  spec.kind = Kind::kDispatch;
  spec.tokens = 2048;
  spec.experts = 64;
  spec.top_k = 4;
  spec.token_bytes = Bytes::kib(16);
  spec.skew = skew;
  return spec;
}

TrafficRow estimated(const TrafficSpec& spec, std::uint32_t nodes) {
  return predicted(spec, nodes, {"gdr"}, {}, TrafficBy::kEstimate).rows.at(0);
}

// The busiest link bounds both; what else it takes is that of an even all-to-all.
TEST(Traffic, AnEstimateIsNearTheRun) {
  for (const double skew : {0.0, 0.5, 1.0}) {
    const TrafficRow row = run(dispatch(skew), 4);
    const TrafficRow estimate = estimated(dispatch(skew), 4);
    EXPECT_TRUE(estimate.is_estimate);
    EXPECT_FALSE(row.is_estimate);
    EXPECT_NEAR(estimate.time_us / row.time_us, 1, 0.03);
    EXPECT_EQ(estimate.proto, row.proto);
    EXPECT_EQ(estimate.channels, row.channels);
    ASSERT_EQ(estimate.links.size(), row.links.size());
    EXPECT_NEAR(estimate.links[0].busy_us / row.links[0].busy_us, 1, 1e-9);
    EXPECT_GT(estimate.time_us, estimate.links[0].busy_us);
  }
}

// Loads are sums: those of all pairs of nodes, and those of one pair for each two leaves times how
// many there are.
TEST(Traffic, LeavesTellEvenLoads) {
  const ParamCatalog catalog = make_catalog();
  const std::vector<std::string> tree{"network.kind=leaf-spine", "network.ports=16"};
  const std::vector<std::string> tiers{"network.kind=fat-tree", "network.ports=8"};
  const std::vector<std::string> unlike{"nic0@1.trained_width=8"};
  for (const auto& [file, settings] : {std::pair{"hgx-h100-8nic", std::vector<std::string>{}},
                                       {"hgx-h100-8nic", tree},
                                       {"hgx-h100-4nic", tiers},
                                       {"hgx-h100-8nic", unlike},
                                       {"oci-h100", {}}}) {
    Scenario scenario;
    scenario.topology = shipped(std::string("topologies/") + file + ".yaml");
    scenario.nodes = 5;
    scenario.traffic = dispatch(0);
    PredictOptions options;
    for (const std::string& text : settings) options.set.push_back(parse_setting(text));
    ScenarioMachine on(scenario, read_topology(scenario.topology, catalog), options, catalog);
    const Schedule schedule =
        on.decisions().schedule(Communicator::of_all(on.fabric()), MemoryPath::kGdr);
    if (!leaves_tell(on.machine(), schedule)) {
      EXPECT_STREQ(file, "oci-h100");  // two NICs a GPU
      continue;
    }
    const auto loads = [&](EvenBy by) {
      std::map<ServerId, double> out;
      for (const ServerLoad& load : even_loads(on, schedule, Bytes::kib(100), options, by)) {
        out.emplace(load.server, load.seconds);
      }
      return out;
    };
    const std::map<ServerId, double> of_pairs = loads(EvenBy::kEachPair);
    const std::map<ServerId, double> of_leaves = loads(EvenBy::kLeaves);
    ASSERT_EQ(of_leaves.size(), of_pairs.size());
    for (const auto& [server, seconds] : of_pairs) {
      ASSERT_TRUE(of_leaves.contains(server));
      EXPECT_NEAR(of_leaves.at(server) / seconds, 1, 1e-9) << on.machine().cause(server).where;
    }
  }
}

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
    const TrafficRow folded = predicted(spec, kNodes, {"gdr"}, options).rows.at(0);
    options.folds = false;
    const TrafficRow whole = predicted(spec, kNodes, {"gdr"}, options).rows.at(0);
    EXPECT_NEAR(folded.time_us / whole.time_us, 1, 1e-9) << text;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_NEAR(folded.ranks[rank].end_us, whole.ranks[rank].end_us, 1e-9 * whole.time_us);
    }
  }
}

// Two NICs a GPU, of which a pair takes one: which follows from how far apart its nodes are.
TEST(Traffic, AnEvenEstimateIsTheRunOfAnAllToAll) {
  const std::string file = ::testing::TempDir() + "/even48.csv";
  std::string text;
  for (int row = 0; row < 48; ++row) {
    text += "64000";
    for (int column = 1; column < 48; ++column) text += ",64000";
    text += '\n';
  }
  write_text_file(file, text);
  TrafficSpec spec;
  spec.matrix = file;
  const auto time = [&](TrafficBy by) {
    return predicted(spec, 6, {"gdr"}, {}, by, "oci-h100").rows.at(0).time_us;
  };
  EXPECT_NEAR(time(TrafficBy::kEstimate) / time(TrafficBy::kRun), 1, 1e-3);
}

// Where few send, nearly all of the time is a launch and the latency of a send.
TEST(Traffic, ASparseEstimateHasALaunchAndASend) {
  const std::string file = ::testing::TempDir() + "/sparse.csv";
  const auto routing = [&](const std::function<std::string(int rank)>& of_rank) {
    std::string text = "rank,expert,tokens\n";
    for (int rank = 0; rank < 32; ++rank) text += of_rank(rank);
    write_text_file(file, text);
  };
  TrafficSpec spec;
  spec.kind = Kind::kDispatch;
  spec.routing = file;
  spec.experts = 32;
  const auto expect_near = [&](std::int64_t token_bytes, double tolerance) {
    spec.token_bytes = Bytes{token_bytes};
    const double whole = run(spec, 4).time_us;
    EXPECT_NEAR(estimated(spec, 4).time_us / whole, 1, tolerance) << whole << " us";
  };
  routing([](int rank) { return rank == 0 ? "0,8,1\n" : ""; });
  expect_near(8, 0.01);
  routing([](int rank) { return fmt::format("{},{},1\n", rank, (rank + 8) % 32); });
  expect_near(7168, 0.05);
  routing([](int rank) { return fmt::format("{},{},1\n", rank, rank); });
  expect_near(7168, 0.01);
  // Both ways at once a GPU's SMs have more to do than with the one send.
  routing([](int rank) { return fmt::format("{},{},300\n", rank, rank ^ 1); });
  expect_near(7168, 0.01);
  EXPECT_THAT(predicted(spec, 4, {"gdr"}, {}, TrafficBy::kEstimate).notes,
              Contains(HasSubstr("3.2 % of all pairs send, -14 to +13 % of whole runs")));
  EXPECT_THAT(predicted(dispatch(0), 4, {"gdr"}, {}, TrafficBy::kEstimate).notes,
              Contains(HasSubstr("-16 to +26 % of whole runs")));
}

// Sizes of heavy tails, of few pairs and of all: a large send among many small ones has few of its
// blocks' warps, so what the ranks of the largest have to do sets the time.
TEST(Traffic, AnEstimateSeesTheLargeSendsAmongSmallOnes) {
  const std::string file = ::testing::TempDir() + "/tails.csv";
  constexpr std::uint32_t kRanks = 64;
  std::mt19937_64 random = random_stream(1, "tails");
  TrafficSpec spec;
  spec.kind = Kind::kDispatch;
  spec.routing = file;
  spec.experts = kRanks;
  spec.token_bytes = Bytes{64};
  for (const double share : {0.02, 0.25, 0.9}) {
    for (int round = 0; round < 3; ++round) {
      std::string text = "rank,expert,tokens\n";
      for (std::uint32_t pair = 0; pair < kRanks * kRanks; ++pair) {
        if (uniform01(random) >= share) continue;
        const double tail = std::pow(1 - uniform01(random), -1 / 1.1);  // Pareto's
        text += fmt::format("{},{},{}\n", pair / kRanks, pair % kRanks,
                            std::llround(std::min(1e6, 100 * tail)));
      }
      write_text_file(file, text);
      EXPECT_NEAR(estimated(spec, kRanks / 8).time_us / run(spec, kRanks / 8).time_us, 1, 0.04)
          << share;
    }
  }
}

// More choices of experts than are drawn, but few pairs: these are added up one by one where each
// takes a way of its own; many are refused for what makes them unlike.
TEST(Traffic, EvenTrafficOfPairsThatAreUnlike) {
  TrafficSpec spec = dispatch(0);
  spec.tokens = 1 << 24;
  spec.experts = 16;
  spec.token_bytes = Bytes{8};
  PredictOptions options;
  for (const char* text : {"network.kind=leaf-spine", "network.ports=16", "wire.routing=ecmp"}) {
    options.set.push_back(parse_setting(text));
  }
  const TrafficRow spread = run(spec, 2, {"network.kind=leaf-spine", "network.ports=16"});
  const TrafficRow hashed = predicted(spec, 2, {"gdr"}, options).rows.at(0);
  EXPECT_TRUE(hashed.is_estimate);
  EXPECT_GE(hashed.time_us, hashed.links.at(0).busy_us);
  EXPECT_GE(hashed.time_us, 0.99 * spread.time_us);

  const auto refused = [&](const PredictOptions& with, const std::string& topology) {
    spec.experts = 4008;
    try {
      predicted(spec, 501, {"gdr"}, with, TrafficBy::kRun, topology);
    } catch (const TooLarge& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  options.set[0] = parse_setting("network.kind=fat-tree");
  options.set[1] = parse_setting("network.ports=32");
  EXPECT_THAT(refused(options, "hgx-h100-8nic"), HasSubstr("each takes a way of its own"));
  EXPECT_THAT(refused({}, "oci-h100"), HasSubstr("GPUs take several NICs in turn"));
}

// Who gets most of a dispatch sends most of its combine.
TEST(Traffic, EvenTrafficTellsWhatItIsWithout) {
  TrafficSpec spec = dispatch(0);
  spec.tokens = 1 << 24;
  spec.experts = 16;
  spec.token_bytes = Bytes{8};
  const auto notes = [&] { return predicted(spec, 2, {"gdr"}, {}).notes; };
  EXPECT_THAT(notes(), Contains(HasSubstr("the fullest rank would get about")));
  spec.kind = Kind::kCombine;
  EXPECT_THAT(notes(), Contains(AllOf(HasSubstr("the fullest rank would send about"),
                                      HasSubstr("which the time is without"))));
}

TEST(Traffic, AnEstimateIsOfDenseTrafficOnly) {
  EXPECT_THROW(estimated(permutation(Bytes::mib(1), 8), 4), InputError);
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
  options.on_estimate = [&](const std::string& text) { told.push_back(text); };
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
  many.tokens = 1 << 16;
  many.token_bytes = Bytes::gib(1);
  EXPECT_THAT(refused([&] { traffic_matrix(many, 16); }), HasSubstr("more than 4 TiB"));
}

}  // namespace
}  // namespace weft::test::models_traffic
