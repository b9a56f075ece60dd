#include "sim/input/evidence/variables.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

bool is_exact(const std::string& value) { return value.starts_with('='); }

/// "=mlx5_0,mlx5_1" names two, of values each once.
std::vector<std::string> nics_of(const std::vector<std::string>& values) {
  std::vector<std::string> out;
  for (const std::string& value : values) {
    Scan scan(value);
    scan.skip("=");
    while (!scan.at_end()) {
      std::string nic(without_blanks(scan.until(",")));
      const bool is_new = std::find(out.begin(), out.end(), nic) == out.end();
      if (!nic.empty() && is_new) out.push_back(std::move(nic));
    }
  }
  return out;
}

/// Values of a variable by host, each once, in the evidence's order.
std::map<std::string, std::vector<const Fact*>> by_host(const std::vector<const Fact*>& facts) {
  std::map<std::string, std::vector<const Fact*>> out;
  for (const Fact* fact : facts) out[fact->host].push_back(fact);
  return out;
}

/// Whether some are exact and some prefixes, which no one value says.
bool are_mixed(const std::vector<std::string>& values) {
  return std::any_of(values.begin(), values.end(), is_exact) &&
         !std::all_of(values.begin(), values.end(), is_exact);
}

}  // namespace

bool name_nics(const std::vector<std::string>& values) {
  return std::none_of(values.begin(), values.end(), [](const std::string& value) {
    return value.starts_with('^') || nics_of({value}).empty();
  });
}

std::string joined_nics(const std::vector<std::string>& values) {
  const bool are_exact = std::all_of(values.begin(), values.end(), is_exact);
  return fmt::format("{}{}", are_exact ? "=" : "", fmt::join(nics_of(values), ","));
}

bool are_as_many_nics(const std::vector<std::vector<std::string>>& hosts) {
  std::vector<std::string> all;
  for (const std::vector<std::string>& values : hosts) {
    const auto nics = nics_of(values);
    if (!name_nics(values) || nics.size() != nics_of(hosts.front()).size()) return false;
    all.insert(all.end(), nics.begin(), nics.end());
  }
  // "mlx5" is all whose names begin so.
  return std::none_of(all.begin(), all.end(), [&all](const std::string& name) {
    return std::any_of(all.begin(), all.end(),
                       [&name](const std::string& other) { return other.starts_with(name + "_"); });
  });
}

std::map<std::string, std::string> nccl_variables(const HostView& view) {
  std::map<std::string, std::string> out;
  std::vector<std::string> hca;
  for (const Fact* fact : view.beginning(fact::kEnv)) {
    const std::string name = fact->what.substr(fact::kEnv.size());
    if (name == kIbHca) hca.push_back(fact->value);
    out.emplace(name, fact->value);
  }
  if (hca.size() > 1 && name_nics(hca)) out[std::string(kIbHca)] = joined_nics(hca);
  return out;
}

std::string ib_hca_note(const Facts& facts) {
  std::vector<const Fact*> all;
  std::set<std::string> values;
  std::vector<std::string> said;
  for (const Fact& fact : facts.all()) {
    if (fact.what != std::string(fact::kEnv) + std::string(kIbHca)) continue;
    all.push_back(&fact);
    if (!values.insert(fact.value).second) continue;
    said.push_back(fact.value + " (" + fact.place.text() + ")");
  }
  std::vector<std::vector<std::string>> hosts;
  for (const auto& [host, of_host] : by_host(all)) hosts.push_back(values_of(of_host));
  if (values.size() < 2 || !are_as_many_nics(hosts)) return "";
  constexpr std::size_t kMost = 8;
  const bool mixed = std::any_of(hosts.begin(), hosts.end(), are_mixed);
  return "NCCL_IB_HCA is of ranks or hosts their own, which is no difference between machines: " +
         known_names(std::move(said), kMost) +
         "; what is predicted uses all that one host's ranks name" +
         (mixed ? ", as prefixes: one value cannot say that some are exact (=)" : "");
}

std::vector<std::string> unused_values(const HostView& view) {
  std::map<std::string, std::vector<const Fact*>> variables;
  for (const Fact* fact : view.beginning(fact::kEnv)) variables[fact->what].push_back(fact);
  std::vector<std::string> out;
  for (const auto& [what, facts] : variables) {
    const std::string name = what.substr(fact::kEnv.size());
    const bool are_joined = name == kIbHca && name_nics(values_of(facts));
    if (are_joined || name.starts_with("NCCL_DEBUG")) continue;
    for (const Fact* fact : facts) {
      if (fact->value == facts.front()->value) continue;
      out.push_back(fmt::format("{}: {} ({}) is used, not {} ({}), of another rank or run", name,
                                facts.front()->value, facts.front()->place.text(), fact->value,
                                fact->place.text()));
      break;
    }
  }
  return out;
}

}  // namespace weft
