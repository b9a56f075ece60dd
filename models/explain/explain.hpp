#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "models/explain/evidence.hpp"
#include "models/explain/match.hpp"
#include "models/explain/noise.hpp"
#include "models/explain/points.hpp"

namespace weft {

/// What causes do to a machine, as predict() has it: times by point, each made once, when it is
/// asked for. Of sizes beyond 256 MiB, and 16 MiB a GPU, the effect is that at this size.
class Effects {
 public:
  /// Predicts the healthy machine. All must outlive it but the suspects. `threads`: 0, all. Throws
  /// InputError where the healthy machine cannot be predicted; Stopped, as those that follow.
  Effects(const MachineCase& healthy, const CaseContext& context, const std::vector<Point>& points,
          std::vector<Suspect> suspects, unsigned threads, const Stop* stop);

  const std::vector<Point>& points() const { return points_; }
  const std::vector<Suspect>& suspects() const { return suspects_; }
  /// Microseconds by point, where nothing is wrong.
  const std::vector<double>& healthy_us() const { return healthy_us_; }
  /// What its prediction had to assume, leaves out or does otherwise than asked.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Some of the points, by which causes are looked through first.
  const std::vector<std::size_t>& few() const { return few_; }

  /// ln(with them / healthy): one suspect or two at once, at all points or the few. Empty where the
  /// model refuses them, or evidence rules one out.
  const std::vector<double>& of(const std::vector<std::size_t>& suspects) const;
  const std::vector<double>& at_few(std::size_t suspect) const;
  const std::string& why_not(std::size_t suspect) const;
  /// Makes several on threads, for of() and at_few() to have them.
  void prepare(const std::vector<std::vector<std::size_t>>& combinations) const;
  void prepare_few() const;

 private:
  struct Made {
    std::vector<double> effect;
    std::string why_not;
  };
  struct Times {
    std::vector<double> us;  ///< by point
    std::vector<std::string> notes{};
    std::string why_not{};  ///< there are none
  };
  using Cache = std::map<std::vector<std::size_t>, Made>;

  Times times(const std::vector<const Change*>& changes, const std::vector<Point>& points,
              std::int64_t most, unsigned threads) const;
  const Made& made(Cache& cache, const std::vector<std::size_t>& suspects, bool is_few) const;
  void prepare(Cache& cache, const std::vector<std::vector<std::size_t>>& combinations,
               bool is_few) const;

  const MachineCase* healthy_;
  const CaseContext* context_;
  std::vector<Point> points_;
  std::vector<std::size_t> few_;
  std::vector<Point> few_points_;
  std::vector<Suspect> suspects_;
  unsigned threads_;
  const Stop* stop_;
  std::int64_t plateau_{0};
  std::vector<double> healthy_us_;
  std::vector<std::string> notes_;
  std::vector<double> reference_us_;  ///< the same, larger sizes at plateau_
  mutable std::mutex mutex_;
  mutable Cache all_;
  mutable Cache at_few_;
};

/// One suspect or two at once.
struct Combination {
  std::vector<std::size_t> suspects;  ///< one or two, ascending
  std::vector<double> effect;
  Match match;
  double log_weight{0};  ///< prior and evidence

  double log_posterior() const { return match.log_likelihood + log_weight; }
};

/// Combinations that predict nearly the same: the likeliest first.
struct Answer {
  std::vector<Combination> same;
  double times_less{1};  ///< likely than the first answer; at most 1e12
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
  bool two_at_once{false};      ///< no single cause suffices
  std::size_t pairs{0};         ///< that were predicted, where no single cause suffices
  std::vector<std::size_t> no_effect;  ///< suspects that change no time by 1 %
};

/// How gaps are judged.
struct Judgement {
  double slower{0.05};    ///< a healthy machine is called slow so often
  double suffices{0.01};  ///< a cause is dropped whose numbers would be worse so rarely
  double alike{20};       ///< causes within this factor of the likeliest are not told apart
  double same{0.5};       ///< standard deviations within which predictions are one answer
  double hopeless{12};    ///< ln of how much less likely a cause is at few sizes to be dropped
  std::size_t pairs{12};  ///< that are predicted where no single cause suffices
};

/// Matches gaps with every suspect, and pairs of them where no single one suffices. The same gaps
/// give the same explanation.
Explanation explain(const std::vector<double>& gaps, const Effects& effects,
                    const ErrorModel& errors, const Judgement& judgement = {});

/// ln(slow / healthy), of what was measured or, without a healthy run, predicted.
std::vector<double> gaps_of(const Effects& effects);

}  // namespace weft
