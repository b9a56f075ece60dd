#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "models/collective/decided.hpp"
#include "models/collective/network_use.hpp"
#include "models/collective/sample_network.hpp"
#include "models/collective/unlike.hpp"
#include "models/machine/machine.hpp"
#include "models/nccl/execute/p2p_plan.hpp"
#include "models/nccl/memory_path.hpp"
#include "models/nccl/schedule.hpp"

namespace weft {

class RoundsUse;

using Schedules = std::map<MemoryPath, Schedule>;

/// Some nodes of a large cluster in its place, as one switch joins all NICs and nothing tells nodes
/// apart. Of more than kMostWhole nodes, or kMostWholeGpus, over several switches too: fewer
/// switches are given the latencies that messages have there. A ring waits for the sum of its hops,
/// or for its slowest one with what comes back over it (clear-to-send, credits), whichever takes
/// longer: so it has two hops as slow as the slowest, and the sum. Of a tree all levels have the
/// farthest, and what nearer ones take less is taken off. Where a link between switches takes
/// longer than those of NICs (NetworkUse), the two leaves of a ring's or an all-to-all's sample
/// pass no more of what a node sends than it does, those of a tree's no more of each of its edges.
/// Where a hash draws the way of each connection (ECMP), that link is the one that most of them
/// meet on.
///
/// They stand for all of it in a ring's all-reduce, all-gather and reduce-scatter where
/// NCCL joins the nodes by the same rule again and again: what each does there is what each does
/// here, at the same times, since the cluster covers the sample as a long cycle covers a short one.
/// A node's programs only take the steps of as many ranks as the cluster has. So they do in an
/// all-to-all, whose rounds are the same for every node: what a node sends to so many others, each
/// so many nodes away, it sends here to the few that there are. Both are exact but for the order of
/// what happens at one instant. Beyond kMostRingRanks or kMostRingTransfers, and kMostAllToAll,
/// they stand for fewer nodes, which move as much for each, and the time is extended: each further
/// node adds its steps or its round.
///
/// Over an odd number of nodes one hop of the ring is out of turn. It counts for one of so many,
/// and the sample has none such: an extension, though most times are the same.
///
/// So they do in PAT, where each rank does the same with those 1, 2, 4, ... ranks further on.
///
/// One node that is not like the others (Machine) is one of the sample's: what is slow there sets
/// the pace of all. It has the place of one with as many children in each of the two trees, or of
/// their root. That is no longer exact. What of it is slow may hide what a level adds to a tree, in
/// a few nodes more than in many: the cluster takes no less than one of which all nodes are alike.
/// With several such nodes it takes no less than with each of them alone; neighbours, whose delays
/// add up on what they send each other, stay neighbours in the sample. In trees what many of
/// them add to each other's delays counts: there all nodes run, with a part of the bytes, and each
/// further byte takes what it takes with the slowest of them alone.
///
/// A broadcast or reduce goes through the ring once, each rank passing on what it is sent: one of
/// many launches takes what it takes through the ranks of a few nodes, and a launch alone grows by
/// the node. A send to the next rank is what every node does, whatever others do.
///
/// A tree's nodes are all unlike (each is a leaf of one of NCCL's two trees and somewhere within
/// the other), but each level adds its hops to the time, so the time grows by the level: by what it
/// grows between trees of 4 and of 16 nodes, which are full. Once the trees are filled what limits
/// them does not depend on their depth: there each further byte adds what it adds on 4 nodes, or,
/// of up to kMostWhole whose run would take long, on all of them.
struct Sample {
  static constexpr std::uint32_t kOfRings = 4;       ///< nodes
  static constexpr std::uint32_t kMostOfRings = 32;  ///< nodes, over several switches
  static constexpr std::uint32_t kOfChains = 16;     ///< nodes, of a launch alone
  /// Nodes, of one of many: host-staged, launches of a few MiB take less through fewer.
  static constexpr std::uint32_t kOfChainedLaunches = 6;
  /// Ranks, likewise: of larger nodes fewer, but no less than kOfRings.
  static constexpr std::uint32_t kMostOfChainedRanks = 288;
  static constexpr std::uint32_t kOfAllToAlls = 2;  ///< nodes
  /// Nodes: a multiple of what a ring repeats itself by, not of a power of two of PAT's.
  static constexpr std::uint32_t kOfPat = 6;
  /// Ranks whose ring the sample runs step by step.
  static constexpr std::size_t kMostRingRanks = 4096;
  /// Transfers, of what differs, that it runs at most: a second's. Host-staged as many as of
  /// kMostRingRanks: such rings may settle after thousands of steps only (see the page).
  static constexpr double kMostRingTransfers = 1e6;
  /// Ranks of PAT, likewise.
  static constexpr std::size_t kMostPatRanks = 4096;
  /// Ranks x GPUs that share a NIC whose all-to-all the sample runs round by round: sends wait for
  /// each other at a NIC, so the cost grows with the square.
  static constexpr std::size_t kMostAllToAll = 4096;
  static constexpr std::uint32_t kOfTrees = 16;      ///< nodes
  static constexpr std::uint32_t kLeastOfTrees = 4;  ///< NCCL has larger chunks for fewer
  /// Nodes whose trees always run whole, and all that runs over several switches.
  static constexpr std::uint32_t kMostWhole = 32;
  static constexpr std::size_t kMostWholeGpus = 512;  ///< likewise, and on one switch
  /// Nodes that are not like the others, each of which is in samples of its own: delays of many add
  /// up.
  static constexpr std::size_t kMostUnlike = 8;
  /// With such nodes rings, PAT and sends of no more transfers, some seconds, run whole: what moves
  /// few bytes waits for delays, of which few nodes have another share.
  static constexpr double kFewTransfers = 3e5;
  /// Nodes beyond which an all-to-all's time may be extended by the node, however many GPUs each
  /// has.
  static constexpr std::uint32_t kLeastExtended = 32;
  /// Ranks beyond which a ring's may, which are those of four nodes at least. Each step of all
  /// ranks takes as long as the next one, once all of a node have waited for its hop to the next
  /// one.
  static constexpr std::size_t kLeastRingRanks = 256;
  /// Kinds of such nodes where all run with a part of the bytes: each has a sample beside.
  static constexpr std::size_t kMostUnlikeKinds = 64;

