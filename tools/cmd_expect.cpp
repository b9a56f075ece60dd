#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/expect/gate.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/file.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/expect_report.hpp"
#include "tools/expect_request.hpp"
#include "tools/perftest_request.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/stopping.hpp"

namespace weft {
namespace {

struct ExpectArguments {
  ExpectAsked asked;
  std::string op;
  std::string size;
  PredictArguments predict;
  std::string params;
  std::string measured;
  std::string gate;
  std::string json;
  std::string time_limit;
};

ExpectAsked asked_of(const ExpectArguments& arguments, const Stop* stop) {
  ExpectAsked out = arguments.asked;
  if (!arguments.op.empty()) out.ops = comma_separated(arguments.op);
  if (!arguments.size.empty()) out.sizes = size_list(arguments.size);
  if (!arguments.measured.empty()) out.measured = InputText{arguments.measured};
  out.makes_gate = !arguments.gate.empty();
  out.gpu = arguments.predict.gpu;
  const ParameterSet params = parameter_set(arguments.params);
  out.is_fitted = !params.machine_fnv1a.empty();
  out.predict = predict_options(arguments.predict, params);
  out.predict.stop = stop;
  return out;
}

/// "3 of 12 rows are below the floor; the first: ..."; "" if none is.
std::string missed_text(const Judgement& judgement) {
  const auto first =
      std::find_if(judgement.rows.begin(), judgement.rows.end(),
                   [](const JudgedRow& row) { return row.judged == Judged::kBelow; });
  if (first == judgement.rows.end()) return "";
  return fmt::format("{} of {} rows are below the floor; the first: {}",
                     judgement.count(Judged::kBelow), judgement.rows.size(),
                     beside_floor_text(*first));
}

/// A gate that held nothing against a floor must not pass.
void check_any_judged(const Judgement& judgement, const ExpectArguments& arguments) {
  const std::size_t not_judged =
      judgement.count(Judged::kNoFloor) + judgement.count(Judged::kNotPredicted);
  if (not_judged < judgement.rows.size()) return;
  const JudgedRow& first = judgement.rows.front();
  throw InputError(fmt::format(
      "{}: nothing was judged: no row of {} has a floor on {}; the first, {}: {}",
      arguments.measured, judgement.rows.size(), fmt::join(arguments.asked.machine, " "),
      key_text(key_of(first.measured)), first.basis));
}

void tell(const Judgement& judgement, const ExpectArguments& arguments) {
  if (arguments.json != "-") std::cout << judgement_text(judgement) << std::flush;
  if (!arguments.json.empty()) write_text_file(arguments.json, judgement_json(judgement).dump());
  std::vector<std::string> missed = judgement.failures;
  if (const std::string below = missed_text(judgement); !below.empty()) missed.push_back(below);
  if (!missed.empty()) throw ExpectationMissed(fmt::format("{}", fmt::join(missed, "; ")));
  check_any_judged(judgement, arguments);
}

/// Refuses a gate without a floor, and tells how many rows have none.
void check_floors(const Expected& expected) {
  const std::vector<ExpectedRow>& rows = expected.healthy.rows;
  const auto has_none = [](const ExpectedRow& row) { return !row.floor(); };
  const auto without = std::count_if(rows.begin(), rows.end(), has_none);
  if (without == 0) return;
  const ExpectedRow& first = *std::find_if(rows.begin(), rows.end(), has_none);
  const std::string why = fmt::format("{} of {}, {}", first.row.op,
                                      format_size(Bytes{first.row.bytes}), first.band.basis);
  if (static_cast<std::size_t>(without) == rows.size()) {
    throw InputError("--gate: no row has a floor; the first: " + why);
  }
  std::cerr << fmt::format("note: {} of {} rows have no floor in the gate; the first: {}\n",
                           without, rows.size(), why);
}

void tell(const Expected& expected, const ExpectArguments& arguments) {
  if (!arguments.gate.empty()) check_floors(expected);
  if (arguments.json != "-" && arguments.gate != "-") {
    std::cout << expect_text(expected) << std::flush;
  }
  if (!arguments.json.empty()) write_text_file(arguments.json, expect_json(expected).dump());
  if (!arguments.gate.empty()) write_text_file(arguments.gate, gate_json(expected).dump());
}

void run(const ExpectArguments& arguments) {
  const Stopping stopping(arguments.time_limit);
  try {
    std::visit([&](const auto& answer) { tell(answer, arguments); },
               answer_of(asked_of(arguments, stopping.stop())));
  } catch (const Stopped& e) {
    throw Stopped(std::string(e.what()) + "; nothing is written");
  }
}

}  // namespace

void add_expect_command(CommandLine& line) {
  const auto arguments = std::make_shared<ExpectArguments>();
  Command command =
      line.add("expect", "What a healthy machine should give, with intervals and floors");
  command.argument("machine", arguments->asked.machine,
                   "topology YAML or NCCL XML; or evidence, as weft import takes it; or a gate");
  command
      .option("--tool", arguments->asked.tool, "whose shape, operations and sizes",
              {"nccl-tests", "perftest", "nvbandwidth"})
      .option("--op", arguments->op,
              "operations, separated by commas; unless given allreduce, of perftest write_bw; with "
              "--measured all")
      .option("--size", arguments->size,
              "sizes, separated by commas; unless given the powers of two from 8 B to 8 GiB, of "
              "perftest from 8 KiB to 8 MiB; with --measured all")
      .option("--nodes", arguments->asked.nodes, "nodes; unless given the topology's number",
              kMostExpectNodes)
      .option("--memory", arguments->asked.memory,
              "gdr or host-staged, unless given NCCL's choice; of perftest gdr or host")
      .option("--qps", arguments->asked.qps, "of perftest: queue pairs", kMostQps)
      .option("--tx-depth", arguments->asked.tx_depth, "of perftest: requests under way",
              kMostDepth)
      .option(
          "--measured", arguments->measured,
          "hold this against the floors, exit 4 if any row is below, or the run failed by its own "
          "word (an error, wrong values): a measured table, or what "
          "nccl-tests or perftest print or write as JSON")
      .option("--as", arguments->asked.as,
              "columns that --measured leaves out, such as ranks=16,hosts=2")
      .output("--gate", arguments->gate, "write the floors as JSON; '-' is standard output")
      .output("--json", arguments->json, "write the result as JSON; '-' is standard output")
      .option("--params", arguments->params, kParamsHelp)
      .option("--time-limit", arguments->time_limit, "end after this time, such as 30s (exit 130)");
  add_predict_options(command, arguments->predict,
                      "a parameter, KEY=VALUE with its unit; repeatable");
  command.example("weft expect topologies/hgx-h100-8nic.yaml --nodes 2 --gate gate.json")
      .action([arguments] { run(*arguments); });
}

}  // namespace weft
