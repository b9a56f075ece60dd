#include "models/collective/repeated.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "models/nccl/execute/launches.hpp"

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

RunOutcome repeated(const Params& params, const Plan& plan, CauseTable& causes,
                    const std::function<RunOutcome(const Plan&)>& run) {
  RunOutcome out = run(plan);
  const std::string_view launch = params.choice("nccl.launch");
  const auto add = [&](const char* what, Duration time) {
    out.time += time;
    const auto less = std::find_if(out.causes.begin(), out.causes.end(),
                                   [time](const auto& cause) { return cause.second < time; });
    out.causes.insert(less, {causes.intern({what, ""}), time});
  };
  if (launch == "single") {
    add("host waits and launches again", params.duration("nccl.host_wait"));
    return out;
  }
  const Duration apart = out.last_end - out.first_end;
  if (apart.as_s() > kApart * out.time.as_s()) {
    out = second(out, run(launched_twice(plan)));
  }
  const Duration host =
      params.duration("nccl.host_launch") * std::llround(params.number("nccl.gpus_per_thread"));
  if (launch == "back-to-back" && host > out.time) add("host launches", host - out.time);
  return out;
}

}  // namespace weft
