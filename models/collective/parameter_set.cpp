#include "models/collective/parameter_set.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "models/nccl/decide/env.hpp"
#include "models/nccl/decide/path_type.hpp"
#include "sim/base/error.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"
#include "sim/io/yaml.hpp"

namespace weft {
namespace {

// What a file says beside its parameters; their keys have a dot.
constexpr std::string_view kCalibration = "calibration";
constexpr std::string_view kIntervals = "intervals";

constexpr std::array kFileKeys{
    KeySpec{"KEY", "value or map", "as the topology and the defaults have it",
            "a parameter or another key of `set`, such as `nccl.launch_ll: 4.4 us`"},
    KeySpec{kCalibration, "map", "values by hand", "what the values were fitted to"},
    KeySpec{kIntervals, "map", "no intervals", "how far predictions are off"}};
constexpr std::array kValueKeys{
    KeySpec{"value", "quantity", kRequired, "with its unit: 400 Gb/s, 256 KiB, 1.2 us"},
    KeySpec{"uncertainty", "quantity", "not said", "one standard error; for people"},
    KeySpec{"origin", "text", "assumed", "specification, published, measured, fitted or assumed"},
    KeySpec{"source", "text", "the file and line", "what says so"}};
constexpr std::array kCalibrationKeys{
    KeySpec{"schema", "text", kRequired, "weft.params/1"},
    KeySpec{"origin", "text", kRequired, "measured: the values were fitted to measured times"},
    KeySpec{"machine", "text", kRequired, "the topology's file"},
    KeySpec{"machine_fnv1a", "text", kRequired, "64-bit FNV-1a of its bytes"},
    KeySpec{"machine_content_fnv1a", "text", "no intervals",
            "the same of its keys and values, which comments do not change: which machine it is"},
    KeySpec{"date", "text", kRequired, "of the fit: year-month-day"},
    KeySpec{"weft", "text", kRequired, "version and commit: other ones may predict otherwise"},
    KeySpec{"set", "list of text", kRequired, "what the user set beside, KEY=VALUE"},
    KeySpec{"env", "list of text", kRequired, "NCCL's variables of the fit, NAME=VALUE"},
    KeySpec{"nccl_version", "text", "no NCCL, or a class's",
            "the release of NCCL whose decisions the fit followed, as in a scenario"},
    KeySpec{"data", "list", kRequired, "the measured tables"}};
constexpr std::array kDataKeys{
    KeySpec{"file", "text", kRequired, "a table"},
    KeySpec{"fnv1a", "text", kRequired, "64-bit FNV-1a of its bytes"},
    KeySpec{"fitted", "whole number", kRequired, "rows that were fitted", {}, 0, 1 << 20},
    KeySpec{"held_out", "whole number", kRequired, "rows that were held out", {}, 0, 1 << 20}};

ScenarioSetting read_value(const std::string& key, const Yaml& yaml) {
  if (!yaml.is_map()) return {key, yaml.text(), yaml.place()};
  check_keys(yaml, kValueKeys);
  const Yaml& value = yaml.require("value");
  ScenarioSetting out{key, value.text(), value.place()};
  if (const Yaml* uncertainty = yaml.find("uncertainty")) uncertainty->text();
  if (const Yaml* source = yaml.find("source")) out.source = source->text();
  if (const Yaml* origin = yaml.find("origin")) {
    const std::string& text = origin->text();
    try {
      out.origin = parse_origin(text);
    } catch (const InputError& e) {
      origin->fail(e.what());
    }
  }
  return out;
}

/// What the set was fitted to. All of it is looked at: a file that is damaged here is damaged.
void read_calibration(const Yaml& yaml, ParameterSet& out) {
  check_keys(yaml, kCalibrationKeys);
  for (const KeySpec& key : kCalibrationKeys) {
    if (key.fallback != kRequired) continue;
    const Yaml& value = yaml.require(key.name);
    if (key.form == "text") value.text();
    if (key.form == "list of text") {
      for (const Yaml& item : value.items()) item.text();
    }
  }
  const Yaml& schema = yaml.require("schema");
  if (schema.text() != kParameterSetSchema) {
    schema.fail("'" + schema.text() + "'; known: " + std::string(kParameterSetSchema));
  }
  out.machine_fnv1a = yaml.require("machine_fnv1a").text();
  if (const Yaml* const content = yaml.find("machine_content_fnv1a")) {
    out.machine_content_fnv1a = content->text();
  }
  for (const Yaml& item : yaml.require("set").items()) out.set_beside.push_back(item.text());
  for (const Yaml& item : yaml.require("env").items()) out.env_beside.push_back(item.text());
  if (const Yaml* const version = yaml.find("nccl_version")) {
    const std::string& text = version->text();
    try {
      out.nccl_version_beside = parse_nccl_version(text).text();
    } catch (const InputError& e) {
      version->fail(e.what());
    }
  }
  for (const Yaml& item : yaml.require("data").items()) {
    check_keys(item, kDataKeys);
    item.require("file").text();
    item.require("fnv1a").text();
    for (const char* count : {"fitted", "held_out"}) {
      read_integer(item.require(count), key_of(kDataKeys, count));
    }
  }
}

bool is_fitted_on(const ParameterSet& params, const TopologySpec& machine) {
  return fmt::format("{:016x}", machine.content_digest) == params.machine_content_fnv1a;
}

/// Settings and variables by name, the last of each.
class Said {
 public:
  void add(const std::string& name, const std::string& text) {
    std::string plain = text;
    std::erase(plain, ' ');
    by_name_[name] = {plain, text};
  }
  void drop(const std::string& name) { by_name_.erase(name); }
  /// What rows say themselves, and the default.
  void drop_own(bool rows_say_launch) {
    constexpr std::array<std::string_view, 18> kOfRows{
        "nodes",           "nccl.algo",          "nccl.proto",         "nccl.channels",
        "gpu.count",       "nic.count",          "nic.rate",           "wire.rate",
        "nic.latency",     "wire.seed",          "NCCL_ALGO",          "NCCL_PROTO",
        "NCCL_DEBUG",      "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_P2P_DISABLE",
        "NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS"};
    for (const std::string_view name : kOfRows) by_name_.erase(std::string(name));
    // That no GPU reaches another is a row's transport; other levels are none.
    const auto level = by_name_.find("NCCL_P2P_LEVEL");
    if (level != by_name_.end()) {
      const std::string& text = level->second.first;
      const std::string value = text.substr(text.find('=') + 1);
      if (parse_nccl_env({{level->first, value}}).p2p_level == NcclPathType::kLoc) {
        by_name_.erase(level);
      }
    }
    const auto launch = by_name_.find("nccl.launch");
    if (launch == by_name_.end()) return;
    if (rows_say_launch || launch->second.first == "nccl.launch=back-to-back") {
      by_name_.erase(launch);
    }
  }
  /// "gpu.copies=2 was not set ..."; "" if the other has all.
  std::string what_is_not_in(const Said& other, const std::string& what) const {
    for (const auto& [name, text] : by_name_) {
      const auto at = other.by_name_.find(name);
      if (at != other.by_name_.end() && at->second.first == text.first) continue;
      return text.second + " " + what;
    }
    return "";
  }

