#pragma once

#include <string>

#include "sim/topology/fabric.hpp"

namespace weft {

/// What NCCL decides for a GPU and a NIC by default, apart from what the machine can do.
struct GdrDecision {
  bool enabled{false};
  std::string why;  ///< "distance PHB > PXB; NCCL_NET_GDR_LEVEL=PHB would allow it"
};

/// NCCL's name for a path class: NODE has no twin and is PHB (NCCL src/graph/topo.h).
std::string nccl_path_name(PathClass path_class);

/// NCCL 2.28's default rule for a distance: on up to PXB (src/graph/paths.cc, ncclTopoCheckGdr).
GdrDecision default_gdr_decision(PathClass distance);

}  // namespace weft
