#pragma once

#include <map>
#include <memory>
#include <vector>

#include "models/collective/decided.hpp"
#include "models/machine/machine.hpp"
#include "models/nccl/memory_path.hpp"
#include "models/nccl/schedule.hpp"

namespace weft {

using Schedules = std::map<MemoryPath, Schedule>;

/// Some nodes of a large cluster in its place, as one switch joins all NICs and nothing tells nodes
/// apart.
///
/// They stand for all of it, exactly, in a ring's all-reduce, all-gather and reduce-scatter where
/// NCCL joins the nodes by the same rule again and again: what each does there is what each does
/// here, at the same times, since the cluster covers the sample as a long cycle covers a short one.
/// A node's programs only take the steps of as many ranks as the cluster has. So they do in an
/// all-to-all, whose rounds are the same for every node: what a node sends to so many others, each
/// so many nodes away, it sends here to the few that there are.
///
/// A tree's nodes are all unlike (each is a leaf of one of NCCL's two trees and somewhere within
/// the other), but each level adds its hops to the time, so the time grows by the level: see
/// extended().
struct Sample {
  static constexpr std::uint32_t kOfRings = 4;  ///< nodes
  static constexpr std::uint32_t kOfExchanges = 2;
  /// Ranks of an all-to-all: sends wait for each other at a NIC, so its cost grows with their
  /// square; more take minutes and GBs.
  static constexpr std::size_t kMostExchanging = 16384;
  static constexpr std::uint32_t kOfTrees = 32;  ///< at most; half as many where steps are many
  /// At least, of the smallest of three: NCCL has larger chunks for fewer (NVLSTree).
  static constexpr std::uint32_t kLeastOfTrees = 4;

  /// All references must outlive it.
  Sample(std::uint32_t nodes, const Fabric& cluster, const Params& params, const PartLibrary& parts)
      : fabric{cluster.spec(), nodes}, devices{fabric, params, parts}, machine{devices} {}
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  Fabric fabric;
  DeviceParams devices;
  Machine machine;
  Schedules schedules;
};

/// Whether a cluster's nodes are so alike, and so many, that a sample is worth looking at: joined
/// by one switch, and none of their NICs emulated, since then their hosts share one memory.
bool may_be_sampled(const Machine& cluster);

/// Whether the sample's first `choice.channels` rings are those of the cluster, which go from node
/// to node by a rule that repeats itself.
bool stands_for(const Schedule& sample, const Schedule& cluster, Op op, const Choice& choice);

/// The nodes of a cluster whose trees have so many levels less (NCCL's have bit_width(nodes - 1)).
constexpr std::uint32_t nodes_below(std::uint32_t nodes, std::uint32_t levels) {
  return ((nodes - 1) >> levels) + 1;
}
/// How many levels the trees of a sample of at most so many nodes leave out.
std::uint32_t levels_between(std::uint32_t nodes, std::uint32_t sample);
/// Whether the sample's trees are made as the cluster's: `choice` runs on either.
bool grows_by_level(const Schedule& sample, const Schedule& cluster, const Choice& choice);

/// The time of a collective along trees, from samples `levels`, and one and two more, below the
/// cluster: as if each further level added what the last two have added on average, but never less
/// than nothing.
struct ByLevel {
  Duration time;
  Duration a_level;
  /// Half of what it would differ by, added each as the last, or as the one before.
  Duration apart;
};
ByLevel by_level(Duration whole, Duration half, Duration quarter, std::uint32_t levels);

/// The samples of a cluster, made as they are asked for.
class Samples {
 public:
  /// All references must outlive it. `schedules`: what is decided for the cluster.
  Samples(const Machine& machine, const PartLibrary& parts, const Schedules& schedules,
          const NcclEnv& env, NcclVersion version, const Decided& decided)
      : machine_{machine},
        parts_{parts},
        schedules_{schedules},
        env_{env},
        version_{version},
        decided_{decided} {}

  /// What runs in place of the cluster for an operation: nothing; one sample that stands for it; or
  /// three by which its time is extended, if the cluster itself is some seconds' worth of moves.
  std::vector<const Sample*> of(Op op, Bytes bytes, MemoryPath path);

 private:
  const Sample& of_nodes(std::uint32_t nodes, MemoryPath path);

  const Machine& machine_;
  const PartLibrary& parts_;
  const Schedules& schedules_;
  const NcclEnv& env_;
  NcclVersion version_;
  const Decided& decided_;
  std::map<std::uint32_t, std::unique_ptr<Sample>> samples_;  // by nodes
};

}  // namespace weft
