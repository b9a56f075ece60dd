#pragma once

#include <cstdint>
#include <vector>

#include "models/explain/effects.hpp"
#include "models/explain/match.hpp"
#include "models/explain/noise.hpp"

namespace weft {

/// One suspect or two at once, and how well they explain the gaps.
struct Combination {
  Together suspects;
  std::vector<double> effect;  ///< at all points
  Match match;
  double log_weight{0};  ///< prior and evidence

  double log_posterior() const { return match.log_likelihood + log_weight; }
};

/// Combinations that predict nearly the same: those of the likeliest causes first.
struct Answer {
  std::vector<Combination> same;
  double log_posterior{0};  ///< of all of them together
  double times_less{1};     ///< likely than the first answer; at most 1e12
  const Combination& best() const { return same.front(); }
};

enum class Explained : std::uint8_t {
  kNotSlower,  ///< than it should be, as far as the errors tell
  kExplained,
  kNone  ///< slower, and no cause of the catalogue or two of them explain it
};

struct Explanation {
  Explained verdict{Explained::kNone};
  Match healthy;                ///< that nothing is wrong
  std::vector<double> gaps;     ///< ln(slow / reference) by point
  std::vector<double> sd;       ///< of a gap where nothing is wrong
  std::vector<Answer> answers;  ///< the likeliest first; of kNone the nearest, which do not suffice
  std::size_t alike{0};         ///< so many of the first cannot be told apart by these numbers
  bool two_at_once{false};      ///< the first answer is two causes
  std::size_t pairs{0};         ///< that were looked for, where no single cause fits well
  std::size_t pairs_left{0};    ///< of these, not at all sizes, for the time that they take
  bool was_stopped{false};      ///< before all pairs were predicted, of which it then says nothing
  std::vector<std::size_t> no_effect;  ///< suspects that change no time by 1 %, where predicted
};

/// How gaps are judged.
struct Thresholds {
  double slower{0.05};    ///< a healthy machine is called slow so often
  double suffices{0.01};  ///< a cause is dropped whose numbers would be worse so rarely
  double alike{20};       ///< causes within this factor of the likeliest are not told apart
  double same{0.5};       ///< standard deviations within which predictions are one answer
  double shown{1000};     ///< causes that are less likely by more are no answers
  double doubted{0.1};    ///< two causes are looked for where no single one's numbers are so common
  double off{1.645};      ///< nor its factor is off by less than that many standard deviations
  double two{0.05};       ///< two causes at once are so likely beside one
  std::size_t pairs{
      400};  ///< predicted then, as guessed; so are the likeliest causes' with all others
  /// Of one core, by an estimate that is far above what it takes, that pairs get beside the few
  /// that are predicted at all points first.
  double pair_seconds{100};
};

/// Matches gaps with every suspect, and pairs of them where no single one fits well. A suspect is
/// predicted point by point, and dropped as soon as it cannot be an answer whatever it does at the
/// others: single causes that are answers are those of predicting each at all points. Whether pairs
/// are tried is asked of those that are left; only those that are guessed to be likely are, and
/// those of the likeliest causes. The same gaps give the same explanation.
Explanation explain(const std::vector<double>& gaps, const Effects& effects,
                    const ErrorModel& errors, const Thresholds& thresholds = {});

/// ln(slow / healthy), of what was measured or, without a healthy run, predicted.
std::vector<double> gaps_of(const Effects& effects);

}  // namespace weft
