#include "models/workload/traffic_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
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

using ::testing::_;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = TrafficSpec::Kind;

// The busiest link bounds both; what else it takes is that of an even all-to-all.
TEST(TrafficEstimate, IsNearTheRun) {
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
TEST(TrafficEstimate, LeavesTellEvenLoads) {
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

// Two NICs a GPU, of which a pair takes one: which follows from how far apart its nodes are.
TEST(TrafficEstimate, OfEvenSendsIsTheRunOfAnAllToAll) {
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
TEST(TrafficEstimate, OfFewSendsHasALaunchAndASend) {
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
              Contains(HasSubstr("3.23 % of all pairs send, it was -14 to +13 % in whole runs")));
  EXPECT_THAT(predicted(dispatch(0), 4, {"gdr"}, {}, TrafficBy::kEstimate).notes,
              Contains(HasSubstr("100 % of all pairs send, it was -16 to +26 % in whole runs")));
}

// Sizes of heavy tails, of few pairs and of all: a large send among many small ones has few of its
// blocks' warps, so what the ranks of the largest have to do sets the time.
TEST(TrafficEstimate, SeesTheLargeSendsAmongSmallOnes) {
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

using Sizes = std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes>;  // by from, to

TrafficSpec matrix_of(const Sizes& sizes, const std::string& name) {
  const std::string file = ::testing::TempDir() + "/" + name + ".csv";
  std::string text = "from,to,bytes\n";
  for (const auto& [pair, bytes] : sizes) {
    text += fmt::format("{},{},{}\n", pair.first, pair.second, bytes.count());
  }
  write_text_file(file, text);
  TrafficSpec spec;
  spec.matrix = file;
  return spec;
}

/// Each of some ranks sends all others of them a little, and one of them, `shift` on, much.
void add_one_large_each(Sizes& sizes, const std::vector<std::uint32_t>& ranks, std::size_t shift) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const std::uint32_t to : ranks) {
      if (to != ranks[i]) sizes[{ranks[i], to}] = Bytes{7168};
    }
    sizes[{ranks[i], ranks[(i + shift) % ranks.size()]}] = Bytes::mib(8);
  }
}

std::vector<std::uint32_t> numbers(std::uint32_t first, std::uint32_t end) {
  std::vector<std::uint32_t> out(end - first);
  std::iota(out.begin(), out.end(), first);
  return out;
}

// Ranks are slow for what they have to do in all, too: one that gets a token of each other, among
// sends twice as large; and ranks with a large send each among small ones, where others, which have
// little else, have a somewhat larger one.
TEST(TrafficEstimate, SeesRanksWithMuchToDo) {
  const auto expect_near = [](const Sizes& sizes, const std::string& name, std::uint32_t nodes) {
    const TrafficMatrix matrix = traffic_matrix(matrix_of(sizes, name), 8 * nodes);
    // As tokens: there an estimate may be of few pairs.
    std::string text = "rank,expert,tokens\n";
    for (const TaskSend& send : matrix) {
      text += fmt::format("{},{},{}\n", send.from, send.to, send.bytes.count() / 1024);
    }
    TrafficSpec spec;
    spec.kind = Kind::kDispatch;
    spec.routing = ::testing::TempDir() + "/" + name + ".csv";
    spec.experts = 8 * nodes;
    spec.token_bytes = Bytes::kib(1);
    write_text_file(spec.routing, text);
    const TrafficRow whole = run(spec, nodes);
    const TrafficRow estimate = estimated(spec, nodes);
    EXPECT_NEAR(estimate.time_us / whole.time_us, 1, 0.01) << name;
    ASSERT_FALSE(estimate.limited_by.empty());
    EXPECT_EQ(estimate.limited_by[0].cause, whole.limited_by.at(0).cause) << name;
    EXPECT_NEAR(estimate.limited_by[0].share, whole.limited_by.at(0).share, 0.02) << name;
  };
  Sizes hot;
  for (std::uint32_t rank = 1; rank < 256; ++rank) hot[{rank, 0}] = Bytes::kib(7);
  for (std::uint32_t i = 0; i < 8; ++i) {
    hot[{100 + 16 * i, 109 + 16 * i}] = Bytes::kib(14);  // to the next node
    hot[{101 + 16 * i, 102 + 16 * i}] = Bytes::kib(14);
  }
  expect_near(hot, "hot", 32);

  Sizes hidden;
  std::vector<std::uint32_t> others;
  for (std::uint32_t rank = 0; rank < 32; ++rank) {
    const bool is_quiet = rank % 8 == 0 || rank % 8 == 7;
    if (is_quiet) hidden[{rank, (rank + 8) % 32}] = Bytes::mib(9);
    if (!is_quiet) others.push_back(rank);
  }
  add_one_large_each(hidden, others, 7);
  expect_near(hidden, "hidden", 4);
}