 private:
  std::map<std::string, std::pair<std::string, std::string>> by_name_;  // without blanks; as it is
};

/// "" if all is decided as it was in the fit, or nothing was.
std::string why_other_release(const ParameterSet& params, const Beside& beside) {
  const std::string& then = params.nccl_version_beside;
  if (then.empty()) {
    const auto& by = params.intervals.by;
    const bool is_class = std::ranges::find(by, "nccl") != by.end();
    return is_class && beside.is_release_asked ? "classes are of the releases that rows name" : "";
  }
  for (const std::string& now : beside.releases) {
    if (now != then) return fmt::format("NCCL {} decides, {} when it was fitted", now, then);
  }
  return "";
}

}  // namespace

ParameterSet read_parameter_set(const std::string& file) {
  return parse_parameter_set(read_text_file(file), file);
}

ParameterSet parse_parameter_set(const std::string& text, const std::string& file) {
  refuse_other_kind(text, file, TextKind::kParameters);
  ParameterSet out;
  const Yaml yaml = Yaml::parse(text, file);
  for (const auto& [key, value] : yaml.entries()) {
    if (key == kCalibration) {
      read_calibration(value, out);
    } else if (key == kIntervals) {
      out.intervals = read_intervals(value);
    } else {
      out.set.push_back(read_value(key, value));
    }
  }
  return out;
}

ErrorIntervals intervals_of(const ParameterSet& params, const Beside& beside,
                            std::vector<std::string>& notes) {
  const std::vector<ClassInterval>& classes = params.intervals.classes;
  if (classes.empty()) {
    if (!params.machine_fnv1a.empty())
      notes.emplace_back("--params has no intervals; weft calibrate says why");
    return {};
  }
  std::string why;
  if (std::ranges::find(classes, 0, &ClassInterval::configurations) != classes.end()) {
    why = "the file does not say of how many configurations they are; weft calibrate does";
  } else if (params.machine_fnv1a.empty()) {
    return params.intervals;
  } else if (beside.machine == nullptr) {
    why = "rows that name their machines are of others than it was fitted on";
  } else if (!is_fitted_on(params, *beside.machine)) {
    why = beside.machine->file + " is not the machine that it was fitted on";
  } else {
    const auto& by = params.intervals.by;
    const bool rows_say_launch = std::ranges::find(by, "launch") != by.end();
    Said now;
    for (const ScenarioSetting& s : beside.set) now.add(s.key, s.key + "=" + s.value);
    for (const auto& [name, value] : beside.env) now.add(name, name + "=" + value);
    Said then;
    for (const std::string& s : params.set_beside) then.add(s.substr(0, s.find('=')), s);
    for (const std::string& s : params.env_beside) then.add(s.substr(0, s.find('=')), s);
    for (const ScenarioSetting& fitted : params.set) then.drop(fitted.key);  // where it began
    for (Said* const each : {&now, &then}) each->drop_own(rows_say_launch);
    why = now.what_is_not_in(then, "was not set when it was fitted");
    if (why.empty()) why = then.what_is_not_in(now, "was set when it was fitted, and is not");
    if (why.empty()) why = why_other_release(params, beside);
  }
  if (why.empty()) return params.intervals;
  notes.push_back("the intervals of --params are left out: " + why);
  return {};
}

std::vector<FormatSection> parameter_set_format() {
  std::vector<FormatSection> sections{
      {"", "The file.", {kFileKeys.begin(), kFileKeys.end()}},
      {"KEY", "A value with what is known of it.", {kValueKeys.begin(), kValueKeys.end()}},
      {"calibration",
       "What the values were fitted to.",
       {kCalibrationKeys.begin(), kCalibrationKeys.end()}},
      {"calibration.data[]", "A measured table.", {kDataKeys.begin(), kDataKeys.end()}}};
  for (FormatSection& section : intervals_format()) sections.push_back(std::move(section));
  return sections;
}

}  // namespace weft
