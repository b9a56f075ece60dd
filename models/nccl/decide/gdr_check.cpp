#include "models/nccl/decide/gdr_check.hpp"

#include <algorithm>
#include <string_view>

namespace weft {
namespace {

using enum NcclNodeType;
using enum NcclPathType;

int node_of_gpu(const NcclSystem& system, int gpu) {
  return system.of(kGpu)[static_cast<std::size_t>(gpu)];
}

bool has_nvlink_peer(const NcclSystem& system, const NcclPaths& paths, int gpu) {
  for (int other = 0; other < system.count(kGpu); ++other) {
    if (other != gpu && paths.at(node_of_gpu(system, gpu), kGpu, other).type == kNvl) return true;
  }
  return false;
}

/// What rules a direction out before distances are looked at; "" if nothing does.
std::string ruled_out(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int gpu,
                      const NcclNetInfo& net, bool read) {
  const NcclGpuInfo& info = system.node(kGpu, gpu).gpu;
  if (!net.gdr) return "the NIC offers no GDR";
  if (!info.gdr) return "the GPU offers no GDR";
  if (!read) return "";
  if (env.net_gdr_read == 0) return "NCCL_NET_GDR_READ=0: the NIC does not read GPU memory";
  constexpr int kAmpere = 80;
  if (env.net_gdr_read < 0 && info.sm < kAmpere && system.count(kGpu) > 1 &&
      !has_nvlink_peer(system, paths, gpu)) {
    return "before Ampere, without NVLink, the NIC does not read GPU memory";
  }
  return "";
}

NcclPathType default_limit(const NcclEnv& env, const NcclRelease& release) {
  const bool c2c = env.net_gdr_c2c.value_or(release.gdr_c2c);
  return c2c && release.gdr_to_p2c ? kP2c : kPxb;
}

/// Some releases count a NIC behind the GPU's own CPU as near as C2C.
NcclPathType distance_with_c2c(NcclPathType distance, NcclPathType to_cpu, const NcclEnv& env,
                               const NcclRelease& release) {
  const bool counts = release.gdr_counts_c2c && env.net_gdr_c2c.value_or(release.gdr_c2c);
  const NcclPathType behind_cpu = release.has_p2c ? kP2c : kPhb;
  return counts && to_cpu == kC2c && distance == behind_cpu ? kC2c : distance;
}

}  // namespace

NcclGdrCheck check_gdr(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env,
                       int gpu, int net, bool read) {
  NcclGdrCheck check;
  check.limit = env.net_gdr_level.value_or(default_limit(env, system.release));
  check.why = ruled_out(system, paths, env, gpu, system.node(kNet, net).net, read);
  if (!check.why.empty()) return check;

  check.measured = true;
  const int reader = proxy_gpu(system, paths, gpu, net);
  const int cpu = nearest_cpu(system, paths, reader);
  const NcclPathType to_cpu =
      cpu == -1 ? kDis : paths.at(node_of_gpu(system, reader), kCpu, cpu).type;
  const NcclPathType distance = paths.at(node_of_gpu(system, reader), kNet, net).type;
  check.distance = distance_with_c2c(distance, to_cpu, env, system.release);
  check.enabled = check.distance <= check.limit;
  check.needed =
      check.enabled ? check.distance : std::min(check.distance, paths.plain_net_type(gpu, net));
  check.why = "distance " + std::string(nccl_path_type_name(check.distance)) +
              (check.enabled ? " <= " : " > ") + std::string(nccl_path_type_name(check.limit));
  check.pci_mode = check.enabled && to_cpu == kC2c && check.distance != kC2c && distance != kP2c;
  return check;
}

bool needs_flush(const NcclSystem& system, const NcclPaths& paths, const NcclEnv& env, int gpu,
                 int net) {
  constexpr int kOrdersWrites = 90;  // Hopper
  if (env.net_force_flush || system.node(kGpu, gpu).gpu.sm < kOrdersWrites) return true;
  // With C2C, data by PCIe may come after the flags that C2C carries.
  const int cpu = nearest_cpu(system, paths, gpu);
  return cpu != -1 && paths.at(node_of_gpu(system, gpu), kCpu, cpu).type == kC2c &&
         paths.at(node_of_gpu(system, gpu), kNet, net).type <= kPxb;
}

}  // namespace weft
