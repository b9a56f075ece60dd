#include "models/workload/step_limits.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/collective/network_use.hpp"
#include "models/nccl/decide/connect.hpp"
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

/// What ranks send, by the leaves between which it goes.
class Sends {
 public:
  explicit Sends(const Machine& machine)
      : machine_{&machine},
        gpus_{static_cast<std::uint32_t>(machine.fabric().count(DeviceKind::kGpu))},
        use_{machine} {
    const Fabric& fabric = machine.fabric();
    for (std::size_t n = 0; n < fabric.count(DeviceKind::kNic); ++n) {
      if (fabric.wire_link(fabric.device(0, DeviceKind::kNic, n))) cabled_.push_back(n);
    }
  }

  void add(std::uint32_t rank, std::uint32_t to) {
    if (to / gpus_ == rank / gpus_) return;
    const DeviceId exit = nic_of(rank);
    const DeviceId entry = nic_of(to);
    use_.send(exit, 1);
    Between& between = leaves_[{leaf_of(exit), leaf_of(entry)}];
    between = {exit, entry, between.sends + 1};
    ++sends_;
  }

  struct Sum {
    NetworkUse use;
    double latency_ns;  ///< on average
  };
  /// nullopt: two leaves have no route.
  std::optional<Sum> sum() const {
    Sum out{use_, 0};
    for (const auto& [ends, between] : leaves_) {
      const std::optional<Duration> takes = machine_->network_latency(between.from, between.to);
      if (!takes) return {};
      out.latency_ns += takes->as_ns() * between.sends / sends_;
      if (ends.first == ends.second) continue;
      if (!out.use.cross(between.from, between.to, between.sends, 0)) return {};
    }
    return out;
  }

 private:
  DeviceId nic_of(std::uint32_t rank) const {
    const std::size_t place = rank % gpus_ * cabled_.size() / gpus_;
    return machine_->fabric().device(rank / gpus_, DeviceKind::kNic, cabled_[place]);
  }
  DeviceId leaf_of(DeviceId nic) const {
    const Fabric& fabric = machine_->fabric();
    return fabric.link(*fabric.wire_link(nic)).b;
  }

  struct Between {
    DeviceId from;
    DeviceId to;
    double sends{0};
  };

  const Machine* machine_;
  std::uint32_t gpus_;               // of a node
  std::vector<std::size_t> cabled_;  // of a node's NICs
  NetworkUse use_;                   // what NICs send
  std::map<std::pair<DeviceId, DeviceId>, Between> leaves_;
  double sends_{0};
};

/// To the next rank in this dimension.
std::optional<Sends::Sum> sent_along(const Machine& machine, const StepSpec& step, Parallel p) {
  Sends sends(machine);
  for (std::uint32_t rank = 0; rank < step.ranks(); ++rank) {
    const std::optional<std::uint32_t> to = next(step, rank, p);
    if (to) sends.add(rank, *to);
  }
  return sends.sum();
}

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
  StepLimits out;
  for (std::size_t i = 0; i < out.limits.size(); ++i) {
    const Parallel p = i == 0 ? Parallel::kData : Parallel::kPipeline;
    const std::optional<Sends::Sum> along = sent_along(machine, step, p);
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

bool hold_up_trees(const Machine& machine, const StepSpec& step) {
  const auto gpus = static_cast<std::uint32_t>(machine.fabric().count(DeviceKind::kGpu));
  const std::uint32_t stride = stride_of(step, Parallel::kData);
  const std::uint32_t of_node = std::max(gpus / stride, 1U);  // of a group
  const std::uint32_t nodes = step.degree(Parallel::kData) / of_node;
  Sends sends(machine);
  for (std::uint32_t rank = 0; rank < step.ranks(); ++rank) {
    const std::uint32_t node = rank / stride % step.degree(Parallel::kData) / of_node;
    for (const NcclNodeTree& tree :
         nccl_node_trees(static_cast<int>(nodes), static_cast<int>(node))) {
      if (tree.up < 0) continue;
      const std::uint32_t up =
          rank - node * of_node * stride + static_cast<std::uint32_t>(tree.up) * of_node * stride;
      sends.add(rank, up);
      sends.add(up, rank);
    }
  }
  const std::optional<Sends::Sum> sum = sends.sum();
  return !sum || sum->use.limit(machine.fabric().nodes());
}

}  // namespace weft
