// One node that is not like the others.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/collective/sample.hpp"
#include "models/machine/by_node.hpp"
#include "tests/models/machine_under_test.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_unlike_nodes {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr const char* kGenoa = "genoa-2p-same-switch.yaml";

std::string refusal(const std::string& topology, std::uint32_t nodes,
                    const std::vector<std::string>& settings) {
  try {
    decided_row(topology, nodes, "allreduce", Bytes::mib(1), settings);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// Values that a parameter may have and that differ from its default.
std::vector<std::string> other_values(const ParamSpec& spec) {
  std::vector<double> numbers{spec.min, spec.max, spec.fallback / 2, spec.fallback * 2};
  if (!spec.allowed.empty()) numbers.assign(spec.allowed.begin(), spec.allowed.end());
  if (spec.unit == Unit::kChoice || spec.unit == Unit::kFlags) {
    numbers.clear();
    for (double n = spec.min; n <= spec.max && n < 8; ++n) numbers.push_back(n);
  }
  std::vector<std::string> out;
  for (const double number : numbers) {
    if (number == spec.fallback || number < spec.min || number > spec.max) continue;
    out.push_back(ParamCatalog::format(spec, number));
  }
  return out;
}

std::string with_node(const std::string& key, std::uint32_t node) {
  const std::size_t dot = key.find('.');
  return key.substr(0, dot) + "@" + std::to_string(node) + key.substr(dot);
}

// Set for each node by itself a parameter is set for all: so whatever reads it asks for the node.
TEST(UnlikeNodes, OfEachNodeItIsOfAll) {
  const ParamCatalog catalog = make_catalog();
  std::size_t with_effect = 0;
  for (const std::string_view key : keys_by_node()) {
    const ParamSpec& spec = catalog.require(key);
    const std::string name(key);
    bool has_effect = false;
    for (const char* path : {"gdr", "host-staged"}) {
      const auto time = [&](const std::vector<std::string>& set) -> double {
        std::vector<std::string> settings{"cpu.iotlb_entries=64"};
        if (key.starts_with("cpu.io") && key != "cpu.iommu") {
          settings.emplace_back("cpu.iommu=translate");
        }
        settings.insert(settings.end(), set.begin(), set.end());
        try {
          return decided_row("hgx-h100-2nic.yaml", 2, "allreduce", Bytes::mib(1), settings,
                             Fidelity::kFluid, true, path)
              .time_us;
        } catch (const InputError&) {
          return -1;  // one that cannot be on this machine
        }
      };
      const double without = time({});
      for (const std::string& other : other_values(spec)) {
        const std::string value = "=" + other;
        const double all = time({name + value});
        has_effect = has_effect || (all > 0 && all != without);
        EXPECT_EQ(time({with_node(name, 0) + value, with_node(name, 1) + value}), all)
            << name << value << " " << path;
      }
    }
    with_effect += has_effect ? 1 : 0;
  }
  // The others take an NVLink or a port that this run has not, or need packets.
  EXPECT_GE(with_effect, 24U);
}

TEST(UnlikeNodes, OneSlowNicSetsThePaceOfARing) {
  const std::vector<std::string> ring{"nccl.algo=Ring", "nccl.proto=Simple"};
  const auto busbw = [&](std::vector<std::string> settings, bool folds = true) {
    settings.insert(settings.end(), ring.begin(), ring.end());
    return decided_row(kGenoa, 6, "allreduce", Bytes::mib(256), settings, Fidelity::kFluid, folds)
        .busbw_gb_per_s;
  };
  const double healthy = busbw({});
  const double all = busbw({"nic.trained_width=4"});
  const double one = busbw({"nic0@4.trained_width=4"});
  EXPECT_LT(one, 0.6 * healthy);
  EXPECT_NEAR(one, all, 0.01 * all);
  EXPECT_GE(one, all);
  EXPECT_EQ(busbw({"nic@4.trained_width=4"}), one);
  EXPECT_EQ(busbw({"nic0@4.trained_width=4"}, /*folds=*/false), one);
  // Whichever node it is.
  EXPECT_NEAR(busbw({"nic0@0.trained_width=4"}), one, 1e-3 * one);
  // What is set of one node beats what is set of all.
  EXPECT_NEAR(busbw({"nic.trained_width=4", "nic0@4.trained_width=16"}), all, 0.01 * all);
}

TEST(UnlikeNodes, FoldingKeepsThemApart) {
  for (const char* op : {"allreduce", "alltoall", "allgather"}) {
    const std::vector<std::string> settings{"nic3@2.trained_width=4", "cpu0@1.iommu=translate"};
    const ResultRow whole = decided_row("hgx-h100-8nic.yaml", 4, op, Bytes::mib(2), settings,
                                        Fidelity::kFluid, /*folds=*/false);
    const ResultRow folded = decided_row("hgx-h100-8nic.yaml", 4, op, Bytes::mib(2), settings);
    EXPECT_NEAR(folded.time_us, whole.time_us, 1e-9 * whole.time_us) << op;
  }
}

// Of a cluster that a few nodes stand for it is one of these, in the place of such a node of a
// tree.
TEST(UnlikeNodes, SamplesHaveItAmongThem) {
  const auto time = [](const std::string& slow, const char* op, bool folds) {
    std::vector<std::string> settings{"gpu.count=1", "nic.count=1", "nccl.algo=auto"};
    if (!slow.empty()) settings.push_back(slow + ".trained_width=4");
    return decided_row("genoa-2p-same-switch.yaml", 40, op, Bytes::mib(4), settings,
                       Fidelity::kFluid, folds);
  };
  for (const auto& [op, within] : {std::pair{"allreduce", 0.05}, std::pair{"alltoall", 0.08}}) {
    for (const char* slow : {"nic0@0", "nic0@17", "nic0@22", "nic0@39"}) {
      const ResultRow few = time(slow, op, true);
      const ResultRow whole = time(slow, op, false);
      EXPECT_NEAR(few.time_us, whole.time_us, within * whole.time_us) << op << " " << slow;
      EXPECT_GT(whole.time_us, time("", op, true).time_us) << op << " " << slow;
    }
  }
}

// What is a little slow hides in the samples what a level adds: the cluster takes no less than one
// without it.
TEST(UnlikeNodes, SamplesAreNoFasterForASlowNode) {
  const auto time = [](const std::string& setting, Bytes bytes, bool folds) {
    return decided_row(kGenoa, 66, "allreduce", bytes,
                       {"nccl.algo=Tree", "nccl.proto=Simple", setting}, Fidelity::kFluid, folds);
  };
  for (const std::int64_t mib : {1, 2, 8}) {
    const ResultRow slow = time("nic0@5.trained_width=8", Bytes::mib(mib), true);
    EXPECT_GE(slow.time_us, time("nic0.trained_width=16", Bytes::mib(mib), true).time_us) << mib;
    const ResultRow whole = time("nic0@5.trained_width=8", Bytes::mib(mib), false);
    EXPECT_NEAR(slow.time_us, whole.time_us, 0.1 * whole.time_us) << mib;
  }
}

// Of several each has samples of its own: the slowest of them sets the pace, wherever it is.
TEST(UnlikeNodes, OfSeveralTheSlowestCounts) {
  const auto time = [](const std::vector<std::string>& slow, const char* op, Bytes bytes,
                       bool folds) {
    std::vector<std::string> settings{"gpu.count=1", "nic.count=1", "nccl.algo=auto"};
    settings.insert(settings.end(), slow.begin(), slow.end());
    return decided_row("genoa-2p-same-switch.yaml", 40, op, bytes, settings, Fidelity::kFluid,
                       folds);
  };
  const std::string x8 = "nic0@5.trained_width=8";
  const std::string x4 = "nic0@22.trained_width=4";
  const std::string iommu = "cpu0@30.iommu=translate";
  for (const auto& [op, bytes] : {std::pair{"allreduce", Bytes::mib(16)},
                                  {"alltoall", Bytes::mib(4)},
                                  {"broadcast", Bytes::mib(16)},
                                  {"allreduce", Bytes::mib(64)}}) {
    const ResultRow few = time({x8, x4, iommu}, op, bytes, true);
    EXPECT_EQ(few.time_us, time({x4, iommu, x8}, op, bytes, true).time_us) << op;
    // Of all-to-alls one with a single slow node is told by a sample, of several all nodes run.
    const double of_sample = op == std::string("alltoall") ? 0.05 : 0.01;
    EXPECT_NEAR(few.time_us, time({x4}, op, bytes, true).time_us, of_sample * few.time_us) << op;
    const ResultRow whole = time({x8, x4, iommu}, op, bytes, false);
    EXPECT_NEAR(few.time_us, whole.time_us, 0.08 * whole.time_us) << op;
    EXPECT_THAT(few.limited_by.front().where, HasSubstr("nic0@22 ")) << op;
  }
}

// Of what is alike one stands for all; so what takes a second takes twenty with one slow node.
TEST(UnlikeNodes, TakeLongerWhichIsTold) {
  const auto told = [](const std::vector<std::string>& settings) {
    return told_beforehand("hgx-h100-8nic.yaml", 128, "alltoall", Bytes::mib(256), settings);
  };
  EXPECT_THAT(told({}), ElementsAre());
  EXPECT_THAT(told({"nic0@3.trained_width=4"}), ElementsAre(HasSubstr("s of one core")));
}

// Nodes of which the same is set, and which have like places in the trees, run once, as the first
// of them: no more work is told than of that one alone.
TEST(UnlikeNodes, OfSeveralThatAreAlikeOneRuns) {
  const auto with = [](const std::vector<std::string>& slow) {
    Scenario scenario = scenario_of(kGenoa, 40, "allreduce", Bytes::mib(4));
    scenario.memory_paths = {"gdr"};
    PredictOptions options;
    double work = 0;
    options.on_progress = [&](const RunProgress& so_far) { work = so_far.work; };
    options.set = {parse_setting("nccl.algo=Tree"), parse_setting("nccl.channels=2")};
    for (const std::string& name : slow) {
      options.set.push_back(parse_setting(name + ".trained_width=1"));
    }
    const ResultRow row = predict(scenario, options, make_catalog()).rows.at(0);
    return std::tuple{work, row.time_us, row.limited_by.front().where};
  };
  const auto one = with({"nic0@5"});
  EXPECT_THAT(std::get<2>(one), HasSubstr("nic0@5 "));
  EXPECT_EQ(with({"nic0@5", "nic0@9", "nic0@13"}), one);
  EXPECT_GT(std::get<0>(with({"nic0@5", "nic0@6"})), std::get<0>(one));
}

/// Every third node has one NIC at x4, some GPUs of these nodes are slow, too.
std::vector<std::string> many_slow(std::uint32_t nodes) {
  std::vector<std::string> out;
  for (std::uint32_t node = 1; node < nodes; node += 3) {
    out.push_back("nic0@" + std::to_string(node) + ".trained_width=4");
    if (node % 2 == 0) out.push_back("gpu0@" + std::to_string(node) + ".sm_cycle=2");
  }
  return out;
}

// A root of a chain sends or receives only: of several slow nodes of one kind each is looked at.
// Of many the delays add up, so they run whole.
TEST(UnlikeNodes, OfAChainEachOneIsLookedAt) {
  const std::vector<std::string> two{"nic0@0.read_tags=2", "nic0@5.read_tags=2"};
  const double one = decided_row(kGenoa, 40, "reduce", Bytes::mib(16), {two.back()}).time_us;
  EXPECT_GE(decided_row(kGenoa, 40, "reduce", Bytes::mib(16), two).time_us, 0.999 * one);
  std::vector<std::string> many;
  for (int node = 1; node < 40; ++node) {
    many.push_back("nic0@" + std::to_string(node) + ".latency=20 us");
  }
  many.emplace_back("nccl.algo=Ring");
  const ResultRow whole =
      decided_row(kGenoa, 40, "allreduce", Bytes::mib(1), many, Fidelity::kFluid, false);
  EXPECT_NEAR(decided_row(kGenoa, 40, "allreduce", Bytes::mib(1), many).time_us, whole.time_us,
              0.001 * whole.time_us);
}

// Of a chain it is one of its ends, or between, over odd numbers of nodes, too: the last one of a
// broadcast sends nothing.
TEST(UnlikeNodes, AChainHasTwoEnds) {
  const auto place = [](std::uint32_t node, std::uint32_t nodes) {
    return places_in_chain(6, {node}, nodes).value().begin()->first;
  };
  for (const std::uint32_t nodes : {40U, 41U}) {
    EXPECT_EQ(place(0, nodes), 0U);
    EXPECT_EQ(place(1, nodes), 1U);
    EXPECT_EQ(place(2, nodes), 2U) << "of the same turn";
    EXPECT_EQ(place(nodes - 2, nodes), nodes % 2 == 0 ? 2U : 3U);
    EXPECT_EQ(place(nodes - 1, nodes), 5U);
    EXPECT_EQ(places_in_chain(6, {1, 2}, nodes), (UnlikePlaces{{1, 1}, {2, 2}}));
    EXPECT_EQ(places_in_chain(6, {7, 8}, nodes), (UnlikePlaces{{3, 7}, {4, 8}}));
    EXPECT_EQ(places_in_chain(6, {8, 9}, nodes), (UnlikePlaces{{2, 8}, {3, 9}}));
    EXPECT_FALSE(places_in_chain(6, {7, 8, 9}, nodes)) << "no room between the ends at that turn";
    EXPECT_EQ(places_in_chain(8, {7, 8, 9}, nodes), (UnlikePlaces{{3, 7}, {4, 8}, {5, 9}}));
    EXPECT_EQ(places_in_chain(6, {nodes - 2, nodes - 1}, nodes),
              (UnlikePlaces{{4, nodes - 2}, {5, nodes - 1}}));
    EXPECT_FALSE(places_in_chain(6, {7, 8, 9, 10}, nodes));
  }
  const auto time = [](std::uint32_t slow) {
    const std::string name = "nic0@" + std::to_string(slow);
    const ResultRow row =
        decided_row(kGenoa, 41, "broadcast", Bytes::gib(4), {name + ".read_tags=2"});
    EXPECT_THAT(row.extended, ElementsAre(Field(&ResultRow::Extended::by, "chain")));
    return row.time_us;
  };
  EXPECT_LT(time(40), 0.5 * time(1));
  // By turns of two NICs the last one of an odd number, and its hop to the first, is at the other
  // turn than that of an even number.
  const auto by_turns = [](const char* op, const char* late, bool folds) {
    const std::vector<std::string> settings{late, "nccl.channels=1", "nccl.proto=LL"};
    return decided_row("hgx-h200-8nic.yaml", 9, op, Bytes::mib(72), settings, Fidelity::kFluid,
                       folds);
  };
  for (const auto& [op, late] : {std::pair{"broadcast", "nic0@8.latency=60 us"},
                                 std::pair{"reduce", "nic0@0.latency=60 us"}}) {
    const ResultRow few = by_turns(op, late, true);
    const ResultRow whole = by_turns(op, late, false);
    EXPECT_THAT(few.extended, ElementsAre(Field(&ResultRow::Extended::by, "chain")));
    EXPECT_NEAR(few.time_us, whole.time_us, 1e-3 * whole.time_us) << op;
    // Where it is a node that is like the others it has no number.
    const std::string& where = few.limited_by.front().where;
    const std::string& there = whole.limited_by.front().where;
    EXPECT_EQ(where, where.find('@') == std::string::npos ? there.substr(0, where.size()) : there);
  }
}

// A ring passes it once around, a few nodes' ring much more often: twice as many tell what that
// adds. Whole runs took 3,312, 8,128 and 26,047 us, as soon as the steps under way over the slow
// hop set the pace. What does not take long runs whole.
TEST(UnlikeNodes, ARingPassesItOnceAround) {
  const auto with = [](std::uint32_t nodes, Bytes bytes, std::vector<std::string> settings,
                       bool folds = true) {
    for (const char* also : {"nccl.algo=Ring", "nccl.proto=LL", "nccl.channels=8"}) {
      settings.emplace_back(also);
    }
    return decided_row(kGenoa, nodes, "allreduce", bytes, settings, Fidelity::kFluid, folds);
  };
  const auto slower_by = [](const char* latency) {
    return std::string("nic0@5.latency=") + latency;
  };
  const ResultRow one = with(256, Bytes::mib(4), {slower_by("20 us")});
  EXPECT_NEAR(one.time_us, 3312.5, 0.03 * 3312.5);
  EXPECT_NEAR(with(256, Bytes::mib(4), {slower_by("60 us")}).time_us, 8128, 0.02 * 8128);
  EXPECT_NEAR(with(256, Bytes::mib(4), {slower_by("200 us")}).time_us, 26047, 0.01 * 26047);
  ASSERT_EQ(one.extended.size(), 1U);
  EXPECT_EQ(one.extended.front().by, "unlike node");
  EXPECT_THAT(one.extended.front().from, ElementsAre(32, 16));
  // The ring passes those of another kind, too.
  const ResultRow two = with(256, Bytes::mib(4), {slower_by("20 us"), "nic0@9.latency=15 us"});
  EXPECT_EQ(two.extended.size(), 2U);
  EXPECT_GT(two.time_us, one.time_us);
  EXPECT_EQ(with(40, Bytes::kib(64), {slower_by("20 us")}).time_us,
            with(40, Bytes::kib(64), {slower_by("20 us")}, false).time_us);
}

TEST(UnlikeNodes, KindsAreWhatIsSetAndItsPlace) {
  MachineUnderTest machine(
      kGenoa,
      {"nic0@1.trained_width=4", "nic0@3.trained_width=8", "nic0@5.trained_width=4",
       "nic0@8.trained_width=4", "gpu0@8.sm_cycle=2"},
      9);
  const Params& params = machine.params();
  const std::vector<UnlikeGroup> alone{{1}, {3}, {5}, {8}};
  const auto nowhere = [](const UnlikeGroup&) { return UnlikeGroup{}; };
  EXPECT_THAT(unlike_kinds(params, alone, nowhere),
              ElementsAre(UnlikeKind{{1}, 2}, UnlikeKind{{3}, 1}, UnlikeKind{{8}, 1}));
  const auto place = [](const UnlikeGroup& group) { return UnlikeGroup{group.front() / 4}; };
  EXPECT_THAT(
      unlike_kinds(params, alone, place),
      ElementsAre(UnlikeKind{{1}, 1}, UnlikeKind{{3}, 1}, UnlikeKind{{5}, 1}, UnlikeKind{{8}, 1}));
  EXPECT_THAT(unlike_kinds(params, {{1, 3}, {5, 3}, {3, 5}}, nowhere),
              ElementsAre(UnlikeKind{{1, 3}, 2}, UnlikeKind{{3, 5}, 1}));
}

TEST(UnlikeNodes, NeighboursStayTogetherIfDelaysAddUp) {
  MachineUnderTest slow_links(kGenoa, {"nic0@1.trained_width=4", "nic0@2.trained_width=4"}, 9);
  MachineUnderTest late(kGenoa, {"nic0@1.latency=4 us", "nic0@2.trained_width=4"}, 9);
  const Params& rates = slow_links.params();
  const Params& delays = late.params();
  EXPECT_THAT(unlike_groups(rates, {1, 2}, around_a_ring(9)),
              ElementsAre(UnlikeGroup{1}, UnlikeGroup{2}));
  EXPECT_THAT(unlike_groups(delays, {1, 2, 4, 8}, around_a_ring(9)),
              ElementsAre(UnlikeGroup{1, 2}, UnlikeGroup{4}, UnlikeGroup{8}));
  EXPECT_THAT(unlike_groups(delays, {0, 1, 2, 3, 4, 8}, around_a_ring(9)),
              ElementsAre(UnlikeGroup{0, 1, 2}, UnlikeGroup{3}, UnlikeGroup{4}, UnlikeGroup{8}))
      << "of what is next to the late one";
  MachineUnderTest at_the_end(kGenoa, {"nic0@0.latency=4 us", "nic0@8.latency=4 us"}, 9);
  const Params& first_and_last = at_the_end.params();
  EXPECT_THAT(unlike_groups(first_and_last, {0, 4, 8}, around_a_ring(9)),
              ElementsAre(UnlikeGroup{0, 8}, UnlikeGroup{4}));
  EXPECT_THAT(unlike_groups(first_and_last, {0, 4, 8}, along_a_chain(9)),
              ElementsAre(UnlikeGroup{0}, UnlikeGroup{4}, UnlikeGroup{8}));
  EXPECT_THAT(unlike_groups(first_and_last, {0, 3, 6}, in_pat(40)),
              ElementsAre(UnlikeGroup{0}, UnlikeGroup{3}, UnlikeGroup{6}));
  EXPECT_THAT(unlike_groups(first_and_last, {0, 3, 4}, in_pat(40)),
              ElementsAre(UnlikeGroup{0, 4}, UnlikeGroup{3}))
      << "four nodes on";
  EXPECT_EQ(in_ring_order({0, 1, 39}, 40), (UnlikeGroup{39, 0, 1}));
  EXPECT_EQ(in_ring_order({3, 4, 5}, 40), (UnlikeGroup{3, 4, 5}));
  EXPECT_EQ(places_around(4, {0, 39}, 40), (UnlikePlaces{{3, 39}, {0, 0}}));
  EXPECT_EQ(places_around(4, {0, 41}, 42), (UnlikePlaces{{1, 41}, {2, 0}}));
  EXPECT_FALSE(places_around(4, {0, 40}, 41)) << "turns change there";
  EXPECT_FALSE(places_around(4, {5, 6, 7}, 40));
}

// Of two that are parent and child the same are in the samples; three in a row of parents have no
// place among few.
TEST(UnlikeNodes, TreesHaveParentsAndChildren) {
  MachineUnderTest machine(kGenoa, {"nic0@4.latency=4 us", "nic0@20.latency=4 us"}, 40);
  EXPECT_THAT(unlike_groups(machine.params(), {4, 6, 20}, in_trees(40)),
              ElementsAre(UnlikeGroup{4, 6}, UnlikeGroup{20}));
  for (const std::uint32_t few : {8U, 16U}) {
    const std::optional<UnlikePlaces> places = places_in_trees(few, {4, 6}, 40);
    ASSERT_TRUE(places);
    UnlikeGroup here;
    for (const std::uint32_t node : {4U, 6U}) {
      const auto is_it = [&](const auto& placed) { return placed.second == node; };
      here.push_back(std::ranges::find_if(*places, is_it)->first);
    }
    EXPECT_EQ(shape_in_trees(few, here), shape_in_trees(40, {4, 6}));
    EXPECT_NE(shape_in_trees(40, {4, 6}), shape_in_trees(40, {4, 20}));
  }
  EXPECT_FALSE(places_in_trees(8, {8, 16, 4, 2}, 40));
}

// Delays of neighbours add up on what they send each other; whole runs took up to twice as long as
// with either alone.
TEST(UnlikeNodes, DelaysOfNeighboursAddUp) {
  const auto compare = [](const char* topology, const char* op, Bytes bytes,
                          const std::vector<std::string>& settings, double tolerance) {
    const ResultRow few = decided_row(topology, 40, op, bytes, settings);
    const ResultRow whole = decided_row(topology, 40, op, bytes, settings, Fidelity::kFluid, false);
    EXPECT_NEAR(few.time_us, whole.time_us, tolerance * whole.time_us) << op << settings.back();
    if (op == std::string("sendrecv")) return;  // not extended
    EXPECT_THAT(few.extended, ::testing::Not(::testing::IsEmpty())) << "is it sampled?";
  };
  compare("hgx-h100-8nic.yaml", "allreduce", Bytes::mib(16),
          {"nic@5.latency=30 us", "nic@6.latency=30 us", "nccl.channels=2", "nccl.proto=LL128",
           "nccl.algo=Ring"},
          0.01);
  // Rings of these go by turns: one NIC from even nodes on, another from odd ones.
  const char* by_turns = "hgx-h200-8nic.yaml";
  compare(by_turns, "broadcast", Bytes::mib(20),
          {"nic0@7.latency=60 us", "nic0@8.latency=60 us", "nccl.channels=1", "nccl.proto=LL"},
          0.01);
  // Two channels begin at two GPUs of the root: of one the last node sends to the root's others.
  const std::vector<std::string> ends{"nic0@0.latency=60 us",  "nic1@0.latency=60 us",
                                      "nic0@39.latency=60 us", "nic1@39.latency=60 us",
                                      "nccl.channels=2",       "nccl.proto=LL"};
  EXPECT_THAT(decided_row(by_turns, 40, "broadcast", Bytes::mib(20), ends).extended, ElementsAre())
      << "runs whole";
  compare(by_turns, "allreduce", Bytes::mib(10),
          {"nic1@0.latency=60 us", "nic1@39.latency=60 us", "nic1@20.latency=60 us",
           "nic1@21.latency=60 us", "nccl.channels=1", "nccl.proto=LL", "nccl.algo=Ring"},
          0.01);
  compare(kGenoa, "sendrecv", Bytes::gib(1), {"nic@5.latency=60 us", "nic@6.latency=60 us"}, 0.01);
  compare(kGenoa, "broadcast", Bytes::mib(128),
          {"nic@5.latency=60 us", "nic@6.latency=60 us", "nccl.channels=2", "nccl.proto=LL"}, 0.02);
  compare(kGenoa, "allreduce", Bytes::mib(64),
          {"nic@4.latency=60 us", "nic@6.latency=60 us", "nccl.channels=2", "nccl.proto=LL",
           "nccl.algo=Tree"},
          0.05);
}

// In trees many slow nodes add to each other's delays, so all of them run, with a part of the
// bytes: where a third is slow, and where one has no like in the samples, as it has one child.
TEST(UnlikeNodes, OfManyInTreesAllRunWithFewerBytes) {
  const auto compare = [](std::uint32_t nodes, std::vector<std::string> settings) {
    for (const char* also : {"nccl.algo=Tree", "nccl.proto=Simple", "nccl.channels=2"}) {
      settings.emplace_back(also);
    }
    const Bytes bytes = Bytes::mib(256);
    const ResultRow few = decided_row(kGenoa, nodes, "allreduce", bytes, settings);
    const ResultRow whole =
        decided_row(kGenoa, nodes, "allreduce", bytes, settings, Fidelity::kFluid, false);
    EXPECT_NEAR(few.time_us, whole.time_us, 0.01 * whole.time_us) << settings.front();
    ASSERT_EQ(few.extended.size(), 1U);
    EXPECT_EQ(few.extended.front().by, "byte");
    EXPECT_EQ(few.limited_by.front().where, whole.limited_by.front().where);
  };
  compare(40, many_slow(40));
  ASSERT_FALSE(places_in_trees(Sample::kLeastOfTrees, {40}, 41));
  compare(41, {"nic0@40.trained_width=4"});
}

// Over an odd number of nodes NCCL's second tree is the first one further on: its root is node 1,
// and the last node is one of many. Rows name the cluster's node, not the sample's.
TEST(UnlikeNodes, SamplesKnowTheirPlaceInTheTrees) {
  for (const std::uint32_t nodes : {40U, 41U}) {
    for (const std::uint32_t slow : {0U, 1U, 17U, 20U, 39U, nodes - 1}) {
      const std::string name = "nic0@" + std::to_string(slow);
      const auto time = [&](bool folds) {
        return decided_row(kGenoa, nodes, "allreduce", Bytes::mib(4),
                           {"nccl.algo=Tree", "nccl.channels=2", name + ".trained_width=1"},
                           Fidelity::kFluid, folds);
      };
      const ResultRow few = time(true);
      const ResultRow whole = time(false);
      EXPECT_NEAR(few.time_us, whole.time_us, 0.1 * whole.time_us) << nodes << " " << name;
      EXPECT_THAT(few.limited_by.front().where, HasSubstr(name + " ")) << nodes;
    }
  }
}

TEST(UnlikeNodes, ADeviceBeatsItsKind) {
  const auto time = [](const std::vector<std::string>& settings) {
    return decided_row("hgx-h100-2nic.yaml", 2, "allreduce", Bytes::mib(16), settings).time_us;
  };
  const double slow = time({"nic0@1.trained_width=4", "nic1@1.trained_width=16"});
  EXPECT_EQ(time({"nic0@1.trained_width=4", "nic@1.trained_width=16"}), slow);
  EXPECT_EQ(time({"nic@1.trained_width=16", "nic0@1.trained_width=4"}), slow);
  EXPECT_LT(time({"nic@1.trained_width=16"}), slow);
}

TEST(UnlikeNodes, PacketsSeeThemToo) {
  const std::vector<std::string> settings{"nccl.algo=Ring", "nccl.proto=Simple", "nccl.channels=2",
                                          "nic0@2.trained_width=4"};
  const ResultRow fluid = decided_row(kGenoa, 3, "allreduce", Bytes::mib(16), settings);
  const ResultRow packets =
      decided_row(kGenoa, 3, "allreduce", Bytes::mib(16), settings, Fidelity::kPacket);
  EXPECT_NEAR(packets.time_us, fluid.time_us, 0.04 * fluid.time_us);
  EXPECT_THAT(packets.limited_by.front().where, HasSubstr("nic0@2"));
  EXPECT_THAT(fluid.limited_by.front().where, HasSubstr("nic0@2"));
}

TEST(UnlikeNodes, WhatCannotBeIsRefused) {
  EXPECT_THAT(refusal(kGenoa, 2, {"nic0@2.trained_width=8"}),
              HasSubstr("nic0@2.trained_width (set by the user (--set)): there is no node 2; the "
                        "nodes are numbered from 0 to 1"));
  for (const char* node : {"", "-1", "01", "x", "4294967296"}) {
    EXPECT_THAT(refusal(kGenoa, 2, {std::string("nic0@") + node + ".trained_width=8"}),
                HasSubstr("there is no node " + std::string(node)));
  }
  EXPECT_THAT(refusal(kGenoa, 2, {"nic7@1.trained_width=8"}),
              HasSubstr("'nic7' is no device and no kind of device of"));
  EXPECT_THAT(refusal(kGenoa, 2, {"nic0@1.rate=200 Gb/s"}),
              HasSubstr("nic0@1.rate: nic.rate is the same on all nodes; what one node may have "
                        "otherwise: cpu.acs, cpu.dram_channels"));
  EXPECT_THAT(refusal(kGenoa, 2, {"nic0@1.widht=8"}), HasSubstr("no parameter 'nic.widht'"));
  EXPECT_THAT(refusal(kGenoa, 2, {"nccl@1.proxy_poll=1 us"}), HasSubstr("no kind of device"));
  EXPECT_THAT(refusal("h200-vm.yaml", 2, {"nic.emulation=copies", "cpu@1.dram_channels=1"}),
              HasSubstr("hosts of emulated NICs are pretended on one machine"));
}

// What is decided for the nodes of a job alone does not know what one node of the cluster has.
TEST(UnlikeNodes, JobsHaveThem) {
  const auto jobs = [](const std::vector<std::string>& settings) {
    PredictOptions options;
    options.set = {parse_setting("gpu.count=2"), parse_setting("nic.count=2")};
    for (const std::string& text : settings) options.set.push_back(parse_setting(text));
    return predict(read_scenario(shipped("scenarios/planning/two-jobs.yaml")), options,
                   make_catalog())
        .rows;
  };
  const std::vector<ResultRow> healthy = jobs({});
  const std::vector<ResultRow> one = jobs({"nic@7.trained_width=1"});  // of the second job
  ASSERT_EQ(one.size(), 2U);
  EXPECT_EQ(one[0].alone_us, healthy[0].alone_us);
  EXPECT_GT(one[1].alone_us, 2 * healthy[1].alone_us);
}

TEST(UnlikeNodes, OneThatTakesNoPartIsRefused) {
  MachineUnderTest on("hgx-h100-8nic.yaml", {"gpu0@2.trained_width=4"}, 4);
  EXPECT_NO_THROW(refuse_idle_nodes(on.devices(), {0, 2}));
  EXPECT_THROW(refuse_idle_nodes(on.devices(), {0, 1}), InputError);
}

}  // namespace
}  // namespace weft::test::models_unlike_nodes
