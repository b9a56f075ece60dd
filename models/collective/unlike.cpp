#include "models/collective/unlike.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "models/nccl/decide/connect.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// What is set by itself: the node, and the key without it.
std::pair<std::uint32_t, std::string> node_and_key(std::string_view key) {
  const std::size_t at = key.find('@');
  const std::size_t end = key.find('.', at);
  const std::string number(key.substr(at + 1, end - at - 1));
  return {static_cast<std::uint32_t>(std::stoul(number)),
          std::string(key.substr(0, at)) + std::string(key.substr(end))};
}

/// Whether a parameter of that name, of whatever device, is a time or a length.
bool is_delay(const ParamCatalog& catalog, std::string_view key) {
  const std::string_view name = key.substr(key.find('.'));
  return std::ranges::any_of(catalog.specs(), [&](const ParamSpec& spec) {
    return spec.key.ends_with(name) &&
           (spec.unit == Unit::kNanoseconds || spec.unit == Unit::kMetres);
  });
}

/// Nodes of which one is set by itself.
std::set<std::uint32_t> late_nodes(const Params& params) {
  std::set<std::uint32_t> out;
  for (const auto& [key, value] : params.of_single_nodes()) {
    const auto [node, of_all] = node_and_key(key);
    if (is_delay(params.catalog(), of_all)) out.insert(node);
  }
  return out;
}

/// Whether a root, and how many children, in either tree.
std::uint32_t role_in_trees(const std::array<NcclNodeTree, 2>& trees) {
  std::uint32_t out = 0;
  for (const NcclNodeTree& tree : trees) {
    const std::uint32_t children = (tree.down0 < 0 ? 0 : 1) + (tree.down1 < 0 ? 0 : 1);
    out = 6 * out + 2 * children + (tree.up < 0 ? 1 : 0);
  }
  return out;
}

std::array<NcclNodeTree, 2> trees_of(std::uint32_t nodes, std::uint32_t node) {
  return nccl_node_trees(static_cast<int>(nodes), static_cast<int>(node));
}

/// What the last one of some nodes is in the trees: its role, then what it is to each before it.
std::vector<std::uint32_t> last_in_trees(std::uint32_t nodes, const UnlikeGroup& group) {
  const std::array<NcclNodeTree, 2> trees = trees_of(nodes, group.back());
  std::vector<std::uint32_t> out{role_in_trees(trees)};
  for (std::size_t i = 0; i + 1 < group.size(); ++i) {
    const auto other = static_cast<int>(group[i]);
    std::uint32_t to_it = 0;
    for (const NcclNodeTree& tree : trees) {
      const bool is_parent = tree.down0 == other || tree.down1 == other;
      to_it = 3 * to_it + (tree.up == other ? 1 : is_parent ? 2 : 0);
    }
    out.push_back(to_it);
  }
  return out;
}

/// Adds to `places` nodes that have the shape of what is left of `group`.
bool find_in_trees(std::uint32_t nodes, const UnlikeGroup& group, std::uint32_t cluster,
                   UnlikeGroup& places) {
  const std::size_t n = places.size();
  if (n == group.size()) return true;
  const std::vector<std::uint32_t> wanted =
      last_in_trees(cluster, {group.begin(), group.begin() + static_cast<std::ptrdiff_t>(n) + 1});
  for (std::uint32_t place = 0; place < nodes; ++place) {
    if (std::ranges::find(places, place) != places.end()) continue;
    places.push_back(place);
    if (last_in_trees(nodes, places) == wanted && find_in_trees(nodes, group, cluster, places)) {
      return true;
    }
    places.pop_back();
  }
  return false;
}

UnlikePlaces placed(const UnlikeGroup& places, const UnlikeGroup& group) {
  UnlikePlaces out;
  for (std::size_t i = 0; i < group.size(); ++i) out.emplace(places[i], group[i]);
  return out;
}

}  // namespace

Neighbours around_a_ring(std::uint32_t nodes) {
  return [nodes](std::uint32_t node) {
    return std::vector<std::uint32_t>{(node + nodes - 1) % nodes, (node + 1) % nodes};
  };
}

Neighbours along_a_chain(std::uint32_t nodes) {
  return [nodes](std::uint32_t node) {
    std::vector<std::uint32_t> out;
    if (node > 0) out.push_back(node - 1);
    if (node + 1 < nodes) out.push_back(node + 1);
    return out;
  };
}

Neighbours in_trees(std::uint32_t nodes) {
  return [nodes](std::uint32_t node) {
    std::vector<std::uint32_t> out;
    for (const NcclNodeTree& tree : trees_of(nodes, node)) {
      for (const int other : {tree.up, tree.down0, tree.down1}) {
        if (other >= 0) out.push_back(static_cast<std::uint32_t>(other));
      }
    }
    return out;
  };
}

