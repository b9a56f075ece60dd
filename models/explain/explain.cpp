#include "models/explain/explain.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/parallel.hpp"

namespace weft {
namespace {

constexpr double kNoEffect = 0.01;  // of time
// From here on rates do not change with size, and so no effect does: it is predicted here.
constexpr std::int64_t kLeastPlateau = 256LL << 20;
constexpr std::int64_t kPlateauOfRank = 16LL << 20;

/// Points of one operation and path, with the sizes that are predicted for them.
struct Series {
  std::vector<std::pair<std::size_t, std::size_t>> points;  ///< and each one's place among sizes
  CaseRequest request;
};

/// `most`: what larger sizes are predicted at.
std::vector<Series> series_of(const std::vector<Point>& points, std::int64_t most) {
  std::vector<Series> out;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i == 0 || !points[i].is_of(points[i - 1])) {
      out.emplace_back();
      out.back().request.name = "explain";
      out.back().request.op = points[i].op;
      out.back().request.path = points[i].path;
    }
    std::vector<Bytes>& sizes = out.back().request.sizes;
    const Bytes size{std::min(points[i].bytes, most)};
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
    out.back().points.push_back({i, sizes.size() - 1});
  }
  return out;
}

/// Of each operation and path the first, the middle and the last size.
std::vector<std::size_t> few_of(const std::vector<Point>& points) {
  std::vector<std::size_t> out;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin;
    while (end < points.size() && points[end].is_of(points[begin])) ++end;
    for (const std::size_t i : {begin, begin + (end - begin) / 2, end - 1}) {
      if (out.empty() || out.back() < i) out.push_back(i);
    }
    begin = end;
  }
  return out;
}

void add_once(const std::string& note, std::vector<std::string>& notes) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
}

bool is_effect(const std::vector<double>& effect) {
  return std::any_of(effect.begin(), effect.end(),
                     [](double each) { return std::abs(each) >= kNoEffect; });
}

}  // namespace

Effects::Times Effects::times(const std::vector<const Change*>& changes,
                              const std::vector<Point>& points, std::int64_t most,
                              unsigned threads) const {
  Times out;
  out.us.resize(points.size());
  for (Series& series : series_of(points, most)) {
    series.request.threads = threads;
    series.request.stop = stop_;
    const CasePrediction made = predicted(*healthy_, changes, *context_, series.request);
    if (!made.why_not.empty()) return {{}, {}, made.why_not};
    for (const auto& [point, row] : series.points) out.us[point] = made.rows[row].time_us;
    for (const std::string& note : made.notes) add_once(note, out.notes);
    if (made.is_mixed) {
      add_once(
          "NCCL would use GPUDirect RDMA at some ends of its rings only; predicted as at all of "
          "them",
          out.notes);
    }
  }
  return out;
}

Effects::Effects(const MachineCase& healthy, const CaseContext& context,
                 const std::vector<Point>& points, std::vector<Suspect> suspects, unsigned threads,
                 const Stop* stop)
    : healthy_{&healthy},
      context_{&context},
      points_{points},
      few_{few_of(points)},
      suspects_{std::move(suspects)},
      threads_{threads},
      stop_{stop} {
  for (const std::size_t i : few_) few_points_.push_back(points_[i]);
  std::size_t gpus = 0;
  for (const DeviceSpec& device : healthy.spec.node.devices) {
    gpus += device.kind == DeviceKind::kGpu ? context.nodes : 0U;
  }
  plateau_ = std::max(kLeastPlateau, kPlateauOfRank * static_cast<std::int64_t>(gpus));
  Times whole = times({}, points_, std::numeric_limits<std::int64_t>::max(), threads);
  if (!whole.why_not.empty()) throw InputError(whole.why_not);
  healthy_us_ = std::move(whole.us);
  notes_ = std::move(whole.notes);
  reference_us_ = times({}, points_, plateau_, threads).us;
}

