#include "sim/input/evidence/variables.hpp"

#include <algorithm>

#include "sim/base/error.hpp"

namespace weft {
namespace {

/// "mlx5_0" and "mlx5_1" are "mlx5_0,mlx5_1"; exact names ("=mlx5_0") stay exact where all are.
std::string joined(const std::vector<std::string>& values) {
  const bool exact = std::all_of(values.begin(), values.end(),
                                 [](const std::string& value) { return value[0] == '='; });
  std::string out = exact ? "=" : "";
  for (const std::string& value : values) {
    if (out.size() > (exact ? 1U : 0U)) out += ',';
    out += value.substr(value[0] == '=' ? 1 : 0);
  }
  return out;
}

}  // namespace

bool name_nics(const std::vector<std::string>& values) {
  return std::all_of(values.begin(), values.end(), [](const std::string& value) {
    return !value.empty() && value[0] != '^' && value != "=";
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
  if (hca.size() > 1 && name_nics(hca)) out[std::string(kIbHca)] = joined(hca);
  return out;
}

std::string ib_hca_note(const Facts& facts) {
  std::vector<std::string> values;
  std::vector<std::string> said;
  for (const Fact& fact : facts.all()) {
    if (fact.what != std::string(fact::kEnv) + std::string(kIbHca)) continue;
    if (std::find(values.begin(), values.end(), fact.value) != values.end()) continue;
    values.push_back(fact.value);
    said.push_back(fact.value + " (" + fact.place.text() + ")");
  }
  if (values.size() < 2 || !name_nics(values)) return "";
  constexpr std::size_t kMost = 8;
  return "NCCL_IB_HCA is of ranks or hosts their own, which is no difference between machines: " +
         known_names(std::move(said), kMost) +
         "; what is predicted uses all that one host's ranks name";
}

}  // namespace weft
