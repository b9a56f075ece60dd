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

bool is_effect(const std::vector<double>& effect) {
  return std::any_of(effect.begin(), effect.end(),
                     [](double each) { return std::abs(each) >= kNoEffect; });
}

}  // namespace

std::vector<double> Effects::times(const std::vector<const Change*>& changes, std::int64_t most,
                                   unsigned threads, std::string& why_not) const {
  std::vector<double> out(points_->size());
  for (Series& series : series_of(*points_, most)) {
    series.request.threads = threads;
    series.request.stop = stop_;
    const CasePrediction made = predicted(*healthy_, changes, *context_, series.request);
    if (!made.why_not.empty()) {
      why_not = made.why_not;
      return {};
    }
    for (const auto& [point, row] : series.points) out[point] = made.rows[row].time_us;
  }
  return out;
}

std::vector<double> Effects::effect(const std::vector<const Change*>& changes,
                                    std::string& why_not) const {
  std::vector<double> out = times(changes, plateau_, 1, why_not);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::log(out[i] / reference_us_[i]);
  return out;
}

Effects::Effects(const MachineCase& healthy, const CaseContext& context,
                 const std::vector<Point>& points, std::vector<Suspect> suspects, unsigned threads,
                 const Stop* stop)
    : healthy_{&healthy},
      context_{&context},
      points_{&points},
      suspects_{std::move(suspects)},
      threads_{threads},
      stop_{stop},
      effects_(suspects_.size()),
      why_not_(suspects_.size()) {
  std::size_t gpus = 0;
  for (const DeviceSpec& device : healthy.spec.node.devices) {
    gpus += device.kind == DeviceKind::kGpu ? context.nodes : 0U;
  }
  plateau_ = std::max(kLeastPlateau, kPlateauOfRank * static_cast<std::int64_t>(gpus));
  std::string refused;
  healthy_us_ = times({}, std::numeric_limits<std::int64_t>::max(), threads, refused);
  if (!refused.empty()) throw InputError(refused);
  reference_us_ = times({}, plateau_, threads, refused);
  parallel_for(suspects_.size(), threads, [&](std::size_t i) {
    if (suspects_[i].weight > 0) {
      effects_[i] = effect({&suspects_[i].variant.change}, why_not_[i]);
    }
  });
}

std::vector<double> Effects::of_pair(std::size_t a, std::size_t b) const {
  const std::pair key{std::min(a, b), std::max(a, b)};
  {
    const std::lock_guard lock(mutex_);
    const auto at = pairs_.find(key);
    if (at != pairs_.end()) return at->second;
  }
  std::string why_not;
  std::vector<double> made = effect(
      {&suspects_[key.first].variant.change, &suspects_[key.second].variant.change}, why_not);
  const std::lock_guard lock(mutex_);
  return pairs_.emplace(key, std::move(made)).first->second;
}

void Effects::prepare(const std::vector<std::pair<std::size_t, std::size_t>>& pairs) const {
  parallel_for(pairs.size(), threads_,
               [&](std::size_t i) { of_pair(pairs[i].first, pairs[i].second); });
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

using Pair = std::pair<std::size_t, std::size_t>;

/// Those that are likeliest by what their causes do alone.
std::vector<Pair> likely_pairs(const Effects& effects, const std::vector<std::size_t>& causes,
                               const std::vector<double>& weights, const Matcher& matcher,
                               std::size_t most) {
  std::vector<std::pair<double, Pair>> out;
  for (std::size_t i = 0; i < causes.size(); ++i) {
    for (std::size_t j = i + 1; j < causes.size(); ++j) {
      const std::size_t a = causes[i];
      const std::size_t b = causes[j];
      if (!can_be_both(effects.suspects()[a], effects.suspects()[b])) continue;
      const double guess = guessed(matcher, effects.of(a), effects.of(b));
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
    answer.times_less =
        std::exp(out.front().best().log_posterior() - answer.best().log_posterior());
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

void add_pairs(const Effects& effects, const std::vector<std::size_t>& causes,
               const std::vector<double>& weights, const Matcher& matcher, std::size_t most,
               std::vector<Combination>& all) {
  const std::vector<Pair> pairs = likely_pairs(effects, causes, weights, matcher, most);
  effects.prepare(pairs);
  for (const auto& [a, b] : pairs) {
    std::vector<double> effect = effects.of_pair(a, b);
    if (effect.empty()) continue;
    const Match match = matcher.match(effect);
    all.push_back({{a, b}, std::move(effect), match, weights[a] + weights[b]});
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
  const std::vector<double> weights = log_weights(effects);
  std::vector<std::size_t> causes;
  std::vector<Combination> all;
  for (std::size_t i = 0; i < effects.suspects().size(); ++i) {
    const std::vector<double>& effect = effects.of(i);
    if (effect.empty()) continue;
    if (!is_effect(effect)) {
      out.no_effect.push_back(i);
      continue;
    }
    causes.push_back(i);
    all.push_back({{i}, effect, matcher.match(effect), weights[i]});
  }
  if (!is_slower(gaps, out.sd, out.healthy, judgement.slower)) {
    out.verdict = Explained::kNotSlower;
    return out;
  }
  if (!any_suffices(all, judgement.suffices)) {
    add_pairs(effects, causes, weights, matcher, judgement.pairs, all);
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
