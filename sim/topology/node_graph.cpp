#include "sim/topology/node_graph.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace weft {
namespace {

constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

bool joins_gpus(LinkKind kind) { return kind == LinkKind::kNvlink || kind == LinkKind::kXgmi; }

/// A link as one of its ends sees it.
struct Edge {
  std::size_t link;
  std::size_t to;
};

/// The links of a way, and who forwards from one to another.
struct Layer {
  std::vector<std::vector<Edge>> edges;   ///< of each device, in the order of preference
  std::vector<std::vector<Edge>> onward;  ///< those of them that lead to a forwarder
  std::vector<std::size_t> forwarder;     ///< by device: its number among those, or kNobody
  std::size_t forwarders{0};

  /// The preferred one, looked for where there are fewer.
  std::optional<std::size_t> link_between(std::size_t a, std::size_t b) const {
    if (edges[a].size() > edges[b].size()) std::swap(a, b);
    for (const Edge& edge : edges[a]) {
      if (edge.to == b) return edge.link;
    }
    return std::nullopt;
  }
};

}  // namespace

struct NodeGraph::Impl {
  std::vector<Link> links;
  Layer pcie;
  Layer nvlink;

  template <class Carries, class Forwards>
  Layer layer(std::span<const DeviceKind> devices, Carries carries, Forwards forwards) const;
  Hop hop(const Edge& edge) const {
    return {LinkId{edge.link}, links[edge.link].b.index() == edge.to};
  }
  std::optional<Route> search(const Layer& layer, std::size_t from, std::size_t to) const;
};

template <class Carries, class Forwards>
Layer NodeGraph::Impl::layer(std::span<const DeviceKind> devices, Carries carries,
                             Forwards forwards) const {
  Layer out;
  out.edges.resize(devices.size());
  out.onward.resize(devices.size());
  for (const DeviceKind kind : devices) {
    out.forwarder.push_back(forwards(kind) ? out.forwarders++ : kNobody);
  }
  const auto add = [&out](std::size_t link, std::size_t from, std::size_t to) {
    out.edges[from].push_back({link, to});
    if (out.forwarder[to] != kNobody) out.onward[from].push_back({link, to});
  };
  // C2C first: between a GPU and its CPU it is as short as PCIe, and the way the hardware takes.
  for (const bool c2c : {true, false}) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      const Link& link = links[i];
      if ((link.kind == LinkKind::kC2c) != c2c || !carries(link.kind)) continue;
      add(i, link.a.index(), link.b.index());
      add(i, link.b.index(), link.a.index());
    }
  }
  return out;
}

NodeGraph::NodeGraph(std::span<const DeviceKind> devices, std::span<const Link> links)
    : impl_{std::make_unique<Impl>()} {
  impl_->links.assign(links.begin(), links.end());
  impl_->pcie = impl_->layer(
      devices, [](LinkKind kind) { return !joins_gpus(kind) && kind != LinkKind::kWire; },
      [](DeviceKind kind) { return kind == DeviceKind::kCpu || kind == DeviceKind::kSwitch; });
  impl_->nvlink = impl_->layer(devices, joins_gpus,
                               [](DeviceKind kind) { return kind == DeviceKind::kNvSwitch; });
}

NodeGraph::~NodeGraph() = default;
NodeGraph::NodeGraph(NodeGraph&&) noexcept = default;
NodeGraph& NodeGraph::operator=(NodeGraph&&) noexcept = default;

/// Breadth first over the forwarders; `to` is found from its own side, as it may be one of many
/// that hang on a forwarder.
std::optional<Route> NodeGraph::Impl::search(const Layer& layer, std::size_t from,
                                             std::size_t to) const {
  if (from == to) return Route{};
  struct Reached {
    std::size_t device;
    std::size_t before;  // place in `reached`
    std::size_t link;    // from there
  };
  std::vector<Reached> reached{{from, kNobody, kNobody}};
  std::vector<bool> is_reached(layer.forwarders);
  if (layer.forwarder[from] != kNobody) is_reached[layer.forwarder[from]] = true;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::size_t at = reached[i].device;
    if (const std::optional<std::size_t> last = layer.link_between(at, to)) {
      Route route{hop({*last, to})};
      for (std::size_t r = i; reached[r].before != kNobody; r = reached[r].before) {
        route.push_back(hop({reached[r].link, reached[r].device}));
      }
      std::reverse(route.begin(), route.end());
      return route;
    }
    for (const Edge& edge : layer.onward[at]) {
      if (is_reached[layer.forwarder[edge.to]]) continue;
      is_reached[layer.forwarder[edge.to]] = true;
      reached.push_back({edge.to, i, edge.link});
    }
  }
  return std::nullopt;
}

std::optional<Route> NodeGraph::pcie_route(std::size_t from, std::size_t to) const {
  return impl_->search(impl_->pcie, from, to);
}

std::optional<Route> NodeGraph::nvlink_route(std::size_t from, std::size_t to) const {
  return impl_->search(impl_->nvlink, from, to);
}

std::uint32_t NodeGraph::nvlinks_between(std::size_t a, std::size_t b) const {
  const auto neighbours = [this](std::size_t device) {
    std::map<std::size_t, std::uint32_t> links_to;
    for (const Edge& edge : impl_->nvlink.edges[device]) {
      const Link& link = impl_->links[edge.link];
      if (link.kind == LinkKind::kNvlink) links_to[edge.to] += link.count;
    }
    return links_to;
  };
  const auto from_a = neighbours(a);
  const auto from_b = neighbours(b);
  const auto direct = from_a.find(b);
  std::uint32_t sum = direct == from_a.end() ? 0 : direct->second;
  for (const auto& [device, count] : from_a) {
    const auto same = from_b.find(device);
    if (same == from_b.end() || impl_->nvlink.forwarder[device] == kNobody) continue;
    sum += std::min(count, same->second);
  }
  return sum;
}

bool NodeGraph::xgmi_joins(std::size_t a, std::size_t b) const {
  const std::vector<Edge>& edges = impl_->nvlink.edges[a];
  return std::any_of(edges.begin(), edges.end(), [&](const Edge& edge) {
    return edge.to == b && impl_->links[edge.link].kind == LinkKind::kXgmi;
  });
}

}  // namespace weft
