#include "models/nccl/gdr.hpp"

namespace weft {

std::string nccl_path_name(PathClass path_class) {
  return path_class == PathClass::kNode ? "PHB" : PathLabel{path_class}.text();
}

GdrDecision default_gdr_decision(PathClass distance) {
  if (distance == PathClass::kPix || distance == PathClass::kPxb) {
    return {true, "distance " + nccl_path_name(distance) + " <= PXB"};
  }
  const std::string name = nccl_path_name(distance);
  return {false, "distance " + name + " > PXB; NCCL_NET_GDR_LEVEL=" + name + " would allow it"};
}

}  // namespace weft
