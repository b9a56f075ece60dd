#include "models/collective/repeated.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/nccl/execute/launches.hpp"
#include "sim/base/random.hpp"

namespace weft {
namespace {

/// The first block's end and that of all else, so far apart that the next launch is looked at.
constexpr double kApart = 0.005;

/// What the second of two launches adds to one alone; its causes are those of both.
RunOutcome second(const RunOutcome& one, RunOutcome both) {
  const Duration all = both.time;
  both.time = all - one.time;
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
                    const std::function<RunOutcome(const Plan&)>& run) {
  RunOutcome out = run(plan);
  const auto add = [&](const char* what, Duration time) {
    out.time += time;
    const auto less = std::find_if(out.causes.begin(), out.causes.end(),
                                   [time](const auto& cause) { return cause.second < time; });
    out.causes.insert(less, {causes.intern({what, ""}), time});
  };
  if (launches.kind == Launches::Kind::kSingle) {
    add("host waits and launches again", launches.wait);
    return out;
  }
  const Duration apart = out.last_end - out.first_end;
  if (apart.as_s() > kApart * out.time.as_s()) {
    out = second(out, run(launched_twice(plan)));
  }
  if (launches.kind == Launches::Kind::kBackToBack && launches.host > out.time) {
    add("host launches", launches.host - out.time);
  }
  return out;
}

}  // namespace weft
