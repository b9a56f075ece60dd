#include "sim/run/load_sampler.hpp"

#include <algorithm>

namespace weft {

LoadSampler::LoadSampler(EventQueue& events, const ServerLoads& loads, Duration until)
    : loads_{&loads}, step_{Duration::ps(std::max<std::int64_t>(1, until.count_ps() / kSteps))} {
  for (std::int64_t k = 1; k <= kSteps; ++k) {
    events.schedule_at(Time{} + step_ * k, Phase::kObserve, *this, 0);
  }
}

void LoadSampler::on_event(std::uint64_t /*what*/) { busy_s_.push_back(loads_->busy_s()); }

void LoadSampler::add_to(Timeline& timeline) const {
  timeline.step = step_;
  if (busy_s_.empty()) return;
  const std::vector<std::string> names = loads_->servers();
  const std::vector<double>& all = busy_s_.back();
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] > 0) used.push_back(i);
  }
  std::ranges::stable_sort(used, std::ranges::greater{}, [&all](std::size_t i) { return all[i]; });
  if (used.size() > kMostSeries) {
    timeline.series_left_out = used.size() - kMostSeries;
    used.resize(kMostSeries);
  }
  for (const std::size_t i : used) {
    Timeline::Series series{names[i], {}};
    double shown = 0;
    for (const std::vector<double>& look : busy_s_) {
      const double busy = std::min(step_.as_s(), look[i] - shown);
      series.use.push_back(busy / step_.as_s());
      shown += busy;
    }
    timeline.series.push_back(std::move(series));
  }
}

}  // namespace weft
