#include "models/collective/repeated.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"

namespace weft {
namespace {

/// A launch alone whose first block ends by no more of its time before all else counts itself.
constexpr double kTogether = 0.005;

bool ends_together(const RunOutcome& alone) {
  return (alone.last_end - alone.first_end).as_s() <= kTogether * alone.time.as_s();
}

/// Makes causes sum up to the time; what rounding leaves is the largest one's.
void scale_causes(RunOutcome& run, Duration from) {
  Duration named;
  for (auto& [cause, time] : run.causes) {
    time = Duration::from_ns(time.as_ns() * (run.time.as_s() / from.as_s()));
    named += time;
  }
  run.causes.front().second += run.time - named;
}

/// What each of the last `launches` adds to what was before.
Duration each_of_last(std::uint32_t launches, Duration before, Duration all) {
  if (before >= all) {
    throw InputError(
        "launches behind each other have not settled after so few: the last ones took no time; ask "
        "for one alone (--launch single)");
  }
  return Duration::ps((all - before).count_ps() / launches);
}

/// Likewise; its causes are those of all launches.
RunOutcome last_of(std::uint32_t launches, Duration before, RunOutcome all) {
  const Duration whole = all.time;
  all.time = each_of_last(launches, before, whole);
  scale_causes(all, whole);
  return all;
}

/// The causes of a run that are not those of its beginning, the most first; all, where none is.
void take_causes(const RunOutcome& beginning, RunOutcome& all) {
  std::map<CauseId, Duration> before(beginning.causes.begin(), beginning.causes.end());
  std::vector<std::pair<CauseId, Duration>> left;
  for (const auto& [cause, time] : all.causes) {
    const auto at = before.find(cause);
    const Duration more = at == before.end() ? time : time - at->second;
    if (more > Duration{}) left.emplace_back(cause, more);
  }
  if (left.empty()) return;
  std::ranges::stable_sort(left, std::ranges::greater{}, &std::pair<CauseId, Duration>::second);
  all.causes = std::move(left);
}

void add(RunOutcome& to, CauseTable& causes, const char* what, Duration time) {
  to.time += time;
  const auto less =
      std::ranges::find_if(to.causes, [time](const auto& cause) { return cause.second < time; });
  to.causes.insert(less, {causes.intern({what, ""}), time});
}

/// How many launches of a chain are run at once at most, what they take together being no
/// more than `of_all`.
std::uint32_t most_within(double of_each, double of_all) {
  constexpr std::uint32_t kLeast = 4;
  constexpr std::uint32_t kMost = 64;
  std::uint32_t out = kLeast;
  while (out < kMost && all_of_chain(2 * out) * of_each <= of_all) out *= 2;
  return out;
}

}  // namespace

Launches::Launches(const Params& params)
    : kind{params.choice("nccl.launch") == "single"  ? Kind::kSingle
           : params.choice("nccl.launch") == "graph" ? Kind::kGraph
                                                     : Kind::kBackToBack},
      wait{params.duration("nccl.host_wait")},
      host{params.duration("nccl.host_launch") *
           std::llround(params.number("nccl.gpus_per_thread"))} {}

RunOutcome told_by_lap(std::uint32_t before, RunOutcome run) {
  const Duration lap = run.lap;
  return last_of(before, lap, std::move(run));
}

RunOutcome told_by_one(RunOutcome alone, const std::function<RunOutcome()>& run_twice) {
  const Duration lap = alone.time;
  if (!ends_together(alone)) alone = last_of(1, lap, run_twice());
  alone.lap = lap;
  return alone;
}

RunOutcome told_by_twice_as_many(const std::function<RunOutcome(std::uint32_t)>& run_times,
                                 std::uint32_t most) {
  constexpr double kSettled = 0.03;      // of what one adds
  constexpr double kShortWay = 1.0 / 8;  // of a launch, which is the way through all ranks
  std::uint32_t n = 2;
  RunOutcome some = run_times(n);
  RunOutcome all = run_times(2 * n);
  for (double before_ns = 0; 4 * n <= most;) {
    const double each_ns = (all.time - some.time).as_ns() / n;
    if (some.time.as_ns() <= (n + kShortWay) * each_ns) break;
    if (std::abs(each_ns - before_ns) <= kSettled * each_ns) break;
    before_ns = each_ns;
    n *= 2;
    some = std::exchange(all, run_times(2 * n));
  }
  all.time = each_of_last(n, some.time, all.time);
  take_causes(some, all);
  Duration named;
  for (const auto& [cause, time] : all.causes) named += time;
  scale_causes(all, named);
  return all;
}

RunOutcome with_the_host(const Launches& launches, RunOutcome one, CauseTable& causes) {
  switch (launches.kind) {
    case Launches::Kind::kSingle:
      add(one, causes, "host waits and launches again", launches.wait);
      break;
    case Launches::Kind::kBackToBack:
      if (launches.host > one.time) add(one, causes, "host launches", launches.host - one.time);
      break;
    case Launches::Kind::kGraph:
      break;
  }
  return one;
}

std::uint32_t most_of_chain(double transfers) {
  constexpr double kMostTransfers = 5e5;  // half a second's
  return most_within(transfers, kMostTransfers);
}

std::uint32_t most_of_chain_on_packets(double seconds) {
  constexpr double kMostSeconds = 30;
  return most_within(seconds, kMostSeconds);
}

}  // namespace weft
