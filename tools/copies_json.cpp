#include "tools/copies_json.hpp"

#include <array>

#include <fmt/format.h>

#include "sim/result/fields.hpp"

namespace weft {
namespace {

Json rate(Bandwidth bandwidth) { return bandwidth.as_gigabytes_per_s(); }
Json text_if_any(const std::string& text) { return text.empty() ? Json() : Json(text); }

using CauseField = JsonField<CauseShare>;
constexpr std::array kCauseFields{
    CauseField{{"cause", "text", "", "the kind of thing"},
               [](const CauseShare& c) -> Json { return c.cause; }},
    CauseField{{"where", "text", "", "the one of that kind that took most"},
               [](const CauseShare& c) -> Json { return c.where; }},
    CauseField{{"share", "number", "", "of the time; all of a row sum to 1"},
               [](const CauseShare& c) -> Json { return c.share; }}};

using RowField = JsonField<CopyRow>;
constexpr std::array kRowFields{
    RowField{{"test", "text", "where there is one", "nvbandwidth's test that the row belongs to"},
             [](const CopyRow& r) { return text_if_any(r.test); }},
    RowField{{"from", "text", "", "a GPU, or a CPU for its memory"},
             [](const CopyRow& r) -> Json { return r.from; }},
    RowField{{"to", "text", "", "likewise"}, [](const CopyRow& r) -> Json { return r.to; }},
    RowField{{"kind", "text", "", "h2d, d2h, d2d or bidirectional"},
             [](const CopyRow& r) -> Json { return r.kind; }},
    RowField{{"gpu", "text", "", "whose engine or kernel copies; of both ways that from `from`"},
             [](const CopyRow& r) -> Json { return r.gpu; }},
    RowField{{"bytes", "whole number", "", "of one copy, each way"},
             [](const CopyRow& r) -> Json { return r.bytes.count(); }},
    RowField{{"copies", "whole number", "", "that were simulated, one after another, each way"},
             [](const CopyRow& r) -> Json { return static_cast<std::int64_t>(r.copies); }},
    RowField{{"time_us", "number", "", "of one copy, on average; of both ways the slower"},
             [](const CopyRow& r) -> Json { return r.time.as_us(); }},
    RowField{{"GBps", "number", "",
              "bytes over time, of both ways twice those of the slower; 1e9 bytes/s"},
             [](const CopyRow& r) { return rate(r.rate); }},
    RowField{{"forth_GBps", "number", "", "the rate from `from` to `to`"},
             [](const CopyRow& r) { return rate(r.forth); }},
    RowField{{"back_GBps", "number", "if both ways run", "the rate the other way"},
             [](const CopyRow& r) { return r.back ? rate(*r.back) : Json(); }},
    RowField{{"limited_by", "list", "", "what the time went to, largest first"},
             [](const CopyRow& r) { return objects_of(r.limited_by, kCauseFields); }},
    RowField{{"trajectory", "text", "", "a number of what happened and when, for comparisons"},
             [](const CopyRow& r) -> Json { return fmt::format("{:016x}", r.trajectory); }}};

using SumField = JsonField<CopySum>;
constexpr std::array kSumFields{
    SumField{{"test", "text", "where there is one", "nvbandwidth's test"},
             [](const CopySum& s) { return text_if_any(s.test); }},
    SumField{{"bytes", "whole number", "", "of one copy, each way"},
             [](const CopySum& s) -> Json { return s.bytes.count(); }},
    SumField{{"GBps", "number", "", "all rates of this test or size"},
             [](const CopySum& s) { return rate(s.rate); }}};

using ReportField = JsonField<CopiesReport>;
constexpr std::array kReportFields{
    ReportField{{"schema", "text", "", "the version of this form: weft.copies/1"},
                [](const CopiesReport&) -> Json { return "weft.copies/1"; }},
    ReportField{{"by", "text", "", "who copies: engine or kernel"},
                [](const CopiesReport& r) -> Json { return r.request.by; }},
    ReportField{{"blocks", "whole number", "", "thread blocks of a kernel; 0: one for each SM"},
                [](const CopiesReport& r) -> Json { return r.request.blocks; }},
    ReportField{{"bidirectional", "true or false", "", "each pair runs both ways at once"},
                [](const CopiesReport& r) -> Json {
                  return r.request.bidirectional && !r.request.wants_matrices();
                }},
    ReportField{{"results", "list", "", "a row for each pair and size"},
                [](const CopiesReport& r) { return objects_of(r.rows, kRowFields); }},
    ReportField{{"sums", "list", "", "of copies at once, or of a test"},
                [](const CopiesReport& r) { return objects_of(r.sums, kSumFields); }},
    ReportField{{"provenance", "map", "", "what it was made from, as in a result"},
                [](const CopiesReport& r) { return to_json(r.provenance); }}};

}  // namespace

std::string limit_text(const CopyRow& row) {
  if (row.limited_by.empty()) return {};
  const CauseShare& most = row.limited_by.front();
  return fmt::format("{} ({}) {:.0f} %", most.cause, most.where, 100 * most.share);
}

Json to_json(const CopiesReport& report) { return object_of(report, kReportFields); }

std::vector<FormatSection> copies_format() {
  return {{"", "The file.", keys_of(kReportFields)},
          {"results[]", "One pair and size.", keys_of(kRowFields)},
          {"results[].limited_by[]", "A share of its time.", keys_of(kCauseFields)},
          {"sums[]", "Rates together.", keys_of(kSumFields)}};
}

}  // namespace weft
