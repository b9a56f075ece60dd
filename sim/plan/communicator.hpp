#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/topology/fabric.hpp"

namespace weft {

/// The GPUs that take part in a collective, in the order of their ranks: any of the fabric's, in
/// any order. Immutable; comparable.
class Communicator {
 public:
  /// Rank r is `gpus[r]`. Throws InputError if there is none, or one twice (as NCCL does), or if
  /// one of them is no GPU.
  Communicator(const Fabric& fabric, std::vector<DeviceId> gpus);
  /// All GPUs, node by node, in the file's order.
  static Communicator of_all(const Fabric& fabric);

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(gpus_.size()); }
  DeviceId gpu(std::uint32_t rank) const { return gpus_[rank]; }
  const std::vector<DeviceId>& gpus() const { return gpus_; }
  /// nullopt if it does not take part. O(log ranks).
  std::optional<std::uint32_t> rank_of(DeviceId gpu) const;

  /// The fabric's node on which a rank is.
  std::uint32_t node(std::uint32_t rank) const { return places_[rank].node; }
  /// The number of a rank's GPU among those of its node.
  std::uint32_t place(std::uint32_t rank) const { return places_[rank].gpu; }
  /// On how many of the fabric's nodes it has ranks.
  std::uint32_t node_count() const { return node_count_; }
  bool same_node(std::uint32_t a, std::uint32_t b) const { return node(a) == node(b); }
  /// Ranks by node, nodes in the order of their first ranks.
  std::vector<std::vector<std::uint32_t>> ranks_by_node() const;

  friend bool operator==(const Communicator& a, const Communicator& b) {
    return a.gpus_ == b.gpus_;
  }

 private:
  struct Place {
    std::uint32_t node;
    std::uint32_t gpu;
  };
  struct Entry {
    DeviceId gpu;
    std::uint32_t rank;
  };

  std::vector<DeviceId> gpus_;
  std::vector<Place> places_;
  std::vector<Entry> by_gpu_;  ///< in ascending order
  std::uint32_t node_count_{0};
};

}  // namespace weft
