#pragma once

#include <map>

#include "models/machine/machine.hpp"
#include "models/nccl/memory_path.hpp"
#include "models/nccl/schedule.hpp"

namespace weft {

/// A few nodes of a large cluster that stand for all of it: what each does there is what each does
/// here, at the same times.
///
/// So it is for a ring's all-reduce, all-gather and reduce-scatter where NCCL joins the nodes by
/// the same rule again and again, one switch joins all NICs, and so nothing tells the nodes apart:
/// the cluster covers the sample, as a long cycle covers a short one. A node's programs only take
/// the steps of as many ranks as the cluster has.
struct Sample {
  static constexpr std::uint32_t kNodes = 4;

  /// All references must outlive it.
  Sample(const Fabric& cluster, const Params& params, const PartLibrary& parts)
      : fabric{cluster.spec(), kNodes}, devices{fabric, params, parts}, machine{devices} {}
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  Fabric fabric;
  DeviceParams devices;
  Machine machine;
  std::map<MemoryPath, Schedule> schedules;
};

/// Whether a cluster's nodes are so alike, and so many, that a sample is worth looking at.
bool may_be_sampled(const Fabric& cluster);

/// Whether the sample's first `choice.channels` rings are those of the cluster, which go from node
/// to node by a rule that repeats itself.
bool stands_for(const Schedule& sample, const Schedule& cluster, Op op, const Choice& choice);

}  // namespace weft
