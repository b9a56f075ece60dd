#pragma once

#include <map>
#include <set>
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
  std::string machine_content_fnv1a{};    ///< TopologySpec::content_digest; "": an older file
  std::vector<std::string> set_beside{};  ///< when it was fitted, KEY=VALUE
  std::vector<std::string> env_beside{};  ///< likewise, NAME=VALUE
  std::string nccl_version_beside{};      ///< whose decisions were followed; "": no or several
};

/// What is asked beside a set of parameters.
struct Beside {
  const TopologySpec* machine;  ///< null: rows name theirs
  std::vector<ScenarioSetting> set;
  std::map<std::string, std::string> env;
  std::set<std::string> releases{};  ///< of NCCL whose decisions are followed; none: of traces
  bool is_release_asked{false};      ///< --nccl-version, whatever release measured rows name
};

/// The intervals of a set, which hold with all else as it was: none where the file does not say of
/// how many configurations they are, the machine is another one, or a setting or variable of NCCL
/// is there that was not when it was fitted, or was and is not, or another release's decisions are
/// followed, which `notes` then say. What rows say themselves (nodes, algorithm, channels, NICs,
/// ...) is theirs; so is the release where classes name it (`nccl`). A file without a release was
/// fitted to what no NCCL moves (verbs traces, perftest, nvbandwidth): it goes with any.
ErrorIntervals intervals_of(const ParameterSet& params, const Beside& beside,
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
