// A folded run is the run: the same transfers at the same picoseconds, as the trajectory's hash
// counts them.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "models/collective/sample.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::models_fold_run {
namespace {

std::vector<ResultRow> run(const Scenario& scenario, const std::vector<std::string>& settings,
                           bool folds) {
  PredictOptions options;
  options.threads = 1;
  options.folds = folds;
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  return predict(scenario, options, make_catalog()).rows;
}

void expect_same(const Scenario& scenario, const std::vector<std::string>& settings) {
  std::string all;
  for (const std::string& text : settings) all += " " + text;
  SCOPED_TRACE(scenario.topology + " " + scenario.op + " x" +
               std::to_string(scenario.nodes.value()) + all);
  const std::vector<ResultRow> whole = run(scenario, settings, false);
  const std::vector<ResultRow> folded = run(scenario, settings, true);
  ASSERT_EQ(folded.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_DOUBLE_EQ(folded[i].time_us, whole[i].time_us);
    EXPECT_EQ(folded[i].trajectory, whole[i].trajectory);
    EXPECT_EQ(folded[i].nic_gb_per_s, whole[i].nic_gb_per_s);
    // Which of two that end at one instant ends the run is no part of it, but kinds and sums are.
    double sum = 0;
    for (const CauseShare& share : folded[i].limited_by) sum += share.share;
    EXPECT_NEAR(sum, 1, 1e-9);
  }
}

TEST(FoldRun, EveryAlgorithmAndProtocol) {
  for (const char* algorithm : {"Ring", "Tree", "NVLSTree"}) {
    for (const char* protocol : {"LL", "LL128", "Simple"}) {
      if (std::string(algorithm) == "NVLSTree" && std::string(protocol) != "Simple") continue;
      expect_same(scenario_of("hgx-h100-8nic.yaml", 4, "allreduce", Bytes::mib(1)),
                  {std::string("nccl.algo=") + algorithm, std::string("nccl.proto=") + protocol});
    }
  }
  for (const char* op : {"allreduce", "allgather", "reducescatter"}) {
    expect_same(scenario_of("hgx-h100-8nic.yaml", 1, op, Bytes::mib(8)), {"nccl.algo=NVLS"});
  }
  expect_same(scenario_of("hgx-h100-8nic.yaml", 5, "allreduce", Bytes::mib(2)),
              {"nccl.algo=NVLSTree", "network.kind=leaf-spine", "network.ports=32"});
  expect_same(scenario_of("hgx-h100-8nic.yaml", 4, "allgather", Bytes::mib(4)),
              {"gpu.count=1", "nccl.algo=PAT"});
}

// 1,024 GPUs on leaves with half as many uplinks as NICs, next nodes on other leaves. One channel
// does not fill the uplinks (more take the whole run minutes): samples stand for a ring's
// collectives, sends are folded, every transfer as in the whole run. Of the
// time each cause has the same share.
TEST(FoldRun, OversubscribedFabricOf1024GpusIsTheWholeOne) {
  const std::vector<std::string> fabric{"network.kind=leaf-spine",
                                        "network.ports=64",
                                        "network.oversubscription=2",
                                        "network.placement=round-robin",
                                        "nccl.proto=Simple",
                                        "nccl.algo=Ring",
                                        "nccl.channels=1",
                                        "nccl.launch=single"};
  const auto same = [&](const char* op, Bytes bytes, bool is_sampled) {
    SCOPED_TRACE(op);
    Scenario scenario = scenario_of("hgx-h100-8nic.yaml", 128, op, bytes);
    scenario.memory_paths = {"gdr"};
    const ResultRow whole = run(scenario, fabric, false).at(0);
    const ResultRow folded = run(scenario, fabric, true).at(0);
    EXPECT_EQ(folded.extended.empty(), !is_sampled);
    EXPECT_DOUBLE_EQ(folded.time_us, whole.time_us);
    EXPECT_EQ(folded.trajectory == whole.trajectory, !is_sampled);
    // A sample's one switch stands for the leaves.
    const auto name = [](std::string cause) {
      const auto at = cause.find("leaf");
      return at == std::string::npos ? cause : cause.replace(at, 4, "switch");
    };
    std::map<std::string, double> shares;
    for (const CauseShare& share : whole.limited_by) shares[name(share.cause)] += share.share;
    for (const CauseShare& share : folded.limited_by) shares[name(share.cause)] -= share.share;
    for (const auto& [cause, apart] : shares) EXPECT_NEAR(apart, 0, 1e-9) << cause;
  };
  same("allreduce", Bytes::mib(16), true);
  same("allgather", Bytes::mib(16), true);
  same("reducescatter", Bytes::mib(16), true);
  same("sendrecv", Bytes::mib(1), false);
}

// Four nodes stand for more, where a ring joins them by turns.
TEST(FoldRun, ASampleOfARingIsTheCluster) {
  for (const char* op : {"allreduce", "allgather", "reducescatter"}) {
    for (const std::uint32_t nodes : {10U, 16U}) {
      const Scenario scenario = scenario_of("hgx-h100-8nic.yaml", nodes, op, Bytes::kib(256));
      const std::vector<ResultRow> whole = run(scenario, {"nccl.algo=Ring"}, false);
      const std::vector<ResultRow> sample = run(scenario, {"nccl.algo=Ring"}, true);
      ASSERT_EQ(sample.size(), whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_DOUBLE_EQ(sample[i].time_us, whole[i].time_us) << op << " x" << nodes;
        EXPECT_NE(sample[i].trajectory, whole[i].trajectory);  // of fewer nodes
        EXPECT_EQ(sample[i].busbw_gb_per_s, whole[i].busbw_gb_per_s);
        EXPECT_EQ(sample[i].ranks, 8 * nodes);
        EXPECT_EQ(sample[i].nodes, nodes);
        EXPECT_TRUE(sample[i].extended.empty());
      }
    }
  }
}

TEST(FoldRun, ASampleOfPatIsTheCluster) {
  for (const char* op : {"allgather", "reducescatter"}) {
    for (const std::uint32_t nodes : {9U, 32U}) {
      const Scenario scenario =
          scenario_of("genoa-2p-same-switch.yaml", nodes, op, Bytes::mib(256));
      const std::vector<ResultRow> whole = run(scenario, {"nccl.algo=PAT"}, false);
      const std::vector<ResultRow> sample = run(scenario, {"nccl.algo=PAT"}, true);
      ASSERT_EQ(sample.size(), whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_DOUBLE_EQ(sample[i].time_us, whole[i].time_us) << op << " x" << nodes;
        EXPECT_NE(sample[i].trajectory, whole[i].trajectory);  // of fewer nodes
        EXPECT_DOUBLE_EQ(sample[i].nic_gb_per_s, whole[i].nic_gb_per_s);
        EXPECT_EQ(sample[i].nodes, nodes);
      }
    }
  }
}

// Where two links fill at one instant the first on the way is named, however their shares are
// rounded: most of the time of these goes to links that both directions fill alike.
TEST(FoldRun, CausesAreThoseOfTheWholeRun) {
  const std::vector<std::string> leaves{"network.kind=leaf-spine", "network.ports=16"};
  const auto same = [](const char* op, std::vector<std::string> settings) {
    const Scenario scenario = scenario_of("genoa-2p-same-switch.yaml", 16, op, Bytes::mib(16));
    settings.emplace_back("nccl.channels=4");
    const ResultRow folded = run(scenario, settings, true).at(0);
    const ResultRow whole = run(scenario, settings, false).at(0);
    std::map<std::string, double> shares;
    for (const CauseShare& share : whole.limited_by) shares[share.cause] += share.share;
    for (const CauseShare& share : folded.limited_by) shares[share.cause] -= share.share;
    for (const auto& [cause, apart] : shares) EXPECT_NEAR(apart, 0, 1e-3) << op << ": " << cause;
  };
  same("alltoall", {});
  same("allreduce", {"nccl.algo=Ring"});
  std::vector<std::string> blocking = leaves;
  blocking.emplace_back("network.oversubscription=4");
  same("alltoall", blocking);
  same("allgather", blocking);
}

// Two nodes stand for more, where each sends to every other the same: up to what the order of what
// happens at one instant moves.
TEST(FoldRun, ASampleOfAnAllToAllIsTheCluster) {
  const auto agree = [](const char* topology, std::uint32_t nodes, Bytes bytes, double tolerance) {
    const Scenario scenario = scenario_of(topology, nodes, "alltoall", bytes);
    const std::vector<ResultRow> whole = run(scenario, {}, false);
    const std::vector<ResultRow> sample = run(scenario, {}, true);
    ASSERT_EQ(sample.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_NEAR(sample[i].time_us / whole[i].time_us, 1, tolerance) << topology << " x" << nodes;
      EXPECT_NE(sample[i].trajectory, whole[i].trajectory);  // of fewer nodes
      EXPECT_EQ(sample[i].channels, whole[i].channels);
      EXPECT_EQ(sample[i].ranks, 8 * nodes);
    }
  };
  agree("hgx-h100-8nic.yaml", 9, Bytes::kib(64), 1e-7);
  agree("hgx-h100-8nic.yaml", 12, Bytes::mib(16), 1e-7);
  agree("hgx-h100-2nic.yaml", 9, Bytes::mib(16), 1e-7);
  agree("hgx-h100-4nic.yaml", 9, Bytes{1'234'567}, 1e-4);  // no two parts alike
}

// What goes through a chain of nodes one behind the other: of many launches each takes what it
// takes through few; one alone a node's way more for each further node.
TEST(FoldRun, ASampleOfAChainIsAboutTheCluster) {
  for (const char* op : {"broadcast", "reduce"}) {
    for (const char* launch : {"nccl.launch=graph", "nccl.launch=single"}) {
      for (const std::vector<std::string>& network :
           {std::vector<std::string>{},
            {"network.kind=leaf-spine", "network.ports=64", "network.placement=round-robin"}}) {
        for (const Bytes bytes : {Bytes{8}, Bytes::kib(256)}) {
          const Scenario scenario = scenario_of("hgx-h100-8nic.yaml", 40, op, bytes);
          std::vector<std::string> settings = network;
          settings.insert(settings.end(), {launch, "nccl.channels=1"});
          const std::vector<ResultRow> whole = run(scenario, settings, false);
          const std::vector<ResultRow> sampled = run(scenario, settings, true);
          for (std::size_t i = 0; i < whole.size(); ++i) {
            EXPECT_NEAR(sampled[i].time_us / whole[i].time_us, 1, 0.01)
                << op << " " << launch << " " << bytes.count() << " " << whole[i].memory_path;
            EXPECT_NE(sampled[i].trajectory, whole[i].trajectory);
          }
        }
      }
    }
  }
}

// Between an odd number of nodes, too, and between fewer than samples stand for else: so time does
// not jump from one number of nodes to the next.
TEST(FoldRun, AChainTakesAsLongOverAnyNumberOfNodes) {
  const std::vector<std::string> settings{"nccl.launch=graph", "nccl.channels=4",
                                          "nccl.proto=Simple"};
  const auto rows = [&](std::uint32_t nodes) {
    return run(scenario_of("genoa-2p-same-root.yaml", nodes, "broadcast", Bytes::mib(16)), settings,
               true);
  };
  const std::vector<ResultRow> six = rows(6);
  for (const std::uint32_t nodes : {7U, 9U, 33U, 34U}) {
    const std::vector<ResultRow> more = rows(nodes);
    for (std::size_t i = 0; i < six.size(); ++i) {
      EXPECT_DOUBLE_EQ(more[i].time_us, six[i].time_us) << nodes << more[i].memory_path;
      ASSERT_EQ(more[i].extended.size(), 1U) << nodes;
      EXPECT_EQ(more[i].extended.front().by, "chain");
      EXPECT_EQ(more[i].extended.front().steps, nodes - 6);
    }
  }
}

// Many launches go over all hops at once: eight nodes of one NIC leave a leaf by two uplinks.
TEST(FoldRun, AChainFillsOversubscribedUplinks) {
  const std::vector<std::string> settings{
      "network.kind=leaf-spine", "network.ports=10",  "network.leaf_down=8",
      "network.leaf_up=2",       "nccl.launch=graph", "network.placement=round-robin"};
  const Bytes bytes = Bytes::mib(64);
  for (const char* op : {"broadcast", "reduce"}) {
    const ResultRow row =
        run(scenario_of("hgx-h100-1nic.yaml", 40, op, bytes), settings, true).front();
    const double uplinks_us = bytes.as_double() * 8 / (2 * 50e3 * 4096 / 4122);
    EXPECT_NEAR(row.time_us / uplinks_us, 1, 0.03) << op;
  }
}

// Where no network joins a node's last NIC with the next one's first there is no number.
TEST(FoldRun, SendsWithoutARouteAreRefused) {
  const Scenario scenario = scenario_of("hgx-h100-8nic.yaml", 40, "sendrecv", Bytes::mib(1));
  EXPECT_THROW(
      run(scenario, {"network.kind=leaf-spine", "network.ports=64", "network.planes=2"}, true),
      InputError);
}

// Each rank sends to the next one, however many there are.
TEST(FoldRun, ASampleOfSendsToTheNextRankIsTheCluster) {
  const std::vector<std::string> rails{"network.kind=rail-optimised", "network.ports=128",
                                       "netswitch.capacity=12800 GB/s", "leaf.uplink_length=300 m"};
  for (const std::vector<std::string>& network :
       {std::vector<std::string>{}, {"network.kind=rail-optimised", "network.ports=64"}, rails}) {
    const Scenario scenario = scenario_of("hgx-h100-8nic.yaml", 40, "sendrecv", Bytes::kib(64));
    const std::vector<ResultRow> whole = run(scenario, network, false);
    const std::vector<ResultRow> sampled = run(scenario, network, true);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_NEAR(sampled[i].time_us / whole[i].time_us, 1, 1e-6) << whole[i].memory_path;
      EXPECT_NE(sampled[i].trajectory, whole[i].trajectory);
      EXPECT_NEAR(sampled[i].nic_gb_per_s / whole[i].nic_gb_per_s, 1, 1e-6);
    }
  }
}

