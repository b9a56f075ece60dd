#include <array>

#include "sim/report/diff.hpp"
#include "sim/result/fields.hpp"

namespace weft {
namespace {

constexpr std::string_view kBandwidth = "of operations, where both sides have one";

using InputField = JsonField<InputChange>;
constexpr std::array kInputFields{
    InputField{{"what", "text", "",
                "weft, commit, scenario, topology, fidelity, NCCL, seed, env, set, a parameter's "
                "key (with its device), memory path, ranks or nodes"},
               [](const InputChange& c) -> Json { return c.what; }},
    InputField{{"a", "text", "", "A's, with its unit; empty: A has none"},
               [](const InputChange& c) -> Json { return c.a; }},
    InputField{{"b", "text", "", "likewise B's"},
               [](const InputChange& c) -> Json { return c.b; }}};

using CauseField = JsonField<CauseChange>;
constexpr std::array kCauseFields{
    CauseField{{"cause", "text", "", "the kind of thing, as in a result"},
               [](const CauseChange& c) -> Json { return c.cause; }},
    CauseField{{"us_a", "number", "", "for how long it limited A, us"},
               [](const CauseChange& c) -> Json { return c.us_a; }},
    CauseField{{"us_b", "number", "", "likewise B"},
               [](const CauseChange& c) -> Json { return c.us_b; }},
    CauseField{{"grew_us", "number", "", "`us_b` - `us_a`"},
               [](const CauseChange& c) -> Json { return c.grew_us(); }},
    CauseField{{"share_a", "number", "", "of A's time, 0 to 1"},
               [](const CauseChange& c) -> Json { return c.share_a; }},
    CauseField{{"share_b", "number", "", "likewise of B's"},
               [](const CauseChange& c) -> Json { return c.share_b; }}};

Json if_bandwidth(const RowDiff& row, double value) {
  return row.has_bandwidth() ? Json(value) : Json();
}

using RowField = JsonField<RowDiff>;
constexpr std::array kRowFields{
    RowField{{"op", "text", "", "the operation, a traffic's, or step"},
             [](const RowDiff& r) -> Json { return r.a.op; }},
    RowField{{"bytes", "whole number", "", "its size; of steps and traffic 0"},
             [](const RowDiff& r) -> Json { return r.a.bytes; }},
    RowField{{"memory_path", "text", "", "A's: gdr, host-staged or nccl; empty: A does not say"},
             [](const RowDiff& r) -> Json { return r.a.memory_path; }},
    RowField{{"memory_path_b", "text", "", "likewise B's"},
             [](const RowDiff& r) -> Json { return r.b.memory_path; }},
    RowField{{"time_us_a", "number", "", "A's time, us"},
             [](const RowDiff& r) -> Json { return r.a.time_us; }},
    RowField{{"time_us_b", "number", "", "B's"},
             [](const RowDiff& r) -> Json { return r.b.time_us; }},
    RowField{{"time_ratio", "number", "", "`time_us_b` / `time_us_a`"},
             [](const RowDiff& r) -> Json { return r.time_ratio(); }},
    RowField{{"busbw_GBps_a", "number", kBandwidth, "A's, 1e9 bytes/s"},
             [](const RowDiff& r) { return if_bandwidth(r, r.a.busbw_gb_per_s); }},
    RowField{{"busbw_GBps_b", "number", kBandwidth, "B's"},
             [](const RowDiff& r) { return if_bandwidth(r, r.b.busbw_gb_per_s); }},
    RowField{{"busbw_ratio", "number", kBandwidth, "B's / A's"},
             [](const RowDiff& r) { return if_bandwidth(r, r.busbw_ratio()); }},
    RowField{{"causes", "list", "",
              "what grew most first; empty where a side does not say what its time went to"},
             [](const RowDiff& r) { return objects_of(r.causes, kCauseFields); }}};

using LoneField = JsonField<ResultRow>;
constexpr std::array kLoneFields{
    LoneField{{"op", "text", "", "as in a row"}, [](const ResultRow& r) -> Json { return r.op; }},
    LoneField{{"bytes", "whole number", "", "likewise"},
              [](const ResultRow& r) -> Json { return r.bytes; }},
    LoneField{{"memory_path", "text", "", "likewise"},
              [](const ResultRow& r) -> Json { return r.memory_path; }}};

struct Diffs {
  const ResultDiff& results;
  const DecisionsDiff& decisions;
};

using DiffField = JsonField<Diffs>;
constexpr std::array kDiffFields{
    DiffField{{"schema", "text", "", "the version of this form: weft.diff/1"},
              [](const Diffs&) -> Json { return "weft.diff/1"; }},
    DiffField{{"inputs", "list", "",
               "what the runs were given differently; of logs NCCL's release and the job's size"},
              [](const Diffs& d) { return objects_of(d.results.inputs, kInputFields); }},
    DiffField{{"decisions", "map", "", "NCCL's, as far as both sides tell them"},
              [](const Diffs& d) { return decisions_json(d.decisions); }},
    DiffField{{"results", "list", "", "rows of both, in A's order"},
              [](const Diffs& d) { return objects_of(d.results.rows, kRowFields); }},
    DiffField{{"only_in_a", "list", "", "A's rows without counterpart"},
              [](const Diffs& d) { return objects_of(d.results.only_a, kLoneFields); }},
    DiffField{{"only_in_b", "list", "", "likewise B's"},
              [](const Diffs& d) { return objects_of(d.results.only_b, kLoneFields); }}};

}  // namespace

Json diff_json(const ResultDiff& diff, const DecisionsDiff& decisions) {
  return object_of(Diffs{diff, decisions}, kDiffFields);
}

std::vector<FormatSection> diff_format() {
  std::vector<FormatSection> out{{"", "The file.", keys_of(kDiffFields)},
                                 {"inputs[]", "What differs.", keys_of(kInputFields)}};
  for (FormatSection& section : decisions_format()) out.push_back(std::move(section));
  out.push_back({"results[]", "One operation of one size.", keys_of(kRowFields)});
  out.push_back({"results[].causes[]", "What limited it.", keys_of(kCauseFields)});
  out.push_back({"only_in_a[], only_in_b[]", "A row of one side.", keys_of(kLoneFields)});
  return out;
}

}  // namespace weft
