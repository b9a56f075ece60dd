#include "models/wire/adaptive_routes.hpp"

#include <limits>
#include <stdexcept>

namespace weft {
namespace {

constexpr std::uint32_t kUnreached = std::numeric_limits<std::uint32_t>::max();

}  // namespace

std::uint32_t AdaptiveRoutes::leaf_of(PacketNodeId node) {
  const auto [at, is_new] =
      leaf_numbers_.try_emplace(node, static_cast<std::uint32_t>(leaves_.size()));
  if (is_new) leaves_.push_back(node);
  return at->second;
}

std::uint32_t AdaptiveRoutes::add_destination(PacketLinkId link) {
  destinations_.push_back({link, leaf_of(network_.sender(link))});
  return static_cast<std::uint32_t>(destinations_.size() - 1);
}

std::uint32_t AdaptiveRoutes::choice_of(std::vector<PacketLinkId> links) {
  const auto number = static_cast<std::uint32_t>(ranges_.size());
  const auto [at, is_new] = known_.try_emplace(links, number);
  if (is_new) {
    const auto first = static_cast<std::uint32_t>(choices_.size());
    choices_.insert(choices_.end(), links.begin(), links.end());
    ranges_.emplace_back(first, static_cast<std::uint32_t>(choices_.size()));
  }
  return at->second;
}

void AdaptiveRoutes::build() {
  std::size_t nodes = 0;
  for (const PacketNodeId leaf : leaves_) nodes = std::max(nodes, leaf.index() + 1);
  for (const PacketLinkId link : links_) {
    nodes = std::max(nodes, network_.sender(link).index() + 1);
  }
  std::vector<std::vector<PacketLinkId>> out(nodes);
  std::vector<std::vector<std::size_t>> neighbours(nodes);  // who reaches the node by one link
  for (const PacketLinkId link : links_) {
    out[network_.sender(link).index()].push_back(link);
    neighbours[network_.receiver(link).index()].push_back(network_.sender(link).index());
  }
  table_.assign(nodes * leaves_.size(), kUnreached);
  for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    std::vector<std::uint32_t> distance(nodes, kUnreached);
    std::vector<std::size_t> reached{leaves_[leaf].index()};
    distance[reached.front()] = 0;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const std::size_t here = reached[i];
      if (i > 0) {
        std::vector<PacketLinkId> nearer;
        for (const PacketLinkId link : out[here]) {
          if (distance[network_.receiver(link).index()] == distance[here] - 1) {
            nearer.push_back(link);
          }
        }
        table_[here * leaves_.size() + leaf] = choice_of(std::move(nearer));
      }
      for (const std::size_t other : neighbours[here]) {
        if (distance[other] != kUnreached) continue;
        distance[other] = distance[here] + 1;
        reached.push_back(other);
      }
    }
  }
  known_.clear();
}

PacketLinkId AdaptiveRoutes::next(Packet& packet, PacketLinkId came_by) {
  const Destination& destination = destinations_[packet.route];
  const PacketNodeId here = network_.receiver(came_by);
  if (here == leaves_[destination.leaf]) return destination.link;
  const std::uint32_t range = table_[here.index() * leaves_.size() + destination.leaf];
  if (range == kUnreached) throw std::logic_error("AdaptiveRoutes: no way to a destination");
  const auto [first, end] = ranges_[range];
  const std::uint32_t count = end - first;
  std::uint32_t at = turn_++ % count;
  PacketLinkId best = choices_[first + at];
  Bytes least = network_.queued(best);
  for (std::uint32_t i = 0; i < count && !network_.is_idle(best); ++i) {
    const PacketLinkId link = choices_[first + at];
    at = at + 1 == count ? 0 : at + 1;
    const Bytes queued = network_.queued(link);
    if (queued < least || network_.is_idle(link)) {
      least = queued;
      best = link;
    }
  }
  return best;
}

}  // namespace weft
