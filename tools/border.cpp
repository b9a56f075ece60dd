#include "tools/border.hpp"

namespace weft::api {

std::vector<ScenarioSetting> settings_of(const Settings& set) {
  std::vector<ScenarioSetting> out;
  for (const auto& [key, value] : set) out.push_back({key, value, {}});
  return out;
}

std::vector<ScenarioSetting> seed_setting(std::optional<std::uint64_t> seed) {
  constexpr std::uint64_t kMostSeed = (std::uint64_t{1} << 53) - 1;  // wire.seed
  if (!seed) return {};
  if (*seed > kMostSeed) throw InputError("seed: at most 2^53 - 1");
  return {{"wire.seed", std::to_string(*seed), {}}};
}

Cause cause_of(CauseShare cause) {
  return {std::move(cause.cause), std::move(cause.where), cause.share};
}

}  // namespace weft::api
