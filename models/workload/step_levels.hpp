#pragma once

#include <cstdint>
#include <memory>

#include "models/workload/replicas.hpp"
#include "models/workload/step.hpp"

namespace weft {

/// A step whose replicas meet on NCCL's trees (Tree), of more than Sample::kMostWhole nodes on one
/// switch. A tree's nodes are all unlike, so that no few replicas stand for all. But as in samples
/// of trees (see Sample) each further level adds its hops and nothing else: the step is run on
/// as many replicas as trees of 16 and of 4 nodes join, with what NCCL decides for the cluster, and
/// grows by the level as it does between these. An extension, not exact.
class StepLevels {
 public:
  /// nullptr: there are no more nodes or replicas than that, the network is not one switch, nodes
  /// are not alike or have fewer NICs than GPUs, or the replicas do not begin at the same GPU of a
  /// node. All references must outlive it.
  static std::unique_ptr<StepLevels> of(const StepSpec& step, const Machine& cluster,
                                        const PartLibrary& parts,
                                        const CommunicatorDecisions::Asked& asked);

  /// One of the two.
  struct Few {
    std::unique_ptr<Replicas> replicas;
    TaskGraph graph;
  };
  Few& more() { return more_; }
  Few& less() { return less_; }

  /// Whether what the replicas call together runs so: all of it on trees like the cluster's, of as
  /// many levels as said, or on rings of which few ranks stand for all; something on trees. Over
  /// GPUDirect RDMA only.
  bool grows_by_level(CommunicatorDecisions& cluster, MemoryPath path);

  /// Makes what ran on more() what the cluster takes.
  void extend(StepRow& more, const StepRow& less) const;

 private:
  StepLevels(Few more, Few less, std::uint32_t nodes);

  Few more_;
  Few less_;
  double further_;  ///< levels
};

}  // namespace weft