// A ring of 2n ranks takes 2(2n - 1) steps, so from n to 2n it takes twice as long as from n/2 to
// n, as long as chunks are too small to matter.
TEST(FoldRun, ARingsTimeGrowsByTheStep) {
  std::vector<double> times;
  for (const std::uint32_t nodes : {128U, 256U, 512U}) {
    Scenario scenario = scenario_of("hgx-h100-8nic.yaml", nodes, "allgather", Bytes::kib(64));
    scenario.memory_paths = {"gdr"};
    times.push_back(run(scenario, {"nccl.algo=Ring", "nccl.launch=single"}, true).at(0).time_us);
  }
  EXPECT_NEAR((times[2] - times[1]) / (times[1] - times[0]), 2, 0.02);
}

// Over several switches that never block: leaves of 4 nodes are the sample's own, so rings are
// exact there; larger ones, and trees, in the mean.
TEST(FoldRun, ASampleOfSeveralSwitchesIsAboutTheCluster) {
  const auto agree = [](const std::vector<std::string>& network, std::uint32_t nodes, Bytes bytes,
                        std::vector<std::string> settings, double tolerance) {
    Scenario scenario = scenario_of("hgx-h100-8nic.yaml", nodes, "allreduce", bytes);
    scenario.memory_paths = {"gdr"};
    settings.insert(settings.end(), network.begin(), network.end());
    const ResultRow whole = run(scenario, settings, false).at(0);
    const ResultRow sample = run(scenario, settings, true).at(0);
    ASSERT_GE(sample.extended.size(), 1u);
    EXPECT_EQ(sample.extended[0].by, "switch");
    EXPECT_TRUE(whole.extended.empty());
    EXPECT_NEAR(sample.time_us / whole.time_us, 1, tolerance) << settings[0] << " x" << nodes;
    EXPECT_NEAR(sample.nic_gb_per_s * sample.time_us / (whole.nic_gb_per_s * whole.time_us), 1,
                0.01);
  };
  const std::vector<std::string> small_leaves{"network.kind=leaf-spine", "network.ports=64"};
  const std::vector<std::string> rails{"network.kind=rail-optimised", "network.ports=32"};
  const std::vector<std::string> few{"nccl.algo=Ring", "nccl.proto=Simple", "nccl.channels=2"};
  agree(small_leaves, 40, Bytes::mib(4), few, 1e-6);
  agree(rails, 48, Bytes::mib(4), few, 0.03);
  agree(rails, 48, Bytes::kib(256), {"nccl.algo=Ring", "nccl.proto=LL", "nccl.channels=8"}, 0.02);
  const std::vector<std::string> tree{"nccl.algo=Tree", "nccl.proto=LL", "nccl.channels=1"};
  agree(small_leaves, 64, Bytes::kib(1), tree, 1e-6);
  agree(rails, 48, Bytes::kib(1), tree, 1e-6);
  agree(rails, 48, Bytes::kib(256), {"nccl.algo=Tree", "nccl.proto=LL", "nccl.channels=8"}, 0.02);
}

