#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "models/collective/sample.hpp"
#include "models/machine/machine.hpp"
#include "models/nccl/decide/communicators.hpp"
#include "models/workload/graph_plan.hpp"
#include "models/workload/task_graph.hpp"
#include "sim/input/step.hpp"

namespace weft {

/// A few of a step's data-parallel replicas in place of all, on as many nodes fewer. All replicas
/// do the same; they meet in the groups of those that hold the same part of the model. These run on
/// rings that go from node to node by a rule that repeats itself, or PAT, of which each rank takes
/// the steps of as many ranks as the cluster's group has (see Sample). So what it does here, and
/// when, is what it does there. On a network of several switches that never blocks all messages
/// between nodes take as long as between the farthest of a few. Where a network may block, they are
/// on one like it for so many nodes, whose links between switches hold up the next replicas' and
/// the next stages' data as the cluster's do (StepLimits); PAT, which goes farther, is not.
class Replicas {
 public:
  static constexpr std::uint32_t kSampled = Sample::kOfPat;  ///< nodes, or replicas of several

  /// nullptr: the cluster is no larger, its nodes are not alike (may_be_sampled()), its network
  /// does not join all NICs, has uplinks down, or may block as that of no few nodes does, or the
  /// replicas do not begin at the same GPU of a node. All references must outlive it.
  static std::unique_ptr<Replicas> of(const StepSpec& step, const Machine& cluster,
                                      const PartLibrary& parts,
                                      const CommunicatorDecisions::Asked& asked);

  /// So many replicas, which must fill whole nodes, on a network like the cluster's, whether or not
  /// they stand for all: to find out what running all would cost.
  static std::unique_ptr<Replicas> few(std::uint32_t replicas, const StepSpec& step,
                                       const Machine& cluster, const PartLibrary& parts,
                                       const CommunicatorDecisions::Asked& asked,
                                       std::optional<SampleNetwork> network = {});
  /// The least number of replicas that fills whole nodes; none if they do not begin at the same
  /// GPU of a node.
  static std::optional<std::uint32_t> filling_nodes(const StepSpec& step, const Fabric& fabric);

  const StepSpec& step() const { return step_; }
  const Machine& machine() const { return sample_.machine; }
  const DeviceParams& devices() const { return sample_.devices; }
  std::uint32_t stand_for() const { return stand_for_; }
  /// A name of a device here ("gpu0@4"), or text with such names: of the one in the cluster.
  std::string in_cluster(const std::string& text) const;
  /// What of the network is not the cluster's; "" if nothing but its size.
  std::string_view other_network() const {
    return sample_.network ? "all messages between nodes take as long as between the farthest"
           : may_block_    ? "on fewer switches, which hold them up as much"
                           : "";
  }
  const CommunicatorDecisions& decisions() const { return decisions_; }
  CommunicatorDecisions& decisions() { return decisions_; }

  /// How many nodes of the cluster those of a communicator of all replicas stand for.
  std::uint32_t nodes_of_all(const Communicator& communicator) const {
    return communicator.node_count() * stand_for_ / step_.degree(Parallel::kData);
  }

  /// Whether groups of this name are of ranks of all replicas.
  static bool joins_replicas(std::string_view group);
  /// Whether what such groups call so runs. `graph`: that of step().
  bool stand_for_all(const TaskGraph& graph, CommunicatorDecisions& cluster, MemoryPath path);
  /// What is decided here, for groups of all replicas what is decided for the cluster's. Both must
  /// outlive it.
  GroupSchedules schedules(CommunicatorDecisions& cluster, MemoryPath path);

 private:
  Replicas(StepSpec step, std::uint32_t stand_for, std::uint32_t nodes, const Machine& cluster,
           const PartLibrary& parts, std::optional<SampleNetwork> network,
           const CommunicatorDecisions::Asked& asked);

  StepSpec step_;
  std::uint32_t stand_for_;
  bool may_block_;  // the cluster's network
  Sample sample_;
  CommunicatorDecisions decisions_;
};

}  // namespace weft
