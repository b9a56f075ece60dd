#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "sim/base/params.hpp"

namespace weft {

/// Nodes that are not like the others (of which something is set by itself) and that stay together
/// in a sample, as delays of two that exchange messages add up; in the order of their numbers. Most
/// are one node alone.
using UnlikeGroup = std::vector<std::uint32_t>;

/// Whose numbers in the cluster nodes of a sample have, by their places there.
using UnlikePlaces = std::map<std::uint32_t, std::uint32_t>;

/// With whom a node exchanges messages.
using Neighbours = std::function<std::vector<std::uint32_t>(std::uint32_t)>;

/// Of so many nodes, one after another and the first after the last.
Neighbours around_a_ring(std::uint32_t nodes);
/// The same but for the last and the first.
Neighbours along_a_chain(std::uint32_t nodes);
/// In either of NCCL's two trees over so many nodes.
Neighbours in_trees(std::uint32_t nodes);
/// In PAT: 1, 2, 4, ... nodes on and back.
Neighbours in_pat(std::uint32_t nodes);

/// Whether of one of the nodes a time or a length is set by itself. What else may be is taken for a
/// rate: the lower one of two counts, they do not add up.
bool have_delays(const Params& params);

/// Nodes that are not like the others, in the order of the first of each group: neighbours are
/// together if of one of them a time or a length is set.
std::vector<UnlikeGroup> unlike_groups(const Params& params,
                                       const std::vector<std::uint32_t>& nodes,
                                       const Neighbours& neighbours);

/// The same group in the order of a ring over so many nodes: it begins with the one that follows
/// none of the others.
UnlikeGroup in_ring_order(UnlikeGroup group, std::uint32_t nodes);

/// Groups of whose nodes the same is set by itself, to the same values, in like places.
struct UnlikeKind {
  UnlikeGroup first;     ///< of them
  std::uint32_t groups;  ///< how many they are
  friend bool operator==(const UnlikeKind&, const UnlikeKind&) = default;
};
/// All of them, in the order of their first. `shape`: of a group, what makes its place.
std::vector<UnlikeKind> unlike_kinds(
    const Params& params, const std::vector<UnlikeGroup>& groups,
    const std::function<std::vector<std::uint32_t>(const UnlikeGroup&)>& shape);

/// Where nodes of a cluster do alike, one after another or by turns: places among so many of the
/// same turns. None if these are too few.
std::optional<UnlikePlaces> places_around(std::uint32_t nodes, const UnlikeGroup& group,
                                          std::uint32_t cluster);

/// Those of fewer nodes that are in a chain (broadcast, reduce) what a group is in the cluster's:
/// at either end, or, at the same turn, between. None if these are too few.
std::optional<UnlikePlaces> places_in_chain(std::uint32_t nodes, const UnlikeGroup& group,
                                            std::uint32_t cluster);

/// What nodes are in NCCL's two trees over so many: each a root or not, with how many children, and
/// whose child of those before it, or whose parent. Equal shapes have equal numbers.
std::vector<std::uint32_t> shape_in_trees(std::uint32_t nodes, const UnlikeGroup& group);

/// The first of fewer nodes that have the same shape in NCCL's two trees as a group in the
/// cluster's. Over an odd number of nodes some have one child, as none has over an even one.
std::optional<UnlikePlaces> places_in_trees(std::uint32_t nodes, const UnlikeGroup& group,
                                            std::uint32_t cluster);

}  // namespace weft
