#include <algorithm>
#include <cstdint>

#include "models/collective/sample.hpp"

namespace weft {
namespace {

/// Rings go through nodes by turns at most, one way on even ones and another on odd ones.
constexpr std::size_t kPeriod = 2;

/// Whether what a ring does in one node it does so many nodes further on; all around, or as far as
/// its last nodes, where it ends or, over an odd number, meets its first one out of turn.
bool repeats_itself(const Ring& ring, bool all_around) {
  const std::size_t ranks = ring.order.size();
  const std::size_t nodes = ring.entry_nic.size();
  if (nodes == 0 || ranks % nodes != 0) return false;
  if (all_around && nodes % kPeriod != 0) return false;
  const std::size_t further = ranks / nodes * kPeriod;
  const std::size_t last = all_around ? 0 : std::min(ranks, further + ranks / nodes);
  for (std::size_t i = 0; i < ranks - last; ++i) {
    if (ring.order[(i + further) % ranks] != (ring.order[i] + further) % ranks) return false;
  }
  const auto is_periodic = [&](const auto& by_node) {
    for (std::size_t n = 0; n + (all_around ? 0 : 1) < by_node.size(); ++n) {
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

/// Whether all ranks of PAT, each alone in its node, use the same NIC.
bool use_one_nic(const Tree& tree) {
  return std::ranges::all_of(tree, [&](const TreeRank& rank) {
    return rank.nic == tree.front().nic && rank.proxy == tree.front().proxy;
  });
}

/// Whether two trees are alike within their first node: its chain, its NICs, and who sends.
bool begin_alike(const Tree& a, const Tree& b, std::size_t gpus) {
  const auto is_child = [gpus](const TreeRank& rank, std::uint32_t child) {
    return child < gpus && std::ranges::find(rank.down, child) != rank.down.end();
  };
  for (std::size_t r = 0; r < gpus; ++r) {
    if (a[r].nic != b[r].nic || a[r].proxy != b[r].proxy) return false;
    for (std::uint32_t child = 0; child < gpus; ++child) {
      if (is_child(a[r], child) != is_child(b[r], child)) return false;
    }
  }
  return true;
}

}  // namespace

bool stands_for(const Schedule& sample, const Schedule& cluster, Op op, const Choice& choice,
                bool all_around) {
  if (choice.algorithm == Algorithm::kPat) {
    if (std::min(sample.trees.size(), cluster.trees.size()) < choice.channels) return false;
    for (std::size_t c = 0; c < choice.channels; ++c) {
      const Tree& here = sample.trees[c];
      const Tree& there = cluster.trees[c];
      if (!use_one_nic(here) || !use_one_nic(there) || here.front().nic != there.front().nic) {
        return false;
      }
    }
    return true;
  }
  const bool all_do_the_same =
      op == Op::kAllReduce || op == Op::kAllGather || op == Op::kReduceScatter || is_chain(op);
  if (choice.algorithm != Algorithm::kRing || !all_do_the_same) return false;
  if (sample.rings.size() < choice.channels || cluster.rings.size() < choice.channels) return false;
  for (std::size_t c = 0; c < choice.channels; ++c) {
    const Ring& here = sample.rings[c];
    const Ring& there = cluster.rings[c];
    if (!repeats_itself(here, !is_chain(op)) ||
        !repeats_itself(there, all_around && !is_chain(op)) || !begin_alike(here, there)) {
      return false;
    }
  }
  return true;
}

bool grows_by_level(const Schedule& few, const Schedule& cluster, const Choice& choice,
                    std::size_t gpus) {
  const auto alike = [gpus](const std::vector<Tree>& a, const std::vector<Tree>& b,
                            std::size_t count) {
    return std::min(a.size(), b.size()) >= count &&
           std::equal(a.begin(), a.begin() + static_cast<long>(count), b.begin(),
                      [gpus](const Tree& x, const Tree& y) { return begin_alike(x, y, gpus); });
  };
  if (choice.algorithm == Algorithm::kTree) {
    return alike(few.trees, cluster.trees, choice.channels);
  }
  return choice.algorithm == Algorithm::kNvlsTree && few.nvls.places == cluster.nvls.places &&
         few.nvls.trees.size() == cluster.nvls.trees.size() &&
         alike(few.nvls.trees, cluster.nvls.trees, cluster.nvls.trees.size());
}

bool grows_by_level(const Sample& sample, const Schedule& cluster, MemoryPath path,
                    const Choice& choice) {
  return grows_by_level(sample.schedules.at(path), cluster, choice,
                        sample.fabric.count(DeviceKind::kGpu));
}

}  // namespace weft
