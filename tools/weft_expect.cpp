#include <algorithm>
#include <utility>
#include <variant>

#include "models/expect/gate.hpp"
#include "sim/io/file.hpp"
#include "tools/border.hpp"
#include "tools/expect_report.hpp"
#include "tools/expect_request.hpp"
#include "tools/weft.hpp"

namespace weft::api {
namespace {

ExpectAsked asked_of(const ExpectOptions& options, const Settings& machine) {
  ExpectAsked out;
  out.tool = options.tool;
  out.ops = options.op;
  out.sizes = sizes_of(options.bytes);
  check_ascending(out.sizes);
  out.nodes = options.nodes;
  out.memory = options.memory;
  out.qps = options.qps;
  out.tx_depth = options.tx_depth;
  if (options.measured) out.measured = {options.measured->name(), options.measured->text()};
  out.as = options.as;
  out.gpu = options.gpu;
  out.predict = predict_options(predict_asked(options), settings_of(machine));
  return out;
}

/// A rate of a latency test as the time that it prints; none of other tests.
std::optional<double> latency_of(const weft::ExpectedRow& row, double gb_per_s) {
  if (!is_latency(row.row.op)) return std::nullopt;
  return latency_us(row.row.bytes, gb_per_s);
}

ExpectedRow row_of(const weft::ExpectedRow& row, const std::string& state) {
  const bool of_perftest = are_perftest({row.row.op});
  ExpectedRow out{state,
                  row.row.op,
                  row.row.bytes,
                  row.row.ranks,
                  row.row.nodes,
                  row.row.memory_path,
                  row.row.algo,
                  row.row.proto,
                  of_perftest ? row.qps : 0,
                  of_perftest ? row.tx_depth : 0,
                  row.row.time_us,
                  row.row.busbw_gb_per_s,
                  row.low(),
                  row.high(),
                  latency_of(row, row.high()),
                  latency_of(row, row.low()),
                  row.floor(),
                  row.basis(),
                  {}};
  for (const CauseShare& cause : row.row.limited_by) out.limited_by.push_back(cause_of(cause));
  return out;
}

/// None where there is none.
std::optional<double> if_positive(double value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

JudgedRow row_of(const weft::JudgedRow& row) {
  using Rate = std::optional<double>;
  return {row.measured.op,
          row.measured.bytes,
          row.measured.ranks,
          row.measured.hosts,
          row.measured.line,
          row.measured.busbw_gb_per_s,
          std::string(judged_name(row.judged)),
          if_positive(row.floor),
          if_positive(row.expected),
          if_positive(row.low),
          if_positive(row.high),
          row.found ? Rate(row.found->low()) : std::nullopt,
          row.found ? Rate(row.found->high()) : std::nullopt,
          row.basis};
}

Expected answer_with(const weft::Expected& expected) {
  Expected out;
  const auto add = [&](const ExpectedState& state) {
    for (const weft::ExpectedRow& row : state.rows) out.rows.push_back(row_of(row, state.state));
  };
  add(expected.healthy);
  if (expected.found) add(*expected.found);
  out.mended = expected.mended;
  out.notes = all_notes(expected);
  out.text = expect_text(expected);
  out.json = expect_json(expected).dump();
  const std::vector<weft::ExpectedRow>& rows = expected.healthy.rows;
  if (std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.floor(); })) {
    out.gate = gate_json(expected).dump();
  }
  return out;
}

Expected answer_with(const Judgement& judgement) {
  Expected out;
  for (const weft::JudgedRow& row : judgement.rows) out.judged.push_back(row_of(row));
  out.below_floor = judgement.count(Judged::kBelow);
  out.failures = judgement.failures;
  out.mended = judgement.mended;
  out.notes = judgement.notes;
  out.text = judgement_text(judgement);
  out.json = judgement_json(judgement).dump();
  return out;
}

Expected expected_of(ExpectAsked asked, const std::function<bool()>& stop) {
  const ExpectAnswer answer = run_asking(stop, [&](const Stop* asked_to) {
    asked.predict.stop = asked_to;
    return answer_of(asked);
  });
  return std::visit([](const auto& is) { return answer_with(is); }, answer);
}

}  // namespace

Log::Log(std::string text, std::string name) : text_{std::move(text)}, name_{std::move(name)} {}

Log Log::load(const std::string& file) {
  return at_the_border([&] { return Log(read_text_file(file), file); });
}

Log Log::parse(const std::string& text, const std::string& name) {
  return at_the_border([&] { return Log(text, name); });
}

Expected Topology::expect(const ExpectOptions& options) const {
  return at_the_border([&] {
    ExpectAsked asked = asked_of(options, set_);
    asked.topology = InputText{name_, text_};
    return expected_of(std::move(asked), options.stop);
  });
}

Expected expect(const std::vector<std::string>& machine, const ExpectOptions& options) {
  return at_the_border([&] {
    ExpectAsked asked = asked_of(options, {});
    asked.machine = machine;
    return expected_of(std::move(asked), options.stop);
  });
}

}  // namespace weft::api