// What the network cannot do, its sample's must not.
TEST(FoldRun, ASampleHasNoRoutesThatTheNetworkLacks) {
  const Scenario scenario = scenario_of("hgx-h100-8nic.yaml", 40, "alltoall", Bytes::kib(64));
  EXPECT_THROW(
      run(scenario, {"network.kind=rail-optimised", "network.tiers=1", "network.ports=64"}, true),
      InputError);
  const Scenario odd = scenario_of("hgx-h100-8nic.yaml", 41, "allreduce", Bytes::kib(64));
  EXPECT_THROW(run(odd,
                   {"network.kind=rail-optimised", "network.tiers=1", "network.ports=64",
                    "nccl.decisions=simple", "nccl.algo=Ring"},
                   true),
               InputError);
}

// Links between switches that fill pass as much of a node's in the sample as in the cluster:
// uplinks of leaves and of spines, of an all-to-all; of trees, too, leaves that are joined in a
// ring.
TEST(FoldRun, ASampleOfNetworksThatBlockIsAboutTheCluster) {
  const auto agree = [](const char* op, Bytes bytes, std::vector<std::string> settings,
                        const char* limit, double tolerance) {
    Scenario scenario = scenario_of("genoa-2p-same-switch.yaml", 48, op, bytes);
    scenario.memory_paths = {"gdr"};
    settings.insert(settings.begin(), {"network.ports=64", "network.leaf_down=4"});
    const ResultRow whole = run(scenario, settings, false).at(0);
    const ResultRow sample = run(scenario, settings, true).at(0);
    ASSERT_FALSE(sample.extended.empty()) << settings[2];
    EXPECT_NEAR(sample.time_us / whole.time_us, 1, tolerance) << op << " " << settings[2];
    EXPECT_EQ(sample.limited_by.front().cause, limit) << op << " " << settings[2];
  };
  agree("alltoall", Bytes::mib(64), {"network.kind=leaf-spine", "network.oversubscription=2"},
        "wire, leaf to spine", 0.03);
  agree("alltoall", Bytes::mib(64), {"network.kind=rail-optimised", "network.oversubscription=4"},
        "wire, leaf to spine", 0.03);
  agree("alltoall", Bytes::mib(64),
        {"network.kind=fat-tree", "network.spine_down=3", "network.spine_oversubscription=3"},
        "wire, spine to core", 0.05);
  // 12 nodes of one NIC a leaf, two uplinks.
  agree("allreduce", Bytes::mib(128),
        {"nccl.algo=Tree", "network.kind=leaf-spine", "network.leaf_down=12", "network.leaf_up=2"},
        "wire, leaf to spine", 0.02);
  agree("allreduce", Bytes::mib(128),
        {"nccl.algo=Tree", "network.kind=leaf-spine", "network.inside=ring",
         "network.rack_leaves=12", "network.placement=round-robin"},
        "wire, leaf to leaf", 0.02);
  // A hash lays more connections on one uplink by some seeds than by others (10.1 to 15.8 ms).
  for (const char* algorithm : {"nccl.algo=Ring", "nccl.algo=Tree"}) {
    agree("allreduce", Bytes::mib(128),
          {"network.kind=leaf-spine", "wire.routing=ecmp", "wire.seed=3",
           "network.placement=round-robin", algorithm},
          "wire, spine to leaf", 0.02);
  }
  agree("alltoall", Bytes::mib(64),
        {"network.kind=leaf-spine", "wire.routing=ecmp", "network.placement=round-robin"},
        "wire, spine to leaf", 0.08);
  // Three groups of 16 nodes, which two links join; a torus of 12 leaves.
  agree("alltoall", Bytes::mib(64),
        {"network.kind=dragonfly", "network.group_leaves=4", "network.globals=1"},
        "wire, leaf to leaf", 0.07);
  agree("alltoall", Bytes::mib(64),
        {"network.kind=dragonfly-plus", "network.group_leaves=4", "network.globals=1"},
        "wire, spine to spine", 0.07);
  agree(
      "allreduce", Bytes::mib(128),
      {"nccl.algo=Tree", "network.kind=torus", "network.dims=4x3", "network.placement=round-robin"},
      "wire, leaf to leaf", 0.02);
}

