#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/registry/registry.hpp"
#include "replay/calibrate/calibrate.hpp"
#include "replay/calibrate/report.hpp"
#include "replay/calibrate/traces.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/progress.hpp"
#include "tools/stopping.hpp"

namespace weft {
namespace {

struct CalibrateArguments {
  std::vector<std::string> measured;
  std::string as;
  std::string machine;
  std::string params;
  std::string fit;
  std::string holdout{"0.3"};
  std::string date;
  PredictArguments predict;
  std::string time_limit;
  std::string by;
  bool drop_stalls{false};
  std::string output;
  std::string json;
  std::string fidelity{"fluid"};
  std::vector<std::string> map;
};

using Days = std::chrono::sys_days;

std::string date_text(Days days) {
  const std::chrono::year_month_day date(days);
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

/// A whole number, all of `text`.
std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string checked_date(const std::string& text) {
  const auto part = [&](std::size_t at, std::size_t n) {
    return text.size() == 10 ? whole(std::string_view{text}.substr(at, n)) : std::nullopt;
  };
  const auto year = part(0, 4);
  const auto month = part(5, 2);
  const auto day = part(8, 2);
  if (year && month && day && *year > 0 && *month > 0 && *day > 0) {
    const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                           std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*day))};
    if (date.ok() && date_text(Days(date)) == text) return text;
  }
  throw InputError("--date '" + text + "': write a day as 2026-11-22");
}

/// The day of the fit: as asked for, else as reproducible builds have it, else today (UTC).
std::string date_of(const std::string& asked) {
  if (!asked.empty()) return checked_date(asked);
  using Seconds = std::chrono::sys_seconds;
  Seconds now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  if (const char* const epoch = std::getenv("SOURCE_DATE_EPOCH"); epoch != nullptr) {
    constexpr std::int64_t kMost = 253'402'300'799;  // the end of 9999
    const auto seconds = whole(epoch);
    if (!seconds || *seconds < 0 || *seconds > kMost) {
      throw InputError("SOURCE_DATE_EPOCH='" + std::string(epoch) +
                       "': a whole number of seconds since 1970");
    }
    now = Seconds(std::chrono::seconds(*seconds));
  }
  return date_text(std::chrono::floor<std::chrono::days>(now));
}

bool is_trace(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string head(16, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  return kind_of(head) == TextKind::kTrace;
}

/// The file of --holdout, which is a share if it is a number.
std::optional<std::string> holdout_file(const CalibrateArguments& arguments) {
  if (parse_number(arguments.holdout)) return std::nullopt;
  return arguments.holdout;
}

/// All files are traces, or none is; none of their options is without effect.
bool are_traces(const CalibrateArguments& arguments) {
  std::vector<std::string> files = arguments.measured;
  if (const auto file = holdout_file(arguments)) files.push_back(*file);
  const auto traces = static_cast<std::size_t>(std::count_if(files.begin(), files.end(), is_trace));
  if (traces == 0) {
    if (!arguments.map.empty() || arguments.fidelity != "fluid") {
      throw InputError("--map and --fidelity are of verbs traces; these are measured tables");
    }
    return false;
  }
  if (traces < files.size()) {
    const auto table = std::find_if_not(files.begin(), files.end(), is_trace);
    throw InputError(*table + ": is no verbs trace, as others are; fit one kind at a time");
  }
  const PredictArguments& predict = arguments.predict;
  if (!arguments.as.empty() || arguments.drop_stalls || !predict.env.empty() ||
      !predict.nccl_version.empty() || !predict.launch.empty()) {
    throw InputError(
        "--as, --drop-stalls, --env, --nccl-version and --launch are of measured tables; these are "
        "verbs traces");
  }
  return true;
}

std::vector<MeasuredTable> read_tables(const CalibrateArguments& arguments) {
  std::vector<MeasuredTable> out;
  for (const std::string& file : arguments.measured) {
    out.push_back(read_measured(file, parse_stated(arguments.as)));
  }
  return out;
}

/// --holdout: a share if it is a number, else a file, as `read` has it.
template <typename Read>
void read_holdout(const CalibrateArguments& arguments, CalibrationRequest& request, Read read) {
  if (const auto file = holdout_file(arguments)) {
    request.holdout = read(*file);
  } else {
    request.holdout_share = *parse_number(arguments.holdout);
  }
}

void refuse_repeated(const std::vector<MeasuredTable>& tables) {
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (tables[i].digest != tables[j].digest) continue;
      throw InputError(tables[i].file + ": is the same table as " + tables[j].file);
    }
  }
}

