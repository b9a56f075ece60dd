#include "sim/plan/communicator.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/error.hpp"

namespace weft {

Communicator::Communicator(const Fabric& fabric, std::vector<DeviceId> gpus)
    : gpus_{std::move(gpus)} {
  const std::string& file = fabric.spec().file;
  if (gpus_.empty()) throw InputError(file + ": a communicator without GPUs");
  std::map<DeviceId, std::uint32_t> place;  // of the first node's; all nodes are alike
  for (std::size_t g = 0; g < fabric.count(DeviceKind::kGpu); ++g) {
    place.emplace(fabric.device(0, DeviceKind::kGpu, g), static_cast<std::uint32_t>(g));
  }
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    const DeviceId gpu = gpus_[rank];
    const std::optional<std::uint32_t> node = fabric.node_of(gpu);
    const auto at = place.find(DeviceId{gpu.index() % fabric.devices_per_node()});
    if (!node || at == place.end()) {
      throw InputError(file + ": rank " + std::to_string(rank) + " of a communicator is " +
                       fabric.full_name(gpu) + ", which is no GPU");
    }
    places_.push_back({*node, at->second});
    by_gpu_.push_back({gpu, rank});
  }
  node_count_ = static_cast<std::uint32_t>(ranks_by_node().size());
  const auto before = [](const Entry& a, const Entry& b) { return a.gpu < b.gpu; };
  std::sort(by_gpu_.begin(), by_gpu_.end(), before);
  const auto twice =
      std::adjacent_find(by_gpu_.begin(), by_gpu_.end(),
                         [](const Entry& a, const Entry& b) { return a.gpu == b.gpu; });
  if (twice == by_gpu_.end()) return;
  throw InputError(file + ": a communicator has " + fabric.full_name(twice->gpu) + " twice");
}

Communicator Communicator::of_all(const Fabric& fabric) {
  std::vector<DeviceId> gpus;
  for (std::uint32_t node = 0; node < fabric.nodes(); ++node) {
    for (std::size_t g = 0; g < fabric.count(DeviceKind::kGpu); ++g) {
      gpus.push_back(fabric.device(node, DeviceKind::kGpu, g));
    }
  }
  return {fabric, std::move(gpus)};
}

std::optional<std::uint32_t> Communicator::rank_of(DeviceId gpu) const {
  const auto at = std::lower_bound(by_gpu_.begin(), by_gpu_.end(), gpu,
                                   [](const Entry& a, DeviceId b) { return a.gpu < b; });
  if (at == by_gpu_.end() || at->gpu != gpu) return std::nullopt;
  return at->rank;
}

std::vector<std::vector<std::uint32_t>> Communicator::ranks_by_node() const {
  std::vector<std::vector<std::uint32_t>> out;
  std::map<std::uint32_t, std::size_t> number;
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    const auto [at, is_new] = number.try_emplace(node(rank), out.size());
    if (is_new) out.emplace_back();
    out[at->second].push_back(rank);
  }
  return out;
}

}  // namespace weft
