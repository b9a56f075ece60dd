#include "models/nccl/tuning.hpp"

#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/input/nccl_tree.hpp"
#include "sim/io/file.hpp"
#include "sim/io/json.hpp"

namespace weft {
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

/// A captured case's graph, as NCCL printed it.
NcclGraph captured_graph(const Json& json, float nic_latency) {
  NcclGraph graph = graph_of(static_cast<int>(json.at("channels").as_integer()),
                             static_cast<float>(json.at("bw_intra").as_number()),
                             static_cast<float>(json.at("bw_inter").as_number()),
                             nccl_path_type(json.at("type_intra").as_string()).value(),
                             nccl_path_type(json.at("type_inter").as_string()).value());
  graph.pattern = static_cast<NcclPattern>(json.at("pattern").as_integer());
  graph.same_channels = json.at("same_channels").as_integer() != 0;
  graph.latency_inter = nic_latency;
  return graph;
}

/// The first element of a tag in a tree, depth first; nullptr if there is none.
const NcclElement* first_of(const NcclElement& element, std::string_view tag) {
  if (element.tag == tag) return &element;
  for (const NcclElement& child : element.children) {
    if (const NcclElement* const found = first_of(child, tag)) return found;
  }
  return nullptr;
}

TuningInput captured_input(const Json& json, const std::string& name) {
  TuningInput input;
  input.nodes = static_cast<std::uint32_t>(json.at("nodes").as_integer());
  input.ranks = static_cast<std::uint32_t>(json.at("ranks").as_integer());
  input.most_local_ranks = input.ranks / input.nodes;
  const NcclTree tree = parse_nccl_tree(json.at("topo_xml").as_string(), name);
  const NcclElement& gpu = *first_of(tree.system, "gpu");
  input.min_compute_capability = static_cast<int>(gpu.integer("sm").value());
  input.max_compute_capability = input.min_compute_capability;
  const NcclElement& cpu = *first_of(tree.system, "cpu");
  input.x86 = cpu.text("arch") == "x86_64";
  if (cpu.text("vendor") == "GenuineIntel") input.cpu = TuningCpu::kIntel;
  if (cpu.text("vendor") == "AuthenticAMD") input.cpu = TuningCpu::kAmd;
  const NcclElement* const net = first_of(tree.system, "net");
  const float nic_latency = net == nullptr ? 0.0F : std::stof(net->text("latency"));
  for (const Json& each : json.at("graphs").items()) {
    NcclGraph graph = captured_graph(each, nic_latency);
    if (graph.pattern == NcclPattern::kRing) {
      input.ring = std::move(graph);
    } else {
      input.plain_tree = graph.pattern == NcclPattern::kTree;
      input.tree = std::move(graph);
    }
  }
  input.channels = static_cast<int>(json.at("channels").at("coll").as_integer());
  std::map<std::string, std::string> variables;
  for (const auto& [key, value] : json.at("env").members()) variables[key] = value.as_string();
  input.env = parse_nccl_env(variables);
  return input;
}

/// The captured cell; nullptr where NCCL printed a bandwidth of 0.
const Json* captured_cell(const Json& json, NcclOp op, NcclAlgo algo, NcclProto proto) {
  const Json* at = json.at("tuning").find(nccl_op_name(op));
  if (at != nullptr) at = at->find(nccl_algo_name(algo));
  return at == nullptr ? nullptr : at->find(nccl_proto_name(proto));
}

/// "" or the first difference by name.
std::string table_difference(const Tuning& tuning, const Json& json) {
  for (const NcclOp op : kNcclOpList) {
    for (const NcclAlgo algo : kNcclAlgoList) {
      for (const NcclProto proto : kNcclProtoList) {
        const Tuning::Cell& ours = tuning.cell(op, algo, proto);
        const Json* const theirs = captured_cell(json, op, algo, proto);
        const std::string where = "tuning." + std::string(nccl_op_name(op)) + "." +
                                  std::string(nccl_algo_name(algo)) + "." +
                                  std::string(nccl_proto_name(proto));
        if (theirs == nullptr) {
          if (ours.bandwidth != 0) return where + ": NCCL does not use it";
          continue;
        }
        const auto difference = [&](const char* what, float value, const Json& captured) {
          const std::string text = fmt::format("{:.1f}", value);  // as NCCL prints it
          const std::string printed = fmt::format("{:.1f}", captured.as_number());
          return text == printed ? "" : where + what + text + ", NCCL printed " + printed;
        };
        const std::string latency = difference(".latency: ", ours.latency_us, theirs->items()[0]);
        if (!latency.empty()) return latency;
        const std::string bandwidth =
            difference(".bandwidth: ", ours.bandwidth, theirs->items()[1]);
        if (!bandwidth.empty()) return bandwidth;
      }
    }
  }
  return "";
}

NcclOp op_of(const std::string& name) {
  for (const NcclOp op : kNcclOpList) {
    if (nccl_op_name(op) == name) return op;
  }
  throw std::logic_error("no op " + name);
}

std::string choice_difference(const Tuning& tuning, const Json& json) {
  for (const Json& theirs : json.at("choice").items()) {
    const std::string op = theirs.at("op").as_string();
    const std::int64_t bytes = theirs.at("bytes").as_integer();
    const auto ours = tuning.choose(op_of(op), Bytes{bytes});
    const std::string text = !ours ? "none"
                                   : std::string(nccl_algo_upper_name(ours->algo)) + " " +
                                         std::string(nccl_proto_upper_name(ours->proto)) + " " +
                                         std::to_string(ours->channels);
    const std::string captured = theirs.at("algo").as_string() + " " +
                                 theirs.at("proto").as_string() + " " +
                                 std::to_string(theirs.at("channels").as_integer());
    if (text != captured) {
      return "choice." + op + "." + std::to_string(bytes) + ": " + text + ", NCCL " + captured;
    }
  }
  return "";
}

TEST(Tuning, EveryCapturedTableAndChoiceOfNccl2289) {
  const std::string file = std::string(WEFT_SHARED_DIR) + "/data/h200/nccl-2.28.9-decisions.json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
  const Json cases = Json::parse(read_text_file(file), file);
  std::size_t compared = 0;
  for (const auto& [name, json] : cases.members()) {
    const Tuning tuning(captured_input(json, name));
    EXPECT_EQ(table_difference(tuning, json), "") << name;
    EXPECT_EQ(choice_difference(tuning, json), "") << name;
    ++compared;
  }
  EXPECT_EQ(compared, cases.members().size());
  EXPECT_GE(compared, 106U);
}

/// "Ring LL 17.3": the choice for an all-reduce and its time.
std::string all_reduce_text(const Tuning& tuning, std::int64_t bytes) {
  const auto choice = tuning.choose(NcclOp::kAllReduce, Bytes{bytes});
  if (!choice) return "none";
  return fmt::format("{} {} {:.1f}", nccl_algo_name(choice->algo), nccl_proto_name(choice->proto),
                     choice->time_us);
}

constexpr NcclVersion kNccl2307{2, 30, 7};

// The golden numbers of physics.md section 6.9: another implementation of the same rules for NCCL
// 2.30.7. Two nodes of one A100, PCIe Gen4 below an Intel CPU, two channels of 12 GB/s.
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

/// Two ranks of one RTX 5090 over sockets, as a public log of NCCL 2.29.7 shows them.
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
  const std::string file =
      std::string(WEFT_SHARED_DIR) + "/data/logs/tuning_table_nccl2297_socket_2ranks.txt";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
  const std::string log = read_text_file(file);
  const Tuning tuning = tuning_of_socket_ranks();
  const auto cell = [&](NcclOp op, NcclAlgo algo, NcclProto proto) {
    const Tuning::Cell& c = tuning.cell(op, algo, proto);
    return fmt::format("{:.1f}/{:.1f}", c.latency_us, c.bandwidth);
  };
  const auto row = [&](NcclOp op, NcclAlgo algo) {
    return cell(op, algo, NcclProto::kLl) + "  " + cell(op, algo, NcclProto::kLl128) + "  " +
           cell(op, algo, NcclProto::kSimple);
  };
  const auto line_of = [&](NcclOp op) {
    const std::size_t at = log.find("\n" + std::string(nccl_op_name(op)) + " ");
    return log.substr(at, log.find('\n', at + 1) - at);
  };
  for (const NcclOp op : kNcclOpList) {
    EXPECT_NE(line_of(op).find(row(op, NcclAlgo::kRing)), std::string::npos)
        << row(op, NcclAlgo::kRing) << " is not in" << line_of(op);
  }
  EXPECT_NE(line_of(NcclOp::kAllReduce).find(row(NcclOp::kAllReduce, NcclAlgo::kTree)),
            std::string::npos);
  EXPECT_NE(line_of(NcclOp::kAllGather)
                .find(cell(NcclOp::kAllGather, NcclAlgo::kPat, NcclProto::kSimple)),
            std::string::npos);
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
  const std::string file =
      std::string(WEFT_SHARED_DIR) + "/data/logs/graph_nccl1453_h100_vm_3n_rings.txt";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
  const std::string log = read_text_file(file);
  TuningInput input = tuning_of_hgx_nodes(3, TuningCpu::kIntel).input();
  input.version = {2, 22, 3};
  input.plain_tree = true;
  const Tuning tuning(input);
  for (const std::int64_t bytes : {4, 256, 512}) {
    const float time =
        tuning.time_us(NcclOp::kAllReduce, NcclAlgo::kTree, NcclProto::kLl, Bytes{bytes}).value();
    const std::string line = fmt::format("\n{} Bytes -> Algo 0 proto 0 time {:.6f}", bytes, time);
    EXPECT_NE(log.find(line), std::string::npos) << line;
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
}  // namespace weft
