// models/nccl's decisions where there is no capture: rules of their own, and rings of public logs.
// tests/cli/nccl_logs_test.py has the other logs.
#include "models/nccl/decide/decide.hpp"

#include <algorithm>
#include <ctime>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/nccl/decide/channel_walk.hpp"
#include "models/nccl/decide/peer_nets.hpp"
#include "models/nccl/decide/search.hpp"
#include "sim/io/file.hpp"
#include "sim/io/json.hpp"

namespace weft::test::nccl_decisions_decide {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Env = std::map<std::string, std::string>;

std::string pci(const std::string& bus, const std::string& pci_class, const std::string& body) {
  return fmt::format(
      "<pci busid=\"{}\" class=\"{}\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">{}</pci>\n",
      bus, pci_class, body);
}

std::string gpu(int dev, const std::string& links = "", int sm = 90) {
  return pci(
      fmt::format("0000:00:{:02x}.0", dev + 6), "0x030200",
      fmt::format("<gpu dev=\"{0}\" sm=\"{2}\" rank=\"{0}\" gdr=\"1\">{1}</gpu>", dev, links, sm));
}

std::string nic(int dev, int mbps = 400'000) {
  return pci(fmt::format("0001:{:02x}:00.0", dev + 1), "0x020700",
             fmt::format("<nic><net name=\"mlx5_{0}\" dev=\"{0}\" speed=\"{1}\" port=\"1\" "
                         "guid=\"0x{2}\" gdr=\"1\"/></nic>",
                         dev, mbps, dev + 1));
}

std::string bridge(int number, const std::string& body) {
  return pci(fmt::format("0002:{:02x}:00.0", number), "0x060400", body);
}

std::string cpu(int numa, const std::string& body, int model = 207) {
  return fmt::format(
      "<cpu numaid=\"{}\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
      "modelid=\"{}\">\n{}</cpu>\n",
      numa, model, body);
}

std::string system_of(const std::string& body) {
  return "<system version=\"1\">\n" + body + "</system>\n";
}

const std::string kSwitchLinks = R"(<nvlink target="0000:99:00.0" count="18" tclass="0x068000"/>)";

/// 8 Hoppers with NVSwitch, each with a NIC below a switch of its own.
std::string hgx() {
  std::string sockets[2];
  for (int i = 0; i < 8; ++i) sockets[i / 4] += bridge(i, gpu(i, kSwitchLinks) + nic(i));
  return system_of(cpu(0, sockets[0], 143) + cpu(1, sockets[1], 143));
}

NcclDecisions decide(const std::string& xml, int hosts, const Env& env = {},
                     NcclVersion version = {}) {
  return decide_nccl(parse_nccl_tree(xml, "f.xml"), hosts, parse_nccl_env(env), version);
}

std::string refusal(const std::string& xml, int hosts = 1, const Env& env = {}) {
  try {
    decide(xml, hosts, env);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

#ifdef __SANITIZE_ADDRESS__
constexpr double kSecond = 30;  // seconds under the sanitizers, for what takes one without
#else
constexpr double kSecond = 1;
#endif

/// Of this process on its CPU, so that other work on the machine does not count.
double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(NcclEnvironment, TakesWordsAndLegacyNumbersForLevels) {
  EXPECT_EQ(parse_nccl_env({{"NCCL_NET_GDR_LEVEL", "PHB"}}).net_gdr_level, NcclPathType::kPhb);
  EXPECT_EQ(parse_nccl_env({{"NCCL_NET_GDR_LEVEL", "1"}}).net_gdr_level, NcclPathType::kPix);
  EXPECT_EQ(parse_nccl_env({{"NCCL_NET_GDR_LEVEL", "5"}}).net_gdr_level, NcclPathType::kSys);
  EXPECT_EQ(parse_nccl_env({{"NCCL_P2P_DISABLE", "1"}}).p2p_level, NcclPathType::kLoc);
  const NcclEnv wrong = parse_nccl_env({{"NCCL_P2P_LEVEL", "FAR"}, {"NCCL_NO_SUCH", "1"}});
  EXPECT_FALSE(wrong.p2p_level.has_value());
  EXPECT_THAT(wrong.notes, ElementsAre(HasSubstr("NCCL_P2P_LEVEL=FAR"), HasSubstr("NO_SUCH")));
  EXPECT_THROW(parse_nccl_env({{"UCX_TLS", "rc"}}), InputError);
}

TEST(NcclEnvironment, IbHcaSelectsByPrefixExactlyOrByExclusion) {
  EXPECT_TRUE(nccl_ib_hca_takes("", "mlx5_0", 1));
  EXPECT_TRUE(nccl_ib_hca_takes("mlx5_1", "mlx5_10", 1));
  EXPECT_FALSE(nccl_ib_hca_takes("=mlx5_1", "mlx5_10", 1));
  EXPECT_TRUE(nccl_ib_hca_takes("=mlx5_0,mlx5_1:2", "mlx5_1", 2));
  EXPECT_FALSE(nccl_ib_hca_takes("=mlx5_0,mlx5_1:2", "mlx5_1", 1));
  EXPECT_FALSE(nccl_ib_hca_takes("^mlx5_0", "mlx5_0", 1));
  EXPECT_TRUE(nccl_ib_hca_takes("^mlx5_0", "mlx5_1", 1));
  EXPECT_TRUE(nccl_ib_hca_takes("^=mlx5_1", "mlx5_10", 1));
}

TEST(NcclEnvironment, IbHcaLeavesNicsOutAndNumbersTheOthers) {
  const NcclDecisions few = decide(hgx(), 2, {{"NCCL_IB_HCA", "=mlx5_2,mlx5_5"}});
  ASSERT_EQ(few.views[0].system.count(NcclNodeType::kNet), 2);
  EXPECT_EQ(few.views[0].system.node(NcclNodeType::kNet, 0).net.name, "mlx5_2");
  EXPECT_EQ(few.views[0].system.node(NcclNodeType::kNet, 0).net.dev, 0);
  EXPECT_EQ(few.views[0].system.node(NcclNodeType::kNet, 1).net.dev, 1);
  EXPECT_THAT(refusal(hgx(), 2, {{"NCCL_IB_HCA", "mlx4"}}), HasSubstr("NCCL_IB_HCA"));
}

TEST(NcclVersions, AreParsedAndNumberPathTypes) {
  EXPECT_EQ(parse_nccl_version("2.27.3"), (NcclVersion{2, 27, 3}));
  EXPECT_EQ(parse_nccl_version("2.18"), (NcclVersion{2, 18, 0}));
  for (const char* const wrong : {"", "2", "2.17.1", "2.31", "2.28.", "2.28.9.1", "two", "-2.28"}) {
    EXPECT_THROW(parse_nccl_version(wrong), InputError) << wrong;
  }
  // NCCL src/graph/topo.h of these releases.
  EXPECT_EQ(nccl_release({2, 28, 9}).number(NcclPathType::kPhb), 8);
  EXPECT_EQ(nccl_release({2, 27, 0}).number(NcclPathType::kPxn), 6);
  EXPECT_EQ(nccl_release({2, 26, 0}).number(NcclPathType::kPhb), 7);
  EXPECT_EQ(nccl_release({2, 25, 0}).number(NcclPathType::kPix), 3);
  EXPECT_EQ(nccl_release({2, 18, 0}).number(NcclPathType::kSys), 7);
}

TEST(NcclTrees, AreTreesOverAllNodesWithOneRootAndTwoChildrenAtMost) {
  for (const int nodes : {1, 2, 3, 4, 5, 7, 8, 12, 33, 64, 1000}) {
    for (const std::size_t which : {0u, 1u}) {
      int roots = 0;
      int children = 0;
      for (int n = 0; n < nodes; ++n) {
        const NcclNodeTree place = nccl_node_trees(nodes, n)[which];
        roots += place.up == -1 ? 1 : 0;
        for (const int child : {place.down0, place.down1}) {
          if (child == -1) continue;
          ++children;
          EXPECT_EQ(nccl_node_trees(nodes, child)[which].up, n);
        }
      }
      EXPECT_EQ(roots, 1) << nodes;
      EXPECT_EQ(children, nodes - 1) << nodes;
    }
  }
}

// A guard, not a comparison: these counts are not from a log.
TEST(NcclDecisionsOf, AnHgxH100HasMoreChannelsInsideThanBetweenMachines) {
  const NcclDecisions one = decide(hgx(), 1);
  EXPECT_EQ(one.channels.coll, 24);
  EXPECT_EQ(one.channels.nvls, 16);
  EXPECT_EQ(one.channels.p2p, 32);
  EXPECT_EQ(one.channels.p2p_per_peer, 32);
  const NcclDecisions two = decide(hgx(), 2);
  EXPECT_EQ(two.channels.coll, 16);
  EXPECT_EQ(two.ring.cross_nic, 2);
  for (const NcclGdr& gdr : two.gdr) {
    EXPECT_TRUE(gdr.check.enabled) << gdr.check.why;  // far NICs by PXN
    EXPECT_FALSE(gdr.flush);
  }
  EXPECT_FALSE(decide(hgx(), 1, {{"NCCL_NVLS_ENABLE", "0"}}).nvls.has_value());
  EXPECT_EQ(decide(hgx(), 2, {{"NCCL_MAX_NCHANNELS", "4"}}).connections.rings.size(), 4u);
  EXPECT_EQ(decide(hgx(), 2, {{"NCCL_MIN_NCHANNELS", "20"}}).connections.rings.size(), 20u);
}

TEST(NcclDecisionsOf, SharpThatIsAskedForIsNotPassedOver) {
  EXPECT_THAT(parse_nccl_env({{"NCCL_COLLNET_ENABLE", "1"}}).notes,
              ElementsAre(HasSubstr("CollNet, SHARP")));
  EXPECT_THAT(parse_nccl_env({{"NCCL_COLLNET_ENABLE", "0"}}).notes, ::testing::IsEmpty());
}

TEST(NcclDecisionsOf, WhatIsNotThereHasAReason) {
  const auto no_nvls = [](const std::string& tree, const Env& env) {
    return decide(tree, 2, env).why_no_nvls;
  };
  EXPECT_EQ(no_nvls(hgx(), {}), "");
  EXPECT_EQ(no_nvls(hgx(), {{"NCCL_NVLS_ENABLE", "0"}}), "NCCL_NVLS_ENABLE=0");
  const auto no_collnet = [](int hosts, const Env& env) {
    return decide(hgx(), hosts, env).why_no_collnet;
  };
  EXPECT_EQ(no_collnet(1, {}), "it is for several nodes");
  EXPECT_EQ(no_collnet(2, {}), "NCCL_COLLNET_ENABLE=1 is not set");
  EXPECT_EQ(no_collnet(2, {{"NCCL_COLLNET_ENABLE", "1"}}),
            "no NIC has it (nic.collnet=on; in an NCCL XML coll=\"1\")");
}

// Each GPU has a NIC. A send leaves by the NIC of the GPU here that has its receiver's number, of
// that GPU's memory; without PXN by the sender's own, or (NCCL_CROSS_NIC=0) still on that rail.
TEST(NcclDecisionsOf, SendsStayOnTheRailOfTheirReceiver) {
  const auto use = [&](const Env& env, int gpu, int peer) {
    const NcclDecisions d = decide(hgx(), 2, env);
    const PeerNets nets(d.views.front(), d.env);
    EXPECT_THAT(nets.own(gpu), ::testing::SizeIs(1));
    const std::vector<NcclNetUse> uses = nets.to(gpu, peer);
    EXPECT_THAT(uses, ::testing::SizeIs(1));
    const NcclNetUse& out = uses.front();
    const bool is_own = out.net == nets.own(gpu).front();
    return std::pair{is_own ? gpu : (out.net == nets.own(peer).front() ? peer : -1), out.proxy_gpu};
  };
  const std::pair own{0, 0};
  EXPECT_EQ(use({}, 0, 0), own);
  EXPECT_EQ(use({}, 0, 5), std::pair(5, 5));
  EXPECT_EQ(use({{"NCCL_P2P_PXN_LEVEL", "1"}}, 0, 5), std::pair(5, 5));
  EXPECT_EQ(use({{"NCCL_P2P_PXN_LEVEL", "0"}}, 0, 5), own);
  EXPECT_EQ(use({{"NCCL_PXN_DISABLE", "1"}}, 0, 5), own);
  EXPECT_EQ(use({{"NCCL_PXN_DISABLE", "1"}, {"NCCL_CROSS_NIC", "0"}}, 0, 5), std::pair(5, 0));
  // Without GPUDirect RDMA the way to the NIC leads through the CPU.
  EXPECT_EQ(use({{"NCCL_NET_GDR_LEVEL", "LOC"}}, 0, 5), own);
}

// Two GPUs and two NICs that serve them by a switch of their own: the rings cross NICs. Up to 2.25
// also rings that may cross at will are swapped on odd nodes (NVIDIA/nccl#1494).
TEST(NcclDecisionsOf, CrossingRingsAreSwappedOnOddNodesByRelease) {
  const std::string xml = system_of(
      cpu(0, bridge(0, gpu(0, kSwitchLinks) + nic(0)) + bridge(1, gpu(1, kSwitchLinks) + nic(1))));
  const auto first_ring = [&](const std::string& cross_nic, NcclVersion version) {
    const Env env{{"NCCL_CROSS_NIC", cross_nic}, {"NCCL_PXN_DISABLE", "1"}};
    return decide(xml, 2, env, version).connections.rings.at(0);
  };
  EXPECT_THAT(first_ring("2", {2, 28, 9}), ElementsAre(0, 1, 3, 2));
  EXPECT_THAT(first_ring("1", {2, 28, 9}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(first_ring("1", {2, 25, 1}), ElementsAre(0, 1, 3, 2));
}

// Up to 2.27 rings and trees are repeated until there are as many as NVLS has channels; data of
// theirs use no more than before.
TEST(NcclDecisionsOf, RingsAreRepeatedForNvlsUpTo227) {
  const Env env{{"NCCL_MAX_NCHANNELS", "4"}};
  const NcclDecisions before = decide(hgx(), 2, env, {2, 27, 3});
  EXPECT_EQ(before.channels.coll, 16);
  EXPECT_EQ(before.channels.dealt, 4);
  EXPECT_EQ(before.connections.rings.size(), 16u);
  EXPECT_EQ(before.channels.p2p, 16);
  EXPECT_EQ(before.connections.rings[5], before.connections.rings[1]);
  const NcclDecisions since = decide(hgx(), 2, env, {2, 28, 9});
  EXPECT_EQ(since.channels.coll, 4);
  EXPECT_EQ(since.connections.rings.size(), 4u);
}

TEST(NcclDecisionsOf, SocketsWithFasterNicsThanTheirLinkMeetOverTheNetwork) {
  const std::string far =
      system_of(cpu(0, bridge(0, gpu(0) + nic(0))) + cpu(1, bridge(1, gpu(1) + nic(1))));
  const NcclDecisions split = decide(far, 2);  // 40 GB/s between sockets, 48 to the NIC
  EXPECT_EQ(split.nodes, 4);
  EXPECT_EQ(split.views.size(), 2u);
  EXPECT_THAT(split.connections.rings[0], ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(decide(far, 2, {{"NCCL_NET_DISABLE_INTRA", "1"}}).nodes, 2);
  const std::string slow = system_of(cpu(0, bridge(0, gpu(0) + nic(0, 100'000))) +
                                     cpu(1, bridge(1, gpu(1) + nic(1, 100'000))));
  EXPECT_EQ(decide(slow, 2).nodes, 2);
  EXPECT_EQ(decide(slow, 2, {{"NCCL_SHM_DISABLE", "1"}}).nodes, 4);
}

TEST(NcclDecisionsOf, GpusBeforeAmpereAndHopperDifferInReadsAndFlush) {
  const std::string old = system_of(cpu(0, bridge(0, gpu(0, "", 70) + gpu(1, "", 70) + nic(0))));
  const NcclDecisions volta = decide(old, 2);
  for (const NcclGdr& gdr : volta.gdr) {
    EXPECT_EQ(gdr.check.enabled, !gdr.read) << gdr.check.why;
    EXPECT_EQ(gdr.flush, !gdr.read);
  }
}

// Also with a path type that no path has; so such searches are made once.
TEST(NcclChannelWalk, GoesTheSameWayAgainWhereItFoundTooFew) {
  const NcclDecisions made = decide(hgx(), 2);
  const NcclNodeView& view = made.views.front();
  NcclChannelWalk walk(view.system, view.paths, made.env, true, false);
  NcclTrial trial{.pattern = NcclPattern::kTree,
                  .min_channels = 16,
                  .max_channels = 16,
                  .bw_intra = 40,
                  .bw_inter = 40,
                  .type_intra = NcclPathType::kNvl,
                  .type_inter = NcclPathType::kPxb,
                  .same_channels = true,
                  .gpus = std::vector<int>(16 * 8),
                  .nets = std::vector<int>(16 * 2)};
  NcclTrial best = trial;
  constexpr int kSteps = 1000;
  int steps = kSteps;
  EXPECT_TRUE(walk.run(trial, best, steps));  // what links have at first is rounded once
  steps = kSteps;
  EXPECT_FALSE(walk.run(trial, best, steps));  // eight NICs of 50 GB/s
  ASSERT_GT(steps, 0);
  EXPECT_LT(steps, kSteps);
  int steps_again = kSteps;
  trial.type_intra = NcclPathType::kPxb;  // of the GPUs' NVLink
  EXPECT_FALSE(walk.run(trial, best, steps_again));
  EXPECT_EQ(steps_again, steps);
  EXPECT_EQ(best.channels, 0);
  trial.min_channels = 1;
  EXPECT_TRUE(walk.run(trial, best, steps_again = kSteps));
  EXPECT_GT(best.channels, 0);
}

TEST(NcclDecisionsOf, AThousandNodesTakeLessThanASecond) {
  const std::clock_t start = std::clock();
  const NcclDecisions large = decide(hgx(), 1024);
  EXPECT_LT(seconds_since(start), kSecond);
  for (const std::vector<int>& ring : large.connections.rings) {
    EXPECT_EQ(std::set<int>(ring.begin(), ring.end()).size(), 8192u);
  }
}

// 2.30's dumps say of each GPU that it is no partition.
TEST(NcclDecisionsOf, AGpuThatIsNoPartitionIsWhole) {
  std::string xml = system_of(cpu(0, gpu(0)));
  xml.replace(xml.find("sm="), 3, "mlopart=\"-1\" sm=");
  EXPECT_EQ(decide(xml, 1).ranks, 1);
}

// Hosts of one NVLink domain may number their NICs and CPUs alike.
TEST(NcclDecisionsOf, HostsOfOneNvlinkDomainAreOneNode) {
  const auto tray = [](const std::string& hash, const std::string& rank) {
    std::string xml = cpu(0, bridge(0, gpu(0, kSwitchLinks) + nic(0)));
    xml.replace(xml.find("numaid"), 0, "host_hash=\"" + hash + "\" ");
    return xml.replace(xml.find("rank=\"0\""), 8, "rank=\"" + rank + "\"");
  };
  const std::string rack = system_of(tray("0xa", "0") + tray("0xb", "1"));
  const NcclDecisions one = decide(rack, 1);
  EXPECT_EQ(one.nodes, 1);
  EXPECT_EQ(one.views.front().system.node(NcclNodeType::kGpu, 1).name(), "GPU/1-60");
  const NcclDecisions two = decide(rack, 2);
  EXPECT_EQ(two.ranks, 4);
  EXPECT_EQ(two.nodes, 2);
}

TEST(NcclDecisionsOf, WrongFilesAreRefusedWithTheirPlace) {
  EXPECT_THAT(refusal(system_of(cpu(0, nic(0)))), HasSubstr("no <gpu> in this file"));
  EXPECT_THAT(refusal(system_of(cpu(0, gpu(0) + gpu(0)))), HasSubstr("f.xml:4:"));
  EXPECT_THAT(refusal(system_of(cpu(0, gpu(0) + nic(0) + nic(0)))), HasSubstr("two <net>"));
  EXPECT_THAT(refusal(system_of(cpu(0, gpu(0))), 2), HasSubstr("need a NIC"));
  EXPECT_THAT(refusal(system_of(cpu(0, gpu(0)) + cpu(0, gpu(1)))), HasSubstr("given twice"));
  EXPECT_THAT(refusal(system_of(cpu(0, gpu(0, "<nvlink target=\"x\" count=\"-1\"/>")))),
              HasSubstr("needs a count"));
  std::string part = system_of(cpu(0, gpu(0)));
  part.replace(part.find("sm="), 3, "mlopart=\"1\" sm=");
  EXPECT_THAT(refusal(part), HasSubstr("ML partitions"));
  std::string amd = system_of(cpu(0, gpu(0)));
  amd.replace(amd.find("sm="), 3, "gcn=\"910\" sm=");
  EXPECT_THAT(refusal(amd), HasSubstr("AMD GPUs"));
}

TEST(NcclLogs, RingsOfThreeH100MachinesInNccl2223) {
  // NVIDIA/nccl#1453, which does not show the system. Where NICs have less than 48 GB/s, rings stay
  // on their rail by PXN, as these do; 40 GB/s is taken. Channels 5 to 13, the first 20 of 24
  // ranks.
  const std::vector<std::vector<int>> logged{
      {0, 7, 6, 13, 12, 11, 10, 9, 8, 15, 14, 21, 20, 19, 18, 17, 16, 23, 22, 5},
      {0, 7, 14, 13, 12, 11, 10, 9, 8, 15, 22, 21, 20, 19, 18, 17, 16, 23, 6, 5},
      {0, 15, 14, 13, 12, 11, 10, 9, 8, 23, 22, 21, 20, 19, 18, 17, 16, 7, 6, 5},
      {0, 7, 6, 5, 4, 3, 2, 1, 8, 15, 14, 13, 12, 11, 10, 9, 16, 23, 22, 21},
      {0, 7, 6, 5, 4, 3, 2, 9, 8, 15, 14, 13, 12, 11, 10, 17, 16, 23, 22, 21},
      {0, 7, 6, 5, 4, 3, 10, 9, 8, 15, 14, 13, 12, 11, 18, 17, 16, 23, 22, 21},
      {0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 19, 18, 17, 16, 23, 22, 21},
      {0, 7, 6, 5, 12, 11, 10, 9, 8, 15, 14, 13, 20, 19, 18, 17, 16, 23, 22, 21},
      {0, 7, 6, 13, 12, 11, 10, 9, 8, 15, 14, 21, 20, 19, 18, 17, 16, 23, 22, 5}};
  std::string xml = hgx();
  for (std::size_t at = 0; (at = xml.find("400000", at)) != std::string::npos;) {
    xml.replace(at, 6, "320000");
  }
  const NcclDecisions ours = decide(xml, 3, {{"NCCL_CROSS_NIC", "2"}}, {2, 22, 3});
  EXPECT_EQ(ours.channels.coll, 16);
  for (std::size_t c = 0; c < logged.size(); ++c) {
    std::vector<int> ring = ours.connections.rings.at(c + 5);
    ring.resize(logged[c].size());
    EXPECT_EQ(ring, logged[c]) << "channel " << c + 5;
  }
}

TEST(NcclLogs, RingsOfTwoMachinesInNccl2223) {
  // NVIDIA/nccl#1538 (read on 2026-11-21): channels 1 to 5 of 16, two machines of 8 GPUs. The
  // system is not shown; 8 NICs of 400 Gb/s are taken. Rings cross NICs in pairs.
  const NcclDecisions ours = decide(hgx(), 2, {}, {2, 22, 3});
  const std::vector<std::vector<int>> logged{
      {0, 8, 15, 14, 13, 12, 11, 10, 9, 1, 2, 3, 4, 5, 6, 7},
      {0, 7, 6, 5, 4, 3, 11, 12, 13, 14, 15, 8, 9, 10, 2, 1},
      {0, 1, 2, 10, 9, 8, 15, 14, 13, 12, 11, 3, 4, 5, 6, 7},
      {0, 7, 6, 5, 13, 14, 15, 8, 9, 10, 11, 12, 4, 3, 2, 1},
      {0, 1, 2, 3, 4, 12, 11, 10, 9, 8, 15, 14, 13, 5, 6, 7}};
  ASSERT_EQ(ours.connections.rings.size(), 16u);
  for (std::size_t c = 0; c < logged.size(); ++c) {
    EXPECT_EQ(ours.connections.rings[c + 1], logged[c]) << "channel " << c + 1;
  }
}

// One after another in one process, each a little different: none is taken for another.
TEST(NcclSearch, IsRememberedByAllThatItLooksAt) {
  const auto replaced = [](std::string text, const std::string& what, const std::string& by) {
    text.replace(text.find(what), what.size(), by);
    return text;
  };
  struct Variant {
    std::string system{hgx()};
    Env env{};
    NcclVersion version{};
  };
  const std::vector<Variant> variants = {
      {},
      {.system = replaced(hgx(), "speed=\"400000\"", "speed=\"100000\"")},
      {.system = replaced(hgx(), "guid=\"0x2\"", "guid=\"0x1\"")},
      {.system = replaced(hgx(), "link_width=\"16\"", "link_width=\"4\"")},
      {.system = replaced(hgx(), "gdr=\"1\"/></nic>", "gdr=\"0\"/></nic>")},
      {.system = replaced(hgx(), "count=\"18\"", "count=\"6\"")},
      {.env = {{"NCCL_CROSS_NIC", "1"}}},
      {.env = {{"NCCL_CROSS_NIC", "0"}}},
      {.env = {{"NCCL_NETDEVS_POLICY", "ALL"}}},
      {.env = {{"NCCL_NET_GDR_LEVEL", "LOC"}}},
      {.version = {2, 20, 5}},
      {.version = {2, 23, 4}},
      {}};
  for (const Variant& variant : variants) {
    for (const int hosts : {1, 2}) {
      const NcclDecisions d = decide(variant.system, hosts, variant.env, variant.version);
      const NcclNodeView& view = d.views.front();
      const NcclSearchRequest request{.pattern = NcclPattern::kRing,
                                      .max_channels = view.system.release.most_channels / 2,
                                      .inter = hosts > 1};
      const NcclGraph searched = search_nccl_graph(view.system, view.paths, d.env, request);
      EXPECT_TRUE(view.ring == searched);
    }
  }
}

TEST(NcclSearch, TopologyFilesAreDecidedInASecond) {
  const std::string file =
      std::string(WEFT_SOURCE_DIR) + "/tests/nccl_decisions/nccl-2.28.9-more.json";
  const Json kept = Json::parse(read_text_file(file), file);
  int decided = 0;
  for (const Json& xml : kept.at("values").at("topo_xml").items()) {
    const std::clock_t start = std::clock();
    decide(xml.as_string(), 2);
    EXPECT_LT(seconds_since(start), kSecond) << xml.as_string();
    ++decided;
  }
  EXPECT_GE(decided, 50);
}

}  // namespace
}  // namespace weft::test::nccl_decisions_decide