// Of sends that are equal those count whose ranks have more to do, not those with the higher
// numbers: the nodes of a matrix may be numbered the other way round.
TEST(TrafficEstimate, IsTheSameOfTheNodesTheOtherWayRound) {
  constexpr std::uint32_t kNodes = 7;
  constexpr std::uint32_t kRanks = 8 * kNodes;
  Sizes sizes;
  add_one_large_each(sizes, numbers(0, 40), 9);
  for (std::uint32_t rank = 40; rank < kRanks; ++rank) {
    const std::uint32_t other = rank < 48 ? rank + 8 : rank - 8;
    sizes[{rank, other}] = Bytes::mib(8);
    sizes[{rank, rank ^ 1}] = Bytes::mib(8);
  }
  Sizes mirrored;
  const auto mirror = [](std::uint32_t rank) { return (kNodes - 1 - rank / 8) * 8 + rank % 8; };
  for (const auto& [pair, bytes] : sizes) {
    mirrored[{mirror(pair.first), mirror(pair.second)}] = bytes;
  }
  const TrafficSpec spec = matrix_of(sizes, "ties");
  const double whole = run(spec, kNodes).time_us;
  const double time = estimated(spec, kNodes).time_us;
  EXPECT_NEAR(time / whole, 1, 0.01);
  EXPECT_NEAR(estimated(matrix_of(mirrored, "mirrored"), kNodes).time_us / time, 1, 0.01);
}

// What is run of an estimate is told as it is run; ranks with too much to do are not run, and the
// estimate claims no more then.
TEST(TrafficEstimate, TellsWhatItRunsAndWhatIsTooMuch) {
  const auto of_largest = [](Bytes bytes, const PredictOptions& options) {
    Sizes sizes;
    add_one_large_each(sizes, numbers(0, 16), 9);
    sizes[{3, 12}] = bytes;
    return predicted(matrix_of(sizes, "told"), 2, {"gdr"}, options, TrafficBy::kEstimate);
  };
  std::size_t told = 0;
  double share = 0;
  PredictOptions options;
  options.on_progress = [&](const RunProgress& p) {
    ++told;
    EXPECT_GE(p.work_done / p.work, share);
    share = p.work_done / p.work;
  };
  const TrafficResult result = of_largest(Bytes::mib(64), options);
  EXPECT_GT(told, 0U);
  EXPECT_THAT(result.notes, Contains(HasSubstr("run without the rest")));
  EXPECT_THAT(result.notes, Contains(HasSubstr("it was -16 to +26 %")));
  double causes = 0;
  for (const CauseShare& cause : result.rows.at(0).limited_by) causes += cause.share;
  EXPECT_NEAR(causes, 1, 1e-9);

  const TrafficResult too_much = of_largest(Bytes::gib(1024), {});
  EXPECT_THAT(too_much.notes, Contains(HasSubstr("more to send and receive than is run")));
  EXPECT_THAT(too_much.notes, Not(Contains(HasSubstr("it was"))));
  EXPECT_THAT(too_much.rows.at(0).limited_by, ElementsAre(_, _));  // a link, and what is beyond
}

// Of many nodes an even all-to-all is sampled; its time is no less than the fullest link between
// switches is busy in the whole, and little more, as 16 ports down share one up.
TEST(TrafficEstimate, OnANetworkThatBlocksIsAsLongAsItsFullestLinkIsBusy) {
  TrafficSpec spec = dispatch(0);
  spec.tokens = 8192;
  spec.experts = 4500;
  spec.top_k = 8;
  PredictOptions options;
  for (const char* set : {"network.kind=leaf-spine", "network.ports=1100", "network.leaf_down=1024",
                          "network.leaf_up=64", "netswitch.capacity=100000GB/s"}) {
    options.set.push_back(parse_setting(set));
  }
  const TrafficRow row =
      predicted(spec, 4500, {"gdr"}, options, TrafficBy::kEstimate, "genoa-2p-same-switch")
          .rows.at(0);
  EXPECT_THAT(row.links.at(0).cause, HasSubstr("leaf"));
  EXPECT_GE(row.time_us, row.links[0].busy_us);
  EXPECT_LT(row.time_us, 1.1 * row.links[0].busy_us);
}

