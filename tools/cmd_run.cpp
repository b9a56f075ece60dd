#include <charconv>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "models/predict/predict.hpp"
#include "models/predict/settings.hpp"
#include "sim/base/error.hpp"
#include "sim/io/file.hpp"
#include "sim/report/csv_report.hpp"
#include "sim/report/table.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/expectation.hpp"

namespace weft {
namespace {

struct RunArguments {
  std::string scenario;
  std::string json;
  std::string csv;
  std::string fidelity{"fluid"};
  std::vector<std::string> set;
  std::vector<std::string> env;
  std::vector<std::string> expect;
  std::string seed{"1"};
  unsigned threads{0};
};

/// CLI11 would take -1 for the largest number and cut larger ones off in silence.
std::uint64_t parse_seed(const std::string& text) {
  std::int64_t seed{};  // JSON's whole numbers are signed here
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc{} || rest != end || seed < 0) {
    throw InputError("--seed '" + text + "': write a whole number from 0 to " +
                     std::to_string(std::numeric_limits<std::int64_t>::max()));
  }
  return static_cast<std::uint64_t>(seed);
}

void run(const RunArguments& arguments) {
  if (arguments.json == "-" && arguments.csv == "-") {
    throw InputError("--json and --csv cannot both go to standard output");
  }
  if (!arguments.json.empty() && arguments.json == arguments.csv) {
    throw InputError("--json and --csv cannot both go to " + arguments.json);
  }
  if (arguments.fidelity != "fluid") {
    throw InputError("--fidelity " + arguments.fidelity + ": not there yet; known: fluid");
  }
  PredictOptions options;
  options.seed = parse_seed(arguments.seed);
  options.threads = arguments.threads;
  for (const std::string& text : arguments.set) options.set.push_back(parse_setting(text));
  for (const std::string& text : arguments.env) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) throw InputError("--env '" + text + "': write NAME=VALUE");
    options.env[text.substr(0, equals)] = text.substr(equals + 1);
  }
  std::vector<Expectation> expectations;
  for (const std::string& text : arguments.expect) expectations.push_back(parse_expectation(text));
  const ParamCatalog catalog = make_catalog();
  const RunResult result = predict(read_scenario(arguments.scenario), options, catalog);
  if (arguments.json != "-" && arguments.csv != "-") std::cout << table_text(result) << std::flush;
  if (!arguments.json.empty()) write_text_file(arguments.json, to_json(result).dump());
  if (!arguments.csv.empty()) write_text_file(arguments.csv, csv_text(result));
  for (const Expectation& expectation : expectations) expect(result, expectation);
}

}  // namespace

void add_run_command(CommandLine& line) {
  const auto arguments = std::make_shared<RunArguments>();
  line.add("run", "Simulate a scenario: times, bandwidths, what limits")
      .argument("scenario", arguments->scenario, "scenario YAML")
      .option("--json", arguments->json, "write the result as JSON; '-' is standard output")
      .option("--csv", arguments->csv, "write the rows as CSV; '-' is standard output")
      .option("--set", arguments->set, "a parameter, KEY=VALUE with its unit; repeatable")
      .option("--env", arguments->env, "an NCCL variable, NAME=VALUE; repeatable")
      .option("--expect", arguments->expect,
              "exit with 4 if this does not hold at the largest size, e.g. busbw>=380")
      .option("--fidelity", arguments->fidelity, "fluid")
      .option("--threads", arguments->threads,
              "threads; 0: one a core. The result does not depend on it", 1024)
      .option("--seed", arguments->seed, "random seed")
      .example("weft run scenarios/quickstart.yaml --set \"wire.rate=200 Gb/s\" --json out.json")
      .action([arguments] { run(*arguments); });
}

}  // namespace weft