std::string holdout_text(const CalibrateArguments& arguments, const CalibrationRequest& request) {
  if (request.holdout) return arguments.holdout;
  return fmt::format("{} of the configurations, drawn with seed {}",
                     format_number(request.holdout_share),
                     arguments.predict.seed.empty() ? "1" : arguments.predict.seed);
}

std::vector<std::string> keys_of(const std::string& text) {
  if (text.empty()) return {};
  std::vector<std::string> keys;
  for (const std::string& key : comma_separated(text)) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
      throw InputError("--fit: '" + key + "' is given twice");
    }
    keys.push_back(key);
  }
  return keys;
}

CalibrationRequest request_of(const CalibrateArguments& arguments, const ParameterSet& params) {
  if (arguments.machine.empty()) throw InputError("--machine FILE is required: a topology");
  CalibrationRequest request;
  request.options = predict_options(arguments.predict, params);
  request.keys = keys_of(arguments.fit);
  request.by = arguments.by;
  request.drop_stalls = arguments.drop_stalls;
  return request;
}

/// The tables' files, of measured rows.
void add_tables(const CalibrateArguments& arguments, CalibrationRequest& request) {
  request.tables = read_tables(arguments);
  read_holdout(arguments, request, [&](const std::string& file) {
    return read_measured(file, parse_stated(arguments.as));
  });
}

/// The traces, as tables; they must outlive the request.
TraceRuns read_traces(const CalibrateArguments& arguments) {
  std::vector<std::string> files = arguments.measured;
  if (const auto file = holdout_file(arguments)) files.push_back(*file);
  return {files, arguments.map};
}

void add_traces(const CalibrateArguments& arguments, const TraceRuns& traces,
                const ParamCatalog& catalog, CalibrationRequest& request) {
  request.tables = traces.tables();
  read_holdout(arguments, request, [&](const std::string&) {
    MeasuredTable last = request.tables.back();
    request.tables.pop_back();
    return last;
  });
  request.options.fidelity = parse_fidelity(arguments.fidelity);
  request.candidates.assign(trace_keys().begin(), trace_keys().end());
  request.predict = [&](const MeasuredTable& rows, const PredictOptions& options) {
    return traces.compare(rows, request.machine, options, catalog);
  };
}

CalibrationFacts facts_of(const CalibrateArguments& arguments, const CalibrationRequest& request) {
  CalibrationFacts facts;
  facts.machine = arguments.machine;
  facts.machine_digest = fmt::format("{:016x}", request.machine.digest);
  facts.machine_content_digest = fmt::format("{:016x}", request.machine.content_digest);
  facts.date = date_of(arguments.date);
  facts.holdout = holdout_text(arguments, request);
  for (const ScenarioSetting& s : request.options.set) facts.set.push_back(s.key + "=" + s.value);
  for (const auto& [name, value] : request.options.env) facts.env.push_back(name + "=" + value);
  return facts;
}

Calibration calibrate_told(CalibrationRequest& request, const ParamCatalog& catalog,
                           const Stopping& stopping) {
  Pace pace("predictions at most", true);
  const Progress progress([&pace] { return pace.text(); });
  request.options.stop = stopping.stop();
  request.on_progress = [&](std::size_t done, std::size_t most) {
    pace.is_at(done, most, static_cast<double>(done) / static_cast<double>(most));
  };
  try {
    return calibrate(request, catalog);
  } catch (const Stopped& e) {
    throw Stopped(stopping.by() + ", nothing is written: " + e.what());
  }
}