// What has failed is taken out once: 60 of 64 nodes leave four.
TEST(TrafficEstimate, IsOfTheNodesThatAreLeft) {
  const auto of = [](std::uint32_t nodes, const std::vector<std::string>& settings) {
    PredictOptions options;
    for (const std::string& text : settings) options.set.push_back(parse_setting(text));
    return predicted(dispatch(0.5), nodes, {"gdr"}, options, TrafficBy::kEstimate).rows.at(0);
  };
  const TrafficRow four = of(4, {});
  for (const TrafficRow& left :
       {of(64, {"failed.nodes=60"}), of(2, {"nodes=64", "failed.nodes=60"})}) {
    EXPECT_EQ(left.ranks.size(), four.ranks.size());
    EXPECT_DOUBLE_EQ(left.time_us, four.time_us);
  }
}

// As it takes out uplinks once: what is said of them in two ways is one network.
TEST(TrafficEstimate, IsOfTheUplinksThatAreLeft) {
  const auto of = [](const std::vector<std::string>& settings) {
    PredictOptions options;
    for (const char* text : {"network.kind=leaf-spine", "network.ports=64", "network.leaf_down=16",
                             "network.leaf_up=16"}) {
      options.set.push_back(parse_setting(text));
    }
    for (const std::string& text : settings) options.set.push_back(parse_setting(text));
    return predicted(dispatch(0.5), 8, {"gdr"}, options, TrafficBy::kEstimate).rows.at(0);
  };
  const TrafficRow listed = of({"network.failed_uplinks=leaf0:13+leaf1:12+leaf2:12+leaf3:12"});
  const TrafficRow counted = of({"network.failed_uplinks=leaf0:1", "failed.uplinks=48"});
  EXPECT_DOUBLE_EQ(counted.time_us, listed.time_us);
}

// Two racks of four nodes. An even all-to-all of as many bytes would be told by samples, by which
// no estimate was compared: that is refused, for its place, before anything is drawn up; a smaller
// one runs whole.
TEST(TrafficEstimate, RacksJoinedSideBySideAreRefusedBeyondWhatRunsWhole) {
  PredictOptions options;
  for (const char* text : {"network.kind=leaf-spine", "network.ports=64", "network.leaf_down=1",
                           "network.leaf_up=1", "network.rack_leaves=4", "network.inside=ring"}) {
    options.set.push_back(parse_setting(text));
  }
  const auto answer = [&](const TrafficSpec& spec) -> std::string {
    try {
      predicted(spec, 8, {"gdr"}, options, TrafficBy::kEstimate, "genoa-2p-same-switch");
      return "answered";
    } catch (const TooLarge& e) {
      return e.what();
    }
  };
  TrafficSpec drawn = dispatch(0);
  drawn.experts = 8;
  TrafficSpec even = drawn;
  even.tokens = 1 << 23;
  for (TrafficSpec* const spec : {&drawn, &even}) {
    options.check_only = true;
    spec->place = {"a.yaml", 4, 1};
    spec->token_bytes = Bytes{(1LL << 30) * drawn.tokens / spec->tokens};
    EXPECT_THAT(answer(*spec), AllOf(HasSubstr("a.yaml:4:1"), HasSubstr("joined side by side")));
    options.check_only = false;
    options.on_estimate = [](const std::string& told, double) { ADD_FAILURE() << told; };
    EXPECT_THAT(answer(*spec), HasSubstr("joined side by side"));
    options.on_estimate = {};
    spec->token_bytes = Bytes{16};
    EXPECT_EQ(answer(*spec), "answered");
  }
}

// More choices of experts than are drawn, but few pairs: these are added up one by one where each
// takes a way of its own; many are refused for what makes them unlike.
TEST(TrafficEstimate, EvenTrafficOfPairsThatAreUnlike) {
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
TEST(TrafficEstimate, EvenTrafficTellsWhatItIsWithout) {
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

TEST(TrafficEstimate, IsOfDenseTrafficOnly) {
  EXPECT_THROW(estimated(permutation(Bytes::mib(1), 8), 4), InputError);
}

}  // namespace
}  // namespace weft::test::models_traffic
