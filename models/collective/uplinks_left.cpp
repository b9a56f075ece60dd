#include "models/collective/uplinks_left.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "models/collective/sample_network.hpp"

namespace weft {
namespace {

/// Links by the place of a spine in its pod.
using ByPlace = std::vector<std::uint32_t>;

/// What is left of a pod that has NICs below it.
struct Pod {
  ByPlace up;    ///< from spines to cores
  ByPlace down;  ///< from spines to leaves with NICs
  std::uint32_t nics{0};

  friend auto operator<=>(const Pod&, const Pod&) = default;
};

/// Where switches of a folded Clos stand: planes one after another, in each its pods.
class Places {
 public:
  explicit Places(const Fabric& fabric) : fabric_{&fabric}, tiers_{fabric.network_tiers()} {
    for (std::uint32_t node = 0; node < fabric.nodes(); ++node) {
      for (const DeviceId leaf : leaves_of(fabric, node)) {
        ++nics_[static_cast<std::uint32_t>(leaf.index() - fabric.network_switch(0, 0).index())];
      }
    }
  }

  bool has_pods() const { return tiers_.size() > 2; }
  /// NICs by the number of their leaf.
  const std::map<std::uint32_t, std::uint32_t>& nics() const { return nics_; }
  std::uint32_t plane_of(std::uint32_t leaf) const { return leaf / leaves_of_plane(); }
  /// Leaves between which no message goes up: one, or those that a rack joins.
  std::uint32_t rack_of(std::uint32_t leaf) const {
    const NetworkSpec& network = fabric_->spec().network;
    const bool has_racks = network.inside != NetworkSpec::Inside::kTree;
    return leaf / (has_racks ? network.rack_leaves.value_or(1) : 1);
  }

  // Precondition of the following: it has pods.
  std::uint32_t pod_of(std::uint32_t leaf) const {
    return plane_of(leaf) * pods_of_plane() + leaf % leaves_of_plane() / tiers_[1].below;
  }
  std::uint32_t pod_of_spine(std::uint32_t spine) const { return spine / tiers_[1].group_size; }
  std::uint32_t plane_of_spine(std::uint32_t spine) const {
    return pod_of_spine(spine) / pods_of_plane();
  }
  /// By plane, and by their numbers: those with NICs.
  std::map<std::uint32_t, std::map<std::uint32_t, Pod>> pods_of_planes() const {
    std::map<std::uint32_t, std::map<std::uint32_t, Pod>> out;
    const std::uint32_t spines = tiers_[1].group_size;
    for (const auto& [leaf, nics] : nics_) {
      Pod& pod = out[plane_of(leaf)][pod_of(leaf)];
      pod.nics += nics;
      pod.down.resize(spines);
      const std::uint32_t links = left(0, leaf);  // they go to the spines in turn
      for (std::uint32_t i = 0; i < spines; ++i) pod.down[i] += (links + spines - 1 - i) / spines;
    }
    for (auto& [plane, pods] : out) {
      for (auto& [number, pod] : pods) {
        for (std::uint32_t i = 0; i < spines; ++i) pod.up.push_back(left(1, number * spines + i));
      }
    }
    return out;
  }
  /// "spine4": a pod by its first spine.
  std::string name_of(std::uint32_t pod) const {
    return UplinkedSwitch{1, pod * tiers_[1].group_size}.name();
  }

 private:
  /// The highest tier's switches of a plane are one group.
  std::uint32_t planes() const { return tiers_.back().groups; }
  std::uint32_t leaves_of_plane() const { return tiers_.front().groups / planes(); }
  std::uint32_t pods_of_plane() const { return tiers_[1].groups / planes(); }
  std::uint32_t left(std::uint32_t tier, std::uint32_t number) const {
    const FailedUplinks& failed = fabric_->spec().network.failed_uplinks;
    const auto at = failed.find({tier, number});
    return tiers_[tier].up - (at == failed.end() ? 0 : at->second);
  }

  const Fabric* fabric_;
  const std::vector<NetworkTier>& tiers_;
  std::map<std::uint32_t, std::uint32_t> nics_;
};

std::uint32_t sum(const ByPlace& links) {
  return std::accumulate(links.begin(), links.end(), std::uint32_t{0});
}

/// GB/s of each link.
struct Rates {
  double nic;
  double leaf_up;
  double spine_up;

