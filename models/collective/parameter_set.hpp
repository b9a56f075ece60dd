#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/scenario.hpp"
#include "sim/io/keys.hpp"
#include "sim/result/intervals.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// The version of the files that `weft calibrate` writes.
inline constexpr std::string_view kParameterSetSchema = "weft.params/1";

/// What `--params FILE` brings: settings, and how far predictions with them have been off.
struct ParameterSet {
  std::vector<ScenarioSetting> set;
  ErrorIntervals intervals{};
  std::string machine_fnv1a{};            ///< of the machine that it was fitted on; "": by hand
  std::vector<std::string> set_beside{};  ///< when it was fitted, KEY=VALUE
};

/// The intervals of a set, which hold with all else as it was: none where the machine is another
/// one, or a setting beside the set was not there when it was fitted, which `notes` then say. A
/// row's nodes, algorithm, protocol and channels are its own. `machine`: null where rows name it.
ErrorIntervals intervals_of(const ParameterSet& params, const TopologySpec* machine,
                            std::span<const ScenarioSetting> beside,
                            std::vector<std::string>& notes);

/// Reads a file of parameters: a YAML map of `key: value`, as a scenario's `set`, by hand or as
/// `weft calibrate` writes it. Which keys there are is for apply_settings to say. Throws InputError
/// with the place.
ParameterSet read_parameter_set(const std::string& file);
/// The same from text; `file` is the name that messages use.
ParameterSet parse_parameter_set(const std::string& text, const std::string& file);

/// Its maps with their keys.
std::vector<FormatSection> parameter_set_format();

}  // namespace weft
