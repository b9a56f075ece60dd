#include <fmt/format.h>

#include "replay/simulate/simulate.hpp"
#include "replay/trace/fields.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/csv.hpp"

namespace weft::replay {
namespace {

std::string size_text(std::uint64_t bytes) {
  return format_size(Bytes{static_cast<std::int64_t>(bytes)});
}

std::string class_text(const ErrorClass& c) {
  return fmt::format("  {:<22} {:>10} {:>9} {:>+9.1f} {:>+9.1f} {:>+9.1f}\n",
                     trace::opcode_name(c.opcode), size_text(c.up_to_bytes), c.n, 100 * c.p10,
                     100 * c.median, 100 * c.p90);
}

std::string counts_text(const char* head, const std::map<std::string, std::uint64_t>& counts) {
  if (counts.empty()) return {};
  std::string out = fmt::format("\n{}\n", head);
  for (const auto& [what, n] : counts) out += fmt::format("  {:>9} {}\n", n, what);
  return out;
}

/// "write of 64 KiB on queue pair 7, posted at 12.3 us".
std::string operation_text(const Recorded& recorded, std::uint32_t i) {
  const Operation& o = recorded.operations[i];
  return fmt::format("{} of {} on queue pair {}, posted at {:.3f} us", trace::opcode_name(o.opcode),
                     size_text(o.bytes), recorded.pairs[o.pair].name,
                     static_cast<double>(o.posted_ns) / 1e3);
}

Json counts_json(const std::map<std::string, std::uint64_t>& counts) {
  Json out = Json::array();
  for (const auto& [what, n] : counts) {
    out.push(Json::object({{"what", what}, {"n", static_cast<std::int64_t>(n)}}));
  }
  return out;
}

Json classes_json(const std::vector<ErrorClass>& classes) {
  Json out = Json::array();
  for (const ErrorClass& c : classes) {
    out.push(Json::object({{"opcode", trace::opcode_name(c.opcode)},
                           {"up_to_bytes", static_cast<std::int64_t>(c.up_to_bytes)},
                           {"n", static_cast<std::int64_t>(c.n)},
                           {"p10", c.p10},
                           {"median", c.median},
                           {"p90", c.p90}}));
  }
  return out;
}

std::string time_cell(const std::optional<Duration>& time) {
  return time ? fmt::format("{:.3f}", time->as_us()) : "";
}

}  // namespace

std::string replay_text(const Recorded& recorded, const Replay& replay,
                        const Comparison& comparison, const ReplayFacts& facts) {
  std::string out = fmt::format("# weft replay: {} on {}, {} loop, {}\n", one_line(facts.trace),
                                one_line(facts.topology), facts.loop, facts.fidelity);
  out += fmt::format("{} operations compared; span: recorded {:.3f} us, predicted {:.3f} us\n",
                     comparison.compared, comparison.recorded_span.as_us(),
                     comparison.predicted_span.as_us());
  out += fmt::format(
      "\nfrom post to completion, predicted / recorded - 1, in %\n"
      "  {:<22} {:>10} {:>9} {:>9} {:>9} {:>9}\n",
      "operation", "up to", "n", "p10", "median", "p90");
  for (const ErrorClass& c : comparison.classes) out += class_text(c);
  out += fmt::format("\ngoodput\n  {:>14} {:>16} {:>16}\n", "from [us]", "recorded [GB/s]",
                     "predicted [GB/s]");
  for (const GoodputStep& step : comparison.goodput) {
    out += fmt::format("  {:>14.3f} {:>16.4g} {:>16.4g}\n", step.from.as_us(),
                       step.recorded_gigabytes_per_s, step.predicted_gigabytes_per_s);
  }
  out += comparison.first
             ? fmt::format("\nfirst off by more than {} times: {}: {:.2f} times\n",
                           format_number(facts.factor),
                           operation_text(recorded, comparison.first->operation),
                           comparison.first->ratio)
             : fmt::format("\nnone is off by more than {} times\n", format_number(facts.factor));
  out += counts_text("not replayed", recorded.left_out);
  return out + counts_text("replayed otherwise than recorded", replay.notes);
}

Json replay_json(const Recorded& recorded, const Replay& replay, const Comparison& comparison,
                 const ReplayFacts& facts) {
  Json goodput = Json::array();
  for (const GoodputStep& step : comparison.goodput) {
    goodput.push(Json::object({{"from_us", step.from.as_us()},
                               {"recorded_GBps", step.recorded_gigabytes_per_s},
                               {"predicted_GBps", step.predicted_gigabytes_per_s}}));
  }
  Json first;
  if (comparison.first) {
    first = Json::object({{"operation", comparison.first->operation},
                          {"what", operation_text(recorded, comparison.first->operation)},
                          {"ratio", comparison.first->ratio}});
  }
  return Json::object({{"schema", "weft.replay/1"},
                       {"trace", facts.trace},
                       {"topology", facts.topology},
                       {"fidelity", facts.fidelity},
                       {"loop", facts.loop},
                       {"compared", static_cast<std::int64_t>(comparison.compared)},
                       {"recorded_span_us", comparison.recorded_span.as_us()},
                       {"predicted_span_us", comparison.predicted_span.as_us()},
                       {"errors", classes_json(comparison.classes)},
                       {"goodput", goodput},
                       {"factor", facts.factor},
                       {"first_divergence", first},
                       {"not_replayed", counts_json(recorded.left_out)},
                       {"replayed_otherwise", counts_json(replay.notes)}});
}

std::string replay_csv(const Recorded& recorded, const Replay& replay) {
  const std::vector<std::string> columns{"operation",
                                         "pair",
                                         "opcode",
                                         "bytes",
                                         "recorded_post_us",
                                         "recorded_done_us",
                                         "predicted_post_us",
                                         "predicted_done_us",
                                         "left_out"};
  std::string out = csv_line(columns);
  for (std::uint32_t i = 0; i < recorded.operations.size(); ++i) {
    const Operation& o = recorded.operations[i];
    const Predicted& p = replay.operations[i];
    std::optional<Duration> done;
    if (o.done_ns != 0) done = Duration::ns(static_cast<std::int64_t>(o.done_ns));
    out += csv_line(std::vector<std::string>{
        std::to_string(i), o.pair == kNone ? "" : std::to_string(recorded.pairs[o.pair].name),
        std::string(trace::opcode_name(o.opcode)), std::to_string(o.bytes),
        time_cell(Duration::ns(static_cast<std::int64_t>(o.posted_ns))), time_cell(done),
        time_cell(p.posted), time_cell(p.done), o.left_out == nullptr ? "" : o.left_out});
  }
  return out;
}

}  // namespace weft::replay