  /// What shared rates let a pod send others at most, or receive from them.
  double limit(const Pod& pod) const {
    return std::min({pod.nics * nic, sum(pod.down) * leaf_up, sum(pod.up) * spine_up});
  }
  /// What its leaves may send over its spines.
  double leaving(const Pod& pod) const {
    double out = 0;
    for (std::size_t i = 0; i < pod.up.size(); ++i) {
      out += std::min(pod.down[i] * leaf_up, pod.up[i] * spine_up);
    }
    return out;
  }
  /// What two pods' spines may send each other.
  double between(const Pod& a, const Pod& b) const {
    std::uint32_t links = 0;
    for (std::size_t i = 0; i < a.up.size(); ++i) links += std::min(a.up[i], b.up[i]);
    return links * spine_up;
  }
};

bool is_less(double left, double limit) { return left < limit * (1 - 1e-9); }

[[noreturn]] void refuse(const Machine& machine, const std::string& pods, double left, double limit,
                         std::string_view why) {
  throw InputError(
      machine.fabric().spec().network.place,
      fmt::format("failed_uplinks: {} send each other at most {:.0f} GB/s, as {}, where shared "
                  "rates with spread routing have {:.0f}; take wire.routing=ecmp or --fidelity "
                  "packet",
                  pods, left, why, limit));
}

}  // namespace

void refuse_unlike_places(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  if (!machine.network_spreads() || fabric.spec().network.failed_uplinks.empty()) return;
  const Places places(fabric);
  if (!places.has_pods()) return;
  const Rates rates{machine.fastest_nic_link().as_gigabytes_per_s(),
                    machine.uplink_rate(fabric.network_switch(0, 0)).as_gigabytes_per_s(),
                    machine.uplink_rate(fabric.network_switch(1, 0)).as_gigabytes_per_s()};
  for (const auto& [plane, pods] : places.pods_of_planes()) {
    std::uint32_t nics = 0;
    std::map<Pod, std::uint32_t> kinds;  // the first pod that is so
    for (const auto& [number, pod] : pods) {
      nics += pod.nics;
      kinds.try_emplace(pod, number);
    }
    for (const auto& [pod, number] : kinds) {
      const double limit = std::min(rates.limit(pod), (nics - pod.nics) * rates.nic);
      if (is_less(rates.leaving(pod), limit)) {
        refuse(machine, "the pod of " + places.name_of(number) + " and others", rates.leaving(pod),
               limit, "its leaves have their links to spines that have few uplinks left");
      }
      for (const auto& [other, its_number] : kinds) {
        const double either = std::min(rates.limit(pod), rates.limit(other));
        const double left = rates.between(pod, other);
        if (!is_less(left, either)) continue;
        refuse(machine,
               "the pods of " + places.name_of(std::min(number, its_number)) + " and " +
                   places.name_of(std::max(number, its_number)),
               left, either, "a core joins spines of one place in their pods");
      }
    }
  }
}

std::vector<std::string> idle_failed_uplinks(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  const FailedUplinks& failed = fabric.spec().network.failed_uplinks;
  std::vector<std::string> out;
  if (failed.empty()) return out;
  const Places places(fabric);
  std::map<std::uint32_t, std::set<std::uint32_t>> racks;  // by plane, with NICs
  std::map<std::uint32_t, std::size_t> pods;               // likewise how many
  std::set<std::uint32_t> pods_with_nics;
  for (const auto& [leaf, nics] : places.nics()) {
    const std::uint32_t plane = places.plane_of(leaf);
    racks[plane].insert(places.rack_of(leaf));
    if (places.has_pods() && pods_with_nics.insert(places.pod_of(leaf)).second) ++pods[plane];
  }
  for (const auto& [at, links] : failed) {
    const bool is_leaf = at.tier == 0;
    const bool is_taken =
        fabric.nodes() > 1 &&
        (is_leaf ? places.nics().contains(at.number) && racks[places.plane_of(at.number)].size() > 1
                 : pods_with_nics.contains(places.pod_of_spine(at.number)) &&
                       pods[places.plane_of_spine(at.number)] > 1);
    if (!is_taken) out.push_back(at.name());
  }
  return out;
}

}  // namespace weft
