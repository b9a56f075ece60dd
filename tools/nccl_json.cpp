#include <array>
#include <charconv>

#include <fmt/format.h>

#include "sim/result/fields.hpp"
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

/// A path, and how many decimals NCCL prints of its bandwidth.
struct PrintedPath {
  const NcclPath& path;
  int decimals;
};

using PathField = JsonField<PrintedPath>;
constexpr std::array kPathFields{
    PathField{{"hops", "whole number", "", "links"},
              [](const PrintedPath& p) -> Json { return p.path.hops(); }},
    PathField{{"bw", "number", "", "of its slowest link, GB/s, rounded as NCCL prints it"},
              [](const PrintedPath& p) -> Json { return printed(p.path.bw, p.decimals); }},
    PathField{{"type", "text", "", "LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS, NET or DIS"},
              [](const PrintedPath& p) -> Json { return nccl_path_type_name(p.path.type); }}};

/// NCCL lists all nodes of a type if there is a way to any.
void add_paths(const NcclNodeView& view, int from, NcclNodeType to, Json& row) {
  if (!has_path_to(view.system, view.paths, from, to)) return;
  for (int i = 0; i < view.system.count(to); ++i) {
    const PrintedPath path{view.paths.at(from, to, i), view.system.release.path_decimals};
    row.set(view.system.node(to, i).name(), object_of(path, kPathFields));
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

/// A line on GDR, and the release whose numbers its distances are.
struct NumberedLine {
  const NcclGdrLine& line;
  const NcclRelease& release;
};

using GdrField = JsonField<NumberedLine>;
constexpr std::array kGdrFields{
    GdrField{{"enabled", "true or false", "", "what NCCL decides"},
             [](const NumberedLine& l) -> Json { return l.line.enabled; }},
    GdrField{{"distance", "whole number", "",
              "the type of the path between them, as the number that it is in this release"},
             [](const NumberedLine& l) -> Json { return l.release.number(l.line.distance); }},
    GdrField{{"limit", "whole number", "", "likewise the farthest that is allowed"},
             [](const NumberedLine& l) -> Json { return l.release.number(l.line.limit); }}};

/// Keys as NCCL's lines have them.
Json gdr_json(const NcclDecisions& decisions) {
  Json out = Json::object();
  for (const NcclGdrLine& line : nccl_gdr_lines(decisions)) {
    const NumberedLine numbered{line, decisions.views.front().system.release};
    out.set(line.key, object_of(numbered, kGdrFields));
  }
  return out;
}

/// A graph, and the node whose places it names.
struct GraphOf {
  const NcclNodeView& view;
  const NcclGraph& graph;
};

Json orders_json(const GraphOf& of) {
  const NcclSystem& system = of.view.system;
  Json orders = Json::array();
  for (const NcclGraphChannel& channel : of.graph.channels) {
    Json order = Json::array();
    const auto push = [&](NcclNodeType type, int i) {
      if (i >= 0) order.push(system.node(type, i).name());
    };
    push(kNet, channel.net_in);
    for (const int gpu : channel.gpus) push(kGpu, gpu);
    push(kNet, system.release.prints_start_twice ? channel.net_in : channel.net_out);
    orders.push(std::move(order));
  }
  return orders;
}

using GraphField = JsonField<GraphOf>;
constexpr std::array kGraphFields{
    GraphField{{"pattern", "whole number", "",
                "1 balanced tree, 2 split tree, 3 tree, 4 ring, 5 NVLS, 6 CollNet direct"},
               [](const GraphOf& g) -> Json { return static_cast<int>(g.graph.pattern); }},
    GraphField{{"cross_nic", "whole number", "",
                "channels leave by another NIC than they come in by: 0 no, 1 yes, 2 in pairs"},
               [](const GraphOf& g) -> Json { return g.graph.cross_nic; }},
    GraphField{{"channels", "whole number", "", "that were found"},
               [](const GraphOf& g) -> Json { return g.graph.channel_count(); }},
    GraphField{{"bw_intra", "number", "", "of a channel within the node, GB/s"},
               [](const GraphOf& g) -> Json { return printed(g.graph.bw_intra, 6); }},
    GraphField{{"bw_inter", "number", "", "of a channel between nodes, GB/s"},
               [](const GraphOf& g) -> Json { return printed(g.graph.bw_inter, 6); }},
    GraphField{{"type_intra", "text", "", "the worst type of a path within the node"},
               [](const GraphOf& g) -> Json { return nccl_path_type_name(g.graph.type_intra); }},
    GraphField{{"type_inter", "text", "", "likewise to a NIC"},
               [](const GraphOf& g) -> Json { return nccl_path_type_name(g.graph.type_inter); }},
    GraphField{{"same_channels", "0 or 1", "", "all channels were asked to be alike"},
               [](const GraphOf& g) -> Json { return g.graph.same_channels ? 1 : 0; }},
    GraphField{{"orders", "list of lists of text", "",
                "a channel's nodes as NCCL names them: NIC, GPUs, NIC"},
               orders_json}};

Json graph_json(const NcclNodeView& view, const NcclGraph& graph) {
  return object_of(GraphOf{view, graph}, kGraphFields);
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

Json children_json(const NcclTreeNode& node) {
  Json out = Json::array();
  for (const int child : node.down) {
    if (child >= 0) out.push(child);
  }
  return out;
}

using TreeField = JsonField<NcclTreeNode>;
constexpr std::array kTreeFields{
    TreeField{{"down", "list of whole numbers", "", "its children's ranks"}, children_json},
    TreeField{{"up", "whole number", "", "its parent's rank; -1: it is a root"},
              [](const NcclTreeNode& n) -> Json { return n.up; }}};

Json trees_json(const NcclConnections& connections) {
  Json out = Json::object();
  for (std::size_t c = 0; c < connections.trees.size(); ++c) {
    Json tree = Json::object();
    for (std::size_t rank = 0; rank < connections.trees[c].size(); ++rank) {
      tree.set(std::to_string(rank), object_of(connections.trees[c][rank], kTreeFields));
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

Json op_names(const Tuning::Excluded& excluded) {
  Json out = Json::array();
  for (const NcclOp op : excluded.ops) out.push(nccl_op_name(op));
  return out;
}

using ExcludedField = JsonField<Tuning::Excluded>;
constexpr std::array kExcludedFields{
    ExcludedField{{"algo", "text", "", "the algorithm"},
                  [](const Tuning::Excluded& e) -> Json { return nccl_algo_name(e.algo); }},
    ExcludedField{{"ops", "list of text", "", "the operations that it may not be used for"},
                  op_names},
    ExcludedField{{"why", "text", "", "the reason"},
                  [](const Tuning::Excluded& e) -> Json { return e.why; }}};

using NextField = JsonField<Tuning::Candidate>;
constexpr std::array kNextFields{
    NextField{{"algo", "text", "", "its algorithm"},
              [](const Tuning::Candidate& c) -> Json { return nccl_algo_upper_name(c.algo); }},
    NextField{{"proto", "text", "", "its protocol"},
              [](const Tuning::Candidate& c) -> Json { return nccl_proto_upper_name(c.proto); }},
    NextField{{"time_us", "number", "", "the time that NCCL expects, us"},
              [](const Tuning::Candidate& c) -> Json { return printed(c.time_us); }}};

/// What is chosen for one size.
struct Chosen {
  NcclOp op;
  Bytes bytes;
  Tuning::Choice choice;
};

using ChoiceField = JsonField<Chosen>;
constexpr std::array kChoiceFields{
    ChoiceField{{"op", "text", "", "the operation, as NCCL names it"},
                [](const Chosen& c) -> Json { return nccl_op_name(c.op); }},
    ChoiceField{{"bytes", "whole number", "",
                 "as NCCL counts them: the gathered total of an all-gather, the whole input of a "
                 "reduce-scatter"},
                [](const Chosen& c) -> Json { return c.bytes.count(); }},
    ChoiceField{{"algo", "text", "", "the algorithm"},
                [](const Chosen& c) -> Json { return nccl_algo_upper_name(c.choice.algo); }},
    ChoiceField{{"proto", "text", "", "the protocol"},
                [](const Chosen& c) -> Json { return nccl_proto_upper_name(c.choice.proto); }},
    ChoiceField{{"channels", "whole number", "", "that carry data"},
                [](const Chosen& c) -> Json { return c.choice.channels; }},
    ChoiceField{{"threads", "whole number", "", "of each channel's block"},
                [](const Chosen& c) -> Json { return c.choice.threads; }},
    ChoiceField{{"time_us", "number", "", "the time that NCCL expects, us"},
                [](const Chosen& c) -> Json { return printed(c.choice.time_us); }},
    ChoiceField{{"next", "map", "unless there is no other", "the second fastest"},
                [](const Chosen& c) {
                  return c.choice.next ? object_of(*c.choice.next, kNextFields) : Json();
                }}};

Json choice_json(const Tuning& tuning, std::span<const Bytes> sizes) {
  Json out = Json::array();
  for (const NcclOp op : kNcclOpList) {
    for (const Bytes bytes : sizes) {
      const auto choice = tuning.choose(op, bytes);
      if (choice) out.push(object_of(Chosen{op, bytes, *choice}, kChoiceFields));
    }
  }
  return out;
}

using BwField = JsonField<NcclSystemBw>;
constexpr std::array kBwFields{
    BwField{{"max_bw", "number", "", "the most that a channel may ask for, GB/s"},
            [](const NcclSystemBw& b) -> Json { return printed(b.max_bw); }},
    BwField{{"total_bw", "number", "", "what a GPU has in all, GB/s"},
            [](const NcclSystemBw& b) -> Json { return printed(b.total_bw); }}};

using ChannelsField = JsonField<NcclChannelCounts>;
constexpr std::array kChannelsFields{
    ChannelsField{{"coll", "whole number", "", "of collectives"},
                  [](const NcclChannelCounts& c) -> Json { return c.coll; }},
    ChannelsField{{"nvls", "whole number", "", "of NVLS"},
                  [](const NcclChannelCounts& c) -> Json { return c.nvls; }},
    ChannelsField{{"p2p", "whole number", "", "of sends and receives"},
                  [](const NcclChannelCounts& c) -> Json { return c.p2p; }},
    ChannelsField{{"p2p_per_peer", "whole number", "", "of these for one peer"},
                  [](const NcclChannelCounts& c) -> Json { return c.p2p_per_peer; }}};

struct Told {
  const NcclDecisions& decisions;
  const Tuning& tuning;
  std::span<const Bytes> sizes;
};

using FileField = JsonField<Told>;
constexpr std::array kFileFields{
    FileField{{"schema", "text", "", "the version of this form: weft.nccl/1"},
              [](const Told&) -> Json { return "weft.nccl/1"; }},
    FileField{{"nccl", "text", "", "the release that decides"},
              [](const Told& t) -> Json { return t.decisions.version.text(); }},
    FileField{{"ranks", "whole number", "", "GPUs of all hosts"},
              [](const Told& t) -> Json { return t.decisions.ranks; }},
    FileField{{"nodes", "whole number", "",
               "as NCCL counts them: a host whose GPUs the network alone joins is several"},
              [](const Told& t) -> Json { return t.decisions.nodes; }},
    FileField{{"system", "map", "", "NCCL's line System"},
              [](const Told& t) { return object_of(t.decisions.views.front().bw, kBwFields); }},
    FileField{{"paths", "map by GPU or NIC of maps by node", "",
               "of rank 0's node: from each GPU and NIC to its GPUs, NVSwitch, CPUs and NICs"},
              [](const Told& t) { return paths_json(t.decisions.views.front()); }},
    FileField{{"other_paths", "list of maps by GPU or NIC of maps by node", "",
               "likewise where a host is several nodes: of the others"},
              [](const Told& t) { return other_paths_json(t.decisions.views); }},
    FileField{{"gdr", "map by line of maps", "",
               "GPUDirect RDMA of each rank as NCCL's lines name it: gpu0-net1-read0 (of receives) "
               "or -read1 (of sends) where it is on, gpu0-net1 where the distance forbids it"},
              [](const Told& t) { return gdr_json(t.decisions); }},
    FileField{{"graphs", "list", "",
               "of rank 0's node: ring, tree, and CollNet chain, CollNet direct and NVLS where "
               "one was found"},
              [](const Told& t) { return graphs_json(t.decisions.views.front()); }},
    FileField{{"rings", "map by channel of lists of whole numbers", "",
               "the ranks of 00, 01, ... in order"},
              [](const Told& t) { return rings_json(t.decisions.connections); }},
    FileField{{"trees", "map by channel of maps by rank", "", "of 0, 1, ... every rank's place"},
              [](const Told& t) { return trees_json(t.decisions.connections); }},
    FileField{{"channels", "map", "", "how many are opened"},
              [](const Told& t) { return object_of(t.decisions.channels, kChannelsFields); }},
    FileField{{"tuning", "map by operation of maps by algorithm of maps by protocol", "",
               "[latency in us, bandwidth in GB/s], as NCCL prints its table; those that are not "
               "to be used are left out"},
              [](const Told& t) { return tuning_json(t.tuning); }},
    FileField{{"excluded", "list", "", "algorithms of which no protocol may be used"},
              [](const Told& t) { return objects_of(t.tuning.excluded(), kExcludedFields); }},
    FileField{{"choice", "list", "",
               "what NCCL takes, by operation and size, 1 KiB to 1 GiB; none where nothing is "
               "allowed"},
              [](const Told& t) { return choice_json(t.tuning, t.sizes); }},
    FileField{{"notes", "list of text", "", "what was left out"},
              [](const Told& t) { return texts(t.decisions.notes); }}};

}  // namespace

Json nccl_json(const NcclDecisions& decisions, const Tuning& tuning, std::span<const Bytes> sizes) {
  return object_of(Told{decisions, tuning, sizes}, kFileFields);
}

std::vector<FormatSection> nccl_format() {
  return {{"", "The file.", keys_of(kFileFields)},
          {"system", "What the search for channels starts from.", keys_of(kBwFields)},
          {"paths.FROM.TO, other_paths[].FROM.TO",
           "A path. Nodes are as NCCL names them: GPU/0-60.", keys_of(kPathFields)},
          {"gdr.LINE", "A GPU and a NIC.", keys_of(kGdrFields)},
          {"graphs[]", "What the search for channels found.", keys_of(kGraphFields)},
          {"trees.CHANNEL.RANK", "A rank's place in a tree.", keys_of(kTreeFields)},
          {"channels", "How many channels there are.", keys_of(kChannelsFields)},
          {"excluded[]", "An algorithm.", keys_of(kExcludedFields)},
          {"choice[]", "One operation of one size.", keys_of(kChoiceFields)},
          {"choice[].next", "What else NCCL might take.", keys_of(kNextFields)}};
}

}  // namespace weft
