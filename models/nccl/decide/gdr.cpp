#include "models/nccl/decide/gdr.hpp"

#include "models/nccl/decide/gdr_check.hpp"
#include "models/nccl/decide/write_topo.hpp"

namespace weft {
namespace {

std::string allowed_by(const std::string& distance) {
  return "; NCCL_NET_GDR_LEVEL=" + distance + " would allow it";
}

}  // namespace

GdrDecision default_gdr_decision(PathClass distance) {
  const std::string name = distance == PathClass::kNode ? "PHB" : PathLabel{distance}.text();
  if (distance == PathClass::kPix || distance == PathClass::kPxb) {
    return {true, "distance " + name + " <= PXB"};
  }
  return {false, "distance " + name + " > PXB" + allowed_by(name)};
}

NcclGdrRule::NcclGdrRule(const DeviceParams& devices, const NcclEnv& env, NcclVersion version)
    : fabric_{&devices.fabric()}, env_{env} {
  if (!why_not_decided(*fabric_).empty()) return;
  View view;
  view.system = build_nccl_system(nccl_tree_of(devices).tree, env_, nccl_release(version));
  view.paths = compute_nccl_paths(view.system, env_);
  for (std::size_t g = 0; g < fabric_->count(DeviceKind::kGpu); ++g) {
    const std::string& name = fabric_->device(fabric_->device(0, DeviceKind::kGpu, g)).name;
    view.gpus[name] = view.system.gpu_of_rank(static_cast<int>(g));
  }
  for (int n = 0; n < view.system.count(NcclNodeType::kNet); ++n) {
    view.nets[view.system.node(NcclNodeType::kNet, n).net.name] = n;
  }
  view_ = std::move(view);
}

GdrDecision NcclGdrRule::of(DeviceId gpu, DeviceId nic) const {
  if (view_) {
    const auto net = view_->nets.find(fabric_->device(nic).name);
    const int place = view_->gpus.at(fabric_->device(gpu).name);
    if (net != view_->nets.end() && place >= 0) return decided(place, net->second);
  }
  return default_gdr_decision(fabric_->path_label(gpu, nic).path_class);
}

GdrDecision NcclGdrRule::decided(int gpu, int net) const {
  NcclGdrCheck check;
  for (const bool read : {false, true}) {
    check = check_gdr(view_->system, view_->paths, env_, gpu, net, read);
    if (!check.enabled) break;
  }
  const int proxy = proxy_gpu(view_->system, view_->paths, gpu, net);
  std::string why = check.why;
  for (const auto& [name, place] : view_->gpus) {
    if (proxy != gpu && place == proxy) why = "PXN by " + name + ": " + why;
  }
  const bool by_distance = !check.enabled && check.measured;
  if (by_distance) why += allowed_by(std::string(nccl_path_type_name(check.needed)));
  return {check.enabled, why};
}

}  // namespace weft