  /// `in_place_of`: nodes, of the cluster or of one like it. `network`: none is one like the
  /// cluster's. `unlike`: those of the cluster's that are among them though not like the others;
  /// all such nodes are, where the sample has all of the cluster's. `parts` must outlive it.
  Sample(std::uint32_t nodes, std::uint32_t in_place_of, const Machine& cluster,
         const PartLibrary& parts, std::optional<SampleNetwork> network, UnlikePlaces unlike = {});
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  /// Whether it is the cluster itself.
  bool is_whole() const { return fabric.nodes() == stands_for && !network; }

  std::uint32_t stands_for;
  std::optional<SampleNetwork> network;
  UnlikePlaces unlike;
  Params params;
  Fabric fabric;
  DeviceParams devices;
  Machine machine;
  Schedules schedules;
};

/// Whether a cluster's nodes are so alike, and so many, that a sample is worth looking at: no NICs
/// are emulated, since then their hosts share one memory.
bool may_be_sampled(Op op, const Machine& cluster);

/// Nodes of so many GPUs that stand for all of a chain that is launched again and again: an even
/// number.
constexpr std::uint32_t nodes_of_chained_launches(std::size_t gpus) {
  const auto most = static_cast<std::uint32_t>(Sample::kMostOfChainedRanks / gpus / 2 * 2);
  return std::clamp(most, Sample::kOfRings, Sample::kOfChainedLaunches);
}

/// Whether the sample's first `choice.channels` rings are those of the cluster, which go from node
/// to node by a rule that repeats itself, or all ranks of PAT do alike. Not `all_around`: but for
/// the last node's hop to the first one.
bool stands_for(const Schedule& sample, const Schedule& cluster, Op op, const Choice& choice,
                bool all_around = true);

/// How many levels NCCL's trees over so many nodes have.
constexpr std::uint32_t levels_of_trees(std::uint32_t nodes) {
  return static_cast<std::uint32_t>(std::bit_width(nodes - 1));
}
/// Whether the trees of `few`, of so many GPUs a node, are made as those of the cluster, within
/// their first node: `choice` runs on either.
bool grows_by_level(const Schedule& few, const Schedule& cluster, const Choice& choice,
                    std::size_t gpus);
bool grows_by_level(const Sample& sample, const Schedule& cluster, MemoryPath path,
                    const Choice& choice);

/// One run of a sample.
struct SampleRun {
  const Sample* sample;
  Bytes bytes;       ///< as the operation counts them
  bool once{false};  ///< one launch, with none before or behind it

