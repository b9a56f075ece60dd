#pragma once

#include <map>
#include <optional>
#include <string>

#include "models/nccl/decide/env.hpp"
#include "models/nccl/decide/seen.hpp"
#include "models/params/device_params.hpp"

namespace weft {

/// What NCCL decides for a GPU and a NIC, apart from what the machine can do.
struct GdrDecision {
  bool enabled{false};
  std::string why;  ///< "distance PHB > PXB; NCCL_NET_GDR_LEVEL=PHB would allow it"
};

/// NCCL's decision about GPUDirect RDMA for each GPU and NIC of a fabric's node (gdr_check.hpp).
/// Where a GPU reaches a NIC by PXN, the reason says by which GPU. Where NCCL's decisions are not
/// known (why_not_decided()), its default rule for the path class.
class NcclGdrRule {
 public:
  explicit NcclGdrRule(const DeviceParams& devices, const NcclEnv& env = {},
                       NcclVersion version = {});
  /// Of the node as NCCL sees it (nccl_seen()).
  NcclGdrRule(const Fabric& fabric, const NcclEnv& env, std::optional<NcclSeen> seen);

  const std::optional<NcclSeen>& seen() const { return seen_; }

  /// On only where sends and receives both are. Precondition: a GPU and a NIC of node 0.
  GdrDecision of(DeviceId gpu, DeviceId nic) const;

 private:
  GdrDecision decided(int gpu, int net) const;

  const Fabric* fabric_;
  NcclEnv env_;
  std::optional<NcclSeen> seen_;
  std::map<std::string, int> gpus_;  ///< places in it by name
  std::map<std::string, int> nets_;
};

/// NCCL 2.28's default rule for a path class: on up to PXB. NODE has no twin in NCCL and is PHB
/// (src/graph/paths.cc, topo.h).
GdrDecision default_gdr_decision(PathClass distance);

}  // namespace weft
