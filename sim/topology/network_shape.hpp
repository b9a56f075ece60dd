#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/topology/fabric.hpp"

namespace weft {

/// A link of a route between switches, and whether it is crossed from its first end to its second.
struct NetworkStep {
  std::size_t link;
  bool forward;
};
using NetworkSteps = std::vector<NetworkStep>;

/// The switches that a link joins: the lower one first, where one is.
struct SwitchEnds {
  std::size_t a;
  std::size_t b;
  bool local{false};  ///< of one group of a tier
};

/// Which leaf each NIC is cabled to. Nodes stand in blocks that share their leaves; the cabled NICs
/// of a node go to the planes in turn, and within a plane to the block's leaves in turn.
struct Cabling {
  std::uint32_t planes{1};
  std::uint32_t leaves_of_block{1};  ///< in each plane
  std::uint32_t nodes_of_block{1};
  std::uint32_t blocks{1};
  std::uint32_t leaves_of_plane{1};
  bool round_robin{false};

  std::size_t leaf_of(std::uint32_t node, std::size_t nic) const {
    const std::size_t block = round_robin ? node % blocks : node / nodes_of_block;
    return nic % planes * leaves_of_plane + block * leaves_of_block +
           nic / planes % leaves_of_block;
  }
};

/// The switches of a network and the links between them, by rule: nothing is stored for a switch, a
/// link or a pair, so memory and construction are O(1) whatever the size.
///
/// Ids are the network's own: switches tier by tier from the leaves up, then group by group. The
/// preconditions of all queries: numbers are in range.
class NetworkShape {
 public:
  virtual ~NetworkShape() = default;
  NetworkShape(const NetworkShape&) = delete;
  NetworkShape& operator=(const NetworkShape&) = delete;

  const std::vector<NetworkTier>& tiers() const { return tiers_; }
  std::size_t switch_count() const { return switch_base_.back(); }
  std::size_t tier_of_switch(std::size_t index) const;
  /// Its number among the switches of its tier.
  std::size_t number_in_tier(std::size_t index) const;
  /// The leaf that the i-th cabled NIC of a node is on.
  std::size_t leaf_of(std::uint32_t node, std::size_t nic) const {
    return cabling_.leaf_of(node, nic);
  }

  virtual std::size_t link_count() const = 0;
  virtual SwitchEnds ends(std::size_t link) const = 0;
  /// The links that fill alike where the load is spread: the first, and how many carry anything;
  /// from the first on, without those that are down.
  virtual Trunk trunk(std::size_t link) const = 0;
  /// See Fabric::wire_ways and Fabric::wire_route, between leaves.
  virtual std::uint64_t ways(std::size_t from, std::size_t to) const = 0;
  virtual std::optional<NetworkSteps> route(std::size_t from, std::size_t to,
                                            std::uint64_t pick) const = 0;
  /// Whether nothing passes it: no route takes it.
  virtual bool is_down(std::size_t /*link*/) const { return false; }
  virtual bool has_equal_routes() const = 0;
  virtual bool has_loops() const = 0;

 protected:
  NetworkShape() = default;
  /// To be called once, by the constructor of what derives from it.
  void set(std::vector<NetworkTier> tiers, const Cabling& cabling);
  std::size_t first_of_tier(std::size_t tier) const { return switch_base_[tier]; }

 private:
  std::vector<NetworkTier> tiers_;
  std::vector<std::size_t> switch_base_{0};  // by tier, and the end
  Cabling cabling_;
};

/// The network that a spec describes, for so many nodes and cabled NICs of a node. Throws
/// InputError at the network's place: parts that do not belong to its kind, ports that do not add
/// up, more nodes than fit (and how many do). Precondition: there is a network.
std::unique_ptr<NetworkShape> make_network(const NetworkSpec& spec, std::uint32_t nodes,
                                           std::uint32_t nics_per_node);

/// Forgets what this kind of network cannot be told, such as the cores of a torus. Not links that
/// are down: make_network refuses those, so that no network with failures is taken as healthy.
void forget_what_does_not_belong(NetworkSpec& spec);

/// Whether a network of this kind has switches of that tier: "leaf", "spine", "core".
bool has_tier(const NetworkSpec& spec, std::string_view tier);

/// What the builders of shapes share: refusals at the network's place, and how NICs are cabled.
class NetworkSizing {
 public:
  NetworkSizing(const NetworkSpec& spec, std::uint32_t nodes, std::uint32_t nics)
      : spec_{spec}, nodes_{nodes}, nics_{nics} {}

 protected:
  [[noreturn]] void refuse(const std::string& why) const;
  std::string kind() const { return std::string(network_kind_name(spec_.kind)); }
  /// Sets how many nodes share how many leaves, of `down` ports for NICs each.
  void cable(std::uint32_t down);
  void require_ports(const std::string& tier, const NetworkTier& said) const;
  void require_fit(std::uint64_t most_leaves, const std::string& why) const;

  const NetworkSpec& spec_;
  std::uint32_t nodes_;
  std::uint32_t nics_;
  Cabling cabling_;
};

/// "1 link", "3 links".
std::string plural(std::uint64_t count, const std::string& thing);

}  // namespace weft
