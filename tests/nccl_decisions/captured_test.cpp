// What NCCL 2.28.9 decided on 106 topologies (data/h200/nccl-2.28.9-decisions.json, captured by us
// on H200s, stored here with each distinct value once) and on 226 more (captured in the same way,
// after the model was written: odd shapes, 29 of them drawn at random), against models/nccl: every
// field of every case.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/nccl/decide.hpp"
#include "models/nccl/tuning_input.hpp"
#include "sim/io/file.hpp"
#include "sim/io/json.hpp"

namespace weft::test::nccl_decisions_captured {
namespace {

using enum NcclNodeType;

/// The pretended hosts of a capture share one machine: the second host's GPUs are CUDA devices 2
/// and 3, and NCCL picks a GPU's NIC by device number. Weft's hosts all count from 0. These fields
/// follow from that number, and no more than these.
const std::map<std::string, std::string> kOtherDeviceNumbers = {{"twonics.2x2.levelLOC", "gdr"},
                                                                {"r053s7.2x2.gdr", "trees"},
                                                                {"r122s7.2x2.gdr", "trees"},
                                                                {"r159s7.2x2.gdr", "rings"}};

/// As NCCL prints it: 1.25 is 1.2.
double one_decimal(float value) { return std::stod(fmt::format("{:.1f}", value)); }

Json text_of(NcclPathType type) { return nccl_path_type_name(type); }

Json paths_json(const NcclNodeView& view) {
  Json all = Json::object();
  for (const NcclNodeType from : {kGpu, kNet}) {
    for (int i = 0; i < view.system.count(from); ++i) {
      const int node = view.system.of(from)[static_cast<std::size_t>(i)];
      Json targets = Json::object();
      for (const NcclNodeType to : {kGpu, kNvs, kCpu, kNet}) {
        if (!has_path_to(view.system, view.paths, node, to)) continue;
        for (int j = 0; j < view.system.count(to); ++j) {
          const NcclPath& path = view.paths.at(node, to, j);
          targets.set(view.system.node(to, j).name(), Json::object({{"hops", path.hops()},
                                                                    {"bw", one_decimal(path.bw)},
                                                                    {"type", text_of(path.type)}}));
        }
      }
      all.set(view.system.node(from, i).name(), std::move(targets));
    }
  }
  return all;
}

Json graph_json(const NcclNodeView& view, const NcclGraph& graph, bool inter) {
  Json orders = Json::array();
  for (const NcclGraphChannel& channel : graph.channels) {
    Json order = Json::array();
    if (inter) order.push(view.system.node(kNet, channel.net_in).name());
    for (const int gpu : channel.gpus) order.push(view.system.node(kGpu, gpu).name());
    if (inter) order.push(view.system.node(kNet, channel.net_out).name());
    orders.push(std::move(order));
  }
  return Json::object({{"pattern", static_cast<int>(graph.pattern)},
                       {"cross_nic", graph.cross_nic},
                       {"channels", graph.channel_count()},
                       {"bw_intra", static_cast<double>(graph.bw_intra)},
                       {"bw_inter", static_cast<double>(graph.bw_inter)},
                       {"type_intra", text_of(graph.type_intra)},
                       {"type_inter", text_of(graph.type_inter)},
                       {"same_channels", graph.same_channels ? 1 : 0},
                       {"orders", std::move(orders)}});
}

Json gdr_json(const NcclDecisions& decisions) {
  Json gdr = Json::object();
  for (const NcclGdrLine& line : nccl_gdr_lines(decisions)) {
    gdr.set(line.key,
            Json::object({{"enabled", line.enabled},
                          {"distance", nccl_path_type_number(line.distance, decisions.version)},
                          {"limit", nccl_path_type_number(line.limit, decisions.version)}}));
  }
  return gdr;
}

Json rings_json(const NcclDecisions& decisions) {
  Json rings = Json::object();
  for (std::size_t c = 0; c < decisions.connections.rings.size(); ++c) {
    Json ranks = Json::array();
    for (const int rank : decisions.connections.rings[c]) ranks.push(rank);
    rings.set(fmt::format("{:02}", c), std::move(ranks));
  }
  return rings;
}

Json trees_json(const NcclDecisions& decisions) {
  Json trees = Json::object();
  for (std::size_t c = 0; c < decisions.connections.trees.size(); ++c) {
    Json tree = Json::object();
    for (std::size_t rank = 0; rank < decisions.connections.trees[c].size(); ++rank) {
      const NcclTreeNode& node = decisions.connections.trees[c][rank];
      Json down = Json::array();
      for (const int child : node.down) {
        if (child != -1) down.push(child);
      }
      tree.set(std::to_string(rank), Json::object({{"down", std::move(down)}, {"up", node.up}}));
    }
    trees.set(std::to_string(c), std::move(tree));
  }
  return trees;
}

Json tuning_json(const Tuning& tuning) {
  Json ops = Json::object();
  for (const NcclOp op : kNcclOpList) {
    Json algos = Json::object();
    for (const NcclAlgo algo : kNcclAlgoList) {
      Json protos = Json::object();
      for (const NcclProto proto : kNcclProtoList) {
        const Tuning::Cell& cell = tuning.cell(op, algo, proto);
        if (one_decimal(cell.bandwidth) == 0) continue;
        protos.set(std::string(nccl_proto_name(proto)),
                   Json::array({one_decimal(cell.latency_us), one_decimal(cell.bandwidth)}));
      }
      if (!protos.members().empty()) {
        algos.set(std::string(nccl_algo_name(algo)), std::move(protos));
      }
    }
    if (!algos.members().empty()) ops.set(std::string(nccl_op_name(op)), std::move(algos));
  }
  return ops;
}

/// The choices for the collectives and sizes that `nccls` has.
Json choice_json(const Tuning& tuning, const Json& nccls) {
  Json all = Json::array();
  for (const Json& asked : nccls.items()) {
    for (const NcclOp op : kNcclOpList) {
      if (asked.at("op").as_string() != nccl_op_name(op)) continue;
      const std::int64_t bytes = asked.at("bytes").as_integer();
      const Tuning::Choice choice = tuning.choose(op, Bytes{bytes}).value();
      all.push(Json::object({{"op", nccl_op_name(op)},
                             {"bytes", bytes},
                             {"algo", nccl_algo_upper_name(choice.algo)},
                             {"proto", nccl_proto_upper_name(choice.proto)},
                             {"channels", choice.channels}}));
    }
  }
  return all;
}

/// Where `ours` first differs from NCCL's: "paths.GPU/0-60.NET/0-0.bw: ours 48, NCCL's 24"; "" if
/// it does not. More keys than NCCL's are allowed where `extra` says so.
std::string difference(const Json& ours, const Json& nccls, const std::string& at, bool extra) {
  const auto differ = [&] {
    return at + ": ours " + ours.dump() + at + ": NCCL's " + nccls.dump();
  };
  if (nccls.is_object() && ours.is_object()) {
    for (const auto& [key, value] : nccls.members()) {
      const Json* const found = ours.find(key);
      if (found == nullptr) return at + "." + key + ": missing; NCCL has " + value.dump();
      const std::string inside = difference(*found, value, at + "." + key, false);
      if (!inside.empty()) return inside;
    }
    return !extra && ours.members().size() != nccls.members().size() ? differ() : "";
  }
  if (nccls.is_array() && ours.is_array()) {
    for (std::size_t i = 0; i < std::min(ours.items().size(), nccls.items().size()); ++i) {
      const std::string inside =
          difference(ours.items()[i], nccls.items()[i], at + "[" + std::to_string(i) + "]", false);
      if (!inside.empty()) return inside;
    }
    return ours.items().size() != nccls.items().size() ? differ() : "";
  }
  if (nccls.is_number() && ours.is_number()) {
    return std::abs(nccls.as_number() - ours.as_number()) > 1e-5 ? differ() : "";
  }
  return ours.dump() != nccls.dump() ? differ() : "";
}

const Json& value(const Json& file, const Json& one_case, const std::string& field) {
  return file.at("values")
      .at(field)
      .items()[static_cast<std::size_t>(one_case.at(field).as_integer())];
}

NcclDecisions decide(const std::string& name, const Json& topo_xml, const Json& env_json) {
  std::map<std::string, std::string> env;
  for (const auto& [key, text] : env_json.members()) env.emplace(key, text.as_string());
  const NcclTree tree = parse_nccl_tree(topo_xml.as_string(), name + ".xml");
  const std::string shape = name.substr(name.find('.') + 1);  // "2x2.gdr1": hosts x GPUs
  return decide_nccl(tree, std::stoi(shape), parse_nccl_env(env));
}

std::map<std::string, Json> fields_of(const NcclDecisions& decisions, const Json& nccls_choice) {
  const NcclNodeView& view = decisions.views.front();
  const bool inter = decisions.nodes > 1;
  const Tuning tuning(tuning_input(decisions));
  std::map<std::string, Json> fields;
  fields["system"] = Json::object(
      {{"max_bw", one_decimal(view.bw.max_bw)}, {"total_bw", one_decimal(view.bw.total_bw)}});
  fields["paths"] = paths_json(view);
  fields["gdr"] = gdr_json(decisions);
  fields["graphs"] =
      Json::array({graph_json(view, view.ring, inter), graph_json(view, view.tree, inter)});
  fields["rings"] = rings_json(decisions);
  fields["trees"] = trees_json(decisions);
  fields["channels"] = Json::object({{"coll", decisions.channels.coll},
                                     {"p2p", decisions.channels.p2p},
                                     {"p2p_per_peer", decisions.channels.p2p_per_peer}});
  fields["tuning"] = tuning_json(tuning);
  fields["choice"] = choice_json(tuning, nccls_choice);
  return fields;
}

void compare_all(const std::string& name_of_file, int expected_cases) {
  const std::string path = std::string(WEFT_SOURCE_DIR) + "/tests/nccl_decisions/" + name_of_file;
  const Json file = Json::parse(read_text_file(path), path);
  std::map<std::string, int> equal;
  int cases = 0;
  for (const auto& [name, one_case] : file.at("cases").members()) {
    SCOPED_TRACE(name);
    ++cases;
    const NcclDecisions decisions =
        decide(name, value(file, one_case, "topo_xml"), value(file, one_case, "env"));
    EXPECT_EQ(decisions.ranks, one_case.at("ranks").as_integer());
    EXPECT_EQ(decisions.nodes, one_case.at("nodes").as_integer());
    const auto other = kOtherDeviceNumbers.find(name);
    for (const auto& [field, ours] : fields_of(decisions, value(file, one_case, "choice"))) {
      const std::string found =
          difference(ours, value(file, one_case, field), field, field == "gdr");
      if (other != kOtherDeviceNumbers.end() && other->second == field) {
        EXPECT_NE(found, "") << field << " is equal now: take it off the list";
      } else {
        EXPECT_EQ(found, "");
      }
      equal[field] += found.empty() ? 1 : 0;
    }
  }
  EXPECT_EQ(cases, expected_cases);
  for (const auto& [field, count] : equal)
    std::printf("%-9s %d of %d\n", field.c_str(), count, cases);
}

TEST(Captured, EveryFieldOfEveryCaseIsAsNcclDecided) { compare_all("nccl-2.28.9.json", 106); }

TEST(Captured, EveryFieldOfTheLaterCasesIsAsNcclDecided) {
  compare_all("nccl-2.28.9-more.json", 226);
}

}  // namespace
}  // namespace weft::test::nccl_decisions_captured