// All levels are simulated over the farthest hop. One channel uses NCCL's first tree alone, of
// which the path that takes longest may have fewer levels than the tree.
TEST(FoldRun, NearerLevelsOfTreesTakeLess) {
  const auto agree = [](std::vector<std::string> settings, std::uint32_t nodes, bool has_nearer) {
    Scenario scenario = scenario_of("genoa-2p-same-switch.yaml", nodes, "allreduce", Bytes{8});
    scenario.memory_paths = {"gdr"};
    for (const char* text : {"nccl.algo=Tree", "nccl.proto=LL", "nccl.channels=1"}) {
      settings.emplace_back(text);
    }
    const ResultRow whole = run(scenario, settings, false).at(0);
    const ResultRow sample = run(scenario, settings, true).at(0);
    EXPECT_NEAR(sample.time_us / whole.time_us, 1, 0.02) << settings[0] << " x" << nodes;
    std::int64_t nearer = 0;
    for (const ResultRow::Extended& e : sample.extended) {
      if (e.by != "nearer level") continue;
      nearer += e.steps;
      EXPECT_LT(e.each_us, 0);
    }
    EXPECT_EQ(nearer > 0, has_nearer) << settings[0] << " x" << nodes;
    double sum = 0;
    for (const CauseShare& cause : sample.limited_by) sum += cause.share;
    EXPECT_NEAR(sum, 1, 1e-6);
  };
  agree({"network.kind=rail-optimised", "network.ports=16"}, 40, true);
  for (const std::uint32_t nodes : {41U, 48U}) {
    agree({"network.kind=fat-tree", "network.ports=12", "spine.uplink_length=30 m"}, nodes, false);
    agree({"network.kind=fat-tree", "network.ports=12", "spine.uplink_length=2 km"}, nodes, true);
  }
}