  friend bool operator==(const SampleRun&, const SampleRun&) = default;
};

/// What a cluster has more of than what was simulated: each further one takes what it takes from
/// `less` to `more`, or, of a `more` that is launched once, what that takes longer than the first
/// launch of `less`, or than `less`, if that is launched once, too.
struct Further {
  std::string_view by;  ///< "level" of its trees, "node", node of a "chain", "byte", "unlike node"
  SampleRun more;
  SampleRun less;
  double between;  ///< how many levels, nodes or bytes `more` has more than `less`
  double steps;    ///< and how many the cluster has more
};

/// Levels of a cluster's trees whose messages take less time than a sample's.
struct Nearer {
  std::uint32_t levels;
  Duration by;  ///< one way; what passes a level goes up and comes down again
};

/// What runs in place of a cluster for an operation.
struct StandIn {
  /// What it takes, the cluster takes, and what `further` adds, less what `nearer` does. None: the
  /// cluster runs itself.
  std::optional<SampleRun> first{};
  std::vector<Further> further{};
  std::vector<Nearer> nearer{};
  bool is_out_of_turn{false};  ///< a ring over an odd number of nodes, of whose samples none is
  bool is_chain{false};        ///< of many launches: each takes what it takes through fewer nodes
  double sent{1};  ///< what a NIC of the cluster sends, as a multiple of what one of `first` does
  /// What the links between the samples' leaves stand for, where they limit.
  std::optional<Cause> between{};
  bool mean_of_draws{false};  ///< the fullest of these carries what it does on the mean of draws
  /// An all-to-all over racks joined side by side takes what its rounds take, of which all that
  /// runs in its place tells what they take without the network.
  struct Rounds {
    std::shared_ptr<const RoundsUse> use;
    Bytes each;  ///< that a GPU sends another
    P2pPlaces places;
  };
  std::optional<Rounds> rounds{};
  /// The cluster takes what the longest of these takes, if that is longer.
  std::vector<StandIn> at_least{};

  /// The cluster takes what the other takes, if that is longer. Whether something runs in its place
  /// there, too.
  bool add(StandIn other);

  /// All that are run, each once.
  std::vector<SampleRun> runs() const;
};

/// The schedule that chooses that for every size: part of the bytes runs as all of them would.
Schedule always(const Choice& choice, const Schedule& schedule);

/// Of NCCL's two trees over nodes.
using TreesUsed = std::array<bool, 2>;

/// The samples of a cluster, made as they are asked for.
class Samples {
 public:
  /// All references must outlive it. `schedules`: what is decided for the cluster. `tell`: hears
  /// of what takes long while samples are made.
  Samples(const Machine& machine, const PartLibrary& parts, const Schedules& schedules,
          const NcclEnv& env, NcclVersion version, const Decided& decided, const Stop* stop,
          std::function<void(const std::string&, double)> tell)
      : machine_{machine},
        parts_{parts},
        schedules_{schedules},
        env_{env},
        version_{version},
        decided_{decided},
        stop_{stop},
        tell_{std::move(tell)} {}

  /// What runs in place of the cluster: see Sample. Throws Stopped soon after `stop` asks for it.
  StandIn of(Op op, Bytes bytes, MemoryPath path);

 private:
  struct Asked {
    Op op;
    Bytes bytes;
    MemoryPath path;
    UnlikeGroup unlike;  ///< nodes that are among them; none: all are alike
  };
  StandIn with(const Asked& asked);
  /// Where all nodes do alike.
  struct Alike {
    std::uint32_t sampled;  ///< nodes that stand for all, up to `most`
    std::uint32_t most;
    std::function<double(std::uint32_t)> sent;  ///< by a NIC among so many nodes, in any unit
    std::optional<SampleNetwork> network;
    std::optional<Cause> between{};
    bool mean_of_draws{false};
    /// What a further node adds shows in one launch: each rank waits for the one before it, and
    /// launches behind each other add the same, however many nodes there are.
    bool shows_in_one_launch{false};
  };
  StandIn of_nodes_alike(const Asked& asked, const Alike& alike);
  struct RingSample {
    std::uint32_t nodes;
    std::optional<SampleNetwork> network;
    Duration mean{};  ///< of a hop, where there is a network
    std::optional<Cause> between{};

