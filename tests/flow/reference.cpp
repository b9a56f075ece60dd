#include "tests/flow/reference.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/random.hpp"

namespace weft::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double choose(std::mt19937_64& stream, std::initializer_list<double> values) {
  return values.begin()[uniform_below(stream, values.size())];
}

double used_of(const std::vector<PlainFlow>& flows, const std::vector<double>& rate,
               std::uint32_t server) {
  double used = 0;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (const auto& u : flows[f].uses) {
      if (u.server == server) used += u.weight * rate[f];
    }
  }
  return used;
}

std::int64_t ceil_ps(double ps) { return static_cast<std::int64_t>(std::ceil(ps - 1e-3)); }

}  // namespace

std::vector<double> naive_maxmin(const std::vector<double>& capacity,
                                 const std::vector<PlainFlow>& flows) {
  constexpr double kEps = 1e-12;
  std::vector<double> left = capacity;
  std::vector<double> rate(flows.size(), 0.0);
  std::vector<char> stopped(flows.size(), 0);
  for (std::size_t open = flows.size(); open > 0;) {
    std::vector<double> load(capacity.size(), 0.0);
    double step = kInfinity;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (stopped[f]) continue;
      for (const auto& u : flows[f].uses) load[u.server] += u.weight * flows[f].share;
      step = std::min(step, (flows[f].cap - rate[f]) / flows[f].share);
    }
    for (std::size_t r = 0; r < capacity.size(); ++r) {
      if (load[r] > 0.0) step = std::min(step, left[r] / load[r]);
    }
    for (std::size_t r = 0; r < capacity.size(); ++r) left[r] -= step * load[r];
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (stopped[f]) continue;
      rate[f] += step * flows[f].share;
      bool full = rate[f] >= flows[f].cap * (1.0 - kEps);
      for (const auto& u : flows[f].uses) {
        full = full || left[u.server] <= capacity[u.server] * kEps;
      }
      if (!full) continue;
      stopped[f] = 1;
      --open;
    }
  }
  return rate;
}

FlatProblem::FlatProblem(const std::vector<double>& capacities, const std::vector<PlainFlow>& flows)
    : capacity{capacities} {
  for (const PlainFlow& f : flows) {
    for (const auto& u : f.uses) {
      use_server.push_back(u.server);
      use_weight.push_back(u.weight);
    }
    use_offset.push_back(static_cast<std::uint32_t>(use_server.size()));
    cap.push_back(f.cap);
    share.push_back(f.share);
  }
}

MaxMinProblem FlatProblem::view() const {
  return {.capacity = capacity,
          .use_offset = use_offset,
          .use_server = use_server,
          .use_weight = use_weight,
          .cap = cap,
          .share = share};
}

std::string maxmin_violation(const std::vector<double>& capacity,
                             const std::vector<PlainFlow>& flows, const std::vector<double>& rate,
                             const std::vector<std::uint32_t>& limiter) {
  constexpr double kEps = 1e-10;
  for (std::uint32_t r = 0; r < capacity.size(); ++r) {
    if (used_of(flows, rate, r) > capacity[r] * (1 + kEps)) {
      return "server " + std::to_string(r) + " is above its capacity";
    }
  }
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const std::string name = "flow " + std::to_string(f);
    if (rate[f] > flows[f].cap * (1 + kEps)) return name + " is above its cap";
    if (limiter[f] == kOwnCap) {
      if (rate[f] < flows[f].cap * (1 - kEps)) return name + " is not at its cap";
      continue;
    }
    const std::uint32_t r = limiter[f];
    if (used_of(flows, rate, r) < capacity[r] * (1 - kEps)) return name + "'s limiter is not full";
    bool crosses = false;
    for (std::size_t g = 0; g < flows.size(); ++g) {
      for (const auto& u : flows[g].uses) {
        if (u.server != r) continue;
        crosses = crosses || g == f;
        if (rate[g] / flows[g].share > rate[f] / flows[f].share * (1 + kEps)) {
          return name + " gets less than another flow on its limiter";
        }
      }
    }
    if (!crosses) return name + " does not cross its limiter";
  }
  return "";
}

RandomSystem::RandomSystem(std::mt19937_64& stream, std::size_t most_servers,
                           std::size_t most_flows) {
  const bool few_values = uniform_below(stream, 2) == 0;
  const auto pick = [&](std::initializer_list<double> values) {
    return few_values ? choose(stream, values) : 0.2 + 2.0 * uniform01(stream);
  };
  const bool weighted = uniform_below(stream, 2) == 0;
  const bool shared = uniform_below(stream, 3) == 0;
  capacity.resize(1 + uniform_below(stream, most_servers));
  for (double& c : capacity) c = 1e9 * pick({1, 1, 2, 3});
  flows.resize(1 + uniform_below(stream, most_flows));
  for (PlainFlow& f : flows) {
    const std::size_t uses = std::min<std::size_t>(uniform_below(stream, 5), capacity.size());
    for (std::size_t i = 0; i < uses; ++i) {
      const auto r = static_cast<std::uint32_t>(uniform_below(stream, capacity.size()));
      const bool twice =
          std::any_of(f.uses.begin(), f.uses.end(), [&](const auto& u) { return u.server == r; });
      if (!twice) f.uses.push_back({r, weighted ? pick({1, 0.5, 2, 1.07}) : 1.0});
    }
    if (f.uses.empty() || uniform_below(stream, 3) == 0) f.cap = 1e9 * pick({0.1, 0.25, 0.5, 1});
    if (shared) f.share = pick({1, 2, 0.5});
  }
}

