#include "tools/perftest_json.hpp"

#include <array>

#include <fmt/format.h>

#include "sim/result/fields.hpp"

namespace weft {
namespace {

Json whole_number(std::uint64_t count) { return static_cast<std::int64_t>(count); }

using BufferField = JsonField<Registration>;
constexpr std::array kBufferFields{
    BufferField{{"bytes", "whole number", "", "that were registered, whole pages"},
                [](const Registration& r) -> Json { return r.bytes.count(); }},
    BufferField{{"page", "whole number", "", "bytes of a page"},
                [](const Registration& r) -> Json { return r.page.count(); }},
    BufferField{{"pages", "whole number", "", "of these"},
                [](const Registration& r) -> Json { return r.pages; }},
    BufferField{{"time_us", "number", "", "that registering took; in no rate or latency"},
                [](const Registration& r) -> Json { return r.time.as_us(); }},
    BufferField{{"bar1_used", "whole number", "", "bytes of the GPU's BAR1 window"},
                [](const Registration& r) -> Json { return r.bar1_used.count(); }}};

using EndsField = JsonField<PerftestRow>;
constexpr std::array kEndsFields{
    EndsField{{"from", "map", "", "the buffer of the end that posts"},
              [](const PerftestRow& r) { return object_of(r.from_registration, kBufferFields); }},
    EndsField{{"to", "map", "", "the other end's"},
              [](const PerftestRow& r) { return object_of(r.to_registration, kBufferFields); }}};

/// A row with what was asked for.
struct AskedRow {
  const PerftestRequest& request;
  const PerftestRow& row;
};
using SizeField = JsonField<AskedRow>;
constexpr std::array kSizeFields{
    SizeField{{"op", "text", "", "write, read or send"},
              [](const AskedRow& r) -> Json { return r.request.op; }},
    SizeField{{"mem", "text", "", "gpu, host or staged"},
              [](const AskedRow& r) -> Json { return r.request.memory; }},
    SizeField{{"post", "text", "", "who posts: cpu, gpu or proxy"},
              [](const AskedRow& r) -> Json { return r.request.post; }},
    SizeField{{"bytes", "whole number", "", "of a message"},
              [](const AskedRow& r) -> Json { return r.row.bytes.count(); }},
    SizeField{
        {"iterations", "whole number", "", "messages that were simulated, of all queue pairs"},
        [](const AskedRow& r) { return whole_number(r.row.iterations); }},
    SizeField{{"cq_moderation", "whole number", "", "requests of one completion"},
              [](const AskedRow& r) { return whole_number(r.row.cq_moderation); }},
    SizeField{
        {"bw_Gbps", "number", "", "payload while steady, both directions together; 1e9 bit/s"},
        [](const AskedRow& r) -> Json { return r.row.average.as_gigabits_per_s(); }},
    SizeField{{"bw_peak_Gbps", "number", "", "payload, the best from a post to a completion"},
              [](const AskedRow& r) -> Json { return r.row.peak.as_gigabits_per_s(); }},
    SizeField{{"msg_rate_Mpps", "number", "", "millions of messages a second, while steady"},
              [](const AskedRow& r) -> Json { return r.row.messages_per_s / 1e6; }},
    SizeField{{"latency_us", "number", "", "of one message alone"},
              [](const AskedRow& r) -> Json { return r.row.latency.as_us(); }},
    SizeField{{"registration", "map", "", "what registering the buffers takes"},
              [](const AskedRow& r) { return object_of(r.row, kEndsFields); }},
    SizeField{{"limited_by", "text", "", "what was busy all the time while rates were steady"},
              [](const AskedRow& r) -> Json { return r.row.limited_by; }},
    SizeField{{"probes", "map", "", "what ports and NICs did, as in a result of packets"},
              [](const AskedRow& r) { return to_json(r.row.probes); }},
    SizeField{{"trajectory", "text", "", "a number of what happened and when, for comparisons"},
              [](const AskedRow& r) -> Json { return fmt::format("{:016x}", r.row.trajectory); }}};

using ReportField = JsonField<PerftestReport>;
constexpr std::array kReportFields{
    ReportField{{"schema", "text", "", "the version of this form: weft.perftest/1"},
                [](const PerftestReport&) -> Json { return "weft.perftest/1"; }},
    ReportField{{"from", "text", "", "the GPU or CPU that posts, with its node"},
                [](const PerftestReport& r) -> Json { return r.from; }},
    ReportField{{"to", "text", "", "the other end"},
                [](const PerftestReport& r) -> Json { return r.to; }},
    ReportField{{"from_nic", "text", "", "the NIC of the end that posts"},
                [](const PerftestReport& r) -> Json { return r.from_nic; }},
    ReportField{{"to_nic", "text", "", "the other end's"},
                [](const PerftestReport& r) -> Json { return r.to_nic; }},
    ReportField{{"tx_depth", "whole number", "", "requests that a queue pair may have in flight"},
                [](const PerftestReport& r) -> Json { return r.options.tx_depth; }},
    ReportField{{"qps", "whole number", "", "queue pairs"},
                [](const PerftestReport& r) -> Json { return r.options.qps; }},
    ReportField{{"bidirectional", "true or false", "", "both ends post"},
                [](const PerftestReport& r) -> Json { return r.options.bidirectional; }},
    ReportField{{"results", "list", "", "a row for each message size"},
                [](const PerftestReport& r) {
                  Json rows = Json::array();
                  for (const PerftestRow& row : r.rows) {
                    rows.push(object_of(AskedRow{r.request, row}, kSizeFields));
                  }
                  return rows;
                }}};

}  // namespace

Json to_json(const PerftestReport& report) { return object_of(report, kReportFields); }

std::vector<FormatSection> perftest_format() {
  return {{"", "The file.", keys_of(kReportFields)},
          {"results[]", "One message size.", keys_of(kSizeFields)},
          {"results[].registration", "Of the buffers, before all that.", keys_of(kEndsFields)},
          {"results[].registration.from, .to", "A buffer.", keys_of(kBufferFields)}};
}

}  // namespace weft
