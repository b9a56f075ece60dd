#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/input/evidence/machine.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/input/nccl_links.hpp"
#include "sim/input/nccl_parts.hpp"

namespace weft {
namespace {

constexpr const char* kNvSwitch = kNcclNvSwitchName;
/// No GPU up to Blackwell has more; what reaches more over all pairs goes through switches.
constexpr std::uint32_t kMostOfOneGpu = 18;

/// What NCCL counts a link (src/graph/topo.h: SM60_NVLINK_BW and its kin, of its releases; GB/s),
/// and the most links of a GPU of that compute capability.
struct NcclRate {
  std::int64_t first;  ///< compute capability
  std::int64_t last;
  double link;
  std::uint32_t most;
};
constexpr std::array<NcclRate, 12> kNcclRates{{{60, 69, 18.0, 4},
                                               {70, 79, 21.0, 6},   // up to 2.9
                                               {70, 79, 22.0, 6},   // then, up to 2.13
                                               {70, 79, 20.0, 6},   // since
                                               {80, 85, 21.0, 12},  // up to 2.9
                                               {80, 85, 22.0, 12},  // then, up to 2.13
                                               {80, 85, 20.0, 12},  // since
                                               {86, 86, 12.0, 4},
                                               {90, 99, 20.0, 18},      // up to 2.19
                                               {90, 99, 20.6, 18},      // since
                                               {100, 119, 20.6, 18},    // as of a Hopper, at first
                                               {100, 119, 40.1, 18}}};  // since 2.25

/// The counts of links that a rate may be of; of any GPU where the compute capability is not known.
std::set<std::uint32_t> link_counts(double rate, std::optional<std::int64_t> capability) {
  constexpr double kRounding = 0.051;  // NCCL prints one decimal
  std::set<std::uint32_t> out;
  for (const NcclRate& each : kNcclRates) {
    if (capability && (*capability < each.first || *capability > each.last)) continue;
    const double count = std::round(rate / each.link);
    const bool fits = count >= 1 && count <= each.most &&  // none of "nan"
                      std::abs(count * each.link - rate) <= kRounding;
    if (fits) out.insert(static_cast<std::uint32_t>(count));
  }
  return out;
}

struct Links {
  std::uint32_t count{0};
  Place place;
};
using Pairs = std::map<std::pair<std::string, std::string>, Links>;  // each pair once, in order

std::uint32_t whole(std::string_view text) {
  const std::optional<std::int64_t> number = Scan(text).whole();
  return number && *number > 0 && *number <= 1024 ? static_cast<std::uint32_t>(*number) : 0;
}

class LinkFinder {
 public:
  LinkFinder(const HostView& view, const FoundDevices& found, TopologySpec& spec)
      : view_{view}, found_{found}, spec_{spec} {}

  void add() {
    read_matrix();
    if (pairs_.empty()) read_nccl();
    if (pairs_.empty()) read_dump();
    if (pairs_.empty() && view_.beginning(fact::kLink).empty()) read_counts();
    note_uncounted();
    if (goes_through_switches()) {
      add_switched();
    } else {
      for (const auto& [pair, links] : pairs_) {
        spec_.node.links.push_back(
            {LinkKind::kNvlink, pair.first, pair.second, links.count, links.place});
      }
    }
    spec_.nvlinks_unknown = pairs_.empty() && !says_none();
  }

 private:
  void add_pair(const std::string& a, const std::string& b, std::uint32_t count, const Place& at) {
    if (count > 0 && a != b) pairs_.try_emplace(std::minmax(a, b), Links{count, at});
  }
  void read_matrix();
  std::map<std::string, std::string> names_by_function() const;
  void read_nccl();
  void read_dump();
  void read_counts();
  void note_uncounted();
  void add_counts_of_their_kind();
  const Fact* said_count(const FoundDevice& gpu) const;
  bool goes_through_switches() const;
  bool says_none() const;
  void add_switched();
  const DeviceSpec* device(const std::string& name) const;

