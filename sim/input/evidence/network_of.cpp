#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/input/evidence/machine.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/topology/folded_clos.hpp"

namespace weft {
namespace {

std::uint32_t most(const std::map<std::string, std::uint32_t>& counts,
                   const std::set<std::string>& of) {
  std::uint32_t out = 0;
  for (const auto& [node, count] : counts) {
    if (of.contains(node)) out = std::max(out, count);
  }
  return out;
}

/// Switches by tier, and who is cabled to whom.
class FabricShape {
 public:
  explicit FabricShape(const Facts& facts) {
    for (const Fact& fact : facts.all()) read_node(fact);
    for (const Fact& fact : facts.all()) read_cable(fact);
    find_tiers();
  }

  bool any() const { return !switches_.empty(); }
  const Place& place() const { return place_; }
  /// As a network; nullopt and `why` where it is not one of those that weft has.
  std::optional<NetworkSpec> network(std::string& why) const;
  /// The leaves that have fewer uplinks than another, for a note; "" if there are none.
  std::string thin_leaves() const;

 private:
  void read_node(const Fact& fact);
  void read_cable(const Fact& fact);
  void find_tiers();
  std::optional<bool> is_by_rail() const;
  std::map<std::string, std::uint32_t> uplinks() const;

  Place place_;
  std::set<std::string> switches_;
  std::set<std::string> adapters_;
  std::map<std::string, std::string> names_;
  std::set<std::pair<std::string, std::string>> cabled_;  // ports, by switch and fact
  std::map<std::string, std::set<std::string>> beside_;   // switches by switch
  std::map<std::string, std::uint32_t> down_;             // cables to adapters, by switch
  std::map<std::pair<std::string, std::string>, std::uint32_t> trunks_;
  std::map<std::string, std::set<std::string>> leaves_of_host_;
  std::map<std::string, std::uint32_t> adapters_of_host_;
  std::vector<std::set<std::string>> tiers_;
  bool is_tree_{true};
};

void FabricShape::read_node(const Fact& fact) {
  if (fact.what == fact::kName) names_.emplace(fact.subject, fact.value);
  if (fact.what != fact::kNode) return;
  if (place_.file.empty()) place_ = fact.place;
  (fact.value.starts_with("switch") ? switches_ : adapters_).insert(fact.subject);
}

/// Each cable stands twice, once a end, and again where several hosts bring the same output; a
/// switch's own aggregation node is no NIC.
void FabricShape::read_cable(const Fact& fact) {
  if (!fact.what.starts_with(fact::kCable) || !switches_.contains(fact.subject)) return;
  if (!cabled_.insert({fact.subject, fact.what}).second) return;
  const std::string peer(Scan(fact.value).word());
  if (switches_.contains(peer)) {
    beside_[fact.subject].insert(peer);
    ++trunks_[{fact.subject, peer}];
    return;
  }
  const auto name = names_.find(peer);
  const std::string of = name == names_.end() ? peer : name->second;
  if (holds(of, "Aggregation Node")) return;
  ++down_[fact.subject];
  const std::string host(Scan(of).word());
  leaves_of_host_[host].insert(fact.subject);
  ++adapters_of_host_[host];
}

void FabricShape::find_tiers() {
  std::set<std::string> seen;
  for (const auto& [leaf, count] : down_) seen.insert(leaf);
  for (std::set<std::string> tier = seen; !tier.empty();) {
    tiers_.push_back(tier);
    std::set<std::string> above;
    for (const std::string& node : tier) {
      for (const std::string& peer : beside_[node]) {
        is_tree_ = is_tree_ && !tier.contains(peer);
        if (!seen.contains(peer)) above.insert(peer);
      }
    }
    seen.insert(above.begin(), above.end());
    tier = std::move(above);
  }
}

/// Whether hosts of several NICs have each on a leaf of its own, or all on one; nullopt if neither.
std::optional<bool> FabricShape::is_by_rail() const {
  std::size_t apart = 0;
  std::size_t together = 0;
  for (const auto& [host, count] : adapters_of_host_) {
    if (count < 2) continue;
    const std::size_t leaves = leaves_of_host_.at(host).size();
    apart += leaves == count ? 1 : 0;
    together += leaves == 1 ? 1 : 0;
  }
  if (apart > 0 && together > 0) return std::nullopt;
  return apart > 0;
}

std::map<std::string, std::uint32_t> FabricShape::uplinks() const {
  std::map<std::string, std::uint32_t> out;
  if (tiers_.empty()) return out;
  for (const std::string& leaf : tiers_[0]) out[leaf] = 0;
  for (const auto& [pair, count] : trunks_) {
    if (tiers_[0].contains(pair.first)) out[pair.first] += count;
  }
  return out;
}

std::string FabricShape::thin_leaves() const {
  const std::map<std::string, std::uint32_t> up = uplinks();
  const std::uint32_t usual = tiers_.empty() ? 0 : most(up, tiers_[0]);
  std::vector<std::string> thin;
  for (const auto& [leaf, count] : up) {
    const auto name = names_.find(leaf);
    if (count < usual) {
      thin.push_back(fmt::format("{} ({})", name == names_.end() ? leaf : name->second, count));
    }
  }
  return thin.empty() ? "" : fmt::format("fewer uplinks than {}: {}", usual, known_names(thin));
}

std::optional<NetworkSpec> FabricShape::network(std::string& why) const {
  NetworkSpec out;
  out.name = "fabric";
  out.place = place_;
  out.kind = NetworkSpec::Kind::kOneSwitch;
  if (tiers_.size() == 1 && tiers_[0].size() == 1) return out;
  const std::optional<bool> rails = is_by_rail();
  if (tiers_.empty() || tiers_.size() > 3 || !is_tree_) why = "is no tree of up to three tiers";
  if (!rails) why = "has hosts whose NICs are on one leaf and others by rail";
  if (tiers_.size() == 1 && rails == false) why = "has leaves that nothing joins";
  if (!why.empty()) return std::nullopt;
  const std::map<std::string, std::uint32_t> up = uplinks();
  out.kind = *rails               ? NetworkSpec::Kind::kRailOptimised
             : tiers_.size() == 3 ? NetworkSpec::Kind::kFatTree
                                  : NetworkSpec::Kind::kLeafSpine;
  if (*rails) out.tiers = static_cast<std::uint32_t>(tiers_.size());
  out.leaf_down = most(down_, tiers_[0]);
  out.leaf_up = most(up, tiers_[0]);
  out.ports = *out.leaf_down + *out.leaf_up;
  std::map<std::string, std::uint32_t> used = down_;
  for (const auto& [pair, count] : trunks_) used[pair.first] += count;
  for (const auto& [node, count] : used) out.ports = std::max(*out.ports, count);
  if (tiers_.size() == 2) out.spines = static_cast<std::uint32_t>(tiers_[1].size());
  return out;
}

}  // namespace

void set_network_of(const Facts& facts, TopologySpec& spec) {
  const FabricShape shape(facts);
  if (!shape.any() || spec.network.kind == NetworkSpec::Kind::kNone) return;
  const std::string where = shape.place().text() + ": ";
  std::string why;
  std::optional<NetworkSpec> network = shape.network(why);
  const auto nics = std::count_if(
      spec.node.devices.begin(), spec.node.devices.end(), [](const DeviceSpec& device) {
        return device.kind == DeviceKind::kNic && device.network == "fabric";
      });
  if (network) {
    try {
      if (network->kind != NetworkSpec::Kind::kOneSwitch) {
        const FoldedClos fits(*network, spec.nodes, static_cast<std::uint32_t>(nics));
      }
      spec.network = *network;
      if (const std::string thin = shape.thin_leaves(); !thin.empty()) {
        spec.notes.push_back(where + "leaves are drawn alike, though some have " + thin);
      }
      return;
    } catch (const InputError& error) {
      why = error.what();
    }
  }
  spec.notes.push_back(where + "its network is not drawn, one switch stands for it: " + why);
}

}  // namespace weft
