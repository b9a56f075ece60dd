#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/cases/machine_case.hpp"
#include "models/explain/evidence.hpp"
#include "models/explain/points.hpp"

namespace weft {

/// Suspects at once, by their place among Effects::suspects(): one, or two, ascending.
using Together = std::vector<std::size_t>;

/// What some suspects do to a machine.
struct CauseEffect {
  std::vector<double> log_ratio;  ///< ln(time with them / healthy) by point; NaN: not predicted yet
  std::string why_not;            ///< the model refuses them
};

/// What causes do to a machine, as predict() has it: by point, each predicted once, when it is
/// asked for. Of sizes beyond 1 GiB, and 64 MiB a GPU, the effect is that at this size. One
/// thread at a time uses it.
class Effects {
 public:
  /// Predicts the healthy machine. All must outlive it but the suspects. `threads`: 0, all. Throws
  /// InputError where the healthy machine cannot be predicted; Stopped, as predict() does.
  Effects(const MachineCase& healthy, const CaseContext& context, const std::vector<Point>& points,
          std::vector<Suspect> suspects, unsigned threads, const Stop* stop);

  const std::vector<Point>& points() const { return points_; }
  const std::vector<Suspect>& suspects() const { return suspects_; }
  /// Microseconds by point, where nothing is wrong.
  const std::vector<double>& healthy_us() const { return healthy_us_; }
  /// How long one more prediction of a point takes on one core, s, by estimate.
  double seconds(std::size_t point) const { return seconds_[point]; }
  /// And how long a machine and NCCL's decisions on it do.
  double seconds_of_machine() const { return seconds_of_machine_; }
  /// What its prediction had to assume, leaves out or does otherwise than asked.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Predicts what is not known yet of each of these at each of these points, on threads.
  void predict(const std::vector<Together>& which, const std::vector<std::size_t>& points) const;
  /// Lets go of what predicts more of these, not of what is known: it is made again where asked
  /// for.
  void forget(const Together& which) const { known(which).predictor.reset(); }
  /// What is known so far; nothing of what was never asked for.
  const CauseEffect& of(const Together& which) const { return known(which).effect; }
  const std::string& why_not(std::size_t suspect) const { return of({suspect}).why_not; }

 private:
  struct Times {
    std::vector<double> us;  ///< by point asked for
    std::vector<std::string> notes{};
    std::string why_not{};  ///< there are none
  };

  /// What is known of some suspects, and what predicts more of it.
  struct Known {
    CauseEffect effect;
    std::unique_ptr<CasePredictor> predictor;
  };

  Times times(CasePredictor& predictor, const std::vector<std::size_t>& points,
              std::int64_t most) const;
  Known& known(const Together& which) const;
  void add(const Together& which, const std::vector<std::size_t>& points, Known& known) const;

  const MachineCase* healthy_;
  const CaseContext* context_;
  std::vector<Point> points_;
  std::vector<Suspect> suspects_;
  unsigned threads_;
  const Stop* stop_;
  std::int64_t plateau_{0};
  std::vector<double> healthy_us_;
  std::vector<double> seconds_;  ///< by point
  double seconds_of_machine_{0};
  std::vector<std::string> notes_;
  std::vector<double> reference_us_;  ///< the same, larger sizes at plateau_
  mutable std::map<Together, Known> known_;
};

}  // namespace weft
