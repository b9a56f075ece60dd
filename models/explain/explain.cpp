#include "models/explain/explain.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "models/explain/part_matcher.hpp"
#include "models/explain/prior.hpp"
#include "sim/base/stop.hpp"

namespace weft {
namespace {

constexpr double kNoEffect = 0.01;         // of time
constexpr std::int64_t kLarge = 16 << 20;  // B: larger points are predicted last
constexpr double kOfNoAccident = 5;        // standard deviations
constexpr std::size_t kEnds = 2;           // points after which leaders are chosen
constexpr std::size_t kLeaders = 4;    // predicted at all points then: others are held against them
constexpr std::size_t kGuessed = 4;    // points at which pairs and the nearest are guessed
constexpr std::size_t kOfOnePair = 2;  // variants of two causes
constexpr std::size_t kNearest = 5;    // shown where nothing suffices
constexpr std::size_t kWithAll = 8;    // causes that are paired with every other one

using Points = std::vector<std::size_t>;

/// The clearest point, or a smaller one that is clear too, as it is predicted sooner.
std::size_t clearest(const std::vector<Point>& points, const std::vector<double>& gaps,
                     const std::vector<double>& sd) {
  const auto clarity = [&](std::size_t i) { return std::abs(gaps[i]) / sd[i]; };
  std::size_t best = 0;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (clarity(i) > clarity(best)) best = i;
  }
  const double enough = std::min(clarity(best) / 3, kOfNoAccident);
  std::size_t out = best;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (clarity(i) >= enough && points[i].bytes < points[out].bytes) out = i;
  }
  return out;
}

/// Points in the order in which causes are held against them: the clearest, the far end of its
/// curve, then always the one that is furthest from those before. Curves are far from each other.
/// Large ones come last, the smaller first: they take long to predict.
std::vector<std::size_t> in_order(const std::vector<Point>& points, std::size_t first) {
  constexpr double kOtherCurve = 1000;  // octaves
  const auto octaves = [&](std::size_t i, std::size_t j) {
    const auto bytes = [&](std::size_t k) { return static_cast<double>(points[k].bytes); };
    return points[i].is_of(points[j]) ? std::abs(std::log2(bytes(i) / bytes(j))) : kOtherCurve;
  };
  std::vector<double> away(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double from_first = octaves(i, first);
    away[i] = from_first == kOtherCurve ? 0 : from_first;
  }
  const auto is_before = [&](std::size_t i, std::size_t j) {
    const bool is_large = points[i].bytes > kLarge;
    if (is_large != (points[j].bytes > kLarge)) return !is_large;
    return is_large ? points[i].bytes < points[j].bytes : away[i] > away[j];
  };
  std::vector<std::size_t> out{first};
  while (out.size() < points.size()) {
    std::size_t next = first;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const bool is_taken = std::find(out.begin(), out.end(), i) != out.end();
      if (!is_taken && (next == first || is_before(i, next))) next = i;
    }
    out.push_back(next);
    for (std::size_t i = 0; i < points.size(); ++i) {
      away[i] = std::numeric_limits<double>::infinity();
      for (const std::size_t taken : out) away[i] = std::min(away[i], octaves(i, taken));
    }
  }
  return out;
}

/// What published cases and evidence make of each; a cause's variants share that. What evidence
/// rules out has no share.
std::vector<double> log_weights(const Effects& effects) {
  const std::vector<Suspect>& suspects = effects.suspects();
  std::map<std::string_view, double> variants;
  for (const Suspect& suspect : suspects) {
    if (suspect.weight > 0) ++variants[suspect.entry->id];
  }
  double all = 0;
  for (const auto& [id, count] : variants) all += prior_weight(id);
  std::vector<double> out;
  for (const Suspect& suspect : suspects) {
    const std::string_view id = suspect.entry->id;
    out.push_back(suspect.weight == 0
                      ? 0
                      : std::log(suspect.weight * prior_weight(id) / (variants[id] * all)));
  }
  return out;
}

bool is_likelier(const Combination& a, const Combination& b) {
  if (a.log_posterior() != b.log_posterior()) return a.log_posterior() > b.log_posterior();
  return a.suspects < b.suspects;
}

