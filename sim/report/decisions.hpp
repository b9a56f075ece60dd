#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/io/json.hpp"
#include "sim/result/run_result.hpp"

namespace weft {

/// The kind of decision that is made for each size, and is told by ranges of sizes.
inline constexpr std::string_view kChoice = "choice";

/// One of NCCL's decisions: ring 00, or the choice for an allreduce of so many bytes.
struct DecisionKey {
  std::string kind;
  std::string of;
  std::int64_t bytes{0};  ///< of a choice; else 0
  auto operator<=>(const DecisionKey&) const = default;
};

struct Decision {
  std::string text;
  unsigned channels{0};  ///< that a choice takes; 0: not said, as older logs do not
};

/// What NCCL decided in a run, or would, as far as somebody tells.
using Decisions = std::map<DecisionKey, Decision>;

/// A decision on both sides; "" where one does not have it, but has others of its kind.
struct DecisionPair {
  DecisionKey key;
  std::string a;
  std::string b;
  bool differs() const { return a != b; }
};

struct DecisionsDiff {
  std::vector<DecisionPair> pairs;        ///< all that were compared, by kind, name and size
  std::vector<std::string> not_compared;  ///< kinds of which no name is on both sides
};

/// The choices of a result's rows: of "allreduce", of "allreduce over gdr" where NCCL chooses
/// otherwise over another path.
Decisions decisions_of(const RunResult& result);

DecisionsDiff diff_decisions(const Decisions& a, const Decisions& b);

/// For people: a choice by ranges of sizes, of other kinds what changed alike together. Each line
/// begins with `begin`; nothing if there was nothing to compare.
std::string decisions_text(const DecisionsDiff& diff, std::string_view begin);
/// A list of those that differ.
Json decisions_json(const DecisionsDiff& diff);

}  // namespace weft
