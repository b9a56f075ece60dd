#include "models/collective/parameter_set.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

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
    KeySpec{"date", "text", kRequired, "of the fit: year-month-day"},
    KeySpec{"weft", "text", kRequired, "version and commit: other ones may predict otherwise"},
    KeySpec{"set", "list of text", kRequired, "what the user set beside, KEY=VALUE"},
    KeySpec{"env", "list of text", kRequired, "NCCL's variables of the fit, NAME=VALUE"},
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
    try {
      out.origin = parse_origin(origin->text());
    } catch (const InputError& e) {
      origin->fail(e.what());
    }
  }
  return out;
}

/// It changes no prediction, but a file that is damaged here is damaged.
void read_calibration(const Yaml& yaml, ParameterSet& out) {
  check_keys(yaml, kCalibrationKeys);
  for (const KeySpec& key : kCalibrationKeys) {
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
  for (const Yaml& item : yaml.require("set").items()) out.set_beside.push_back(item.text());
  for (const Yaml& item : yaml.require("data").items()) {
    check_keys(item, kDataKeys);
    item.require("file").text();
    item.require("fnv1a").text();
    for (const char* count : {"fitted", "held_out"}) {
      read_integer(item.require(count), key_of(kDataKeys, count));
    }
  }
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

ErrorIntervals intervals_of(const ParameterSet& params, const TopologySpec* machine,
                            std::span<const ScenarioSetting> beside,
                            std::vector<std::string>& notes) {
  if (params.intervals.classes.empty() || params.machine_fnv1a.empty()) return params.intervals;
  const auto leave_out = [&notes](const std::string& why) {
    notes.push_back("the intervals of --params are left out: " + why);
    return ErrorIntervals{};
  };
  if (machine != nullptr && fmt::format("{:016x}", machine->digest) != params.machine_fnv1a) {
    return leave_out(machine->file + " is not the machine that it was fitted on");
  }
  constexpr std::array<std::string_view, 5> kOfRows{"nodes", "nccl.algo", "nccl.proto",
                                                    "nccl.channels", "wire.seed"};
  for (const ScenarioSetting& setting : beside) {
    const std::string said = setting.key + "=" + setting.value;
    if (std::ranges::find(kOfRows, setting.key) != kOfRows.end()) continue;
    if (std::ranges::find(params.set_beside, said) != params.set_beside.end()) continue;
    return leave_out(said + " was not set when it was fitted");
  }
  return params.intervals;
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
