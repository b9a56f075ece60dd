#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// The kind of decision that is made for each size, and is told by ranges of sizes.
inline constexpr std::string_view kChoice = "choice";

/// One of NCCL's decisions: ring 00, or the choice for an allreduce of so many bytes.
struct DecisionKey {
  std::string kind;
  std::string of;
  std::int64_t bytes{0};  ///< of a choice; else 0
  std::string path{};     ///< of a choice that is another over another memory path
  auto operator<=>(const DecisionKey&) const = default;
};

struct Decision {
  std::string text;
  unsigned channels{0};  ///< that a choice takes; 0: not said, as older logs do not
  bool is_cut{false};    ///< a ring's ranks, of which the log tells the first only
  /// The memory paths that a choice holds for; none: whatever the run took.
  std::set<std::string> paths{};
};

/// What NCCL decided in a run, or would, as far as somebody tells.
struct Decisions {
  std::map<DecisionKey, Decision> all;
  /// Kinds that are told whole, so that what is not there is not: of others only what both sides
  /// tell is compared.
  std::set<std::string> whole;
};

/// A decision on both sides; "" where one does not have it.
struct DecisionPair {
  DecisionKey key;
  std::string a;
  std::string b;
  bool differs() const { return a != b; }
};

struct DecisionsDiff {
  std::vector<DecisionPair> pairs;  ///< all that were compared, by kind, name and size
  /// By kind how many one side alone tells.
  std::map<std::string, std::size_t> not_compared;
};

/// The choices of a result's rows: of "allreduce", of "allreduce over gdr" where NCCL chooses
/// otherwise over another path.
Decisions decisions_of(const RunResult& result);

DecisionsDiff diff_decisions(const Decisions& a, const Decisions& b);

/// For people: a choice by ranges of sizes, of other kinds what changed alike together. Each line
/// begins with `begin`; nothing if there was nothing to compare.
std::string decisions_text(const DecisionsDiff& diff, std::string_view begin);
/// "changes": those that differ; "compared", "not_compared": how many, by kind.
Json decisions_json(const DecisionsDiff& diff);
/// Its objects with their keys, as they stand in a comparison.
std::vector<FormatSection> decisions_format();

}  // namespace weft