std::vector<Happening> random_happenings(const RandomSystem& system, std::mt19937_64& stream,
                                         bool change_capacities) {
  std::vector<Happening> all;
  // Times from few values make batches; a flow of 1 MB at 1e9 bytes/s lasts 1e9 ps.
  const bool few_values = uniform_below(stream, 2) == 0;
  const auto time = [&] {
    return few_values ? static_cast<std::int64_t>(uniform_below(stream, 4)) * 1'000'000'000
                      : static_cast<std::int64_t>(uniform_below(stream, 4'000'000'000));
  };
  for (std::uint32_t f = 0; f < system.flows.size(); ++f) {
    const auto bytes = static_cast<std::int64_t>(few_values ? 500'000 * uniform_below(stream, 4)
                                                            : uniform_below(stream, 2'000'000));
    all.push_back({.at_ps = time(), .is_start = true, .index = f, .bytes = bytes});
  }
  const std::size_t changes = change_capacities ? uniform_below(stream, 6) : 0;
  for (std::size_t i = 0; i < changes; ++i) {
    const auto r = static_cast<std::uint32_t>(uniform_below(stream, system.capacity.size()));
    all.push_back({.at_ps = time(),
                   .is_start = false,
                   .index = r,
                   .capacity = 1e9 * choose(stream, {0.5, 1, 2, 3.3})});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Happening& a, const Happening& b) { return a.at_ps < b.at_ps; });
  return all;
}

std::vector<std::int64_t> naive_finish_times(const RandomSystem& system,
                                             const std::vector<Happening>& happenings) {
  std::vector<double> capacity = system.capacity;
  std::vector<double> remaining(system.flows.size(), -1.0);  // negative: not in progress
  std::vector<std::int64_t> finish(system.flows.size(), -1);
  std::int64_t now = 0;
  std::size_t next = 0;
  for (;;) {
    for (; next < happenings.size() && happenings[next].at_ps == now; ++next) {
      const Happening& h = happenings[next];
      if (h.is_start) {
        remaining[h.index] = static_cast<double>(h.bytes);
      } else {
        capacity[h.index] = h.capacity;
      }
    }
    std::vector<std::size_t> live;
    std::vector<PlainFlow> flows;
    for (std::size_t f = 0; f < remaining.size(); ++f) {
      if (remaining[f] < 0.0) continue;
      live.push_back(f);
      flows.push_back(system.flows[f]);
    }
    const std::vector<double> rate = naive_maxmin(capacity, flows);
    std::int64_t until = next < happenings.size() ? happenings[next].at_ps
                                                  : std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> ends;
    for (std::size_t i = 0; i < live.size(); ++i) {
      ends.push_back(now + std::max<std::int64_t>(0, ceil_ps(remaining[live[i]] / rate[i] * 1e12)));
      until = std::min(until, ends.back());
    }
    if (until == std::numeric_limits<std::int64_t>::max()) return finish;
    for (std::size_t i = 0; i < live.size(); ++i) {
      remaining[live[i]] -= rate[i] * static_cast<double>(until - now) * 1e-12;
      remaining[live[i]] = std::max(0.0, remaining[live[i]]);
      if (ends[i] > until) continue;
      remaining[live[i]] = -1.0;
      finish[live[i]] = until;
    }
    now = until;
  }
}

FluidRun run_fluid(const RandomSystem& system, const std::vector<Happening>& happenings) {
  FluidSystem fluid;
  for (const double c : system.capacity) fluid.add_server(Bandwidth::bytes_per_s(c));
  std::vector<RouteIndex> routes;
  for (const PlainFlow& f : system.flows) {
    std::vector<Use> uses;
    for (const auto& u : f.uses) uses.push_back({FlowServerIndex{u.server}, u.weight});
    const auto cap =
        f.cap < kInfinity ? std::optional{Bandwidth::bytes_per_s(f.cap)} : std::nullopt;
    routes.push_back(fluid.add_route(uses, cap, f.share));
  }
  FluidRun run;
  run.start_ps.resize(system.flows.size(), -1);
  run.finish_ps.resize(system.flows.size(), -1);
  run.limits.resize(system.flows.size());
  std::vector<Finished> finished;
  const auto advance = [&](Time t) {
    fluid.advance(t, finished);
    for (const Finished& f : finished) {
      run.start_ps[f.tag] = f.start.since_start().count_ps();
      run.finish_ps[f.tag] = f.finish.since_start().count_ps();
      run.limits[f.tag].assign(f.limits.begin(), f.limits.end());
    }
  };
  for (const Happening& h : happenings) {
    const Time at = Time{} + Duration::ps(h.at_ps);
    if (at > fluid.now()) {
      for (auto t = fluid.next_change(); t && *t <= at; t = fluid.next_change()) advance(*t);
      advance(at);
    }
    if (h.is_start) {
      fluid.start(routes[h.index], Bytes{h.bytes}, h.index);
    } else {
      fluid.set_capacity(FlowServerIndex{h.index}, Bandwidth::bytes_per_s(h.capacity));
    }
  }
  while (const auto t = fluid.next_change()) advance(*t);
  for (std::size_t r = 0; r < system.capacity.size(); ++r) {
    run.used_bytes.push_back(fluid.used_bytes(FlowServerIndex{r}));
  }
  return run;
}

}  // namespace weft::test
