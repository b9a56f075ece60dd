#include <charconv>

#include <fmt/format.h>

#include "tools/nccl_view.hpp"

namespace weft {
namespace {

using enum NcclNodeType;

/// As NCCL prints it: one decimal as a rule.
double printed(float value, int decimals = 1) {
  const std::string text = fmt::format("{:.{}f}", value, decimals);
  double out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

Json path_json(const NcclPath& path, int decimals) {
  return Json::object({{"hops", path.hops()},
                       {"bw", printed(path.bw, decimals)},
                       {"type", nccl_path_type_name(path.type)}});
}

/// NCCL lists all nodes of a type if there is a way to any.
void add_paths(const NcclNodeView& view, int from, NcclNodeType to, Json& row) {
  if (!has_path_to(view.system, view.paths, from, to)) return;
  for (int i = 0; i < view.system.count(to); ++i) {
    row.set(view.system.node(to, i).name(),
            path_json(view.paths.at(from, to, i), view.system.release.path_decimals));
  }
}

/// Paths as a rank of this NCCL node prints them: of its GPUs and of all NICs.
Json paths_json(const NcclNodeView& view) {
  Json out = Json::object();
  for (const NcclNodeType from : {kGpu, kNet}) {
    for (const int node : view.system.of(from)) {
      Json row = Json::object();
      for (const NcclNodeType to : {kGpu, kNvs, kCpu, kNet, kGin, kDev})
        add_paths(view, node, to, row);
      out.set(view.system.nodes[static_cast<std::size_t>(node)].name(), std::move(row));
    }
  }
  return out;
}

/// Where a host is several NCCL nodes: of all but rank 0's.
Json other_paths_json(std::span<const NcclNodeView> views) {
  Json out = Json::array();
  for (const NcclNodeView& view : views.subspan(1)) out.push(paths_json(view));
  return out;
}

/// Keys as NCCL's lines have them, distances as the numbers they are in this release.
Json gdr_json(const NcclDecisions& decisions) {
  const auto number = [&](NcclPathType type) {
    return decisions.views.front().system.release.number(type);
  };
  Json out = Json::object();
  for (const NcclGdrLine& line : nccl_gdr_lines(decisions)) {
    out.set(line.key, Json::object({{"enabled", line.enabled},
                                    {"distance", number(line.distance)},
                                    {"limit", number(line.limit)}}));
  }
  return out;
}

Json graph_json(const NcclNodeView& view, const NcclGraph& graph) {
  Json orders = Json::array();
  for (const NcclGraphChannel& channel : graph.channels) {
    Json order = Json::array();
    const auto push = [&](NcclNodeType type, int i) {
      if (i >= 0) order.push(view.system.node(type, i).name());
    };
    push(kNet, channel.net_in);
    for (const int gpu : channel.gpus) push(kGpu, gpu);
    push(kNet, view.system.release.prints_start_twice ? channel.net_in : channel.net_out);
    orders.push(std::move(order));
  }
  return Json::object({{"pattern", static_cast<int>(graph.pattern)},
                       {"cross_nic", graph.cross_nic},
                       {"channels", graph.channel_count()},
                       {"bw_intra", printed(graph.bw_intra, 6)},
                       {"bw_inter", printed(graph.bw_inter, 6)},
                       {"type_intra", nccl_path_type_name(graph.type_intra)},
                       {"type_inter", nccl_path_type_name(graph.type_inter)},
                       {"same_channels", graph.same_channels ? 1 : 0},
                       {"orders", std::move(orders)}});
}

Json graphs_json(const NcclNodeView& view) {
  Json out = Json::array();
  out.push(graph_json(view, view.ring));
  out.push(graph_json(view, view.tree));
  for (const auto* graph : {&view.collnet_chain, &view.collnet_direct, &view.nvls}) {
    if (*graph) out.push(graph_json(view, **graph));
  }
  return out;
}

Json rings_json(const NcclConnections& connections) {
  Json out = Json::object();
  for (std::size_t c = 0; c < connections.rings.size(); ++c) {
    Json ring = Json::array();
    for (const int rank : connections.rings[c]) ring.push(rank);
    out.set(fmt::format("{:02}", c), std::move(ring));
  }
  return out;
}

Json trees_json(const NcclConnections& connections) {
  Json out = Json::object();
  for (std::size_t c = 0; c < connections.trees.size(); ++c) {
    Json tree = Json::object();
    for (std::size_t rank = 0; rank < connections.trees[c].size(); ++rank) {
      const NcclTreeNode& node = connections.trees[c][rank];
      Json down = Json::array();
      for (const int child : node.down) {
        if (child >= 0) down.push(child);
      }
      tree.set(std::to_string(rank), Json::object({{"down", std::move(down)}, {"up", node.up}}));
    }
    out.set(std::to_string(c), std::move(tree));
  }
  return out;
}

Json tuning_json(const Tuning& tuning) {
  Json out = Json::object();
  for (const NcclOp op : kNcclOpList) {
    Json algos = Json::object();
    for (const NcclAlgo algo : kNcclAlgoList) {
      Json protos = Json::object();
      for (const NcclProto proto : kNcclProtoList) {
        const Tuning::Cell& cell = tuning.cell(op, algo, proto);
        if (printed(cell.bandwidth) == 0) continue;
        protos.set(std::string(nccl_proto_name(proto)),
                   Json::array({printed(cell.latency_us), printed(cell.bandwidth)}));
      }
      if (!protos.members().empty()) {
        algos.set(std::string(nccl_algo_name(algo)), std::move(protos));
      }
    }
    if (!algos.members().empty()) out.set(std::string(nccl_op_name(op)), std::move(algos));
  }
  return out;
}

Json excluded_json(const Tuning& tuning) {
  Json out = Json::array();
  for (const Tuning::Excluded& excluded : tuning.excluded()) {
    Json ops = Json::array();
    for (const NcclOp op : excluded.ops) ops.push(nccl_op_name(op));
    out.push(Json::object(
        {{"algo", nccl_algo_name(excluded.algo)}, {"ops", std::move(ops)}, {"why", excluded.why}}));
  }
  return out;
}

Json choice_json(const Tuning& tuning, std::span<const Bytes> sizes) {
  Json out = Json::array();
  for (const NcclOp op : kNcclOpList) {
    for (const Bytes bytes : sizes) {
      const auto choice = tuning.choose(op, bytes);
      if (!choice) continue;
      Json row = Json::object({{"op", nccl_op_name(op)},
                               {"bytes", bytes.count()},
                               {"algo", nccl_algo_upper_name(choice->algo)},
                               {"proto", nccl_proto_upper_name(choice->proto)},
                               {"channels", choice->channels},
                               {"threads", choice->threads},
                               {"time_us", printed(choice->time_us)}});
      if (const auto& next = choice->next) {
        row.set("next", Json::object({{"algo", nccl_algo_upper_name(next->algo)},
                                      {"proto", nccl_proto_upper_name(next->proto)},
                                      {"time_us", printed(next->time_us)}}));
      }
      out.push(std::move(row));
    }
  }
  return out;
}

}  // namespace

Json nccl_json(const NcclDecisions& decisions, const Tuning& tuning, std::span<const Bytes> sizes) {
  const NcclNodeView& view = decisions.views.front();
  Json notes = Json::array();
  for (const std::string& note : decisions.notes) notes.push(note);
  return Json::object(
      {{"schema", "weft.nccl/1"},
       {"nccl", decisions.version.text()},
       {"ranks", decisions.ranks},
       {"nodes", decisions.nodes},
       {"system", Json::object({{"max_bw", printed(view.bw.max_bw)},
                                {"total_bw", printed(view.bw.total_bw)}})},
       {"paths", paths_json(view)},
       {"other_paths", other_paths_json(decisions.views)},
       {"gdr", gdr_json(decisions)},
       {"graphs", graphs_json(view)},
       {"rings", rings_json(decisions.connections)},
       {"trees", trees_json(decisions.connections)},
       {"channels", Json::object({{"coll", decisions.channels.coll},
                                  {"nvls", decisions.channels.nvls},
                                  {"p2p", decisions.channels.p2p},
                                  {"p2p_per_peer", decisions.channels.p2p_per_peer}})},
       {"tuning", tuning_json(tuning)},
       {"excluded", excluded_json(tuning)},
       {"choice", choice_json(tuning, sizes)},
       {"notes", std::move(notes)}});
}

}  // namespace weft