double log_sum(double a, double b) {
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

/// Time of one core that predictions may take, by estimate and by no clock, so that the same
/// question has the same answer. Half of what is left goes to each point, all of it to the last.
class TimeShare {
 public:
  TimeShare(const Effects& effects, double seconds)
      : effects_{effects}, left_s_{seconds}, points_left_{effects.points().size()} {}

  /// Leaves of `which`, likelier ones first, as many as can be predicted at the next point, a few
  /// at least.
  void cut(std::size_t point, std::vector<Together>& which) {
    const bool is_first = points_left_ == effects_.points().size();
    const double each_s =
        effects_.seconds(point) + (is_first ? effects_.seconds_of_machine() : 0.0);
    const double share_s = --points_left_ > 0 ? left_s_ / 2 : left_s_;
    const double most = std::max(static_cast<double>(kLeaders), share_s / each_s);
    while (static_cast<double>(which.size()) > most) {
      effects_.forget(which.back());
      which.pop_back();
      ++left_out_;
    }
    left_s_ -= each_s * static_cast<double>(which.size());
  }
  std::size_t left_out() const { return left_out_; }

 private:
  const Effects& effects_;
  double left_s_;
  std::size_t points_left_;
  std::size_t left_out_{0};
};

/// Finds causes, and pairs of them, without predicting each at all points.
class Search {
 public:
  Search(const std::vector<double>& gaps, const std::vector<double>& sd, const Effects& effects,
         const ErrorModel& errors, const Gaussian& noise, const GapMatcher& matcher,
         const Thresholds& thresholds)
      : gaps_{gaps},
        sd_{sd},
        effects_{effects},
        errors_{errors},
        noise_{noise},
        matcher_{matcher},
        thresholds_{thresholds},
        weights_{log_weights(effects)} {
    all_.resize(gaps.size());
    std::iota(all_.begin(), all_.end(), std::size_t{0});
    order_ = in_order(effects.points(), clearest(effects.points(), gaps, sd));
  }

  /// Those that can be answers, at all points. Of each that suffices no other is left out that is
  /// not less likely by Thresholds::shown.
  std::vector<Combination> sufficient(std::vector<Together> which) const {
    return sufficient(std::move(which), nullptr);
  }
  /// Of these, likelier ones first, those that there is time for.
  std::vector<Combination> sufficient(std::vector<Together> which, TimeShare* time) const {
    std::vector<Combination> out;
    double best = -std::numeric_limits<double>::infinity();
    const auto take = [&](const std::vector<Together>& whole) {
      for (Combination& each : matched(whole)) {
        if (!can_be_answer(each)) continue;
        best = std::max(best, each.log_posterior());
        out.push_back(std::move(each));
      }
    };
    for (std::size_t n = 1; n < order_.size(); ++n) {
      const Points known = first(n);
      if (time != nullptr) time->cut(order_[n - 1], which);
      effects_.predict(which, known);
      const PartMatcher part = at(known);
      drop(which, [&](const Together& each) {
        return !is_known(each, known) || part.bound(effect(each)).tail < thresholds_.suffices;
      });
      const auto most = [&](const Together& each) {
        return part.bound(effect(each)).likelihood + weight(each);
      };
      std::stable_sort(which.begin(), which.end(),
                       [&](const Together& a, const Together& b) { return most(a) > most(b); });
      if (n == kEnds) {
        const auto leaders = static_cast<std::ptrdiff_t>(std::min(kLeaders, which.size()));
        take({which.begin(), which.begin() + leaders});
        which.erase(which.begin(), which.begin() + leaders);
      }
      drop(which,
           [&](const Together& each) { return most(each) < best - std::log(thresholds_.shown); });
    }
    if (time != nullptr) time->cut(order_.back(), which);
    take(which);
    return out;
  }

  /// The likeliest at few points of those that do something towards the gaps, at all; once it is
  /// stopped of those alone that are known at all points.
  std::vector<Combination> nearest(const std::vector<Together>& which, bool was_stopped) const {
    std::vector<std::pair<double, Together>> order;
    const PartMatcher part = at(guessed_at());
    for (const Together& each : which) {
      if (!is_known(each, was_stopped ? all_ : guessed_at()) || !is_towards(effect(each))) continue;
      order.push_back({-part.match(effect(each)).log_likelihood - weight(each), each});
    }
    std::sort(order.begin(), order.end());
    std::vector<Together> out;
    for (std::size_t i = 0; i < std::min(kNearest, order.size()); ++i) {
      out.push_back(order[i].second);
    }
    std::vector<Combination> near = matched(out);
    std::erase_if(near, [&](const Combination& each) { return !is_towards(each.effect); });
    return near;
  }

  /// Pairs that are worth a prediction, likelier ones first, by what their causes do alone at few
  /// points: the likeliest as far as both together can be guessed from that, and the likeliest
  /// causes with each other one, as two may do what neither does alone.
  std::vector<Together> likely_pairs(const std::vector<Together>& singles) const {
    effects_.predict(singles, guessed_at());
    for (const Together& each : singles) effects_.forget(each);
    const PartMatcher part = at(guessed_at());
    std::vector<std::size_t> causes;
    for (const Together& each : singles) {
      if (is_known(each, guessed_at()) && is_effect(effect(each))) causes.push_back(each.front());
    }
    std::vector<Together> out = guessed_pairs(part, causes);
    std::set<Together> taken{out.begin(), out.end()};
    for (const std::size_t one : likeliest(part, causes)) {
      for (const std::size_t other : causes) {
        const Together pair{std::min(one, other), std::max(one, other)};
        if (can_be_both(pair) && taken.insert(pair).second) out.push_back(pair);
      }
    }
    return out;
  }

  bool is_effect(const std::vector<double>& effect) const {
    return std::any_of(effect.begin(), effect.end(),
                       [](double each) { return std::abs(each) >= kNoEffect; });
  }
  const std::vector<double>& effect(const Together& which) const {
    return effects_.of(which).log_ratio;
  }

 private:
  std::string_view id(std::size_t cause) const { return effects_.suspects()[cause].entry->id; }

  std::vector<Together> guessed_pairs(const PartMatcher& part,
                                      const std::vector<std::size_t>& causes) const {
    std::vector<std::pair<double, Together>> order;
    for (std::size_t i = 0; i < causes.size(); ++i) {
      for (std::size_t j = i + 1; j < causes.size(); ++j) {
        const Together pair{causes[i], causes[j]};
        if (can_be_both(pair)) order.push_back({-guessed(part, pair) - weight(pair), pair});
      }
    }
    std::sort(order.begin(), order.end());
    std::vector<Together> out;
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> by_entry;
    for (const auto& [guess, pair] : order) {
      if (out.size() == thresholds_.pairs) break;
      if (by_entry[{id(pair[0]), id(pair[1])}]++ < kOfOnePair) out.push_back(pair);
    }
    return out;
  }

  /// Some causes that fit best alone, of each one amount.
  std::vector<std::size_t> likeliest(const PartMatcher& part,
                                     const std::vector<std::size_t>& causes) const {
    std::vector<std::pair<double, std::size_t>> order;
    for (const std::size_t each : causes) {
      order.push_back({-part.match(effect({each})).log_likelihood - weight({each}), each});
    }
    std::sort(order.begin(), order.end());
    std::vector<std::size_t> out;
    std::set<std::string_view> taken;
    for (const auto& [fit, cause] : order) {
      if (out.size() == kWithAll) break;
      if (taken.insert(id(cause)).second) out.push_back(cause);
    }
    return out;
  }

  /// Pairs are not asked for again. Causes are: of what they do alone pairs are guessed.
  template <class Is>
  void drop(std::vector<Together>& which, Is is) const {
    std::erase_if(which, [&](const Together& each) {
      const bool goes = is(each);
      if (goes && each.size() > 1) effects_.forget(each);
      return goes;
    });
  }

  /// Whether an effect, as far as it is known, is one in the direction of the gaps.
  bool is_towards(const std::vector<double>& effect) const {
    double along = 0;
    for (std::size_t i = 0; i < effect.size(); ++i) {
      if (!std::isnan(effect[i])) along += effect[i] * gaps_[i] / (sd_[i] * sd_[i]);
    }
    return is_effect(effect) && along > 0;
  }

  PartMatcher at(const Points& points) const {
    return {gaps_, effects_.points(), errors_, noise_, points};
  }

  /// The first `count` of the order, ascending.
  Points first(std::size_t count) const {
    Points out{order_.begin(),
               order_.begin() + static_cast<std::ptrdiff_t>(std::min(count, order_.size()))};
    std::sort(out.begin(), out.end());
    return out;
  }
  Points guessed_at() const { return first(kGuessed); }

  bool is_known(const Together& which, const Points& points) const {
    return std::none_of(points.begin(), points.end(),
                        [&](std::size_t i) { return std::isnan(effect(which)[i]); });
  }

  double weight(const Together& which) const {
    double out = 0;
    for (const std::size_t i : which) out += weights_[i];
    return which.size() > 1 ? out + std::log(thresholds_.two) : out;
  }

  bool can_be_answer(const Combination& each) const {
    return each.match.tail >= thresholds_.suffices && is_towards(each.effect);
  }

  std::vector<Combination> matched(const std::vector<Together>& which) const {
    effects_.predict(which, all_);
    std::vector<Combination> out;
    for (const Together& each : which) {
      if (!is_known(each, all_)) continue;
      out.push_back({each, effect(each), matcher_.match(effect(each)), weight(each)});
    }
    return out;
  }

  /// Two causes that change the same thing are not two.
  bool can_be_both(const Together& pair) const {
    const Suspect& a = effects_.suspects()[pair[0]];
    const Suspect& b = effects_.suspects()[pair[1]];
    if (a.entry->id == b.entry->id) return false;
    std::set<std::string> lines;
    for (const Suspect* each : {&a, &b}) {
      std::set<std::string> own;
      for (const std::string& line : each->variant.change.lines()) {
        own.insert(line.substr(0, line.find('=')));
      }
      for (const std::string& line : own) {
        if (!lines.insert(line).second) return false;
      }
    }
    return true;
  }

  /// Of two causes in a row the slower one decides, both add their time, or each makes the other's
  /// worse (smaller messages, more time for each): as it fits best.
  double guessed(const PartMatcher& part, const Together& pair) const {
    const std::vector<double>& a = effect({pair[0]});
    const std::vector<double>& b = effect({pair[1]});
    std::vector<double> most(a.size());
    std::vector<double> sum(a.size());
    std::vector<double> product(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      most[i] = std::max(a[i], b[i]);
      const double both = std::exp(a[i]) + std::exp(b[i]) - 1;
      sum[i] = both > 0 ? std::log(both) : most[i];
      product[i] = a[i] + b[i];
    }
    return std::max({part.match(most).log_likelihood, part.match(sum).log_likelihood,
                     part.match(product).log_likelihood});
  }

  const std::vector<double>& gaps_;
  const std::vector<double>& sd_;
  const Effects& effects_;
  const ErrorModel& errors_;
  const Gaussian& noise_;
  const GapMatcher& matcher_;
  const Thresholds& thresholds_;
  std::vector<double> weights_;
  Points all_;
  Points order_;
};

/// The causes of a combination, variants apart.
std::vector<std::string_view> entries_of(const Combination& which, const Effects& effects) {
  std::vector<std::string_view> out;
  for (const std::size_t i : which.suspects) out.push_back(effects.suspects()[i].entry->id);
  return out;
}

/// Sums up an answer, and puts the likeliest cause's variants first.
void rank(Answer& answer, const Effects& effects) {
  std::map<std::vector<std::string_view>, double> by_entry;
  bool is_first = true;
  for (const Combination& each : answer.same) {
    const double mine = each.log_posterior();
    const auto [at, is_new] = by_entry.emplace(entries_of(each, effects), mine);
    if (!is_new) at->second = log_sum(at->second, mine);
    answer.log_posterior = is_first ? mine : log_sum(answer.log_posterior, mine);
    is_first = false;
  }
  std::stable_sort(
      answer.same.begin(), answer.same.end(), [&](const Combination& a, const Combination& b) {
        return by_entry.at(entries_of(a, effects)) > by_entry.at(entries_of(b, effects));
      });
}

/// The likeliest first, each with those that predict the same.
std::vector<Answer> answers_of(std::vector<Combination> all, const Effects& effects,
                               const GapMatcher& matcher, double same) {
  std::stable_sort(all.begin(), all.end(), is_likelier);
  std::vector<Answer> out;
  for (Combination& each : all) {
    const auto is_same = [&](const Answer& answer) {
      return answer.best().suspects.size() == each.suspects.size() &&
             matcher.distance(answer.best().effect, each.effect) < same;
    };
    const auto at = std::find_if(out.begin(), out.end(), is_same);
    if (at != out.end()) {
      at->same.push_back(std::move(each));
    } else {
      out.push_back({{std::move(each)}});
    }
  }
  for (Answer& answer : out) rank(answer, effects);
  std::stable_sort(out.begin(), out.end(), [](const Answer& a, const Answer& b) {
    return a.log_posterior > b.log_posterior;
  });
  for (Answer& answer : out) {
    constexpr double kMost = 1e12;
    answer.times_less = std::min(kMost, std::exp(out.front().log_posterior - answer.log_posterior));
  }
  return out;
}

void drop_unlikely(double shown, std::vector<Combination>& all) {
  if (all.empty()) return;
  const double best = std::min_element(all.begin(), all.end(), is_likelier)->log_posterior();
  std::erase_if(
      all, [&](const Combination& each) { return each.log_posterior() < best - std::log(shown); });
}

/// Whether gaps are no accident, and any of them one of slowness.
bool is_slower(const std::vector<double>& gaps, const std::vector<double>& sd, const Match& healthy,
               double chance) {
  constexpr double kClear = 2;  // standard deviations
  if (healthy.tail >= chance) return false;
  if (std::accumulate(gaps.begin(), gaps.end(), 0.0) > 0) return true;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i] > kClear * sd[i]) return true;
  }
  return false;
}

}  // namespace

