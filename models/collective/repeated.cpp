#include "models/collective/repeated.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "models/nccl/execute/launches.hpp"
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

RunOutcome repeated(const Launches& launches, const Plan& plan, CauseTable& causes,
                    const std::function<RunOutcome(const Plan&)>& run,
                    const std::optional<RunOutcome>& alone) {
  RunOutcome out;
  const auto add = [&](const char* what, Duration time) {
    out.time += time;
    const auto less = std::find_if(out.causes.begin(), out.causes.end(),
                                   [time](const auto& cause) { return cause.second < time; });
    out.causes.insert(less, {causes.intern({what, ""}), time});
  };
  if (launches.kind == Launches::Kind::kSingle) {
    out = alone.value();
    add("host waits and launches again", launches.wait);
    return out;
  }
  if (alone && ends_together(*alone)) {
    out = *alone;
  } else {
    RunOutcome both = run(launched_twice(plan));
    const Duration first = alone ? alone->time : both.lap;
    out = second(first, std::move(both));
  }
  if (launches.kind == Launches::Kind::kBackToBack && launches.host > out.time) {
    add("host launches", launches.host - out.time);
  }
  return out;
}

}  // namespace weft
