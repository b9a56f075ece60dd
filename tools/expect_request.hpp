#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/expect/expect.hpp"
#include "models/expect/judge.hpp"
#include "sim/base/units.hpp"
#include "tools/input_text.hpp"

namespace weft {

/// What is asked of a machine as a user writes it, words and counts not yet checked; named as the
/// options of `weft expect`.
struct ExpectAsked {
  std::vector<std::string> machine;     ///< a topology, evidence or a gate
  std::optional<InputText> topology{};  ///< instead, where its text is known
  std::string tool{"nccl-tests"};
  std::vector<std::string> ops;  ///< none: the tool's first
  std::vector<Bytes> sizes;      ///< ascending; none: the tool's
  unsigned nodes{0};             ///< 0: as the machine has it
  std::string memory;
  unsigned qps{1};
  unsigned tx_depth{128};
  std::optional<InputText> measured{};
  std::string as;
  bool makes_gate{false};
  std::string gpu;         ///< which `predict` sets too
  bool is_fitted{false};   ///< `predict` sets values that `weft calibrate` fitted
  PredictOptions predict;  ///< what is set, and when to stop
};

inline constexpr unsigned kMostExpectNodes = 1U << 16;

/// What is expected, or how it is what was measured.
using ExpectAnswer = std::variant<Expected, Judgement>;

/// Checks all that and does it. Throws InputError naming the option of `weft expect` and what is
/// allowed, and Stopped.
ExpectAnswer answer_of(const ExpectAsked& asked);

}  // namespace weft
