#include "models/nccl/decide/tuning.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::models_tuning {
namespace {

NcclGraph graph_of(int channels, float intra, float inter, NcclPathType type_intra,
                   NcclPathType type_inter) {
  NcclGraph graph;
  graph.channels.resize(static_cast<std::size_t>(channels));
  graph.bw_intra = intra;
  graph.bw_inter = inter;
  graph.type_intra = type_intra;
  graph.type_inter = type_inter;
  graph.same_channels = false;
  return graph;
}

/// "Ring LL 17.3": the choice for an all-reduce and its time.
std::string all_reduce_text(const Tuning& tuning, std::int64_t bytes) {
  const auto choice = tuning.choose(NcclOp::kAllReduce, Bytes{bytes});
  if (!choice) return "none";
  return fmt::format("{} {} {:.1f}", nccl_algo_name(choice->algo), nccl_proto_name(choice->proto),
                     choice->time_us);
}

constexpr NcclVersion kNccl2307{2, 30, 7};

// Golden numbers of another implementation of the same rules, NCCL 2.30.7 (src/graph/tuning.cc).
// Two nodes of one A100, PCIe Gen4 below an Intel CPU, two channels of 12 GB/s.
TEST(Tuning, GoldenTimesOfTwoNodesOfOneGpu) {
  TuningInput input;
  input.version = kNccl2307;
  input.nodes = input.ranks = 2;
  input.min_compute_capability = input.max_compute_capability = 80;
  input.cpu = TuningCpu::kIntel;
  input.ring = graph_of(2, 12, 12, NcclPathType::kLoc, NcclPathType::kPix);
  input.tree = input.ring;
  input.channels = 2;
  const Tuning tuning(input);
  EXPECT_EQ(all_reduce_text(tuning, 8 << 10), "Ring LL 17.3");
  EXPECT_EQ(all_reduce_text(tuning, 64 << 10), "Ring LL 22.1");
  EXPECT_EQ(all_reduce_text(tuning, 1 << 20), "Ring LL128 78.5");
  EXPECT_EQ(all_reduce_text(tuning, 16 << 20), "Ring Simple 750.0");
  EXPECT_EQ(all_reduce_text(tuning, 256 << 20), "Ring Simple 11235.8");
}

/// `nodes` of 8 H100 with NVSwitch and 8 channels of 48 GB/s.
Tuning tuning_of_hgx_nodes(std::uint32_t nodes, TuningCpu cpu) {
  TuningInput input;
  input.version = kNccl2307;
  input.nodes = nodes;
  input.ranks = nodes * 8;
  input.most_local_ranks = 8;
  input.min_compute_capability = input.max_compute_capability = 90;
  input.cpu = cpu;
  input.ring = graph_of(8, 48, 48, NcclPathType::kNvl, NcclPathType::kPix);
  input.tree = input.ring;
  input.nvls = input.ring;
  input.nvswitches = 1;
  input.channels = 16;
  input.nvls_channels = 8;
  return Tuning(input);
}

TEST(Tuning, GoldenTimesOfHgxNodesWithNvlsTree) {
  const Tuning two = tuning_of_hgx_nodes(2, TuningCpu::kIntel);
  EXPECT_EQ(all_reduce_text(two, 8 << 10), "Tree LL 25.8");
  EXPECT_EQ(all_reduce_text(two, 64 << 10), "Tree LL 30.8");
  EXPECT_EQ(all_reduce_text(two, 1 << 20), "Tree LL128 60.4");
  EXPECT_EQ(all_reduce_text(two, 16 << 20), "NVLSTree Simple 134.9");
  EXPECT_EQ(all_reduce_text(two, 256 << 20), "NVLSTree Simple 1157.2");
  EXPECT_EQ(all_reduce_text(two, 4LL << 30), "NVLSTree Simple 17512.8");
  const Tuning four = tuning_of_hgx_nodes(4, TuningCpu::kAmd);
  EXPECT_EQ(all_reduce_text(four, 8 << 10), "Tree LL 36.4");
  EXPECT_EQ(all_reduce_text(four, 64 << 10), "Tree LL 46.7");
  EXPECT_EQ(all_reduce_text(four, 1 << 20), "Tree LL128 80.6");
  EXPECT_EQ(all_reduce_text(four, 16 << 20), "NVLSTree Simple 197.9");
  EXPECT_EQ(all_reduce_text(four, 256 << 20), "NVLSTree Simple 1537.4");
  EXPECT_EQ(all_reduce_text(four, 4LL << 30), "Ring Simple 22270.3");
}

/// Two ranks of one RTX 5090 over sockets, as a public log of NCCL 2.29.7 shows them
/// (eunomia-bpf/nccl-eBPF, docs/tmp/default-suboptimal-search.md).
Tuning tuning_of_socket_ranks() {
  TuningInput input;
  input.version = {2, 29, 7};
  input.nodes = input.ranks = 2;
  input.min_compute_capability = input.max_compute_capability = 120;
  input.cpu = TuningCpu::kIntel;
  input.ring = graph_of(2, 1.2F, 1.2F, NcclPathType::kLoc, NcclPathType::kPhb);
  input.ring.same_channels = true;
  input.tree = graph_of(4, 1.2F, 1.2F, NcclPathType::kLoc, NcclPathType::kPhb);
  input.plain_tree = true;
  input.channels = 4;
  return Tuning(input);
}

TEST(Tuning, TableOfNccl2297OverSockets) {
  const Tuning tuning = tuning_of_socket_ranks();
  const auto cell = [&](NcclOp op, NcclAlgo algo, NcclProto proto) {
    const Tuning::Cell& c = tuning.cell(op, algo, proto);
    return fmt::format("{:.1f}/{:.1f}", c.latency_us, c.bandwidth);
  };
  const auto row = [&](NcclOp op, NcclAlgo algo) {
    return cell(op, algo, NcclProto::kLl) + "  " + cell(op, algo, NcclProto::kLl128) + "  " +
           cell(op, algo, NcclProto::kSimple);
  };
  // The log's table: microseconds / GB/s of LL, LL128 and Simple.
  for (const NcclOp op : {NcclOp::kBroadcast, NcclOp::kReduce}) {
    EXPECT_EQ(row(op, NcclAlgo::kRing), "9.3/1.2  18.0/0.0  22.4/2.4") << nccl_op_name(op);
  }
  for (const NcclOp op : {NcclOp::kAllGather, NcclOp::kReduceScatter}) {
    EXPECT_EQ(row(op, NcclAlgo::kRing), "11.6/2.4  22.5/0.0  22.4/4.8") << nccl_op_name(op);
    EXPECT_EQ(cell(op, NcclAlgo::kPat, NcclProto::kSimple), "17.6/3.6") << nccl_op_name(op);
  }
  EXPECT_EQ(row(NcclOp::kAllReduce, NcclAlgo::kRing), "16.6/1.2  31.0/0.0  36.4/2.4");
  EXPECT_EQ(row(NcclOp::kAllReduce, NcclAlgo::kTree), "16.8/0.5  31.0/0.0  36.4/1.9");
}

// The same log: "RING LL <= 16 KiB (channel 0..0; at 16 KiB 0..1); 32 KiB SIMPLE 0..0; 64 KiB 0..1;
// >= 128 KiB 0..3".
TEST(Tuning, ChannelsOfABroadcastOfNccl2297AreDealtInCells) {
  const Tuning tuning = tuning_of_socket_ranks();
  const auto text = [&](std::int64_t kib) {
    const auto choice = tuning.choose(NcclOp::kBroadcast, Bytes::kib(kib)).value();
    return fmt::format("{} {}", nccl_proto_name(choice.proto), choice.channels);
  };
  EXPECT_EQ(text(8), "LL 1");
  EXPECT_EQ(text(16), "LL 2");
  EXPECT_EQ(text(32), "Simple 1");
  EXPECT_EQ(text(64), "Simple 2");
  EXPECT_EQ(text(128), "Simple 4");
}

// A public log of NCCL 2.22.3 on 3 machines of 8 H100 behind Intel CPUs (NVIDIA/nccl#1453): "4
// Bytes
// -> Algo 0 proto 0 time 25.200462". Algo 0 is Tree, proto 0 LL: base 6.8 us, 7 NVLink hops of 0.6
// and one network hop of 5 each way; the LL maximum of Intel CPUs beyond two nodes, 20.4 GB/s, x
// 0.85 for plain trees, halved.
TEST(Tuning, TimesOfSmallAllReducesInNccl2223) {
  TuningInput input = tuning_of_hgx_nodes(3, TuningCpu::kIntel).input();
  input.version = {2, 22, 3};
  input.plain_tree = true;
  const Tuning tuning(input);
  const std::pair<std::int64_t, const char*> logged[] = {
      {4, "25.200462"}, {256, "25.229528"}, {512, "25.259054"}};
  for (const auto& [bytes, time] : logged) {
    const float ours =
        tuning.time_us(NcclOp::kAllReduce, NcclAlgo::kTree, NcclProto::kLl, Bytes{bytes}).value();
    EXPECT_EQ(fmt::format("{:.6f}", ours), time) << bytes;
  }
}

// NVIDIA/nccl#1334 quotes constants of tuning.cc of 2.21 or 2.22: "hwLat NVLINK Tree {.6, 1.25, 28}
// ... CollNetDirect {0,0,3.7} ..."; the last line, of networks, is cut after Tree.
TEST(Tuning, LatenciesOfMid2024) {
  // By LL, LL128 and Simple, in microseconds.
  struct Row {
    NcclAlgo algo;
    std::array<float, kNcclProtos> us;
  };
  using enum NcclAlgo;
  const std::vector<Row> base{{kTree, {6.8F, 14.0F, 0}},   {kRing, {6.6F, 14.0F, 8.4F}},
                              {kCollNetDirect, {0, 0, 0}}, {kCollNetChain, {0, 0, 0}},
                              {kNvls, {0, 0, 0}},          {kNvlsTree, {0, 0, 0}}};
  const std::vector<Row> nvlink{
      {kTree, {.6F, 1.25F, 28}},     {kRing, {.6F, 1.9F, 3.4F}}, {kCollNetDirect, {0, 0, 3.7F}},
      {kCollNetChain, {0, 0, 2.8F}}, {kNvls, {0, 0, 25}},        {kNvlsTree, {0, 0, 25}}};
  const std::vector<Row> pci{
      {kTree, {1.0F, 1.9F, 28}},     {kRing, {1.0F, 2.5F, 5.7F}}, {kCollNetDirect, {0, 0, 3.7F}},
      {kCollNetChain, {0, 0, 2.8F}}, {kNvls, {0, 0, 0}},          {kNvlsTree, {0, 0, 0}}};
  const std::vector<Row> net{{kTree, {5.0F, 8.5F, 28}}};
  for (const NcclVersion version : {NcclVersion{2, 21, 5}, NcclVersion{2, 22, 3}}) {
    const TuningConstants& constants = tuning_constants(version);
    const auto compare = [&](const char* what, const std::vector<Row>& rows, const auto& ours) {
      for (const Row& row : rows) {
        for (std::size_t p = 0; p < kNcclProtos; ++p) {
          EXPECT_EQ(ours[index_of(row.algo)][p], row.us[p])
              << version.text() << " " << what << " " << nccl_algo_name(row.algo) << " " << p;
        }
      }
    };
    compare("base", base, constants.base_latency);
    compare("NVLink", nvlink, constants.hop_latency[0]);
    compare("PCI", pci, constants.hop_latency[1]);
    compare("net", net, constants.hop_latency[2]);
  }
}

Tuning tuning_with(const std::string& name, const std::string& value, NcclVersion version = {}) {
  TuningInput input = tuning_of_hgx_nodes(2, TuningCpu::kIntel).input();
  input.version = version;
  input.env = parse_nccl_env({{name, value}});
  return Tuning(input);
}

TEST(TuningEnv, AlgoAndProtoTakeListsForCollectives) {
  using enum NcclAlgo;
  using enum NcclProto;
  const Tuning tuning = tuning_with("NCCL_ALGO", "ring,PAT;allreduce:^ring,nvlstree");
  EXPECT_EQ(tuning.cell(NcclOp::kAllReduce, kRing, kSimple).bandwidth, 0);
  EXPECT_EQ(tuning.cell(NcclOp::kAllReduce, kNvlsTree, kSimple).bandwidth, 0);
  EXPECT_GT(tuning.cell(NcclOp::kAllReduce, kTree, kSimple).bandwidth, 0);
  EXPECT_GT(tuning.cell(NcclOp::kAllGather, kRing, kSimple).bandwidth, 0);
  const Tuning protos = tuning_with("NCCL_PROTO", "^LL128;broadcast:LL");
  EXPECT_EQ(protos.cell(NcclOp::kAllReduce, kRing, kLl128).bandwidth, 0);
  EXPECT_GT(protos.cell(NcclOp::kAllReduce, kRing, kLl).bandwidth, 0);
  EXPECT_EQ(protos.cell(NcclOp::kBroadcast, kRing, kSimple).bandwidth, 0);
}

TEST(TuningEnv, ForcingLl128SkipsTheCheckOfWhereItIsSafe) {
  TuningInput input = tuning_of_hgx_nodes(2, TuningCpu::kIntel).input();
  input.version = {};
  input.ring.type_inter = NcclPathType::kPhb;
  const auto bandwidth = [&](const std::string& proto) {
    input.env = parse_nccl_env({{"NCCL_PROTO", proto}});
    return Tuning(input).cell(NcclOp::kAllReduce, NcclAlgo::kRing, NcclProto::kLl128).bandwidth;
  };
  EXPECT_EQ(bandwidth(""), 0);
  EXPECT_EQ(bandwidth("Simple"), 0);
  EXPECT_GT(bandwidth("LL128"), 0);
}

TEST(TuningEnv, WordsThatNcclDoesNotKnowAreRefusedFrom223On) {
  const auto message = [](const std::string& value) -> std::string {
    try {
      tuning_with("NCCL_ALGO", value);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("rign"),
            "NCCL_ALGO='rign': no 'rign'; known: CollNetChain, CollNetDirect, NVLS, NVLSTree, PAT, "
            "Ring, Tree, and NCCL does not start");
  EXPECT_EQ(message("alltoall:ring"),
            "NCCL_ALGO='alltoall:ring': no collective 'alltoall'; known: AllGather, AllReduce, "
            "Broadcast, Reduce, ReduceScatter, and NCCL does not start");
  EXPECT_EQ(message("ring;tree"),
            "NCCL_ALGO='ring;tree': only the first list may name no collective, and NCCL does not "
            "start");
  for (const char* odd : {";", ":", ",", "^", ";;:,^", "allreduce:", "ring,"}) message(odd);
  // Before, they were passed over.
  const Tuning old = tuning_with("NCCL_ALGO", "rign,tree", {2, 20, 3});
  EXPECT_EQ(old.choose(NcclOp::kAllReduce, Bytes::mib(1))->algo, NcclAlgo::kTree);
}

TEST(TuningEnv, CollNetWhereThereIsNoneMeantRingAndTreeBefore223) {
  const auto bandwidth = [](NcclVersion version, NcclAlgo algo) {
    return tuning_with("NCCL_ALGO", "CollNetChain", version)
        .cell(NcclOp::kAllReduce, algo, NcclProto::kSimple)
        .bandwidth;
  };
  EXPECT_GT(bandwidth({2, 22, 3}, NcclAlgo::kTree), 0);
  EXPECT_EQ(bandwidth({2, 28, 9}, NcclAlgo::kTree), 0);
  EXPECT_EQ(bandwidth({2, 28, 9}, NcclAlgo::kRing), 0);
}

TEST(TuningEnv, RingWasTheWayOutWhereNothingElseWasPossibleBefore223) {
  // NVLS over several nodes needs CollNet.
  const auto choice = [](NcclVersion version) {
    return tuning_with("NCCL_ALGO", "NVLS", version).choose(NcclOp::kAllReduce, Bytes::mib(1));
  };
  EXPECT_EQ(choice({2, 22, 3})->algo, NcclAlgo::kRing);
  EXPECT_FALSE(choice({2, 28, 9}));
}

/// "Tree: why", "NVLS of AllGather: why".
std::vector<std::string> reasons(const Tuning& tuning) {
  std::vector<std::string> out;
  for (const Tuning::Excluded& excluded : tuning.excluded()) {
    std::string line(nccl_algo_name(excluded.algo));
    for (const NcclOp op : excluded.ops) {
      if (!excluded.everywhere) line += " " + std::string(nccl_op_name(op));
    }
    out.push_back(line + ": " + excluded.why);
  }
  return out;
}

TEST(Tuning, EachExcludedAlgorithmHasAReason) {
  using ::testing::ElementsAre;
  const auto input = [](const std::string& variable, const std::string& value) {
    TuningInput out = tuning_with(variable, value).input();
    out.why_no_collnet = "NCCL_COLLNET_ENABLE=1 is not set";
    return out;
  };
  EXPECT_THAT(
      reasons(Tuning(input("NCCL_ALGO", "NVLS"))),
      ElementsAre("Tree: NCCL_ALGO=NVLS leaves it out", "Ring: NCCL_ALGO=NVLS leaves it out",
                  "CollNetDirect: NCCL_COLLNET_ENABLE=1 is not set",
                  "CollNetChain: NCCL_COLLNET_ENABLE=1 is not set",
                  "NVLS: between nodes it needs CollNet (SHARP): NCCL_COLLNET_ENABLE=1 is not set",
                  "NVLSTree: NCCL_ALGO=NVLS leaves it out",
                  "PAT: it is for one GPU a node (NCCL_PAT_ENABLE=1 takes it with several)"));
  EXPECT_THAT(reasons(Tuning(input("NCCL_PROTO", "LL"))),
              ::testing::Contains("NVLSTree: NCCL_PROTO=LL leaves none of its protocols"));
  // With SHARP, but a network that does not gather by itself.
  TuningInput sharp = input("NCCL_PAT_ENABLE", "0");
  sharp.collnet_direct = sharp.collnet_chain = sharp.tree;
  sharp.collnet_supported = true;
  sharp.nvswitches = 1;
  const std::string gathers =
      " AllGather ReduceScatter: between nodes it needs a network that gathers and scatters, which "
      "is taken not to be there";
  EXPECT_THAT(reasons(Tuning(sharp)),
              ElementsAre("CollNetDirect" + gathers, "NVLS" + gathers, "PAT: NCCL_PAT_ENABLE=0"));
  // What runs where nothing else may is not excluded.
  TuningInput old = input("NCCL_ALGO", "NVLS");
  old.version = {2, 22, 3};
  EXPECT_THAT(reasons(Tuning(old)),
              ::testing::Not(::testing::Contains(::testing::HasSubstr("Ring"))));
}

TEST(Tuning, AChoiceNamesTheSecondFastest) {
  const Tuning tuning = tuning_of_hgx_nodes(2, TuningCpu::kIntel);
  const Tuning::Choice choice = tuning.choose(NcclOp::kAllReduce, Bytes::mib(1)).value();
  std::optional<float> next;
  for (const NcclAlgo algo : kNcclAlgoList) {
    for (const NcclProto proto : kNcclProtoList) {
      if (algo == choice.algo && proto == choice.proto) continue;
      const auto time = tuning.time_us(NcclOp::kAllReduce, algo, proto, Bytes::mib(1));
      if (time && (!next || *time < *next)) next = time;
    }
  }
  ASSERT_TRUE(choice.next);
  EXPECT_EQ(choice.next->time_us, next);
  EXPECT_EQ(choice.next->time_us, tuning.time_us(NcclOp::kAllReduce, choice.next->algo,
                                                 choice.next->proto, Bytes::mib(1)));
  EXPECT_GE(choice.next->time_us, choice.time_us);
}

TEST(Tuning, NothingAllowedMeansNoChoice) {
  EXPECT_FALSE(tuning_with("NCCL_ALGO", "PAT").choose(NcclOp::kAllReduce, Bytes::mib(1)));
}

TEST(Tuning, ThreadsFollowTheirVariablesWithinNcclsBounds) {
  const auto threads = [](const std::string& value) {
    return tuning_with("NCCL_NTHREADS", value).max_threads(NcclAlgo::kRing, NcclProto::kSimple);
  };
  EXPECT_EQ(threads("256"), 256);
  EXPECT_EQ(threads("100"), 512);   // no multiple of a warp
  EXPECT_EQ(threads("1024"), 512);  // too many
  EXPECT_EQ(threads("32"), 64);     // too few
  TuningInput slow = tuning_of_hgx_nodes(2, TuningCpu::kIntel).input();
  slow.ring = graph_of(2, 6, 6, NcclPathType::kPhb, NcclPathType::kPhb);
  EXPECT_EQ(Tuning(slow).max_threads(NcclAlgo::kRing, NcclProto::kSimple), 256);
}

// Every release computes every cell for plain and odd communicators, with finite numbers.
TEST(Tuning, EveryReleaseGivesFiniteNumbers) {
  for (int minor = 18; minor <= 30; ++minor) {
    for (const std::uint32_t nodes : {1U, 2U, 3U, 1024U}) {
      TuningInput input = tuning_of_hgx_nodes(nodes, TuningCpu::kMixed).input();
      input.version = {2, minor, 0};
      input.collnet_chain = input.collnet_direct = input.nvls;
      input.collnet_supported = input.collnet_gathers = true;
      input.collnet_heads = 8;
      const Tuning tuning(input);
      for (const NcclOp op : kNcclOpList) {
        for (std::int64_t bytes = 1; bytes <= 1LL << 40; bytes *= 4) {
          const auto choice = tuning.choose(op, Bytes{bytes});
          ASSERT_TRUE(choice) << minor << ' ' << nodes;
          EXPECT_TRUE(std::isfinite(choice->time_us) && choice->time_us > 0) << minor;
          EXPECT_GE(choice->channels, 1);
          EXPECT_LE(choice->channels, 16);
          EXPECT_GE(choice->threads, 96);
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::test::models_tuning
