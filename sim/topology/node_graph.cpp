#include "sim/topology/node_graph.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/filtered_graph.hpp>

namespace weft {
namespace {

struct EdgeData {
  std::size_t link{0};
};
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS,
                                    boost::no_property, EdgeData>;
using Edge = boost::graph_traits<Graph>::edge_descriptor;

/// Boost.Graph wants predicates to be default-constructible.
using EdgeFilter = std::function<bool(const Edge&)>;

bool joins_gpus(LinkKind kind) { return kind == LinkKind::kNvlink || kind == LinkKind::kXgmi; }

/// Notes for each device the edge by which the search reached it first.
struct RecordEdge : boost::default_bfs_visitor {
  explicit RecordEdge(std::vector<std::optional<Edge>>& reached_by) : reached{&reached_by} {}

  template <class AnyGraph>
  void tree_edge(const Edge& edge, const AnyGraph& graph) {
    (*reached)[boost::target(edge, graph)] = edge;
  }

  std::vector<std::optional<Edge>>* reached;
};

}  // namespace

struct NodeGraph::Impl {
  std::vector<DeviceKind> devices;
  std::vector<Link> links;
  Graph graph;

  std::optional<Route> search(std::size_t from, std::size_t to, const EdgeFilter& usable) const;
};

NodeGraph::NodeGraph(std::span<const DeviceKind> devices, std::span<const Link> links)
    : impl_{std::make_unique<Impl>()} {
  impl_->devices.assign(devices.begin(), devices.end());
  impl_->links.assign(links.begin(), links.end());
  impl_->graph = Graph(devices.size());
  // C2C first: between a GPU and its CPU it is as short as PCIe, and the route the hardware takes.
  for (const bool c2c : {true, false}) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      if ((links[i].kind == LinkKind::kC2c) != c2c) continue;
      boost::add_edge(links[i].a.index(), links[i].b.index(), EdgeData{i}, impl_->graph);
    }
  }
}

NodeGraph::~NodeGraph() = default;
NodeGraph::NodeGraph(NodeGraph&&) noexcept = default;
NodeGraph& NodeGraph::operator=(NodeGraph&&) noexcept = default;

std::optional<Route> NodeGraph::Impl::search(std::size_t from, std::size_t to,
                                             const EdgeFilter& usable) const {
  const boost::filtered_graph<Graph, EdgeFilter> usable_graph(graph, usable);
  std::vector<std::optional<Edge>> reached_by(devices.size());
  boost::breadth_first_search(usable_graph, from, boost::visitor(RecordEdge{reached_by}));

  Route route;
  for (std::size_t at = to; at != from;) {
    const std::optional<Edge>& edge = reached_by[at];
    if (!edge) return std::nullopt;
    const std::size_t link = graph[*edge].link;
    route.push_back(Hop{LinkId{link}, links[link].b.index() == at});
    at = boost::source(*edge, graph);
  }
  std::reverse(route.begin(), route.end());
  return route;
}

std::optional<Route> NodeGraph::pcie_route(std::size_t from, std::size_t to) const {
  return impl_->search(from, to, [this, from](const Edge& edge) {
    const LinkKind kind = impl_->links[impl_->graph[edge].link].kind;
    if (joins_gpus(kind) || kind == LinkKind::kWire) return false;
    const std::size_t through = boost::source(edge, impl_->graph);
    const DeviceKind forwarder = impl_->devices[through];
    return through == from || forwarder == DeviceKind::kCpu || forwarder == DeviceKind::kSwitch;
  });
}

std::optional<Route> NodeGraph::nvlink_route(std::size_t from, std::size_t to) const {
  return impl_->search(from, to, [this, from](const Edge& edge) {
    if (!joins_gpus(impl_->links[impl_->graph[edge].link].kind)) return false;
    const std::size_t through = boost::source(edge, impl_->graph);
    return through == from || impl_->devices[through] == DeviceKind::kNvSwitch;
  });
}

std::uint32_t NodeGraph::nvlinks_between(std::size_t a, std::size_t b) const {
  const auto neighbours = [this](std::size_t device) {
    std::map<std::size_t, std::uint32_t> links_to;
    for (const Edge& edge : boost::make_iterator_range(boost::out_edges(device, impl_->graph))) {
      const Link& link = impl_->links[impl_->graph[edge].link];
      if (link.kind == LinkKind::kNvlink) {
        links_to[boost::target(edge, impl_->graph)] += link.count;
      }
    }
    return links_to;
  };
  const auto from_a = neighbours(a);
  const auto from_b = neighbours(b);
  const auto direct = from_a.find(b);
  std::uint32_t sum = direct == from_a.end() ? 0 : direct->second;
  for (const auto& [device, count] : from_a) {
    const auto same = from_b.find(device);
    if (same == from_b.end() || impl_->devices[device] != DeviceKind::kNvSwitch) continue;
    sum += std::min(count, same->second);
  }
  return sum;
}

bool NodeGraph::xgmi_joins(std::size_t a, std::size_t b) const {
  const auto edges = boost::make_iterator_range(boost::out_edges(a, impl_->graph));
  return std::any_of(edges.begin(), edges.end(), [&](const Edge& edge) {
    return boost::target(edge, impl_->graph) == b &&
           impl_->links[impl_->graph[edge].link].kind == LinkKind::kXgmi;
  });
}

}  // namespace weft
