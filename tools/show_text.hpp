#pragma once

#include <string>
#include <vector>

#include "models/machine/machine.hpp"
#include "models/nccl/decide/env.hpp"
#include "models/nccl/decide/path_type.hpp"
#include "sim/io/json.hpp"

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
  std::string why;
  double write_gb_per_s{0};  ///< NIC into GPU memory, alone on the machine; 0 if not possible
  double read_gb_per_s{0};   ///< NIC out of GPU memory
};

/// Every GPU-NIC pair of a node, GPUs first.
std::vector<PairView> pair_views(const Machine& machine, const ShownNccl& nccl = {});

/// The node's tree, the matrix that `nvidia-smi topo -m` prints, the NICs that NCCL gives each GPU,
/// the pairs.
std::string show_text(const Machine& machine, const ShownNccl& nccl = {});
/// "schema": "weft.show/1" with `devices`, `links`, `pairs`, and `gpu_nics`: the NICs that NCCL
/// gives each GPU; where they are not known `gpu_nics_unknown` says why.
Json show_json(const Machine& machine, const ShownNccl& nccl = {});
/// The node as a Graphviz graph.
std::string show_dot(const Machine& machine);

}  // namespace weft
