#include "models/nccl/ring.hpp"

#include <algorithm>
#include <optional>

namespace weft {
namespace {

/// The GPUs of a node that are nearest to a NIC, in index order.
std::vector<std::size_t> nearest_gpus(const Fabric& fabric, std::size_t nic) {
  const DeviceId nic_id = fabric.device(0, DeviceKind::kNic, nic);
  std::vector<std::size_t> best;
  PathClass best_class = PathClass::kSys;
  for (std::size_t g = 0; g < fabric.count(DeviceKind::kGpu); ++g) {
    const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, g);
    const PathClass path_class = fabric.path_label(gpu, nic_id).path_class;
    if (best.empty() || path_class < best_class) {
      best.clear();
      best_class = path_class;
    }
    if (path_class == best_class) best.push_back(g);
  }
  return best;
}

std::vector<std::vector<std::size_t>> nearest_gpus(const Fabric& fabric) {
  std::vector<std::vector<std::size_t>> out;
  for (std::size_t n = 0; n < fabric.count(DeviceKind::kNic); ++n) {
    out.push_back(nearest_gpus(fabric, n));
  }
  return out;
}

std::vector<std::size_t> gpus_of_nics(const std::vector<std::vector<std::size_t>>& nearest) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    const auto before =
        std::count(nearest.begin(), nearest.begin() + static_cast<std::ptrdiff_t>(i), nearest[i]);
    out.push_back(nearest[i][static_cast<std::size_t>(before) % nearest[i].size()]);
  }
  return out;
}

/// All GPUs of a node from `first` on in index order, `last` at the end.
std::vector<std::size_t> chain(std::size_t gpus, std::size_t first, std::size_t last) {
  std::vector<std::size_t> out{first};
  for (std::size_t i = 1; i < gpus; ++i) {
    const std::size_t g = (first + i) % gpus;
    if (g != last) out.push_back(g);
  }
  if (last != first) out.push_back(last);
  return out;
}

}  // namespace

RingEnds ring_ends(const Ring& ring, std::size_t node, std::size_t gpus) {
  const std::size_t ranks = ring.order.size();
  std::optional<std::size_t> first;
  std::optional<std::size_t> last;
  // From the end on: mostly node 0 begins there, if it does not with the list.
  std::size_t before = ring.order[ranks - std::min(gpus, ranks - 1) - 1];
  for (std::size_t i = ranks - std::min(gpus, ranks - 1); !first || !last; ++i) {
    const std::size_t rank = ring.order[i % ranks];
    if (rank / gpus == node && before / gpus != node) first = rank % gpus;
    if (rank / gpus != node && before / gpus == node) last = before % gpus;
    before = rank;
  }
  return {*first, *last};
}

std::vector<std::size_t> gpus_of_nics(const Fabric& fabric) {
  return gpus_of_nics(nearest_gpus(fabric));
}

std::vector<Ring> make_rings(const Fabric& fabric, std::uint32_t channels) {
  const std::size_t gpus = fabric.count(DeviceKind::kGpu);
  const std::size_t nics = fabric.count(DeviceKind::kNic);
  const std::vector<std::vector<std::size_t>> nearest = nearest_gpus(fabric);
  const std::vector<std::size_t> owner = gpus_of_nics(nearest);

  std::vector<Ring> rings;
  for (std::uint32_t c = 0; c < channels; ++c) {
    const std::size_t entry = nics == 0 ? 0 : c % nics;
    const std::size_t exit = nics == 0 ? 0 : (entry + nics - 1) % nics;
    const std::size_t first = nics == 0 ? c % gpus : owner[entry];
    std::size_t last = nics == 0 ? (first + gpus - 1) % gpus : owner[exit];
    if (last == first && gpus > 1) {
      last = (first + gpus - 1) % gpus;
      for (const std::size_t g : nics == 0 ? std::vector<std::size_t>{} : nearest[exit]) {
        if (g != first) last = g;
      }
    }
    const std::vector<std::size_t> forward = chain(gpus, first, last);
    Ring ring;
    for (std::uint32_t node = 0; node < fabric.nodes(); ++node) {
      std::vector<std::size_t> walk = forward;
      const bool backward = node % 2 == 1;
      if (backward) std::reverse(walk.begin(), walk.end());
      ring.entry_nic.push_back(backward ? exit : entry);
      ring.exit_nic.push_back(backward ? entry : exit);
      for (const std::size_t g : walk) {
        ring.order.push_back(static_cast<std::uint32_t>(node * gpus + g));
      }
    }
    rings.push_back(std::move(ring));
  }
  return rings;
}

}  // namespace weft
