#include "models/expect/judge.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/collective/compare.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/tool_text.hpp"
#include "sim/result/nccl_tests.hpp"

namespace weft {
namespace {

/// A machine in one state, with what the user says beside.
class State {
 public:
  State(const MachineCase& machine, const std::vector<ScenarioSetting>& set,
        const PredictOptions& options, const ParamCatalog& catalog, bool is_fitted)
      : machine_{machine}, set_{set}, options_{options}, catalog_{catalog}, is_fitted_{is_fitted} {}

  /// As unlike_measured() and beside_measured(), with what the row says itself.
  struct Like {
    std::string unlike;
    std::string beside;
    bool is_fitted;
  };
  const Like& like(const MeasuredRow& row) {
    const Where where = is_perftest(row) ? Where::kPerftest
                        : row.hosts > 1  ? Where::kBetweenNodes
                                         : Where::kInNode;
    const auto [at, is_new] =
        known_.try_emplace({where, row.ranks / row.hosts, row.set, row.env, row.algo, row.proto});
    if (is_new) at->second = like_of(row, where);
    return at->second;
  }

 private:
  /// The user's settings and variables beat the row's, as compare() has it.
  Like like_of(const MeasuredRow& row, Where where) const {
    std::vector<ScenarioSetting> set = settings_of_cell(row.set);
    const std::int64_t gpus = row.ranks / row.hosts;
    if (where != Where::kPerftest) set.push_back({"gpu.count", std::to_string(gpus), {}});
    set.insert(set.end(), set_.begin(), set_.end());
    PredictOptions options = options_;
    if (row.algo != "auto") options.env.emplace("NCCL_ALGO", row.algo);
    if (row.proto != "auto") options.env.emplace("NCCL_PROTO", row.proto);
    for (const ScenarioSetting& entry : settings_of_cell(row.env)) {
      options.env.emplace(entry.key, entry.value);
    }
    return {unlike_measured(machine_, set, where, options, catalog_),
            where == Where::kBetweenNodes ? beside_measured(machine_, set, options, catalog_) : "",
            is_fitted_};
  }

  const MachineCase& machine_;
  const std::vector<ScenarioSetting>& set_;
  const PredictOptions& options_;
  const ParamCatalog& catalog_;
  bool is_fitted_;
  std::map<std::tuple<Where, std::int64_t, std::string, std::string, std::string, std::string>,
           Like>
      known_;
};

ErrorQuery query_of(const MeasuredRow& row, const State::Like& like) {
  return {row.transport, row.memory_path, row.hosts,   row.ranks,   row.op,        row.bytes,
          row.qps,       row.tx_depth,    like.unlike, like.beside, like.is_fitted};
}

Judged judged_of(const JudgedRow& row) {
  const double busbw = row.measured.busbw_gb_per_s;
  if (row.floor == 0) return Judged::kNoFloor;
  if (busbw < row.floor) return Judged::kBelow;
  return busbw > row.high ? Judged::kAbove : Judged::kOk;
}

/// nothing where there is no prediction.
std::optional<ExpectedRow> expected_of(const ComparedRow& row, State& state,
                                       const std::vector<KnownError>& known) {
  if (!row.predicted) return std::nullopt;
  return ExpectedRow{*row.predicted,
                     error_band(query_of(row.measured, state.like(row.measured)), known),
                     row.measured.qps, row.measured.tx_depth};
}

JudgedRow judged_row(const ComparedRow& row, State& state, const std::vector<KnownError>& known) {
  JudgedRow out;
  out.measured = row.measured;
  const std::optional<ExpectedRow> expected = expected_of(row, state, known);
  if (!expected) {
    out.basis = row.not_predicted;
    return out;
  }
  out.floor = expected->floor().value_or(0);
  out.expected = expected->row.busbw_gb_per_s;
  out.low = expected->low();
  out.high = expected->high();
  out.basis = expected->basis();
  out.judged = judged_of(out);
  return out;
}

Comparison compared(const MeasuredTable& table, const MachineCase& machine,
                    const std::vector<ScenarioSetting>& set, const PredictOptions& options,
                    const ParamCatalog& catalog) {
  PredictOptions all = options;
  all.set = set;
  for (const auto& [name, value] : machine.env) all.env.emplace(name, value);
  Comparison out = compare(table, machine.spec, all, catalog);
  if (out.is_stopped()) throw Stopped("stopped");
  return out;
}

bool differs(const ExpectedRow& found, const JudgedRow& healthy) {
  return found.row.busbw_gb_per_s != healthy.expected || found.basis() != healthy.basis;
}

}  // namespace

std::string_view judged_name(Judged judged) {
  constexpr std::array<std::string_view, 5> kNames{"ok", "below the floor", "above the interval",
                                                   "no floor", "not predicted"};
  return kNames.at(static_cast<std::size_t>(judged));
}

std::size_t Judgement::count(Judged judged) const {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [=](const JudgedRow& row) { return row.judged == judged; }));
}

