#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/expect/expect.hpp"
#include "models/expect/gate.hpp"
#include "sim/result/measured.hpp"

namespace weft {

enum class Judged : std::uint8_t { kOk, kBelow, kAbove, kNoFloor, kNotPredicted };
/// "ok", "below the floor", "above the interval", "no floor", "not predicted".
std::string_view judged_name(Judged judged);

/// A measured row beside what was expected of it.
struct JudgedRow {
  MeasuredRow measured;
  Judged judged{Judged::kNotPredicted};
  double floor{0};  ///< GB/s, as the next three; 0: none
  double expected{0};
  double low{0};
  double high{0};
  std::string basis;                 ///< or why there is no expectation
  std::optional<ExpectedRow> found;  ///< of the machine as found, where that differs
};

struct Judgement {
  std::vector<JudgedRow> rows;
  std::vector<std::string> mended;  ///< as Subject has them
  std::vector<std::string> notes;
  std::vector<std::string> failures;  ///< of the table: what was measured is not to be trusted

  std::size_t count(Judged judged) const;
};

/// The memory path of an operation between nodes.
using PathBetween = std::function<std::string(Op)>;

/// Reads what was measured: a table, or a tool's log; `file` is the name that messages use. How
/// GPUs are joined, which logs of nccl-tests do not say, follows from the machine: `inside` one
/// node, and by which path `between` nodes. Throws InputError as parse_measured() does.
MeasuredTable parse_measured_on(std::string_view text, const std::string& file,
                                const StatedColumns& stated, const std::string& inside,
                                const PathBetween& between);

/// Holds each row against what the healthy machine gives, predicted as the row was measured.
Judgement judge(const MeasuredTable& table, const Subject& subject, const PredictOptions& options,
                const ParamCatalog& catalog);
/// Holds each row against a gate's floor for its operation, size, ranks and nodes. Throws
/// InputError where it has one for none and nothing has failed, and Stopped.
Judgement judge(const MeasuredTable& table, const Gate& gate, const Stop* stop = nullptr);

/// What is to be said of floors for which no row was measured, of those asked for: none or one.
std::vector<std::string> notes_of_unmeasured(const MeasuredTable& table, const Gate& gate,
                                             const std::function<bool(const GateKey&)>& is_asked);

}  // namespace weft