const Effects::Made& Effects::made(Cache& cache, const std::vector<std::size_t>& suspects,
                                   bool is_few) const {
  {
    const std::lock_guard lock(mutex_);
    const auto at = cache.find(suspects);
    if (at != cache.end()) return at->second;
  }
  Made out;
  std::vector<const Change*> changes;
  bool is_ruled_out = false;
  for (const std::size_t i : suspects) {
    changes.push_back(&suspects_[i].variant.change);
    is_ruled_out = is_ruled_out || suspects_[i].weight == 0;
  }
  if (!is_ruled_out) {
    Times made = times(changes, is_few ? few_points_ : points_, plateau_, 1);
    out.effect = std::move(made.us);
    out.why_not = std::move(made.why_not);
  }
  for (std::size_t i = 0; i < out.effect.size(); ++i) {
    out.effect[i] = std::log(out.effect[i] / reference_us_[is_few ? few_[i] : i]);
  }
  const std::lock_guard lock(mutex_);
  return cache.emplace(suspects, std::move(out)).first->second;
}

void Effects::prepare(Cache& cache, const std::vector<std::vector<std::size_t>>& combinations,
                      bool is_few) const {
  parallel_for(combinations.size(), threads_,
               [&](std::size_t i) { made(cache, combinations[i], is_few); });
}

const std::vector<double>& Effects::of(const std::vector<std::size_t>& suspects) const {
  return made(all_, suspects, false).effect;
}

const std::vector<double>& Effects::at_few(std::size_t suspect) const {
  return made(at_few_, {suspect}, true).effect;
}

const std::string& Effects::why_not(std::size_t suspect) const {
  return made(at_few_, {suspect}, true).why_not;
}

void Effects::prepare(const std::vector<std::vector<std::size_t>>& combinations) const {
  prepare(all_, combinations, false);
}

void Effects::prepare_few() const {
  std::vector<std::vector<std::size_t>> each;
  for (std::size_t i = 0; i < suspects_.size(); ++i) each.push_back({i});
  prepare(at_few_, each, true);
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

namespace {

/// Each cause is as likely as each other, its variants share that; evidence multiplies.
std::vector<double> log_weights(const Effects& effects) {
  const std::vector<Suspect>& suspects = effects.suspects();
  std::map<std::string_view, double> variants;
  for (const Suspect& suspect : suspects) ++variants[suspect.entry->id];
  std::vector<double> out;
  for (const Suspect& suspect : suspects) {
    const double share = 1 / (variants[suspect.entry->id] * static_cast<double>(variants.size()));
    out.push_back(suspect.weight > 0 ? std::log(suspect.weight * share) : 0);
  }
  return out;
}

/// Of two causes in a row the slower one decides, or both add their time: as the better one fits.
double guessed(const Matcher& matcher, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> most(a.size());
  std::vector<double> sum(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    most[i] = std::max(a[i], b[i]);
    const double both = std::exp(a[i]) + std::exp(b[i]) - 1;
    sum[i] = both > 0 ? std::log(both) : most[i];
  }
  return std::max(matcher.match(most).log_likelihood, matcher.match(sum).log_likelihood);
}

/// Two causes that change the same thing are not two.
bool can_be_both(const Suspect& a, const Suspect& b) {
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

using Pair = std::vector<std::size_t>;

/// Those that are likeliest by what their causes do alone, at few sizes.
std::vector<Pair> likely_pairs(const Effects& effects, const std::vector<std::size_t>& causes,
                               const std::vector<double>& weights, const Matcher& at_few,
                               std::size_t most) {
  std::vector<std::pair<double, Pair>> out;
  for (std::size_t i = 0; i < causes.size(); ++i) {
    for (std::size_t j = i + 1; j < causes.size(); ++j) {
      const std::size_t a = causes[i];
      const std::size_t b = causes[j];
      if (!can_be_both(effects.suspects()[a], effects.suspects()[b])) continue;
      const double guess = guessed(at_few, effects.at_few(a), effects.at_few(b));
      out.push_back({guess + weights[a] + weights[b], {a, b}});
    }
  }
  const std::size_t kept = std::min(most, out.size());
  const auto is_likelier = [](const auto& x, const auto& y) {
    return x.first != y.first ? x.first > y.first : x.second < y.second;
  };
  std::partial_sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(kept), out.end(),
                    is_likelier);
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < kept; ++i) pairs.push_back(out[i].second);
  return pairs;
}

bool is_likelier(const Combination& a, const Combination& b) {
  if (a.log_posterior() != b.log_posterior()) return a.log_posterior() > b.log_posterior();
  return a.suspects < b.suspects;
}

/// The likeliest first, each with those that predict the same.
std::vector<Answer> answers_of(std::vector<Combination> all, const Matcher& matcher, double same) {
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
      out.push_back({{std::move(each)}, 1});
    }
  }
  for (Answer& answer : out) {
    constexpr double kMost = 1e12;
    answer.times_less = std::min(
        kMost, std::exp(out.front().best().log_posterior() - answer.best().log_posterior()));
  }
  return out;
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