Neighbours in_pat(std::uint32_t nodes) {
  return [nodes](std::uint32_t node) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t step = 1; step < nodes; step *= 2) {
      out.push_back((node + step) % nodes);
      out.push_back((node + nodes - step) % nodes);
    }
    return out;
  };
}

bool have_delays(const Params& params) { return !late_nodes(params).empty(); }

std::vector<UnlikeGroup> unlike_groups(const Params& params,
                                       const std::vector<std::uint32_t>& nodes,
                                       const Neighbours& neighbours) {
  std::vector<UnlikeGroup> out;
  const std::set<std::uint32_t> late = late_nodes(params);
  std::set<std::uint32_t> left(nodes.begin(), nodes.end());
  for (const std::uint32_t node : nodes) {
    if (left.erase(node) == 0) continue;
    UnlikeGroup group{node};
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (const std::uint32_t other : neighbours(group[i])) {
        if (!late.contains(group[i]) && !late.contains(other)) continue;
        if (left.erase(other) > 0) group.push_back(other);
      }
    }
    std::ranges::sort(group);
    out.push_back(std::move(group));
  }
  return out;
}

UnlikeGroup in_ring_order(UnlikeGroup group, std::uint32_t nodes) {
  const auto follows_another = [&](std::uint32_t node) {
    return std::ranges::find(group, (node + nodes - 1) % nodes) != group.end();
  };
  const auto first = std::ranges::find_if_not(group, follows_another);
  if (first != group.end()) std::ranges::rotate(group, first);  // else they are all around
  return group;
}

std::vector<UnlikeKind> unlike_kinds(
    const Params& params, const std::vector<UnlikeGroup>& groups,
    const std::function<std::vector<std::uint32_t>(const UnlikeGroup&)>& shape) {
  using Settings = std::vector<std::pair<std::string, double>>;
  std::map<std::uint32_t, Settings> of_nodes;
  for (const auto& [key, value] : params.of_single_nodes()) {
    auto [node, of_all] = node_and_key(key);
    of_nodes[node].emplace_back(std::move(of_all), value.number);
  }
  std::map<std::pair<std::vector<std::uint32_t>, std::vector<Settings>>, std::size_t> met;
  std::vector<UnlikeKind> out;
  for (const UnlikeGroup& group : groups) {
    std::vector<Settings> set;
    for (const std::uint32_t node : group) set.push_back(of_nodes[node]);
    const auto [at, is_new] = met.try_emplace({shape(group), std::move(set)}, out.size());
    if (is_new) out.push_back({group, 0});
    ++out[at->second].groups;
  }
  return out;
}

std::optional<UnlikePlaces> places_around(std::uint32_t nodes, const UnlikeGroup& group,
                                          std::uint32_t cluster) {
  if (group.empty()) return UnlikePlaces{};
  if (2 * group.size() > nodes) return {};
  const UnlikeGroup in_order = in_ring_order(group, cluster);
  const bool passes_the_end = in_order.front() > in_order.back();
  if (passes_the_end && cluster % 2 == 1) return {};  // and turns with it
  UnlikePlaces out;
  for (std::uint32_t i = 0; i < in_order.size(); ++i) {
    out.emplace((in_order.front() + i) % nodes, in_order[i]);
  }
  return out;
}

std::optional<UnlikePlaces> places_in_chain(std::uint32_t nodes, const UnlikeGroup& group,
                                            std::uint32_t cluster) {
  if (group.empty()) return UnlikePlaces{};
  const auto size = static_cast<std::uint32_t>(group.size());
  if (size + 3 > nodes) return {};
  const std::uint32_t first = group.front();
  std::uint32_t from = first;  // of the first two
  if (group.back() == cluster - 1) {
    from = nodes - size;
  } else if (first >= 2) {
    from = (nodes - size + 1) / 2;
    if (from % 2 != first % 2) from = from > 2 ? from - 1 : from + 1;
    if (from + size >= nodes) return {};
  }
  UnlikePlaces out;
  for (std::uint32_t i = 0; i < size; ++i) out.emplace(from + i, first + i);
  return out;
}

std::vector<std::uint32_t> shape_in_trees(std::uint32_t nodes, const UnlikeGroup& group) {
  std::vector<std::uint32_t> out;
  UnlikeGroup so_far;
  for (const std::uint32_t node : group) {
    so_far.push_back(node);
    const std::vector<std::uint32_t> last = last_in_trees(nodes, so_far);
    out.insert(out.end(), last.begin(), last.end());
  }
  return out;
}

std::optional<UnlikePlaces> places_in_trees(std::uint32_t nodes, const UnlikeGroup& group,
                                            std::uint32_t cluster) {
  if (nodes == cluster) return placed(group, group);
  UnlikeGroup places;
  if (!find_in_trees(nodes, group, cluster, places)) return {};
  return placed(places, group);
}

}  // namespace weft
