#include <fmt/format.h>

#include "replay/simulate/simulate.hpp"
#include "replay/trace/fields.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

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

}  // namespace

std::string operation_text(const Recorded& recorded, std::uint32_t i) {
  const Operation& o = recorded.operations[i];
  return fmt::format("{} of {} on queue pair {}, posted at {:.3f} us", trace::opcode_name(o.opcode),
                     size_text(o.bytes), recorded.pairs[o.pair].name,
                     static_cast<double>(o.posted_ns) / 1e3);
}

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

}  // namespace weft::replay
