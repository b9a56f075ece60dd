#include "tools/step_json.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/quantity.hpp"
#include "sim/result/fields.hpp"

namespace weft {
namespace {

using ComputeField = JsonField<ComputeTime>;
constexpr std::array kComputeFields{
    ComputeField{{"name", "text", "", "what is computed"},
                 [](const ComputeTime& c) -> Json { return c.label; }},
    ComputeField{{"busy_us", "number", "", "of a GPU, on average"},
                 [](const ComputeTime& c) -> Json { return c.busy_s * 1e6; }},
    ComputeField{{"critical_us", "number", "", "on the critical path"},
                 [](const ComputeTime& c) -> Json { return c.critical_s * 1e6; }}};

using GroupField = JsonField<GroupTime>;
constexpr std::array kGroupFields{
    GroupField{{"name", "text", "", "what is split over its GPUs"},
               [](const GroupTime& g) -> Json { return g.name; }},
    GroupField{{"busy_us", "number", "",
                "of a GPU, on average: its calls, each from when all ranks have come"},
               [](const GroupTime& g) -> Json { return g.busy_s * 1e6; }},
    GroupField{
        {"exposed_us", "number", "", "of a GPU, on average: of that, while it did not compute"},
        [](const GroupTime& g) -> Json { return g.exposed_s * 1e6; }},
    GroupField{{"peers_us", "number", "",
                "of a GPU, on average: it did not compute, and other ranks had not come yet"},
               [](const GroupTime& g) -> Json { return g.peers_s * 1e6; }},
    GroupField{{"critical_us", "number", "", "on the critical path"},
               [](const GroupTime& g) -> Json { return g.critical_s * 1e6; }}};

using CallField = JsonField<StepCall>;
constexpr std::array kCallFields{
    CallField{{"group", "text", "", "who calls"},
              [](const StepCall& c) -> Json { return c.group; }},
    CallField{{"op", "text", "", "the operation, as nccl-tests names it; sends: one way"},
              [](const StepCall& c) -> Json { return c.op; }},
    CallField{{"bytes", "whole number", "", "size, as nccl-tests counts it"},
              [](const StepCall& c) -> Json { return c.bytes; }},
    CallField{{"ranks", "whole number", "", "of each communicator"},
              [](const StepCall& c) -> Json { return c.ranks; }},
    CallField{{"nodes", "whole number", "", "on which these are"},
              [](const StepCall& c) -> Json { return c.nodes; }},
    CallField{{"communicators", "whole number", "", "that do this"},
              [](const StepCall& c) -> Json { return c.groups; }},
    CallField{{"calls", "whole number", "", "of each, in a step"},
              [](const StepCall& c) -> Json { return static_cast<std::int64_t>(c.calls); }},
    CallField{{"algo", "text", "", "the algorithm that ran"},
              [](const StepCall& c) -> Json { return c.algo; }},
    CallField{{"proto", "text", "", "the protocol that ran"},
              [](const StepCall& c) -> Json { return c.proto; }},
    CallField{{"channels", "whole number", "", "channels that carried it"},
              [](const StepCall& c) -> Json { return c.channels; }},
    CallField{
        {"nccl_choice", "text", "where weft does not execute it", "what NCCL would run"},
        [](const StepCall& c) { return c.nccl_choice.empty() ? Json() : Json(c.nccl_choice); }},
    CallField{{"time_us", "number", "", "of a call, on average: from when all ranks have come"},
              [](const StepCall& c) -> Json { return c.time_us; }}};

using CauseField = JsonField<CauseShare>;
constexpr std::array kCauseFields{
    CauseField{{"cause", "text", "", "a kind of server or wait, or what is computed"},
               [](const CauseShare& c) -> Json { return c.cause; }},
    CauseField{{"where", "text", "", "the one that took most of it"},
               [](const CauseShare& c) -> Json { return c.where; }},
    CauseField{{"share", "number", "", "of the step; they sum to 1"},
               [](const CauseShare& c) -> Json { return c.share; }}};

using RowField = JsonField<StepRow>;
constexpr std::array kRowFields{
    RowField{{"memory_path", "text", "", "gdr, host-staged or nccl"},
             [](const StepRow& r) -> Json { return r.memory_path; }},
    RowField{{"step_us", "number", "", "from the first task's begin to the last one's end"},
             [](const StepRow& r) -> Json { return r.times.step_s * 1e6; }},
    RowField{{"compute", "list", "", "what GPUs compute"},
             [](const StepRow& r) { return objects_of(r.times.computes, kComputeFields); }},
    RowField{{"communication", "list", "", "groups of GPUs that exchange data, by name"},
             [](const StepRow& r) { return objects_of(r.times.groups, kGroupFields); }},
    RowField{{"idle_us", "number", "", "of a GPU, on average: it has ended, others have not"},
             [](const StepRow& r) -> Json { return r.times.idle_s * 1e6; }},
    RowField{{"calls", "list", "", "what groups call, and how NCCL runs it"},
             [](const StepRow& r) { return objects_of(r.calls, kCallFields); }},
    RowField{{"limited_by", "list", "", "the critical path, largest first"},
             [](const StepRow& r) { return objects_of(r.limited_by, kCauseFields); }},
    RowField{{"trajectory", "text", "", "a number of what happened and when, for comparisons"},
             [](const StepRow& r) -> Json { return fmt::format("{:016x}", r.trajectory); }}};

using ResultField = JsonField<StepResult>;
constexpr std::array kResultFields{
    ResultField{{"schema", "text", "", "the version of this form: weft.step/1"},
                [](const StepResult&) -> Json { return "weft.step/1"; }},
    ResultField{{"ranks", "whole number", "", "GPUs that take part"},
                [](const StepResult& r) -> Json { return r.ranks; }},
    ResultField{{"nodes", "whole number", "", "nodes that take part"},
                [](const StepResult& r) -> Json { return r.nodes; }},
    ResultField{{"results", "list", "", "the step over each memory path"},
                [](const StepResult& r) { return objects_of(r.rows, kRowFields); }},
    ResultField{{"verdict", "list of text", "", "what they come to, for people"},
                [](const StepResult& r) { return texts(r.verdict); }},
    ResultField{{"notes", "list of text", "", "what is left out, NCCL's choices, warnings"},
                [](const StepResult& r) { return texts(r.notes); }},
    ResultField{{"incomplete", "list of text", "if it was stopped early",
                 "the memory paths that are missing: Ctrl-C, SIGTERM or --time-limit came first"},
                [](const StepResult& r) { return r.not_run.empty() ? Json() : texts(r.not_run); }},
    ResultField{{"provenance", "map", "", "what the result was made from, as weft.run/1 has it"},
                [](const StepResult& r) { return to_json(r.provenance); }}};

std::string line(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text + '\n';
}

std::string row_text(const StepRow& row) {
  const double step = row.times.step_s;
  const auto cell = [&](double seconds) {
    return fmt::format("{:>12.3f} {:>6.1f}", seconds * 1e3, step > 0 ? 100 * seconds / step : 0);
  };
  const std::string none(19, ' ');
  std::string out = fmt::format("# {}: a step of {:.3f} ms\n", row.memory_path, step * 1e3);
  out += line(fmt::format("#{:<19} {:>19} {:>19} {:>19} {:>19}", " what", "critical path", "busy",
                          "exposed", "waits for ranks"));
  out += line(fmt::format("#{:<19} {:>12} {:>6} {:>12} {:>6} {:>12} {:>6} {:>12} {:>6}", "", "(ms)",
                          "(%)", "(ms)", "(%)", "(ms)", "(%)", "(ms)", "(%)"));
  for (const ComputeTime& c : row.times.computes) {
    if (c.busy_s == 0) continue;
    out += line(fmt::format(" {:<19} {} {}", c.label, cell(c.critical_s), cell(c.busy_s)));
  }
  for (const GroupTime& g : row.times.groups) {
    out += line(fmt::format(" {:<19} {} {} {} {}", g.name, cell(g.critical_s), cell(g.busy_s),
                            cell(g.exposed_s), cell(g.peers_s)));
  }
  if (row.times.idle_s > 0) {
    out += line(fmt::format(" {:<19} {} {} {} {}", "(has ended)", none, none, none,
                            cell(row.times.idle_s)));
  }
  out += "#\n";
  out += line(fmt::format("#{:<19} {:>13} {:>12} {:>5} {:>5} {:>5} {:>6} {:>8} {:>7} {:>3} {:>10}",
                          " calls of", "operation", "bytes", "ranks", "nodes", "comms", "calls",
                          "algo", "proto", "nch", "time (us)"));
  for (const StepCall& c : row.calls) {
    out += line(fmt::format(
        " {:<19} {:>13} {:>12} {:>5} {:>5} {:>5} {:>6} {:>8} {:>7} {:>3} {:>10.1f}", c.group, c.op,
        c.bytes, c.ranks, c.nodes, c.groups, c.calls, c.algo, c.proto, c.channels, c.time_us));
  }
  out += "#\n# critical path by cause\n";
  for (const CauseShare& cause : row.limited_by) {
    if (cause.share < 0.001) continue;
    out += fmt::format(" {:>5.1f} % {}{}\n", 100 * cause.share, cause.cause,
                       cause.where.empty() ? "" : " (" + cause.where + ")");
  }
  return out + "#\n";
}

}  // namespace

Json to_json(const StepResult& result) { return object_of(result, kResultFields); }

std::vector<FormatSection> step_result_format() {
  return {{"", "The file.", keys_of(kResultFields)},
          {"results[]", "One memory path.", keys_of(kRowFields)},
          {"results[].compute[]", "What is computed.", keys_of(kComputeFields)},
          {"results[].communication[]", "Groups of one name.", keys_of(kGroupFields)},
          {"results[].calls[]", "Calls that are alike.", keys_of(kCallFields)},
          {"results[].limited_by[]", "A cause.", keys_of(kCauseFields)}};
}

std::string step_text(const StepResult& result) {
  std::string out =
      fmt::format("# weft step: {} GPUs on {} nodes\n#\n", result.ranks, result.nodes);
  for (const StepRow& row : result.rows) out += row_text(row);
  if (!result.not_run.empty()) {
    out += fmt::format("# incomplete: {} missing, as it was stopped\n#\n",
                       fmt::join(result.not_run, ", "));
  }
  for (const std::string& sentence : result.verdict) out += "# " + sentence + '\n';
  for (const std::string& note : result.notes) out += "# note: " + note + '\n';
  return out;
}

}  // namespace weft