Explanation explain(const std::vector<double>& gaps, const Effects& effects,
                    const ErrorModel& errors, const Thresholds& thresholds) {
  const Gaussian noise = noise_of(effects.points(), errors);
  const GapMatcher matcher(gaps, noise, errors.effect);
  Explanation out;
  out.gaps = gaps;
  out.healthy = matcher.healthy();
  for (std::size_t i = 0; i < gaps.size(); ++i) out.sd.push_back(noise.sd(i));
  if (!is_slower(gaps, out.sd, out.healthy, thresholds.slower)) {
    out.verdict = Explained::kNotSlower;
    return out;
  }
  std::vector<Together> singles;
  for (std::size_t i = 0; i < effects.suspects().size(); ++i) {
    if (effects.suspects()[i].weight > 0) singles.push_back({i});
  }
  const Search search(gaps, out.sd, effects, errors, noise, matcher, thresholds);
  std::vector<Combination> all = search.sufficient(singles);
  const bool is_doubted = std::none_of(all.begin(), all.end(), [&](const Combination& each) {
    return each.match.tail >= thresholds.doubted && std::abs(each.match.off) < thresholds.off;
  });
  if (is_doubted) {
    try {
      std::vector<Together> pairs = search.likely_pairs(singles);
      out.pairs = pairs.size();
      TimeShare time(effects, thresholds.pair_seconds);
      std::vector<Combination> both = search.sufficient(std::move(pairs), &time);
      out.pairs_left = time.left_out();
      all.insert(all.end(), std::make_move_iterator(both.begin()),
                 std::make_move_iterator(both.end()));
    } catch (const Stopped&) {
      out.was_stopped = true;
      out.pairs = 0;
    }
  }
  drop_unlikely(thresholds.shown, all);
  out.verdict = all.empty() ? Explained::kNone : Explained::kExplained;
  if (all.empty()) all = search.nearest(singles, out.was_stopped);
  for (const Together& each : singles) {
    const std::vector<double>& effect = search.effect(each);
    const bool is_known =
        !std::all_of(effect.begin(), effect.end(), [](double value) { return std::isnan(value); });
    if (is_known && !search.is_effect(effect)) out.no_effect.push_back(each.front());
  }
  out.answers = answers_of(std::move(all), effects, matcher, thresholds.same);
  out.two_at_once =
      out.verdict == Explained::kExplained && out.answers.front().best().suspects.size() > 1;
  for (const Answer& answer : out.answers) {
    if (answer.times_less <= thresholds.alike) ++out.alike;
  }
  return out;
}

std::vector<double> gaps_of(const Effects& effects) {
  std::vector<double> out;
  for (std::size_t i = 0; i < effects.points().size(); ++i) {
    const Point& point = effects.points()[i];
    const double reference = point.healthy_us > 0 ? point.healthy_us : effects.healthy_us()[i];
    out.push_back(std::log(point.slow_us / reference));
  }
  return out;
}

}  // namespace weft
