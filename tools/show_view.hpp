#pragma once

#include <string>
#include <vector>

#include "models/machine/machine.hpp"
#include "models/nccl/decide/env.hpp"
#include "models/nccl/decide/gpu_nics.hpp"

namespace weft {

/// Whose decisions `weft show` tells.
struct ShownNccl {
  NcclEnv env{};
  NcclVersion version{};
};

/// What `weft show` says of one GPU and one NIC of a node.
struct PairView {
  DeviceId gpu;
  DeviceId nic;
  PathLabel label;
  bool gdr_possible{false};
  bool nccl_default{false};  ///< whether NCCL would use GPUDirect RDMA
  std::string why{};
  double write_gb_per_s{0};  ///< NIC into GPU memory, alone on the machine; 0 if not possible
  double read_gb_per_s{0};   ///< NIC out of GPU memory
};

/// What `weft show` says of GPUs and NICs of a node.
struct NodeView {
  std::vector<PairView> pairs;  ///< every pair, GPUs first
  NcclGpuNics gpu_nics;
};
/// Of node 0. Throws InputError as nccl_seen() and make_schedule() do.
NodeView node_view(const Machine& machine, const ShownNccl& nccl = {});

/// The devices of a kind on a node.
std::vector<DeviceId> devices_of_kind(const Fabric& fabric, DeviceKind kind);

/// The rate of a link, or of all of a trunk over which the load is spread: 1e9 bytes/s.
double trunk_gigabytes_per_s(const Machine& machine, LinkId id);

/// What `weft show` says of a tier of the network.
struct TierView {
  NetworkTier tier;
  std::string part;
  Bandwidth down;
  Bandwidth up;  ///< of no meaning where no port leads up
  Bandwidth local;
  Duration latency;
  Duration one_way;  ///< between NICs whose way turns in this tier: cables, FEC and switches
};

/// The lowest first.
std::vector<TierView> tier_views(const Machine& machine);

}  // namespace weft
