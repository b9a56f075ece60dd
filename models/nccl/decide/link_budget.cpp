#include "models/nccl/decide/link_budget.hpp"

#include <cmath>

namespace weft {
namespace {

void subtract(float& left, float bw) { left = std::round((left - bw) * 1000.0F) / 1000.0F; }

}  // namespace

NcclLinkBudget::NcclLinkBudget(const NcclSystem& system) : system_{system} {
  for (const NcclLink& link : system.links) {
    left_.push_back(link.bw);
    int reverse = -1;
    for (const int l : system.nodes[static_cast<std::size_t>(link.to)].links) {
      const NcclLink& other = system.links[static_cast<std::size_t>(l)];
      if (reverse == -1 && other.to == link.from && other.type == link.type) reverse = l;
    }
    reverse_.push_back(reverse);
    const NcclNode& to = system.nodes[static_cast<std::size_t>(link.to)];
    reads_back_.push_back(to.type == system.port_type() && to.gpu.sm < 80);
    shares_back_.push_back(to.type == NcclNodeType::kCpu && to.cpu.arch == NcclCpuArch::kPower &&
                           link.type == NcclLinkType::kNvl);
  }
}

bool NcclLinkBudget::take(const NcclPath& path, bool from_gpu, float bw) {
  const int taken = follow(path, from_gpu, bw, path.hops());
  if (taken == path.hops()) return true;
  follow(path, from_gpu, -bw, taken);
  return false;
}

int NcclLinkBudget::follow(const NcclPath& path, bool from_gpu, float bw, int most) {
  const float pcie = pcie_bw(path, from_gpu, bw);
  for (int step = 0; step < most; ++step) {
    const auto l = static_cast<std::size_t>(path.links[static_cast<std::size_t>(step)]);
    const NcclLink& link = system_.links[l];
    const float forward = link.type == NcclLinkType::kPci ? pcie : bw;
    const float backward = reverse_[l] == -1 ? 0.0F : backward_bw(l, from_gpu, forward);
    const auto back = static_cast<std::size_t>(reverse_[l]);
    if (left_[l] < forward || (backward != 0.0F && left_[back] < backward)) return step;
    subtract(left_[l], forward);
    if (backward != 0.0F) subtract(left_[back], backward);
  }
  return most;
}

float NcclLinkBudget::pcie_bw(const NcclPath& path, bool from_gpu, float bw) const {
  if (path.type != NcclPathType::kPhb || !from_gpu) return bw;
  for (const int l : path.links) {
    const int to = system_.links[static_cast<std::size_t>(l)].to;
    const NcclNode& node = system_.nodes[static_cast<std::size_t>(to)];
    if (node.type == NcclNodeType::kCpu && node.cpu.arch == NcclCpuArch::kX86 &&
        node.cpu.vendor == NcclCpuVendor::kIntel) {
      return bw * 6.0F / 5.0F;  // Intel cuts peer-to-peer writes into 64-byte packets
    }
  }
  return bw;
}

float NcclLinkBudget::backward_bw(std::size_t link, bool from_gpu, float bw) const {
  float backward = 0;
  if (reads_back_[link] && !from_gpu) backward += bw / 8.0F;
  if (shares_back_[link]) backward += bw;
  return backward;
}

}  // namespace weft