  const HostView& view_;
  const FoundDevices& found_;
  TopologySpec& spec_;
  Pairs pairs_;
  std::map<std::pair<std::string, std::string>, const Fact*> uncounted_;  // NCCL's rates
};

const DeviceSpec* LinkFinder::device(const std::string& name) const {
  for (const DeviceSpec& each : spec_.node.devices) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

void LinkFinder::read_matrix() {
  std::map<std::string, std::string> name_of;
  for (const FoundDevice& gpu : found_.gpus) {
    if (!gpu.alias.empty()) name_of.emplace(gpu.alias, gpu.name);
  }
  for (const Fact* fact : view_.beginning(fact::kPath)) {
    const auto a = name_of.find(fact->subject);
    const auto b = name_of.find(fact->what.substr(fact::kPath.size()));
    if (a == name_of.end() || b == name_of.end() || !fact->value.starts_with("NV")) continue;
    add_pair(a->second, b->second, whole(std::string_view(fact->value).substr(2)), fact->place);
  }
}

/// What NCCL's log and dump call them.
std::map<std::string, std::string> LinkFinder::names_by_function() const {
  std::map<std::string, std::string> out;
  out.emplace(kNvSwitch, kNvSwitch);
  for (const FoundDevice& gpu : found_.gpus) out.emplace(gpu.function, gpu.name);
  return out;
}

/// NCCL prints the rate of all links between two: a whole number of links.
void LinkFinder::read_nccl() {
  const std::map<std::string, std::string> name_of = names_by_function();
  for (const Fact* fact : view_.beginning(fact::kNcclNvlink)) {
    const auto gpu = name_of.find(fact->subject);
    const auto peer = name_of.find(fact->what.substr(fact::kNcclNvlink.size()));
    const std::optional<double> rate = Scan(fact->value).number();
    if (gpu == name_of.end() || peer == name_of.end() || !rate) continue;
    const DeviceSpec* const spec = device(gpu->second);
    const std::set<std::uint32_t> counts =
        link_counts(*rate, spec == nullptr ? std::nullopt : gpu_compute_capability(spec->part));
    if (counts.size() == 1) {
      add_pair(gpu->second, peer->second, *counts.begin(), fact->place);
    } else {
      uncounted_.emplace(std::minmax(gpu->second, peer->second), fact);
    }
  }
}

/// Rates of NCCL's that are of no one count, where nothing else counts these links.
void LinkFinder::note_uncounted() {
  std::vector<std::string> left_out;
  const Fact* first = nullptr;
  for (const auto& [pair, fact] : uncounted_) {
    const bool is_counted =
        pairs_.contains(pair) || pairs_.contains(std::minmax(pair.first, std::string(kNvSwitch)));
    if (is_counted) continue;
    if (first == nullptr) first = fact;
    left_out.push_back(pair.first + " to " + pair.second);
  }
  if (first == nullptr) return;
  spec_.notes.push_back("NCCL's " + first->value + " GB/s (" + first->place.text() +
                        ") do not say how many NVLinks they are of, and are left out: " +
                        known_names(left_out) + "; `nvidia-smi topo -m` would tell");
}

/// NCCL's topology dump says how many lead where.
void LinkFinder::read_dump() {
  const std::map<std::string, std::string> name_of = names_by_function();
  for (const Fact* fact : view_.beginning(fact::kLink)) {
    const auto gpu = name_of.find(fact->subject);
    const auto peer = name_of.find(fact->what.substr(fact::kLink.size()));
    if (gpu == name_of.end() || peer == name_of.end()) continue;
    add_pair(gpu->second, peer->second, whole(fact->value), fact->place);
  }
}

const Fact* LinkFinder::said_count(const FoundDevice& gpu) const {
  const Fact* const said = view_.first(gpu.name, fact::kNvlinks);
  return said == nullptr ? view_.first(gpu.function, fact::kNvlinks) : said;
}

/// A list that is cut says no count of a GPU: that of another of its part is taken.
void LinkFinder::add_counts_of_their_kind() {
  std::vector<std::string> without;
  std::map<std::string, Links> by_part;
  for (const FoundDevice& gpu : found_.gpus) {
    const DeviceSpec* const spec = device(gpu.name);
    const auto counted = pairs_.find(std::minmax(gpu.name, std::string(kNvSwitch)));
    if (spec != nullptr && counted != pairs_.end()) by_part.emplace(spec->part, counted->second);
  }
  for (const FoundDevice& gpu : found_.gpus) {
    const DeviceSpec* const spec = device(gpu.name);
    const auto alike = spec == nullptr ? by_part.end() : by_part.find(spec->part);
    if (said_count(gpu) != nullptr || alike == by_part.end()) continue;
    add_pair(gpu.name, kNvSwitch, alike->second.count, alike->second.place);
    without.push_back(gpu.name);
  }
  if (!without.empty()) {
    spec_.notes.push_back("nothing counts the NVLinks of " + known_names(without) +
                          ": as many as another GPU of that kind has are assumed; all of "
                          "`nvidia-smi nvlink -s` would tell");
  }
}

/// `nvidia-smi nvlink -s` says how many, not whereto: of GPUs with as many each, to switches.
void LinkFinder::read_counts() {
  for (const FoundDevice& gpu : found_.gpus) {
    const Fact* const said = said_count(gpu);
    if (said != nullptr) add_pair(gpu.name, kNvSwitch, whole(said->value), said->place);
  }
  add_counts_of_their_kind();
  if (!pairs_.empty()) {
    spec_.notes.push_back(
        "NVLinks are taken to lead to an NVSwitch: assumed; `nvidia-smi topo -m` would tell");
  }
}

bool LinkFinder::goes_through_switches() const {
  std::map<std::string, std::uint32_t> of_gpu;
  for (const auto& [pair, links] : pairs_) {
    if (pair.first == kNvSwitch || pair.second == kNvSwitch) return true;
    of_gpu[pair.first] += links.count;
    of_gpu[pair.second] += links.count;
  }
  return std::any_of(of_gpu.begin(), of_gpu.end(),
                     [](const auto& each) { return each.second > kMostOfOneGpu; });
}

/// A matrix without NVLink says that there is none.
bool LinkFinder::says_none() const {
  if (std::any_of(found_.gpus.begin(), found_.gpus.end(),
                  [this](const FoundDevice& gpu) { return said_count(gpu) != nullptr; })) {
    return true;  // all links are down
  }
  for (const Fact* fact : view_.beginning(fact::kPath)) {
    if (fact->subject.starts_with("gpu") && fact->what.starts_with("path to gpu")) return true;
  }
  return !view_.beginning(fact::kNcclPcie).empty();  // NCCL's tree would show them
}

void LinkFinder::add_switched() {
  std::map<std::string, Links> of_gpu;
  for (const auto& [pair, links] : pairs_) {
    for (const std::string& gpu : {pair.first, pair.second}) {
      if (gpu == kNvSwitch) continue;
      Links& most = of_gpu[gpu];
      if (links.count > most.count) most = links;
    }
  }
  DeviceSpec nvswitch;
  nvswitch.name = kNvSwitch;
  nvswitch.kind = DeviceKind::kNvSwitch;
  nvswitch.place = of_gpu.begin()->second.place;
  spec_.node.devices.push_back(std::move(nvswitch));
  for (const FoundDevice& gpu : found_.gpus) {
    const auto found = of_gpu.find(gpu.name);
    if (found == of_gpu.end()) continue;
    Links links = found->second;
    // The matrix has what was set up; that links have gone down since only nvlink -s shows.
    const Fact* const up = said_count(gpu);
    if (up != nullptr && whole(up->value) < links.count) links = {whole(up->value), up->place};
    if (links.count == 0) continue;
    spec_.node.links.push_back({LinkKind::kNvlink, gpu.name, kNvSwitch, links.count, links.place});
  }
}

}  // namespace

void add_nvlinks(const HostView& view, const FoundDevices& found, TopologySpec& spec) {
  LinkFinder(view, found, spec).add();
}

}  // namespace weft
