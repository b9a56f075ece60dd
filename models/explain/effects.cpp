#include "models/explain/effects.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/parallel.hpp"

namespace weft {
namespace {

// From here on rates do not change with size, and so no effect does: it is predicted here.
constexpr std::int64_t kLeastPlateau = 1LL << 30;
constexpr std::int64_t kPlateauOfRank = 64LL << 20;
constexpr const char* kWho = "explain";
constexpr double kMachineOfGpu = 0.01;  // s: a node's machine and NCCL's decisions, for each GPU

/// Points of one operation and path, with the sizes that are predicted for them.
struct Series {
  std::vector<std::pair<std::size_t, std::size_t>> rows;  ///< place asked for, and among sizes
  CaseRequest request;
};

/// `which`: ascending. `most`: what larger sizes are predicted at.
std::vector<Series> series_of(const std::vector<Point>& points,
                              const std::vector<std::size_t>& which, std::int64_t most) {
  std::vector<Series> out;
  for (std::size_t k = 0; k < which.size(); ++k) {
    const Point& point = points[which[k]];
    if (k == 0 || !point.is_of(points[which[k - 1]])) {
      out.emplace_back();
      out.back().request.op = point.op;
      out.back().request.path = point.path;
    }
    std::vector<Bytes>& sizes = out.back().request.sizes;
    const Bytes size{std::min(point.bytes, most)};
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
    out.back().rows.push_back({k, sizes.size() - 1});
  }
  return out;
}

void add_once(const std::string& note, std::vector<std::string>& notes) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
}

}  // namespace

Effects::Times Effects::times(CasePredictor& predictor, const std::vector<std::size_t>& points,
                              std::int64_t most) const {
  Times out;
  out.us.resize(points.size());
  for (const Series& series : series_of(points_, points, most)) {
    const CasePrediction made = predictor.predict(series.request);
    if (!made.why_not.empty()) return {{}, {}, made.why_not};
    for (const auto& [place, row] : series.rows) out.us[place] = made.rows[row].time_us;
    for (const std::string& note : made.notes) add_once(note, out.notes);
  }
  return out;
}

Effects::Effects(const MachineCase& healthy, const CaseContext& context,
                 const std::vector<Point>& points, std::vector<Suspect> suspects, unsigned threads,
                 const Stop* stop)
    : healthy_{&healthy},
      context_{&context},
      points_{points},
      suspects_{std::move(suspects)},
      threads_{threads},
      stop_{stop} {
  const std::ptrdiff_t gpus =
      std::ranges::count(healthy.spec.node.devices, DeviceKind::kGpu, &DeviceSpec::kind);
  plateau_ = std::max(kLeastPlateau, kPlateauOfRank * gpus * context.nodes);
  std::vector<std::size_t> all(points_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  CasePredictor predictor(healthy, {}, context, kWho, threads, stop);
  Times whole = times(predictor, all, std::numeric_limits<std::int64_t>::max());
  if (!whole.why_not.empty()) throw InputError(whole.why_not);
  healthy_us_ = std::move(whole.us);
  for (const Series& series : series_of(points_, all, plateau_)) {
    const std::vector<double> of_sizes = predictor.seconds(series.request);
    for (const auto& [point, size] : series.rows) seconds_.push_back(of_sizes[size]);
  }
  seconds_of_machine_ = kMachineOfGpu * static_cast<double>(gpus);
  notes_ = std::move(whole.notes);
  reference_us_ = healthy_us_;
  std::vector<std::size_t> larger;
  for (const std::size_t i : all) {
    if (points_[i].bytes > plateau_) larger.push_back(i);
  }
  const Times shared = times(predictor, larger, plateau_);
  if (!shared.why_not.empty()) throw InputError(shared.why_not);
  for (std::size_t k = 0; k < larger.size(); ++k) reference_us_[larger[k]] = shared.us[k];
}

void Effects::add(const Together& which, const std::vector<std::size_t>& points,
                  Known& known) const {
  std::vector<double>& log_ratio = known.effect.log_ratio;
  std::vector<const Change*> changes;
  for (const std::size_t i : which) {
    if (suspects_[i].weight == 0) return;  // evidence rules it out
    changes.push_back(&suspects_[i].variant.change);
  }
  std::vector<std::size_t> missing;
  for (const std::size_t i : points) {
    if (std::isnan(log_ratio[i])) missing.push_back(i);
  }
  if (missing.empty() || !known.effect.why_not.empty()) return;
  if (known.predictor == nullptr) {
    known.predictor =
        std::make_unique<CasePredictor>(*healthy_, changes, *context_, kWho, 1U, stop_);
  }
  Times made = times(*known.predictor, missing, plateau_);
  known.effect.why_not = std::move(made.why_not);
  if (!known.effect.why_not.empty()) {
    known.predictor.reset();
    return;
  }
  for (std::size_t k = 0; k < missing.size(); ++k) {
    log_ratio[missing[k]] = std::log(made.us[k] / reference_us_[missing[k]]);
  }
  for (std::size_t i = 0; i < points_.size(); ++i) {  // what was predicted at the same size
    for (const std::size_t j : missing) {
      const bool is_same =
          points_[i].is_of(points_[j]) && std::min(points_[i].bytes, points_[j].bytes) >= plateau_;
      if (is_same) log_ratio[i] = log_ratio[j];
    }
  }
  const bool is_whole = std::none_of(log_ratio.begin(), log_ratio.end(),
                                     [](double each) { return std::isnan(each); });
  if (is_whole) known.predictor.reset();
}

Effects::Known& Effects::known(const Together& which) const {
  Known& out = known_[which];
  out.effect.log_ratio.resize(points_.size(), std::numeric_limits<double>::quiet_NaN());
  return out;
}

void Effects::predict(const std::vector<Together>& which,
                      const std::vector<std::size_t>& points) const {
  std::vector<std::size_t> ascending = points;
  std::sort(ascending.begin(), ascending.end());
  std::vector<Known*> asked;
  for (const Together& each : which) asked.push_back(&known(each));
  parallel_for(which.size(), threads_, [&](std::size_t i) { add(which[i], ascending, *asked[i]); });
}

}  // namespace weft
