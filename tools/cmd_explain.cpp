#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/input/evidence/evidence.hpp"
#include "sim/io/file.hpp"
#include "sim/io/text_kind.hpp"
#include "sim/io/tool_text.hpp"
#include "sim/result/nccl_tests.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/explain_report.hpp"
#include "tools/explain_request.hpp"
#include "tools/predict_arguments.hpp"
#include "tools/stopping.hpp"

namespace weft {
namespace {

struct ExplainArguments {
  std::vector<std::string> runs;
  std::size_t before_evidence{0};  ///< how many of them
  std::string machine;
  ExplainAsked asked;
  PredictArguments predict;
  std::string params;
  std::string json;
  std::string time_limit;
};

/// Whether a file is other tools' output, or a tar or folder of it, and no run of nccl-tests. A
/// pipe can be read once only: it is what it is given as.
bool is_evidence_alone(const std::string& argument) {
  const std::string file = named_file(argument).file;
  if (is_folder(file)) return true;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return false;
  const std::string text = read_text_file(file, kMostEvidenceBytes);
  return is_tar(text) ||
         (kind_of(text) == TextKind::kEvidence && !is_nccl_tests(without_prefixes(text, file)));
}

/// `RUN --evidence a b`: what stands behind it and can be no run is evidence, too. The slow run
/// stands before it, so none takes another's place.
void take_evidence(std::size_t before, std::vector<std::string>& runs, ExplainAsked& asked) {
  if (before == 0) return;
  const auto begin =
      std::stable_partition(runs.begin() + static_cast<std::ptrdiff_t>(before), runs.end(),
                            [](const std::string& file) { return !is_evidence_alone(file); });
  for (auto at = begin; at != runs.end(); ++at) {
    asked.notes.push_back(*at + " is taken as evidence");
    asked.evidence.push_back(*at);
  }
  runs.erase(begin, runs.end());
}

ExplainAsked asked_of(const ExplainArguments& arguments, const Stop* stop) {
  ExplainAsked out = arguments.asked;
  std::vector<std::string> runs = arguments.runs;
  take_evidence(arguments.before_evidence, runs, out);
  if (runs.size() > 2) {
    const bool is_behind = arguments.before_evidence == 0 && !out.evidence.empty();
    throw InputError("explain takes a slow run and a healthy one, not more: '" + runs[2] + "'" +
                     (is_behind ? "; write the slow run before --evidence" : ""));
  }
  out.slow.file = runs[0];
  if (runs.size() == 2) out.healthy = InputText{runs[1]};
  if (!arguments.machine.empty()) out.machine = InputText{arguments.machine};
  out.gpu = arguments.predict.gpu;
  out.predict = predict_options(arguments.predict, parameter_set(arguments.params));
  out.predict.stop = stop;
  return out;
}

void run(const ExplainArguments& arguments) {
  const Stopping stopping(arguments.time_limit);
  Explained verdict{};
  bool was_stopped = false;
  bool has_failed = false;
  try {
    explain_asked(asked_of(arguments, stopping.stop()), [&](const ExplainView& view) {
      verdict = view.explanation.verdict;
      was_stopped = view.explanation.was_stopped;
      has_failed = view.has_failed;
      if (arguments.json != "-") std::cout << explain_text(view) << std::flush;
      if (!arguments.json.empty()) write_text_file(arguments.json, explain_json(view).dump());
    });
  } catch (const Stopped&) {
    throw Stopped(stopping.by() + " before all causes were predicted; nothing is written");
  }
  if (was_stopped) throw Stopped(stopping.by() + " before pairs of causes were predicted");
  if (verdict != Explained::kNotSlower) throw FaultFound("the run is slower than it should be");
  if (has_failed) throw FaultFound("the run failed by its own word");
}

}  // namespace

void add_explain_command(CommandLine& line) {
  const auto arguments = std::make_shared<ExplainArguments>();
  Command command =
      line.add("explain", "Why a run is slow: ranked causes, what each explains, how to verify it");
  command
      .argument("runs", arguments->runs,
                "the slow run, and a healthy one of the same machine if there is one: what "
                "nccl-tests prints or writes as JSON, or a measured table (scenarios/README.md)")
      .option("--machine", arguments->machine,
              "the machine as it should be: topology YAML or NCCL XML; unless given the "
              "evidence's, with all mended that weft doctor finds")
      .option("--evidence", arguments->asked.evidence,
              "what tools print on one host of the slow machine, or a tar or folder of it (weft "
              "doctor); repeatable, or behind the run several files after one")
      .option("--as", arguments->asked.as,
              "columns that the runs leave out, such as ranks=16,hosts=2,op=allreduce");
  add_predict_options(command, arguments->predict,
                      "a parameter of the healthy machine, KEY=VALUE with its unit; repeatable");
  command.option("--params", arguments->params, kParamsHelp)
      .output("--json", arguments->json, "write the result as JSON; '-' is standard output")
      .option(
          "--time-limit", arguments->time_limit,
          "end after this time, such as 30s, with what single causes explain if they are predicted "
          "by then (exit 130)")
      .example("weft explain slow.txt healthy.txt --machine topologies/hgx-h100-8nic.yaml")
      .action([arguments, command] {
        arguments->before_evidence = command.arguments_before("--evidence");
        run(*arguments);
      });
}

}  // namespace weft