// What no sample stands for runs whole.
TEST(FoldRun, NetworksThatMayBlockOtherwiseRunWhole) {
  const auto is_whole = [](const char* op, std::vector<std::string> settings) {
    Scenario scenario = scenario_of("hgx-h100-8nic.yaml", 40, op, Bytes::kib(64));
    scenario.memory_paths = {"gdr"};
    for (const char* text : {"nccl.channels=1", "network.ports=64", "network.kind=leaf-spine"}) {
      settings.emplace_back(text);
    }
    EXPECT_TRUE(run(scenario, settings, true).at(0).extended.empty()) << settings[0];
  };
  is_whole("alltoall", {"network.inside=clique", "network.rack_leaves=2", "network.leaf_down=16"});
}

// What a ring of 4,096 ranks takes step by step, one of 8,192 takes twice, but for its beginning
// and end: which an extension from 2,048 and 512 ranks must not count twice.
TEST(FoldRun, ARingOfManyRanksIsExtendedByTheNode) {
  const auto row_of = [](const char* op, std::uint32_t nodes) {
    Scenario scenario = scenario_of("hgx-h100-8nic.yaml", nodes, op, Bytes::kib(4) * 8 * nodes);
    scenario.memory_paths = {"gdr"};
    return run(scenario, {"nccl.algo=Ring", "nccl.proto=Simple", "nccl.channels=16"}, true).at(0);
  };
  for (const char* op : {"allreduce", "allgather", "reducescatter"}) {
    const ResultRow half = row_of(op, 256);
    const ResultRow whole = row_of(op, 512);
    const ResultRow many = row_of(op, 4096);
    EXPECT_TRUE(whole.extended.empty());
    ASSERT_EQ(many.extended.size(), 1u) << op;
    EXPECT_EQ(many.extended[0].by, "node");
    const std::vector<std::int64_t> from =  // an all-reduce has twice the steps
        std::string_view(op) == "allreduce" ? std::vector<std::int64_t>{128, 32}
                                            : std::vector<std::int64_t>{256, 64};
    EXPECT_EQ(many.extended[0].from, from) << op;
    EXPECT_NEAR(many.time_us / (whole.time_us + 14 * (whole.time_us - half.time_us)), 1, 5e-3)
        << op;
    EXPECT_NEAR(many.nic_gb_per_s * many.time_us / (whole.nic_gb_per_s * whole.time_us),
                (4096 * 8 - 1.0) / (512 * 8 - 1.0), 1e-3)
        << op;
  }
}

