#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/collective/sample_network.hpp"
#include "models/nccl/schedule.hpp"
#include "sim/base/stop.hpp"

namespace weft {

/// What an operation takes of a network: the sum, over all it sends, of what crosses each link, as
/// if all of it were under way at once.
class NetworkUse {
 public:
  /// The machine must outlive it.
  explicit NetworkUse(const Machine& machine)
      : machine_{&machine}, amount_(2 * machine.fabric().link_count()) {}

  /// So much is sent from NIC to NIC, over all routes that it is spread over, or those that a hash
  /// draws for the connection. False: there is none.
  bool add(DeviceId from, DeviceId to, double amount, std::uint32_t connection) {
    send(from, amount);
    return cross(from, to, amount, connection);
  }
  /// So much leaves a NIC.
  void send(DeviceId nic, double amount);
  /// And so much crosses what lies between the leaves of two NICs. False: they have no route.
  bool cross(DeviceId from, DeviceId to, double amount, std::uint32_t connection);
  /// Likewise, of `amount` in so many equal connections, each on one route that a hash draws: what
  /// links carry on the mean of all draws, and how much that varies. Not beside cross().
  bool cross_on_average(DeviceId from, DeviceId to, double amount, double connections);
  /// Whether its limit is the mean of what draws come to, and not all come to the same.
  bool is_mean_of_draws() const;

  struct Limit {
    Cause cause;
    double of_node_gb_per_s;  ///< that it lets pass, of what a node sends on average
    double of_each_gb_per_s;  ///< likewise, of what is sent in amounts of 1
    /// What of a node's passes the links between switches on average, of what crosses them.
    double on_average_gb_per_s;
  };
  /// The link between switches that takes longest, of `nodes` that send; nullopt where the links of
  /// NICs take as long or longer. On average: as long as the fullest of so many links takes, each
  /// of which carries a sum of many draws (a normal distribution).
  std::optional<Limit> limit(std::uint32_t nodes) const;
  /// What crosses the links between switches, of one server (Machine) at most.
  double most_between_switches() const;

 private:
  /// By how many standard deviations the fullest link is above its mean.
  double above_mean() const;

  const Machine* machine_;
  std::vector<double> amount_;  // by direction of a link; of NICs' links only what they send
  /// Of the first link of a trunk, which stands for all of them.
  struct Drawn {
    double variance{0};    ///< of its amount, over draws
    std::size_t links{0};  ///< of the trunk
  };
  std::vector<Drawn> drawn_;  // by direction of a link; empty: nothing is on the mean of draws
  double sent_{0};
};

/// From the node at a place along a ring to the next.
struct RingHop {
  DeviceId from;
  DeviceId to;
};
RingHop ring_hop(const Fabric& fabric, const Ring& ring, std::size_t place);

/// Of the rings' hops between nodes that the operation uses: a chain ends where it began; nullopt
/// where one has no route.
std::optional<NetworkUse> use_of_rings(const Machine& machine, const Schedule& schedule, Op op,
                                       std::uint32_t channels);
/// Of the trees of the channels that `choice` uses, up and down.
std::optional<NetworkUse> use_of_trees(const Machine& machine, const Schedule& schedule,
                                       const Choice& choice);
/// What goes from which NIC of a node to which of another, [from][to] by their places, where each
/// GPU sends as much as one to each of the other node's.
using P2pShares = std::vector<std::vector<double>>;
/// Precondition: GPUs have NICs.
P2pShares p2p_shares(const Schedule& schedule);
/// Of an all-to-all, leaf by leaf; nullopt where two have no route, or with more than kMostLeaves
/// or kMostRoutes. Where each connection's way is drawn, rank by rank, with the connections of as
/// many channels between two ranks; of more than kMostDrawn leaf by leaf, on average over draws,
/// none where uplinks have failed.
/// Precondition: GPUs have NICs. Throws Stopped soon after `stop` asks for it. `tell` hears
/// beforehand how long counting the routes between leaves takes, if that is kLongRun or more.
std::optional<NetworkUse> use_of_all_to_all(
    const Machine& machine, const Schedule& schedule, std::uint32_t channels,
    const Stop* stop = nullptr, const std::function<void(const std::string&, double)>& tell = {});
inline constexpr std::size_t kMostLeaves = 2048;
inline constexpr std::uint64_t kMostRoutes = 200'000'000;  ///< between leaves: some 20 s
inline constexpr double kMostDrawn = 2e7;                  ///< between NICs: likewise

}  // namespace weft