MeasuredTable parse_measured_on(std::string_view text, const std::string& file,
                                const StatedColumns& stated, const std::string& inside,
                                const PathBetween& between) {
  if (!is_nccl_tests(without_prefixes(text, file)) || stated.contains("transport")) {
    return parse_measured(text, file, stated);
  }
  StatedColumns all = stated;
  all["transport"] = "net";
  const bool says_path = !all.emplace("memory_path", "gdr").second;
  MeasuredTable out = parse_measured(text, file, all);
  std::map<std::string, std::string> by_op;  // each asks NCCL
  for (MeasuredRow& row : out.rows) {
    if (row.hosts > 1) {
      if (says_path || row.op == kOtherOp) continue;
      const auto [at, is_new] = by_op.try_emplace(row.op);
      if (is_new) at->second = between(parse_op(row.op));
      row.memory_path = at->second;
      continue;
    }
    if (inside == "pcie") {
      throw InputError(Place{file, row.line, 0},
                       "no NVLink joins the machine's GPUs: say how they were joined, --as "
                       "transport=shm");
    }
    row.transport = inside;
    row.memory_path.clear();
  }
  return out;
}

Judgement judge(const MeasuredTable& measured, const Subject& subject,
                const PredictOptions& options, const ParamCatalog& catalog) {
  MeasuredTable table = measured;
  drop_unmodelled_releases(table);
  const std::vector<KnownError> known = known_errors();
  const Comparison healthy =
      compared(table, subject.healthy, subject.healthy_set, options, catalog);
  State as_healthy(subject.healthy, subject.healthy_set, options, catalog, subject.is_fitted);
  Judgement out;
  out.mended = subject.mended;
  out.failures = table.failures;
  add_notes(subject.notes, "", out.notes);
  add_notes(healthy.notes, "", out.notes);
  for (const ComparedRow& row : healthy.rows) {
    out.rows.push_back(judged_row(row, as_healthy, known));
  }
  if (subject.mended.empty()) return out;
  MeasuredTable as_found = table;
  as_found.notes.clear();  // they stand already
  for (MeasuredRow& row : as_found.rows) {
    if (subject.found.is_staged && row.memory_path == "gdr") row.memory_path = "host-staged";
  }
  const Comparison found = compared(as_found, subject.found, subject.found_set, options, catalog);
  add_notes(found.notes, "as found: ", out.notes);
  State ill(subject.found, subject.found_set, options, catalog, subject.is_fitted);
  for (std::size_t i = 0; i < out.rows.size(); ++i) {
    std::optional<ExpectedRow> row = expected_of(found.rows[i], ill, known);
    if (row && differs(*row, out.rows[i])) out.rows[i].found = std::move(row);
  }
  return out;
}

Judgement judge(const MeasuredTable& table, const Gate& gate, const Stop* stop) {
  Judgement out;
  out.notes = table.notes;
  out.failures = table.failures;
  bool any = false;
  for (const MeasuredRow& row : table.rows) {
    if (stop != nullptr) stop->check();
    JudgedRow judged;
    judged.measured = row;
    judged.judged = Judged::kNoFloor;
    if (!row.unlike.empty()) {
      judged.judged = Judged::kNotPredicted;
      judged.basis = row.unlike;
    } else if (const GateFloor* const floor = gate.find(row)) {
      any = true;
      judged.floor = floor->floor;
      judged.expected = floor->expected;
      judged.low = floor->low;
      judged.high = floor->high;
      judged.basis = floor->basis;
      judged.judged = judged_of(judged);
    } else {
      std::vector<std::string> fields;
      for (const KeyDifference& d : gate.missing(row)) fields.push_back(d.field);
      judged.basis = fmt::format("the gate has no floor of its {}", fmt::join(fields, ", "));
    }
    out.rows.push_back(std::move(judged));
  }
  if (any || !out.failures.empty()) return out;
  const MeasuredRow& row = table.rows.front();
  std::string why = row.unlike;
  for (const KeyDifference& d : gate.missing(row)) {
    if (!row.unlike.empty()) break;
    why += fmt::format("{}{} {}, not {}", why.empty() ? "the nearest floor has " : "; ", d.field,
                       d.floor, d.measured);
  }
  throw InputError(fmt::format("{}: no row has a floor in {}: the first of {} is {}; {}",
                               table.file, gate.file, table.rows.size(), key_text(key_of(row)),
                               why));
}

std::vector<std::string> notes_of_unmeasured(const MeasuredTable& table, const Gate& gate,
                                             const std::function<bool(const GateKey&)>& is_asked) {
  std::set<GateKey> measured;
  for (const MeasuredRow& row : table.rows) measured.insert(key_of(row));
  std::size_t asked = 0;
  std::vector<GateKey> missing;
  for (const GateFloor& floor : gate.floors) {
    if (!is_asked(floor.key)) continue;
    ++asked;
    if (!measured.contains(floor.key)) missing.push_back(floor.key);
  }
  if (missing.empty()) return {};
  return {fmt::format("{}: no row for {} of {} floors of {}; the first: {}", table.file,
                      missing.size(), asked, gate.file, key_text(missing.front()))};
}

}  // namespace weft