// So does one of racks, whose GPUs are so many that a step of one and of two racks tells it.
TEST(FoldRun, ARingOfRacksIsExtendedFromTwo) {
  const auto row_of = [](std::uint32_t racks) {
    Scenario scenario = scenario_of("gb200-nvl72.yaml", racks, "allgather", Bytes::mib(64) * racks);
    scenario.memory_paths = {"gdr"};
    return run(scenario, {"nccl.proto=LL128", "nccl.channels=16", "nccl.launch=single"}, true)
        .at(0);
  };
  const ResultRow half = row_of(2);
  const ResultRow whole = row_of(4);
  const ResultRow many = row_of(8);
  EXPECT_TRUE(whole.extended.empty());
  ASSERT_EQ(many.extended.size(), 1u);
  EXPECT_EQ(many.extended[0].by, "node");
  EXPECT_EQ(many.extended[0].from, (std::vector<std::int64_t>{2, 1}));
  EXPECT_NEAR(many.time_us / (whole.time_us + 2 * (whole.time_us - half.time_us)), 1, 5e-3);
}

// Small trees of LL are latency, which a level adds to: exactly with one channel, unless one node
// alone has a level more, and to some per cent where several share links.
TEST(FoldRun, TreesOfLlAreExtendedHoweverSmall) {
  const auto agree = [](std::uint32_t nodes, Bytes bytes, const char* protocol,
                        const char* channels, double tolerance) {
    const Scenario scenario = scenario_of("hgx-h100-8nic.yaml", nodes, "allreduce", bytes);
    const std::vector<std::string> tree{"nccl.algo=Tree", std::string("nccl.proto=") + protocol,
                                        std::string("nccl.channels=") + channels};
    const std::vector<ResultRow> whole = run(scenario, tree, false);
    const std::vector<ResultRow> extended = run(scenario, tree, true);
    ASSERT_EQ(extended.size(), 2u);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      ASSERT_EQ(extended[i].extended.size(), 1u);
      EXPECT_EQ(extended[i].extended[0].by, "level");
      EXPECT_NEAR(extended[i].time_us / whole[i].time_us, 1, tolerance)
          << nodes << " " << protocol << " " << channels << " " << extended[i].memory_path;
    }
  };
  agree(40, Bytes{8}, "LL", "1", 1e-6);
  agree(65, Bytes{8}, "LL", "1", 0.02);
  agree(40, Bytes::kib(256), "LL", "8", 0.03);
  agree(33, Bytes::kib(256), "LL", "8", 0.04);
  agree(40, Bytes::mib(1), "LL128", "16", 0.05);
}

