#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/collective/predict.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// What every command that predicts is asked, as a user writes it; named as its options.
struct PredictAsked {
  std::vector<std::pair<std::string, std::string>> set{};
  std::map<std::string, std::string> env{};
  std::string gpu{};
  std::string nccl_version{};
  std::string launch{};  ///< "": the default
  std::optional<std::uint64_t> seed{};
  unsigned threads{0};
};

/// All of it, and `first`, which everything else beats. Throws InputError naming the option and
/// what is allowed.
PredictOptions predict_options(const PredictAsked& asked,
                               const std::vector<ScenarioSetting>& first = {});

std::vector<ScenarioSetting> settings_of(
    const std::vector<std::pair<std::string, std::string>>& set);

/// A seed as it is written; nothing if the text is empty. Throws InputError.
std::optional<std::uint64_t> parse_seed(const std::string& text);
/// What it sets. Throws InputError: too large.
std::vector<ScenarioSetting> seed_setting(std::optional<std::uint64_t> seed);

/// Of a `--size` whose sizes ascend. Throws InputError unless they do, from 1 B to kLargestSize.
void check_ascending(const std::vector<Bytes>& sizes);
/// Throws InputError if the value of `option` is above `most`.
void check_at_most(const char* option, unsigned value, unsigned most);

}  // namespace weft
