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

/// What each of the last `launches` adds to what was before; its causes are those of all.
RunOutcome each_of_last(int launches, Duration before, RunOutcome all) {
  const Duration whole = all.time;
  if (before >= whole) throw std::logic_error("a launch that takes no time");
  all.time = Duration::ps((whole - before).count_ps() / launches);
  Duration named;
  for (auto& [cause, time] : all.causes) {
    time = Duration::from_ns(time.as_ns() * (all.time.as_s() / whole.as_s()));
    named += time;
  }
  all.causes.front().second += all.time - named;  // what rounding left
  return all;
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
  return no_faster_than_the_host(launches, each_of_last(1, first, std::move(twice)), causes);
}

RunOutcome one_of_many(const Launches& launches, RunOutcome alone,
                       const std::function<RunOutcome()>& run_twice, CauseTable& causes) {
  if (!ends_together(alone)) alone = each_of_last(1, alone.time, run_twice());
  return no_faster_than_the_host(launches, std::move(alone), causes);
}

RunOutcome one_of_many(const Launches& launches, const RunOutcome& two, RunOutcome four,
                       CauseTable& causes) {
  return no_faster_than_the_host(launches, each_of_last(2, two.time, std::move(four)), causes);
}

}  // namespace weft
