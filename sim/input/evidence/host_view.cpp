#include "sim/input/evidence/host_view.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/input/evidence/variables.hpp"

namespace weft {
namespace {

/// What has one value of each subject, as the hardware or its settings are.
constexpr std::array<std::string_view, 25> kSingle{
    fact::kClass,        fact::kPciId,     fact::kPort,  fact::kParent,
    fact::kRootBus,      fact::kNuma,      fact::kGen,   fact::kWidth,
    fact::kTrainedWidth, fact::kMps,       fact::kMrrs,  fact::kRelaxedOrdering,
    fact::kAcs,          fact::kBar1,      fact::kBusId, fact::kNvlinks,
    fact::kRate,         fact::kLinkLayer, fact::kState, fact::kMtu,
    fact::kGdr,          fact::kCollnet,   fact::kIommu, fact::kCpu,
    fact::kKernelModules};

bool is_single(std::string_view what) {
  return std::find(kSingle.begin(), kSingle.end(), what) != kSingle.end() ||
         what.starts_with(fact::kPath);
}

/// What is to be alike on hosts of one kind: the above, and what runs there.
bool is_comparable(std::string_view what) {
  return is_single(what) || what == fact::kTrainedGen || what.starts_with(fact::kModule) ||
         what.starts_with(fact::kVersion) || what.starts_with(fact::kEnv) ||
         what.starts_with(fact::kBoot);
}

bool is_less_vague(const std::string& value, const std::string& than) {
  // "10de:" of a name whose number is not known, and a class without its subclass.
  return value.size() > than.size() && value.starts_with(than);
}

}  // namespace

std::string text_of(const Conflict& conflict) {
  const auto place = [](const Place& at) { return at.file.empty() ? "" : " (" + at.text() + ")"; };
  const std::string more =
      conflict.alike == 0 ? "" : fmt::format("; likewise {} more of these", conflict.alike);
  return fmt::format("{}: {}{} is taken, not {}{}{}", conflict.what, conflict.taken,
                     place(conflict.taken_place), conflict.other, place(conflict.other_place),
                     more);
}

HostView::HostView(const Facts& facts, std::vector<std::string> hosts)
    : facts_{facts}, hosts_{std::move(hosts)} {
  std::set<std::string> functions;
  for (const Fact& fact : facts_.all()) {
    const bool mine = std::find(hosts_.begin(), hosts_.end(), fact.host) != hosts_.end();
    if (mine && bus_id_of(fact.subject) == fact.subject) functions.insert(fact.subject);
  }
  functions_.assign(functions.begin(), functions.end());
}

std::vector<const Fact*> HostView::find(const std::string& subject, std::string_view what) const {
  std::vector<const Fact*> out;
  for (const std::string& host : hosts_) {
    const std::vector<const Fact*> more = facts_.find(host, subject, what);
    out.insert(out.end(), more.begin(), more.end());
  }
  std::sort(out.begin(), out.end());  // they stand in one vector, in order
  return out;
}

const Fact* HostView::first(const std::string& subject, std::string_view what) const {
  const Fact* out = nullptr;
  for (const std::string& host : hosts_) {
    const Fact* const found = facts_.first(host, subject, what);
    if (found != nullptr && (out == nullptr || found < out)) out = found;
  }
  return out;
}

std::vector<const Fact*> HostView::beginning(std::string_view what) const {
  std::vector<const Fact*> out;
  for (const std::string& host : hosts_) {
    const std::vector<const Fact*> more = facts_.beginning(host, what);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

std::vector<std::string> values_of(const std::vector<const Fact*>& facts) {
  std::vector<std::string> out;
  for (const Fact* fact : facts) out.push_back(fact->value);
  return out;
}

std::string HostView::value(const std::string& subject, std::string_view what) const {
  const Fact* const found = first(subject, what);
  return found == nullptr ? std::string{} : found->value;
}

std::vector<Conflict> HostView::conflicts() const {
  std::map<std::pair<std::string, std::string>, const Fact*> taken;
  std::map<std::pair<std::string, std::string>, std::size_t> matrices;  // by their files
  std::vector<Conflict> out;
  for (const Fact& fact : facts_.all()) {
    const bool mine = std::find(hosts_.begin(), hosts_.end(), fact.host) != hosts_.end();
    if (!mine || !is_single(fact.what)) continue;
    const Fact*& first = taken[{fact.subject, fact.what}];
    if (first == nullptr) {
      first = &fact;
    } else if (first->value != fact.value && !is_less_vague(fact.value, first->value) &&
               !is_less_vague(first->value, fact.value)) {
      const bool is_cell = fact.what.starts_with(fact::kPath);
      const auto files = std::pair(first->place.file, fact.place.file);
      if (is_cell && !matrices.emplace(files, out.size()).second) {
        ++out[matrices[files]].alike;
        continue;
      }
      out.push_back(
          {fact.subject + ": " + fact.what, first->value, first->place, fact.value, fact.place});
    }
  }
  return out;
}

namespace {

using SaidOnHosts =
    std::map<std::pair<std::string, std::string>, std::map<std::string, std::vector<const Fact*>>>;

/// Devices and modules that most hosts have and one has not, though its evidence would show them.
void add_absent(const Facts& facts, const std::vector<std::string>& hosts, const SaidOnHosts& said,
                std::vector<HostDifference>& odd) {
  constexpr std::string_view kDisplay = "03";  // GPUs: some tools list no other functions
  std::set<std::string> list_devices;
  std::set<std::string> list_others;
  std::set<std::string> list_modules;
  for (const Fact& fact : facts.all()) {
    if (fact.what == fact::kClass && fact.subject != "host") {
      list_devices.insert(fact.host);
      if (!fact.value.starts_with(kDisplay)) list_others.insert(fact.host);
    }
    if (fact.what == std::string(fact::kModule) + "list") list_modules.insert(fact.host);
  }
  for (const auto& [key, values] : said) {
    const bool module = key.second.starts_with(fact::kModule);
    if (key.second != fact::kClass && !module) continue;
    std::set<std::string> have;
    for (const auto& [value, by] : values) {
      for (const Fact* fact : by) have.insert(fact->host);
    }
    const bool is_gpu = values.begin()->first.starts_with(kDisplay);
    const std::set<std::string>& lists = module   ? list_modules
                                         : is_gpu ? list_devices
                                                  : list_others;
    if (have.size() * 2 <= lists.size()) continue;
    for (const std::string& host : hosts) {
      if (have.contains(host) || !lists.contains(host)) continue;
      const Fact* const usual = values.begin()->second.front();
      HostDifference& absent = odd.emplace_back();
      absent.host = host;
      absent.subject = key.first;
      absent.what = key.second;
      absent.value = "absent";
      absent.usual = usual->value;
      absent.usual_place = usual->place;
    }
  }
}

/// What a host says of one thing: one value, or several, of ranks of their own; sorted.
using Values = std::vector<std::string>;
using SaidOfOne = std::map<std::string, std::vector<const Fact*>>;  // by host

Values sorted_values_of(const std::vector<const Fact*>& facts) {
  Values out = values_of(facts);
  std::sort(out.begin(), out.end());
  return out;
}

/// NICs of each rank's own are one value of the host's, and where hosts name as many none of any.
bool join_nics(SaidOfOne& said, std::vector<Fact>& joined) {
  std::vector<Values> hosts;
  for (const auto& [host, by] : said) hosts.push_back(sorted_values_of(by));
  if (are_as_many_nics(hosts)) return false;
  if (!std::all_of(hosts.begin(), hosts.end(), name_nics)) return true;
  joined.reserve(said.size());
  for (auto& [host, by] : said) {
    joined.push_back(*by.front());
    joined.back().value = joined_nics(sorted_values_of(by));
    by = {&joined.back()};
  }
  return true;
}

/// Hosts that say what most do not, of several such what is shorter; that one says less of it is no
/// difference.
void add_differences(const std::pair<std::string, std::string>& key, SaidOfOne said,
                     std::vector<HostDifference>& odd) {
  std::vector<Fact> joined;
  const bool is_hca = key.second == std::string(fact::kEnv) + std::string(kIbHca);
  if (is_hca && !join_nics(said, joined)) return;
  std::map<Values, std::vector<std::string>> hosts;
  for (const auto& [host, by] : said) hosts[sorted_values_of(by)].push_back(host);
  if (hosts.size() < 2) return;
  const auto usual = std::max_element(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.size(), b.first.size()) < std::pair(b.second.size(), a.first.size());
  });
  const Place& usual_place = said.at(usual->second.front()).front()->place;
  for (const auto& [values, names] : hosts) {
    for (const std::string& name : names) {
      for (const Fact* fact : said.at(name)) {
        if (std::binary_search(usual->first.begin(), usual->first.end(), fact->value)) continue;
        odd.push_back({name, key.first, key.second, fact->value,
                       fmt::format("{}", fmt::join(usual->first, ", ")), fact->place, usual_place});
      }
    }
  }
}

}  // namespace

ComparedHosts compare_hosts(const Facts& facts) {
  ComparedHosts out;
  out.names = facts.hosts();
  const auto unnamed = std::find(out.names.begin(), out.names.end(), "");
  out.unnamed = unnamed != out.names.end() && out.names.size() > 1;
  if (out.unnamed) out.names.erase(unnamed);
  if (out.names.size() > 1) {
    SaidOnHosts said;
    for (const Fact& fact : facts.all()) {
      if (!fact.host.empty() && is_comparable(fact.what)) {
        said[{fact.subject, fact.what}][fact.value].push_back(&fact);
      }
    }
    for (const auto& [key, values] : said) {
      SaidOfOne by_host;
      for (const auto& [value, by] : values) {
        for (const Fact* fact : by) by_host[fact->host].push_back(fact);
      }
      add_differences(key, std::move(by_host), out.odd);
    }
    add_absent(facts, out.names, said, out.odd);
    std::stable_sort(out.odd.begin(), out.odd.end(),
                     [](const auto& a, const auto& b) { return a.host < b.host; });
  }
  // One where devices hang is known of before those whose devices alone are known, as nccl-tests
  // lists them, and these before those of which there is a log alone.
  std::set<std::string> with_devices;
  std::set<std::string> with_places;
  for (const Fact& fact : facts.all()) {
    if (fact.what == fact::kClass) with_devices.insert(fact.host);
    const bool is_place = fact.what == fact::kParent || fact.what == fact::kRootBus ||
                          fact.what.starts_with(fact::kPath);
    if (is_place) with_places.insert(fact.host);
  }
  std::map<std::string, std::pair<int, std::size_t>> rank;
  for (const std::string& name : out.names) {
    rank[name] = {with_places.contains(name) ? 0 : with_devices.contains(name) ? 1 : 2, 0};
  }
  for (const HostDifference& each : out.odd) ++rank[each.host].second;
  if (!out.names.empty()) {
    out.reference = *std::min_element(
        out.names.begin(), out.names.end(),
        [&](const std::string& a, const std::string& b) { return rank[a] < rank[b]; });
  }
  return out;
}

}  // namespace weft
