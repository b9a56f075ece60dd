#include "models/nccl/decide/link_budget.hpp"

#include <cstdint>

namespace weft {
namespace {

/// roundf() of what an int64 holds: halves go away from zero, and a double holds either sum.
float rounded(float value) {
  const double half = value < 0 ? -0.5 : 0.5;
  return static_cast<float>(static_cast<std::int64_t>(static_cast<double>(value) + half));
}

void subtract(float& left, float bw) { left = rounded((left - bw) * 1000.0F) / 1000.0F; }

}  // namespace

NcclLinkBudget::NcclLinkBudget(const NcclSystem& system) {
  for (const NcclLink& link : system.links) {
    left_.push_back(link.bw);
    Kind kind;
    for (const int l : system.nodes[static_cast<std::size_t>(link.to)].links) {
      const NcclLink& other = system.links[static_cast<std::size_t>(l)];
      if (kind.reverse == -1 && other.to == link.from && other.type == link.type) kind.reverse = l;
    }
    const NcclNode& to = system.nodes[static_cast<std::size_t>(link.to)];
    const bool is_cpu = to.type == NcclNodeType::kCpu;
    kind.is_pci = link.type == NcclLinkType::kPci;
    kind.enters_intel =
        is_cpu && to.cpu.arch == NcclCpuArch::kX86 && to.cpu.vendor == NcclCpuVendor::kIntel;
    kind.reads_back = to.type == system.port_type() && to.gpu.sm < 80;
    kind.shares_back =
        is_cpu && to.cpu.arch == NcclCpuArch::kPower && link.type == NcclLinkType::kNvl;
    kinds_.push_back(kind);
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
    const Kind& kind = kinds_[l];
    const float forward = kind.is_pci ? pcie : bw;
    float backward = 0;
    if (kind.reverse != -1) {
      if (kind.reads_back && !from_gpu) backward += forward / 8.0F;
      if (kind.shares_back) backward += forward;
    }
    const auto back = static_cast<std::size_t>(kind.reverse);
    if (left_[l] < forward || (backward != 0.0F && left_[back] < backward)) return step;
    subtract(left_[l], forward);
    if (backward != 0.0F) subtract(left_[back], backward);
  }
  return most;
}

float NcclLinkBudget::pcie_bw(const NcclPath& path, bool from_gpu, float bw) const {
  if (path.type != NcclPathType::kPhb || !from_gpu) return bw;
  for (const int l : path.links) {
    if (kinds_[static_cast<std::size_t>(l)].enters_intel) {
      return bw * 6.0F / 5.0F;  // Intel cuts peer-to-peer writes into 64-byte packets
    }
  }
  return bw;
}

}  // namespace weft
