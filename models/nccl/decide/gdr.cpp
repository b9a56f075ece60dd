#include "models/nccl/decide/gdr.hpp"

#include "models/nccl/decide/gdr_check.hpp"

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
    : NcclGdrRule(devices.fabric(), env, nccl_seen(devices, env, version)) {}

NcclGdrRule::NcclGdrRule(const Fabric& fabric, const NcclEnv& env, std::optional<NcclSeen> seen)
    : fabric_{&fabric}, env_{env}, seen_{std::move(seen)} {
  if (!seen_) return;
  const NcclSystem& system = seen_->system;
  for (std::size_t g = 0; g < fabric_->count(DeviceKind::kGpu); ++g) {
    const std::string& name = fabric_->device(fabric_->device(0, DeviceKind::kGpu, g)).name;
    gpus_[name] = system.gpu_of_rank(static_cast<int>(g));
  }
  for (int n = 0; n < system.count(NcclNodeType::kNet); ++n) {
    nets_[system.node(NcclNodeType::kNet, n).net.name] = n;
  }
}

GdrDecision NcclGdrRule::of(DeviceId gpu, DeviceId nic) const {
  if (seen_) {
    const auto net = nets_.find(fabric_->device(nic).name);
    const int place = gpus_.at(fabric_->device(gpu).name);
    if (net != nets_.end() && place >= 0) return decided(place, net->second);
  }
  return default_gdr_decision(fabric_->path_label(gpu, nic).path_class);
}

GdrDecision NcclGdrRule::decided(int gpu, int net) const {
  const auto& [system, paths] = *seen_;
  NcclGdrCheck check;
  for (const bool read : {false, true}) {
    check = check_gdr(system, paths, env_, gpu, net, read);
    if (!check.enabled) break;
  }
  const int proxy = proxy_gpu(system, paths, gpu, net);
  std::string why = check.why;
  for (const auto& [name, place] : gpus_) {
    if (proxy != gpu && place == proxy) why = "PXN by " + name + ": " + why;
  }
  const bool by_distance = !check.enabled && check.measured;
  if (by_distance) why += allowed_by(std::string(nccl_path_type_name(check.needed)));
  return {check.enabled, why};
}

}  // namespace weft
