#include "models/collective/sample.hpp"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

/// Rings go through nodes by turns at most, one way on even ones and another on odd ones.
constexpr std::size_t kPeriod = 2;

/// Whether what a ring does in one node it does so many nodes further on.
bool repeats_itself(const Ring& ring) {
  const std::size_t ranks = ring.order.size();
  const std::size_t nodes = ring.entry_nic.size();
  if (nodes == 0 || nodes % kPeriod != 0 || ranks % nodes != 0) return false;
  const std::size_t further = ranks / nodes * kPeriod;
  for (std::size_t i = 0; i < ranks; ++i) {
    if (ring.order[(i + further) % ranks] != (ring.order[i] + further) % ranks) return false;
  }
  const auto is_periodic = [&](const auto& by_node) {
    for (std::size_t n = 0; n < by_node.size(); ++n) {
      if (by_node[n] != by_node[n % kPeriod]) return false;
    }
    return true;
  };
  return is_periodic(ring.entry_nic) && is_periodic(ring.exit_nic) && is_periodic(ring.exit_proxy);
}

/// Whether both begin alike: rings that repeat themselves are then alike all the way.
bool begin_alike(const Ring& a, const Ring& b) {
  const std::size_t ranks = a.order.size() / a.entry_nic.size() * kPeriod;
  const auto alike = [](const auto& x, const auto& y, std::size_t count) {
    const std::size_t n = std::min(count, x.size());
    return x.empty() == y.empty() &&
           std::equal(x.begin(), x.begin() + static_cast<long>(n), y.begin());
  };
  return alike(a.order, b.order, ranks) && alike(a.entry_nic, b.entry_nic, kPeriod) &&
         alike(a.exit_nic, b.exit_nic, kPeriod) && alike(a.exit_proxy, b.exit_proxy, kPeriod);
}

}  // namespace

bool may_be_sampled(const Machine& cluster) {
  const Fabric& fabric = cluster.fabric();
  if (fabric.nodes() <= 2 * Sample::kOfRings ||
      fabric.spec().network.kind != NetworkSpec::Kind::kOneSwitch) {
    return false;
  }
  for (std::size_t i = 0; i < fabric.count(DeviceKind::kNic); ++i) {
    if (cluster.model(fabric.device(0, DeviceKind::kNic, i)).adapter->is_emulated) return false;
  }
  return true;
}

bool stands_for(const Schedule& sample, const Schedule& cluster, Op op, const Choice& choice) {
  const bool all_do_the_same =
      op == Op::kAllReduce || op == Op::kAllGather || op == Op::kReduceScatter;
  if (choice.algorithm != Algorithm::kRing || !all_do_the_same) return false;
  if (sample.rings.size() < choice.channels || cluster.rings.size() < choice.channels) return false;
  for (std::size_t c = 0; c < choice.channels; ++c) {
    const Ring& here = sample.rings[c];
    const Ring& there = cluster.rings[c];
    if (!repeats_itself(here) || !repeats_itself(there) || !begin_alike(here, there)) return false;
  }
  return true;
}

std::uint32_t levels_left_out(std::uint32_t nodes) {
  std::uint32_t levels = 0;
  while (nodes_below(nodes, levels) > Sample::kOfTrees) ++levels;
  return levels;
}

bool grows_by_level(const Schedule& sample, const Schedule& cluster, const Choice& choice) {
  if (choice.algorithm == Algorithm::kTree) {
    return std::min(sample.trees.size(), cluster.trees.size()) >= choice.channels;
  }
  return choice.algorithm == Algorithm::kNvlsTree && sample.nvls.places == cluster.nvls.places;
}

ByLevel by_level(Duration whole, Duration half, Duration quarter, std::uint32_t levels) {
  const double last = (whole - half).as_ns();
  const double before = (half - quarter).as_ns();
  const double mean = std::max(0.0, (last + before) / 2);
  return {whole + Duration::from_ns(mean * levels), Duration::from_ns(mean),
          Duration::from_ns(std::abs(last - before) / 2 * levels)};
}

}  // namespace weft
