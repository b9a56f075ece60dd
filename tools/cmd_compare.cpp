#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/collective/compare.hpp"
#include "models/collective/parameter_set.hpp"
#include "models/registry/registry.hpp"
#include "sim/base/error.hpp"
#include "sim/input/topology_file.hpp"
#include "sim/io/file.hpp"
#include "sim/report/comparison.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/expectation.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/progress.hpp"
#include "tools/stopping.hpp"

namespace weft {
namespace {

struct CompareArguments {
  std::string measured;
  std::string as;
  std::string machine;
  std::string params;
  PredictArguments predict;
  std::string by;
  bool drop_stalls{false};
  std::string json;
  std::string csv;
  std::string time_limit;
  std::vector<std::string> expect;
};

/// The table beside its predictions; told how far it is. Throws Stopped: no row has been predicted.
Comparison compare_told(const MeasuredTable& table, const std::optional<TopologySpec>& machine,
                        PredictOptions options, const Stopping& stopping,
                        const ParamCatalog& catalog) {
  Pace pace("rows");
  const Progress progress([&pace] { return pace.text(); });
  options.stop = stopping.stop();
  options.on_progress = [&pace](const RunProgress& p) {
    pace.is_at(p.rows_done, p.rows, p.work_done / p.work);
  };
  Comparison out =
      machine ? compare(table, *machine, options, catalog) : compare(table, options, catalog);
  const auto is_predicted = [](const ComparedRow& row) { return row.predicted.has_value(); };
  if (out.is_stopped() && std::ranges::none_of(out.rows, is_predicted)) {
    throw Stopped(stopping.by() +
                  " before any row was predicted; nothing is written. Compare a table of fewer "
                  "rows, or of smaller sizes");
  }
  return out;
}

void run(const CompareArguments& arguments, const Outputs& outputs) {
  const Stopping stopping(arguments.time_limit);
  const ParameterSet params = parameter_set(arguments.params);
  const PredictOptions options = predict_options(arguments.predict, params);
  std::vector<Threshold> thresholds;
  for (const std::string& text : arguments.expect) {
    thresholds.push_back(parse_summary_threshold(text));
  }
  const MeasuredTable table = read_measured(arguments.measured, parse_stated(arguments.as));
  if (arguments.machine.empty()) {
    for (const std::string& file : machine_files(table)) outputs.keep(file, table.file);
  }
  const ComparisonView view{class_columns(arguments.by, table), arguments.drop_stalls};
  const ParamCatalog catalog = make_catalog();
  std::optional<TopologySpec> machine;
  if (!arguments.machine.empty()) machine = read_topology(arguments.machine, catalog);
  Comparison comparison = compare_told(table, machine, options, stopping, catalog);
  const Beside beside{machine ? &*machine : nullptr,
                      {options.set.begin() + std::ssize(params.set), options.set.end()},
                      options.env,
                      releases_of(comparison, options),
                      options.nccl_version.has_value()};
  add_intervals(comparison, intervals_of(params, beside, comparison.notes));
  if (arguments.json != "-" && arguments.csv != "-") {
    std::cout << comparison_text(comparison, view) << std::flush;
  }
  if (!arguments.json.empty()) {
    write_text_file(arguments.json, comparison_json(comparison, view).dump());
  }
  if (!arguments.csv.empty()) write_text_file(arguments.csv, comparison_csv(comparison));
  if (arguments.csv == "-") {  // rows have no place for notes
    for (const std::string& note : comparison.notes) std::cerr << "note: " << note << '\n';
  }
  if (comparison.is_stopped()) {
    throw Stopped(stopping.by() +
                  fmt::format(": {} of {} rows are not predicted yet; to go on, "
                              "compare a table of these alone (lines {})",
                              std::ranges::count_if(comparison.rows, &ComparedRow::is_stopped),
                              comparison.rows.size(), lines_stopped(comparison)));
  }
  const ErrorSummary summary = summary_of(counted_rows(comparison, view));
  for (const Threshold& threshold : thresholds) expect(summary, threshold);
}

}  // namespace

void add_compare_command(CommandLine& line) {
  const auto arguments = std::make_shared<CompareArguments>();
  Command command = line.add("compare", "Predict a measured table: bias and spread by class");
  command
      .argument(
          "measured", arguments->measured,
          "measured table: CSV (scenarios/README.md), or what nccl-tests, perftest or nvbandwidth "
          "print or write as JSON")
      .option("--as", arguments->as,
              "columns that the tables leave out, such as transport=nvlink,algo=Ring; logs of "
              "nccl-tests leave out how GPUs are joined")
      .option("--machine", arguments->machine,
              "the machine: topology YAML or NCCL XML; unless given each row's own")
      .option("--params", arguments->params, kParamsHelp);
  add_predict_options(command, arguments->predict,
                      "a parameter, KEY=VALUE with its unit; repeatable");
  command
      .option("--by", arguments->by,
              "the columns whose values make a class, separated by commas, or nodes (1, 2-3, 4+) "
              "and size (64 MiB and more, less); unless given "
              "transport,memory_path,ranks,op,algo,proto and, where the table has it, launch")
      .flag("--drop-stalls", arguments->drop_stalls,
            "leave out rows that took over 1.5 times as long as a larger size of the same kind; "
            "the total stands with and without them")
      .output("--json", arguments->json, "write rows and classes as JSON; '-' is standard output")
      .output("--csv", arguments->csv, "write the rows as CSV; '-' is standard output")
      .option("--time-limit", arguments->time_limit, kTimeLimitHelp)
      .option("--expect", arguments->expect,
              "exit with 4 if this does not hold of the total: bias (its size), median_abs, "
              "p90_abs or not_predicted, e.g. median_abs<=0.05")
      .example(
          "weft compare tests/data/h200/allreduce-nvlink.csv --machine topologies/h200-vm.yaml "
          "--by algo,proto --expect \"median_abs<=0.2\"")
      .action([arguments](const Outputs& outputs) { run(*arguments, outputs); });
}

}  // namespace weft
