#include "tools/predict_asked.hpp"

#include <charconv>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

constexpr std::uint64_t kMostSeed = (std::uint64_t{1} << 53) - 1;  // whole as a double

[[noreturn]] void refuse_seed(const std::string& text) {
  throw InputError(fmt::format("--seed '{}': write a whole number from 0 to {}", text, kMostSeed));
}

}  // namespace

PredictOptions predict_options(const PredictAsked& asked,
                               const std::vector<ScenarioSetting>& first) {
  PredictOptions out;
  out.threads = asked.threads;
  if (!asked.nccl_version.empty()) out.nccl_version = parse_nccl_version(asked.nccl_version);
  const auto add = [&out](const std::vector<ScenarioSetting>& settings) {
    out.set.insert(out.set.end(), settings.begin(), settings.end());
  };
  add(first);
  add(seed_setting(asked.seed));
  if (!asked.launch.empty()) out.set.push_back({"nccl.launch", asked.launch, {}});
  if (!asked.gpu.empty()) out.set.push_back({"gpu.part", asked.gpu, {}});
  add(settings_of(asked.set));
  out.env = asked.env;
  return out;
}

std::vector<ScenarioSetting> settings_of(
    const std::vector<std::pair<std::string, std::string>>& set) {
  std::vector<ScenarioSetting> out;
  for (const auto& [key, value] : set) out.push_back({key, value, {}});
  return out;
}

/// CLI11 would take -1 for the largest number and cut larger ones off in silence.
std::optional<std::uint64_t> parse_seed(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::uint64_t seed{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc{} || rest != end || seed > kMostSeed) refuse_seed(text);
  return seed;
}

std::vector<ScenarioSetting> seed_setting(std::optional<std::uint64_t> seed) {
  if (!seed) return {};
  if (*seed > kMostSeed) refuse_seed(std::to_string(*seed));
  return {{"wire.seed", std::to_string(*seed), {}}};
}

void check_ascending(const std::vector<Bytes>& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto refuse = [&](const char* why) {
      throw InputError(fmt::format("--size {}: {}", format_size(sizes[i]), why));
    };
    if (sizes[i] < Bytes{1} || sizes[i] > kLargestSize) refuse("allowed: 1 B to 4 TiB");
    if (i > 0 && sizes[i - 1] >= sizes[i]) refuse("sizes must ascend, none given twice");
  }
}

void check_at_most(const char* option, unsigned value, unsigned most) {
  if (value > most) throw InputError(fmt::format("{} {}: at most {}", option, value, most));
}

}  // namespace weft
