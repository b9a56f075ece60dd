#include "models/nccl/tuning.hpp"

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
    const std::string text =
        !ours ? "none"
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
  const std::string file =
      std::string(WEFT_SHARED_DIR) + "/data/h200/nccl-2.28.9-decisions.json";
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

}  // namespace
}  // namespace weft