    /// The same of more nodes: two hops as slow as the slowest, and the sum of all for each.
    std::optional<SampleNetwork> network_of(std::uint32_t more) const;
  };
  std::optional<RingSample> sample_of_rings(Op op, MemoryPath path, const Choice& choice);
  StandIn of_rings(Op op, Bytes bytes, MemoryPath path, const Choice& choice);
  StandIn of_rings(const Asked& asked, const Choice& choice, const RingSample& rings);
  bool are_few_unlike() const;
  double hops_of_a_pace() const;
  double gpus() const { return static_cast<double>(machine_.fabric().count(DeviceKind::kGpu)); }
  RingSample of_enough_hops(const RingSample& rings, std::size_t slow) const;
  Further passes_of(const UnlikeKind& kind, const SampleRun& few, const RingSample& rings,
                    MemoryPath path);
  std::uint32_t most_nodes_of_rings(const Sample& sample, Op op, Bytes bytes, MemoryPath path,
                                    const Choice& choice) const;
  StandIn of_chains(const Asked& asked, const Choice& choice);
  StandIn of_few_nodes_of_a_chain(Op op, Bytes bytes, MemoryPath path, const Choice& choice);
  StandIn of_pat(const Asked& asked, const Choice& choice);
  StandIn of_sends_to_the_next(const Asked& asked);
  std::optional<Duration> slowest_to_the_next(const Schedule& cluster) const;
  /// What of the network limits an operation: by path, algorithm and channels, whatever its bytes.
  struct Limits {
    bool has_routes{false};
    std::optional<NetworkUse::Limit> limit{};
    bool mean_of_draws{false};
  };
  const Limits& limits(Op op, MemoryPath path, Algorithm algorithm, std::uint32_t channels,
                       const std::function<std::optional<NetworkUse>()>& use);
  using Levels = std::map<std::optional<SampleNetwork>, std::uint32_t>;
  const Levels& levels(const TreesUsed& used);
  std::shared_ptr<const RoundsUse> rounds(MemoryPath path);
  StandIn of_all_to_all(const Asked& asked);
  StandIn of_all_to_all_in_racks(const Asked& asked, Alike alike, const P2pSplit& split);
  std::uint32_t most_nodes_of_all_to_all(MemoryPath path) const;
  /// What samples of trees have for a network: how many of their levels have which latency, and
  /// what limits them. None where two nodes have no route.
  struct TreeNetwork {
    const Levels& levels;
    std::optional<SampleNetwork> farthest{};
    std::optional<NetworkUse::Limit> limit{};
  };
  std::optional<TreeNetwork> network_of_trees(Op op, MemoryPath path, const Choice& choice);
  const Sample& sample_of_trees(std::uint32_t nodes, const TreeNetwork& network, MemoryPath path,
                                const Choice& choice, const UnlikeGroup& unlike);
  std::optional<std::uint32_t> least_of_trees(const UnlikeGroup& unlike) const;
  StandIn of_trees(const Asked& asked, const Choice& choice);
  StandIn of_filled_trees(Op op, Bytes bytes, MemoryPath path, const Choice& choice);
  std::vector<UnlikeGroup> unlike(const Neighbours& neighbours) const;
  Neighbours neighbours(Op op, const std::optional<Choice>& choice) const;
  StandIn of_all_nodes(Op op, Bytes bytes, MemoryPath path, const Choice& choice);
  SampleNetwork limited_tree(std::uint32_t nodes, SampleNetwork network,
                             const NetworkUse::Limit& limit, MemoryPath path, const Choice& choice);
  Further by_byte(const Sample& sample, Op op, Bytes bytes, Bytes from, MemoryPath path,
                  const Choice& choice) const;
  const Sample& sample_of(std::uint32_t nodes, std::uint32_t stands_for, MemoryPath path,
                          std::optional<SampleNetwork> network, UnlikePlaces unlike = {});

  const Machine& machine_;
  const PartLibrary& parts_;
  const Schedules& schedules_;
  const NcclEnv& env_;
  NcclVersion version_;
  const Decided& decided_;
  const Stop* stop_;
  std::function<void(const std::string&, double)> tell_;
  /// By their nodes, those that they stand for, their network, and what is set of one of them.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::optional<SampleNetwork>,
                      std::vector<std::pair<std::string, double>>>,
           std::unique_ptr<Sample>>
      samples_;
  std::map<TreesUsed, Levels> levels_;
  std::map<MemoryPath, std::shared_ptr<const RoundsUse>> rounds_;
  std::map<std::tuple<Op, MemoryPath, Algorithm, std::uint32_t>, Limits> limits_;
};

}  // namespace weft
