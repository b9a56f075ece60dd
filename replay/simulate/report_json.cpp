#include <array>

#include <fmt/format.h>

#include "replay/simulate/simulate.hpp"
#include "replay/trace/fields.hpp"
#include "sim/io/csv.hpp"
#include "sim/result/fields.hpp"

namespace weft::replay {
namespace {

using ClassField = JsonField<ErrorClass>;
constexpr std::array kClassFields{
    ClassField{{"opcode", "text", "", "as in a trace: write, send, read, ..., no receives"},
               [](const ErrorClass& c) -> Json { return trace::opcode_name(c.opcode); }},
    ClassField{{"up_to_bytes", "whole number", "",
                "the largest size, a power of two; the class below ends at half of it"},
               [](const ErrorClass& c) { return whole(c.up_to_bytes); }},
    ClassField{{"n", "whole number", "", "operations"},
               [](const ErrorClass& c) { return whole(c.n); }},
    ClassField{{"p10", "number", "",
                "of the times from post to completion, predicted / recorded - 1: a tenth of the "
                "operations lie below"},
               [](const ErrorClass& c) -> Json { return c.p10; }},
    ClassField{{"median", "number", "", "likewise a half"},
               [](const ErrorClass& c) -> Json { return c.median; }},
    ClassField{{"p90", "number", "", "likewise nine tenths"},
               [](const ErrorClass& c) -> Json { return c.p90; }}};

using GoodputField = JsonField<GoodputStep>;
constexpr std::array kGoodputFields{
    GoodputField{{"from_us", "number", "", "where the part begins, us since the first post"},
                 [](const GoodputStep& s) -> Json { return s.from.as_us(); }},
    GoodputField{
        {"recorded_GBps", "number", "", "bytes completed in it over its time, 1e9 bytes/s"},
        [](const GoodputStep& s) -> Json { return s.recorded_gigabytes_per_s; }},
    GoodputField{{"predicted_GBps", "number", "", "likewise on the simulator"},
                 [](const GoodputStep& s) -> Json { return s.predicted_gigabytes_per_s; }}};

/// What a report is made of.
struct Reported {
  const Recorded& recorded;
  const Replay& replay;
  const Comparison& comparison;
  const ReplayFacts& facts;
};

using DivergenceField = JsonField<Reported>;  // where there is one
constexpr std::array kDivergenceFields{
    DivergenceField{
        {"operation", "whole number", "", "its place in the order of posts, from 0, as in the CSV"},
        [](const Reported& r) -> Json { return r.comparison.first->operation; }},
    DivergenceField{{"what", "text", "", "opcode, size, queue pair and time of its post"},
                    [](const Reported& r) -> Json {
                      return operation_text(r.recorded, r.comparison.first->operation);
                    }},
    DivergenceField{{"ratio", "number", "", "predicted / recorded time"},
                    [](const Reported& r) -> Json { return r.comparison.first->ratio; }}};

using Count = std::pair<std::string, std::uint64_t>;
using CountField = JsonField<Count>;
constexpr std::array kCountFields{
    CountField{{"what", "text", "", "the reason"}, [](const Count& c) -> Json { return c.first; }},
    CountField{{"n", "whole number", "", "how often"},
               [](const Count& c) { return whole(c.second); }}};

Json counts_json(const std::map<std::string, std::uint64_t>& counts) {
  return objects_of(std::vector<Count>(counts.begin(), counts.end()), kCountFields);
}

using ReportField = JsonField<Reported>;
constexpr std::array kReportFields{
    ReportField{{"schema", "text", "", "the version of this form: weft.replay/1"},
                [](const Reported&) -> Json { return "weft.replay/1"; }},
    ReportField{{"trace", "text", "", "the trace's file"},
                [](const Reported& r) -> Json { return r.facts.trace; }},
    ReportField{{"topology", "text", "", "the topology's"},
                [](const Reported& r) -> Json { return r.facts.topology; }},
    ReportField{{"fidelity", "text", "", "fluid or packet"},
                [](const Reported& r) -> Json { return r.facts.fidelity; }},
    ReportField{{"loop", "text", "", "open or closed"},
                [](const Reported& r) -> Json { return r.facts.loop; }},
    ReportField{
        {"compared", "whole number", "", "operations that completed in both, receives aside"},
        [](const Reported& r) { return whole(r.comparison.compared); }},
    ReportField{{"recorded_span_us", "number", "",
                 "from the first post that is replayed to the last completion of these, us"},
                [](const Reported& r) -> Json { return r.comparison.recorded_span.as_us(); }},
    ReportField{{"predicted_span_us", "number", "", "likewise on the simulator"},
                [](const Reported& r) -> Json { return r.comparison.predicted_span.as_us(); }},
    ReportField{{"errors", "list", "", "by opcode and size"},
                [](const Reported& r) { return objects_of(r.comparison.classes, kClassFields); }},
    ReportField{{"goodput", "list", "", "over time, in parts of one length"},
                [](const Reported& r) { return objects_of(r.comparison.goodput, kGoodputFields); }},
    ReportField{{"factor", "number", "", "what counts as a divergence: --factor"},
                [](const Reported& r) -> Json { return r.facts.factor; }},
    ReportField{{"first_divergence", "map or null", "",
                 "the first operation, by recorded completions, that is off by more; null: none"},
                [](const Reported& r) {
                  return r.comparison.first ? object_of(r, kDivergenceFields) : Json();
                },
                true},
    ReportField{{"not_replayed", "list", "", "what of the trace is left out, and what of its file"},
                [](const Reported& r) { return counts_json(r.recorded.left_out); }},
    ReportField{{"replayed_otherwise", "list", "", "what was replayed otherwise than recorded"},
                [](const Reported& r) { return counts_json(r.replay.notes); }}};

/// One line of the CSV.
struct Line {
  std::uint32_t number;
  const Recorded& recorded;
  const Operation& operation;
  const Predicted& predicted;
};

std::string time_cell(const std::optional<Duration>& time) {
  return time ? fmt::format("{:.3f}", time->as_us()) : "";
}

std::string recorded_cell(std::uint64_t ns) {
  return time_cell(Duration::ns(static_cast<std::int64_t>(ns)));
}

/// A column of the CSV: its key's fallback says where cells are not empty.
struct Column {
  KeySpec key;
  std::string (*text)(const Line&);
};

constexpr std::array kColumns{
    Column{{"operation", "whole number", "", "its place in the order of posts, from 0"},
           [](const Line& l) { return std::to_string(l.number); }},
    Column{{"pair", "whole number", "unless no completion tells a shared queue's receive",
            "the queue pair's number in the trace"},
           [](const Line& l) {
             const std::uint32_t pair = l.operation.pair;
             return pair == kNone ? "" : std::to_string(l.recorded.pairs[pair].name);
           }},
    Column{{"opcode", "text", "", "as in a trace: write, send, receive, ..."},
           [](const Line& l) { return std::string(trace::opcode_name(l.operation.opcode)); }},
    Column{{"bytes", "whole number", "", "its size"},
           [](const Line& l) { return std::to_string(l.operation.bytes); }},
    Column{{"recorded_post_us", "number", "", "when it was posted, us since the trace's begin"},
           [](const Line& l) { return recorded_cell(l.operation.posted_ns); }},
    Column{{"recorded_done_us", "number", "if it was", "when its completion was taken, likewise"},
           [](const Line& l) {
             const std::uint64_t ns = l.operation.done_ns;
             return ns == 0 ? "" : recorded_cell(ns);
           }},
    Column{{"predicted_post_us", "number", "if it was replayed",
            "when it was posted on the simulator"},
           [](const Line& l) { return time_cell(l.predicted.posted); }},
    Column{
        {"predicted_done_us", "number", "if it completed", "when its completion was taken there"},
        [](const Line& l) { return time_cell(l.predicted.done); }},
    Column{{"left_out", "text", "if it was not replayed", "why"}, [](const Line& l) {
             const char* const why = l.operation.left_out;
             return std::string(why == nullptr ? "" : why);
           }}};

}  // namespace

Json replay_json(const Recorded& recorded, const Replay& replay, const Comparison& comparison,
                 const ReplayFacts& facts) {
  return object_of(Reported{recorded, replay, comparison, facts}, kReportFields);
}

std::vector<FormatSection> replay_format() {
  return {{"", "The file.", keys_of(kReportFields)},
          {"errors[]", "Operations of one kind and about one size.", keys_of(kClassFields)},
          {"goodput[]", "A part of the time.", keys_of(kGoodputFields)},
          {"first_divergence", "The first operation that is far off.", keys_of(kDivergenceFields)},
          {"not_replayed[], replayed_otherwise[]", "A reason.", keys_of(kCountFields)}};
}

std::string replay_csv(const Recorded& recorded, const Replay& replay) {
  std::vector<std::string> cells;
  for (const Column& column : kColumns) cells.emplace_back(column.key.name);
  std::string out = csv_line(cells);
  for (std::uint32_t i = 0; i < recorded.operations.size(); ++i) {
    const Line line{i, recorded, recorded.operations[i], replay.operations[i]};
    cells.clear();
    for (const Column& column : kColumns) cells.push_back(column.text(line));
    out += csv_line(cells);
  }
  return out;
}

FormatSection replay_csv_format() {
  FormatSection out{"", "A header, then the operations in the order of posts.", {}};
  for (const Column& column : kColumns) out.keys.push_back(column.key);
  return out;
}

}  // namespace weft::replay
