#include "models/workload/step_limits.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/collective/network_use.hpp"
#include "models/workload/training.hpp"

namespace weft {
namespace {

/// The rank that sends goes on to in this dimension; none: it is the last one of a pipeline.
std::optional<std::uint32_t> next(const StepSpec& step, std::uint32_t rank, Parallel p) {
  const std::uint32_t stride = stride_of(step, p);
  const std::uint32_t last = step.degree(p) - 1;
  if (rank / stride % step.degree(p) < last) return rank + stride;
  if (p == Parallel::kPipeline) return {};
  return rank - last * stride;
}

/// What ranks send to the next ones, by the leaves between which it goes.
class Sends {
 public:
  explicit Sends(const Machine& machine) : machine_{&machine} {
    const Fabric& fabric = machine.fabric();
    for (std::size_t n = 0; n < fabric.count(DeviceKind::kNic); ++n) {
      if (fabric.wire_link(fabric.device(0, DeviceKind::kNic, n))) cabled_.push_back(n);
    }
  }

  struct Along {
    NetworkUse use;
    double latency_ns;  ///< on average
  };
  /// nullopt: two leaves have no route.
  std::optional<Along> along(const StepSpec& step, Parallel p) const {
    const auto gpus = static_cast<std::uint32_t>(machine_->fabric().count(DeviceKind::kGpu));
    struct Between {
      DeviceId from;
      DeviceId to;
      double sends{0};
    };
    std::map<std::pair<DeviceId, DeviceId>, Between> leaves;
    Along out{NetworkUse(*machine_), 0};
    double sends = 0;
    for (std::uint32_t rank = 0; rank < step.ranks(); ++rank) {
      const std::optional<std::uint32_t> to = next(step, rank, p);
      if (!to || *to / gpus == rank / gpus) continue;
      const DeviceId exit = nic_of(rank, gpus);
      const DeviceId entry = nic_of(*to, gpus);
      out.use.send(exit, 1);
      Between& between = leaves[{leaf_of(exit), leaf_of(entry)}];
      between = {exit, entry, between.sends + 1};
      ++sends;
    }
    for (const auto& [ends, between] : leaves) {
      const std::optional<Duration> takes = machine_->network_latency(between.from, between.to);
      if (!takes) return {};
      out.latency_ns += takes->as_ns() * between.sends / sends;
      if (ends.first == ends.second) continue;
      if (!out.use.cross(between.from, between.to, between.sends, 0)) return {};
    }
    return out;
  }

 private:
  DeviceId nic_of(std::uint32_t rank, std::uint32_t gpus) const {
    const std::size_t place = rank % gpus * cabled_.size() / gpus;
    return machine_->fabric().device(rank / gpus, DeviceKind::kNic, cabled_[place]);
  }
  DeviceId leaf_of(DeviceId nic) const {
    const Fabric& fabric = machine_->fabric();
    return fabric.link(*fabric.wire_link(nic)).b;
  }

  const Machine* machine_;
  std::vector<std::size_t> cabled_;  // of a node's NICs
};

bool are_alike(const std::optional<StepLimit>& a, const std::optional<StepLimit>& b) {
  constexpr double kFullest = 0.01;
  constexpr double kOnAverage = 0.04;
  if (!a || !b) return !a && !b;
  return std::abs(a->fullest / b->fullest - 1) <= kFullest &&
         std::abs(a->on_average / b->on_average - 1) <= kOnAverage;
}

}  // namespace

std::optional<StepLimits> step_limits(const Machine& machine, const StepSpec& step) {
  const auto gpus = static_cast<std::uint32_t>(machine.fabric().count(DeviceKind::kGpu));
  for (const Parallel p : {Parallel::kTensor, Parallel::kContext, Parallel::kExpert}) {
    if (step.degree(p) > 1 && stride_of(step, p) * step.degree(p) > gpus) return {};
  }
  const Sends sends(machine);
  StepLimits out;
  for (std::size_t i = 0; i < out.limits.size(); ++i) {
    const Parallel p = i == 0 ? Parallel::kData : Parallel::kPipeline;
    const std::optional<Sends::Along> along = sends.along(step, p);
    if (!along) return {};
    const auto limit = along->use.limit(machine.fabric().nodes());
    if (limit) out.limits[i] = StepLimit{limit->of_node_gb_per_s, limit->on_average_gb_per_s};
    if (p == Parallel::kData) out.latency_ns = along->latency_ns;
  }
  return out;
}

bool hold_up_alike(const StepLimits& a, const StepLimits& b) {
  constexpr double kLatency = 0.04;
  if (std::abs(a.latency_ns - b.latency_ns) > kLatency * b.latency_ns) return false;
  return std::ranges::equal(a.limits, b.limits, are_alike);
}

bool hold_up_stages_alike(const StepLimits& a, const StepLimits& b) {
  return are_alike(a.limits.back(), b.limits.back());
}

}  // namespace weft
