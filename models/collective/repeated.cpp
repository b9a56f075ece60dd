#include "models/collective/repeated.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "sim/base/random.hpp"

namespace weft {
namespace {

/// A launch alone whose first block ends by no more of its time before all else counts itself.
constexpr double kTogether = 0.005;

bool ends_together(const RunOutcome& alone) {
  return (alone.last_end - alone.first_end).as_s() <= kTogether * alone.time.as_s();
}

/// What the second of two launches adds to the first; its causes are those of both.
RunOutcome second(Duration first, RunOutcome both) {
  const Duration all = both.time;
  if (first >= all) throw std::logic_error("a second launch that takes no time");
  both.time = all - first;
  Duration named;
  for (auto& [cause, time] : both.causes) {
    time = Duration::from_ns(time.as_ns() * (both.time.as_s() / all.as_s()));
    named += time;
  }
  both.causes.front().second += both.time - named;  // what rounding left
  return both;
}

void add(RunOutcome& to, CauseTable& causes, const char* what, Duration time) {
  to.time += time;
  const auto less =
      std::ranges::find_if(to.causes, [time](const auto& cause) { return cause.second < time; });
  to.causes.insert(less, {causes.intern({what, ""}), time});
}

RunOutcome no_faster_than_the_host(const Launches& launches, RunOutcome one, CauseTable& causes) {
  if (launches.kind == Launches::Kind::kBackToBack && launches.host > one.time) {
    add(one, causes, "host launches", launches.host - one.time);
  }
  return one;
}

}  // namespace

Launches::Launches(const Params& params)
    : kind{params.choice("nccl.launch") == "single"  ? Kind::kSingle
           : params.choice("nccl.launch") == "graph" ? Kind::kGraph
                                                     : Kind::kBackToBack},
      wait{params.duration("nccl.host_wait")},
      host{params.duration("nccl.host_launch") *
           std::llround(params.number("nccl.gpus_per_thread"))} {}

std::uint64_t Launches::digest() const {
  return combined(static_cast<std::uint64_t>(kind),
                  combined(static_cast<std::uint64_t>(wait.count_ps()),
                           static_cast<std::uint64_t>(host.count_ps())));
}

RunOutcome waited_for(const Launches& launches, RunOutcome alone, CauseTable& causes) {
  add(alone, causes, "host waits and launches again", launches.wait);
  return alone;
}

RunOutcome one_of_many(const Launches& launches, RunOutcome twice, CauseTable& causes) {
  const Duration first = twice.lap;
  return no_faster_than_the_host(launches, second(first, std::move(twice)), causes);
}

RunOutcome one_of_many(const Launches& launches, RunOutcome alone,
                       const std::function<RunOutcome()>& run_twice, CauseTable& causes) {
  if (!ends_together(alone)) alone = second(alone.time, run_twice());
  return no_faster_than_the_host(launches, std::move(alone), causes);
}

}  // namespace weft