void run(const CalibrateArguments& arguments) {
  const Stopping stopping(arguments.time_limit);
  const ParameterSet params = parameter_set(arguments.params);
  const ParamCatalog catalog = make_catalog();
  CalibrationRequest request = request_of(arguments, params);
  std::optional<TraceRuns> traces;
  if (are_traces(arguments)) {
    traces.emplace(read_traces(arguments));
    add_traces(arguments, *traces, catalog, request);
  } else {
    add_tables(arguments, request);
  }
  refuse_repeated(request.tables);
  request.machine = read_topology(arguments.machine, catalog);
  CalibrationFacts facts = facts_of(arguments, request);
  Calibration calibration = calibrate_told(request, catalog, stopping);
  if (calibration.releases.size() == 1) facts.nccl_version = *calibration.releases.begin();
  if (traces) {
    const std::vector<std::string> notes = traces->notes();
    calibration.notes.insert(calibration.notes.end(), notes.begin(), notes.end());
  }
  const bool is_refused = !calibration.refusal.empty();
  if (arguments.json != "-" && (arguments.output != "-" || is_refused)) {
    std::cout << calibration_text(calibration, facts) << std::flush;
  }
  const bool to_file = !arguments.json.empty() && arguments.json != "-";
  const std::string report = calibration_json(calibration, facts).dump();
  const std::string parameters = is_refused ? "" : parameter_file(calibration, facts);
  std::vector<TextFile> files;
  if (arguments.json == "-" || (to_file && !is_refused)) files.push_back({arguments.json, report});
  if (!is_refused && !arguments.output.empty()) files.push_back({arguments.output, parameters});
  write_text_files(files);
  if (is_refused) throw CalibrationRefused(calibration.refusal);
}

}  // namespace

void add_calibrate_command(CommandLine& line) {
  const auto arguments = std::make_shared<CalibrateArguments>();
  Command command = line.add(
      "calibrate", "Fit parameters to measured tables or verbs traces, and say what that is worth");
  command
      .argument(
          "measured", arguments->measured,
          "measured tables: CSV (scenarios/README.md), or what nccl-tests, perftest or nvbandwidth "
          "print or write as JSON; or verbs traces (weft record); one or more")
      .option("--as", arguments->as,
              "columns that the tables leave out, such as transport=nvlink,algo=Ring; logs of "
              "nccl-tests leave out how GPUs are joined")
      .option("--machine", arguments->machine, "the machine: topology YAML or NCCL XML; required")
      .option("--fidelity", arguments->fidelity,
              "of traces, how they are replayed: shared rates, or every packet",
              {"fluid", "packet"})
      .option("--map", arguments->map,
              "of traces, a device and its NIC: mlx5_0=nic0@1, as weft replay takes it; repeatable")
      .option("--params", arguments->params,
              "a set of parameters to start from, YAML of KEY: VALUE; --set beats it")
      .option("--fit", arguments->fit,
              "the parameters to fit, separated by commas; unless given those of origin fitted, of "
              "traces those of NICs and of what joins them, as far as the rows tell them apart")
      .option("--holdout", arguments->holdout,
              "what the fit does not see: a share of the configurations (of traces: of the runs), "
              "drawn with --seed, or another measured table (another trace)")
      .output("-o,--output", arguments->output,
              "write the parameters with their intervals, YAML as --params reads it; '-' is "
              "standard output")
      .output("--json", arguments->json, "write the report as JSON; '-' is standard output")
      .option("--date", arguments->date,
              "the day that the file states, such as 2026-11-22; unless given that of "
              "SOURCE_DATE_EPOCH or today");
  add_predict_options(command, arguments->predict,
                      "a parameter, KEY=VALUE with its unit; repeatable");
  command
      .option("--by", arguments->by,
              "the columns whose values make a class, separated by commas; as in weft compare")
      .option("--time-limit", arguments->time_limit, kTimeLimitHelp)
      .flag("--drop-stalls", arguments->drop_stalls,
            "leave out rows that took over 1.5 times as long as a larger size of the same kind")
      .example(
          "weft calibrate tests/data/h200/blocks.csv --machine topologies/h200-vm.yaml --fit "
          "nccl.launch_ll,nccl.launch_ll128,nccl.launch_simple -o fitted.yaml")
      .action([arguments] { run(*arguments); });
}

}  // namespace weft