// Numbers of nodes that are no powers of two, with just one more, or in between: as whole runs.
TEST(FoldRun, TreesOfLargeClustersTakeAboutWhatWholeOnesTake) {
  for (const std::uint32_t nodes : {40U, 65U}) {
    Scenario scenario = scenario_of("hgx-h100-8nic.yaml", nodes, "allreduce", Bytes::mib(128));
    scenario.memory_paths = {"gdr"};
    const std::vector<std::string> few{"nccl.algo=Tree", "nccl.proto=Simple", "nccl.channels=16",
                                       "nccl.launch=single"};
    const ResultRow whole = run(scenario, few, false).at(0);
    const ResultRow extended = run(scenario, few, true).at(0);
    ASSERT_GE(extended.extended.size(), 1U);
    EXPECT_NEAR(extended.time_us / whole.time_us, 1, 0.05) << nodes;
    EXPECT_EQ(extended.limited_by.at(0).cause, whole.limited_by.at(0).cause);
    EXPECT_NEAR(extended.limited_by.at(0).share, whole.limited_by.at(0).share, 0.1);
    double sum = 0;
    for (const CauseShare& cause : extended.limited_by) sum += cause.share;
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(FoldRun, TreesOfLargeClustersSayFromWhatTheyAreExtended) {
  Scenario scenario = scenario_of("hgx-h100-8nic.yaml", 300, "allreduce", Bytes::mib(32));
  scenario.memory_paths = {"gdr"};
  PredictOptions options;
  options.threads = 1;
  options.set.push_back(parse_setting("nccl.algo=Tree"));
  options.set.push_back(parse_setting("nccl.launch=single"));
  const RunResult result = predict(scenario, options, make_catalog());
  const ResultRow& row = result.rows.at(0);
  ASSERT_EQ(row.extended.size(), 1u);
  EXPECT_EQ(row.extended[0].from, (std::vector<std::int64_t>{16, 4}));
  EXPECT_EQ(row.extended[0].by, "level");
  EXPECT_EQ(row.extended[0].steps, 5);
  EXPECT_EQ(row.ranks, 2400u);
  EXPECT_NE(result.notes.back().find("extended by the level from 16, 4 nodes"), std::string::npos);
  EXPECT_EQ(row.limited_by.at(0).where.find('@'), std::string::npos);
}

// Beyond what fills the trees a byte takes what it takes on few nodes: as if all had run it.
TEST(FoldRun, TreesWithManyBytesAreExtendedByTheByte) {
  const auto row_of = [](std::uint32_t nodes) {
    Scenario scenario = scenario_of("hgx-h100-8nic.yaml", nodes, "allreduce", Bytes::gib(1));
    scenario.memory_paths = {"gdr"};
    return run(scenario, {"nccl.algo=Tree", "nccl.proto=Simple", "nccl.channels=2"}, true).at(0);
  };
  const auto time_of = [&](std::uint32_t nodes) {
    const ResultRow row = row_of(nodes);
    EXPECT_TRUE(row.extended.empty());
    return row.time_us;
  };
  const ResultRow row = row_of(64);
  ASSERT_EQ(row.extended.size(), 2u);
  EXPECT_EQ(row.extended[0].by, "level");
  EXPECT_EQ(row.extended[1].by, "byte");
  EXPECT_EQ(row.extended[1].from.back() + row.extended[1].steps, Bytes::gib(1).count());
  EXPECT_NEAR(row.time_us / (time_of(16) + (time_of(16) - time_of(4))), 1, 0.02);
  // All bytes, by a NIC that sends what one of 16 nodes sends.
  const ResultRow sixteen = row_of(16);
  EXPECT_NEAR(row.nic_gb_per_s * row.time_us / (sixteen.nic_gb_per_s * sixteen.time_us), 1, 0.02);
}

// Rows share samples, whoever asks for them first.
TEST(FoldRun, ThreadsDoNotChangeWhatSamplesSay) {
  Scenario scenario = scenario_of("hgx-h100-8nic.yaml", 65, "allreduce", Bytes::mib(256));
  scenario.sizes = {Bytes::mib(256), Bytes::mib(512), Bytes::gib(1)};
  PredictOptions options;
  for (const char* set :
       {"nccl.algo=Tree", "nccl.proto=Simple", "nccl.channels=2", "nccl.launch=single"}) {
    options.set.push_back(parse_setting(set));
  }
  options.threads = 1;
  const RunResult alone = predict(scenario, options, make_catalog());
  for (const ResultRow& row : alone.rows) {
    ASSERT_EQ(row.extended.size(), 2u);  // from one part of the bytes, whatever their number
    EXPECT_EQ(row.extended[1].from.back(), alone.rows.at(0).extended.at(1).from.back());
  }
  const std::string one = to_json(alone).dump();
  options.threads = 4;
  EXPECT_EQ(to_json(predict(scenario, options, make_catalog())).dump(), one);
}

// Each peer adds a round, where each takes as long as any other.
TEST(FoldRun, AnAllToAllOfManyIsExtendedByTheNode) {
  const auto row_of = [](std::uint32_t nodes) {
    Scenario scenario =
        scenario_of("hgx-h100-8nic.yaml", nodes, "alltoall", Bytes::kib(1) * 8 * nodes);
    scenario.memory_paths = {"gdr"};
    return run(scenario, {}, true).at(0);
  };
  const ResultRow half = row_of(256);
  const ResultRow whole = row_of(512);
  const ResultRow many = row_of(4096);
  EXPECT_TRUE(whole.extended.empty());
  ASSERT_EQ(many.extended.size(), 1u);
  EXPECT_EQ(many.extended[0].by, "node");
  EXPECT_EQ(many.extended[0].from, (std::vector<std::int64_t>{256, 64}));
  EXPECT_EQ(many.extended[0].steps, 4096 - 256);
  EXPECT_EQ(many.ranks, 32768u);
  EXPECT_NEAR(many.time_us / (whole.time_us + 14 * (whole.time_us - half.time_us)), 1, 0.01);
  EXPECT_NEAR(many.nic_gb_per_s / whole.nic_gb_per_s, 1, 0.01);
}

// A power of two of nodes run, however many GPUs each has.
TEST(FoldRun, AnAllToAllOfRacksIsExtendedFrom16) {
  Scenario scenario = scenario_of("gb200-nvl72.yaml", 456, "alltoall", Bytes::mib(16));
  scenario.memory_paths = {"gdr"};
  const ResultRow row = run(scenario, {"nccl.launch=single"}, true).at(0);
  ASSERT_EQ(row.extended.size(), 1u);
  EXPECT_EQ(row.extended[0].from, (std::vector<std::int64_t>{16, 4}));
}

}  // namespace
}  // namespace weft::test::models_fold_run