bool any_suffices(const std::vector<Combination>& all, double chance) {
  return std::any_of(all.begin(), all.end(),
                     [&](const Combination& each) { return each.match.tail >= chance; });
}

/// What is left of causes that few sizes have not shown to be hopeless.
std::vector<std::vector<std::size_t>> hopeful(const Effects& effects,
                                              const std::vector<std::size_t>& causes,
                                              const std::vector<double>& weights,
                                              const Matcher& at_few, double hopeless) {
  std::vector<double> scores;
  for (const std::size_t i : causes) {
    scores.push_back(at_few.match(effects.at_few(i)).log_likelihood + weights[i]);
  }
  std::vector<std::vector<std::size_t>> out;
  if (scores.empty()) return out;
  const double best = *std::max_element(scores.begin(), scores.end());
  for (std::size_t k = 0; k < causes.size(); ++k) {
    if (scores[k] >= best - hopeless) out.push_back({causes[k]});
  }
  return out;
}

void add_matches(const Effects& effects, const std::vector<std::vector<std::size_t>>& combinations,
                 const std::vector<double>& weights, const Matcher& matcher,
                 std::vector<Combination>& all) {
  effects.prepare(combinations);
  for (const std::vector<std::size_t>& suspects : combinations) {
    const std::vector<double>& effect = effects.of(suspects);
    if (effect.empty()) continue;
    double weight = 0;
    for (const std::size_t i : suspects) weight += weights[i];
    all.push_back({suspects, effect, matcher.match(effect), weight});
  }
}

}  // namespace

Explanation explain(const std::vector<double>& gaps, const Effects& effects,
                    const ErrorModel& errors, const Judgement& judgement) {
  const Gaussian noise = noise_of(effects.points(), errors);
  const Matcher matcher(gaps, noise, errors.effect);
  Explanation out;
  out.gaps = gaps;
  out.healthy = matcher.healthy();
  for (std::size_t i = 0; i < gaps.size(); ++i) out.sd.push_back(noise.sd(i));
  if (!is_slower(gaps, out.sd, out.healthy, judgement.slower)) {
    out.verdict = Explained::kNotSlower;
    return out;
  }
  std::vector<Point> few_points;
  std::vector<double> few_gaps;
  for (const std::size_t i : effects.few()) {
    few_points.push_back(effects.points()[i]);
    few_gaps.push_back(gaps[i]);
  }
  const Gaussian few_noise = noise_of(few_points, errors);
  const Matcher at_few(few_gaps, few_noise, errors.effect);
  const std::vector<double> weights = log_weights(effects);
  effects.prepare_few();
  std::vector<std::size_t> causes;
  for (std::size_t i = 0; i < effects.suspects().size(); ++i) {
    const std::vector<double>& effect = effects.at_few(i);
    if (effect.empty()) continue;
    (is_effect(effect) ? causes : out.no_effect).push_back(i);
  }
  std::vector<Combination> all;
  add_matches(effects, hopeful(effects, causes, weights, at_few, judgement.hopeless), weights,
              matcher, all);
  if (!any_suffices(all, judgement.suffices)) {
    const std::vector<Pair> pairs = likely_pairs(effects, causes, weights, at_few, judgement.pairs);
    out.pairs = pairs.size();
    add_matches(effects, pairs, weights, matcher, all);
    out.two_at_once = any_suffices(all, judgement.suffices);
  }
  out.verdict = any_suffices(all, judgement.suffices) ? Explained::kExplained : Explained::kNone;
  if (out.verdict == Explained::kExplained) {
    std::erase_if(all,
                  [&](const Combination& each) { return each.match.tail < judgement.suffices; });
  }
  out.answers = answers_of(std::move(all), matcher, judgement.same);
  for (const Answer& answer : out.answers) {
    if (answer.times_less <= judgement.alike) ++out.alike;
  }
  return out;
}

}  // namespace weft
