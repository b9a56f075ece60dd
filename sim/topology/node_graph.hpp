#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "sim/topology/fabric.hpp"

namespace weft {

/// The graph of one node and the searches on it. Devices are numbered by their place in the node,
/// links by their place in `links`; a link's ends are such device numbers.
///
/// Every search is breadth first: fewest links win. Of routes equally short, the one found through
/// the earlier link wins, C2C links before all others, then in the order of `links`; names play no
/// part. A search costs O(links of CPUs and switches to each other, and of the two ends), however
/// many GPUs and NICs there are, and keeps nothing.
class NodeGraph {
 public:
  NodeGraph(std::span<const DeviceKind> devices, std::span<const Link> links);
  ~NodeGraph();
  NodeGraph(NodeGraph&&) noexcept;
  NodeGraph& operator=(NodeGraph&&) noexcept;
  NodeGraph(const NodeGraph&) = delete;
  NodeGraph& operator=(const NodeGraph&) = delete;

  /// Over PCIe, socket and C2C links; only CPUs and PCIe switches forward.
  std::optional<Route> pcie_route(std::size_t from, std::size_t to) const;
  /// Over NVLink and xGMI; only NVSwitches forward.
  std::optional<Route> nvlink_route(std::size_t from, std::size_t to) const;
  /// How many NVLinks join two GPUs: direct ones, and through each NVSwitch the fewer of the two's.
  std::uint32_t nvlinks_between(std::size_t a, std::size_t b) const;
  /// Whether an xGMI link joins two GPUs.
  bool xgmi_joins(std::size_t a, std::size_t b) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
