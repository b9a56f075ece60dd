#include "sim/flow/maxmin.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/flow/common.hpp"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint32_t kOpen = kOwnCap - 1;  // limiter of a flow that still grows
using flow::kTie;
using flow::require;

// What is left of a server when all its open flows run at `level`. Measured at a level rather
// than as "capacity less fixed rates", so that flows fixed at one level leave no rounding behind.
struct Water {
  double left;
  double load{0};  // server bytes/s a unit of level, of the open flows
  double level{0};

  void rise_to(double to) {
    left -= (to - level) * load;
    level = to;
  }
};

struct Filling {
  explicit Filling(const MaxMinProblem& p) : problem{p} {}

  const MaxMinProblem& problem;
  MaxMinSolution solution;
  std::vector<Water> water;
  std::vector<std::uint32_t> user_offset;  // the uses transposed: flows of each server
  std::vector<std::uint32_t> users;
  std::vector<std::uint32_t> capped;  // flows with a cap, lowest level first
  double level{0};

  struct Entry {
    double key;
    std::uint32_t server;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key > b.key : a.server > b.server;
  }
  std::vector<Entry> heap;  // by the level at which a server fills; keys may be too low, never high

  std::size_t flows() const { return problem.use_offset.size() - 1; }
  double share(std::uint32_t f) const { return problem.share.empty() ? 1.0 : problem.share[f]; }
  double weight(std::uint32_t u) const {
    return problem.use_weight.empty() ? 1.0 : problem.use_weight[u];
  }
  double cap_level(std::uint32_t f) const { return problem.cap[f] / share(f); }

  void check_shape() const;
  void add_loads();
  void transpose();
  void sort_caps();
  void fill_heap();
  void fix(std::uint32_t flow, double rate, std::uint32_t limiter);
  void close(std::uint32_t server);
  void run();
};

void Filling::check_shape() const {
  require(!problem.use_offset.empty() && problem.use_offset.front() == 0 &&
              problem.use_offset.back() == problem.use_server.size(),
          "maxmin: use_offset must lead from 0 to the number of uses");
  const auto fits = [](std::size_t given, std::size_t n) { return given == 0 || given == n; };
  require(fits(problem.use_weight.size(), problem.use_server.size()) &&
              fits(problem.cap.size(), flows()) && fits(problem.share.size(), flows()),
          "maxmin: optional arrays must be empty or full");
}

void Filling::add_loads() {
  water.reserve(problem.capacity.size());
  for (const double c : problem.capacity) {
    require(c > 0.0, "maxmin: capacity must be positive");
    water.push_back(Water{.left = c});
  }
  for (std::uint32_t f = 0; f < flows(); ++f) {
    const std::uint32_t begin = problem.use_offset[f];
    const std::uint32_t end = problem.use_offset[f + 1];
    require(begin <= end, "maxmin: use_offset must not fall");
    require(share(f) > 0.0, "maxmin: share must be positive");
    require(begin < end || (!problem.cap.empty() && problem.cap[f] < kInfinity),
            "maxmin: a flow with neither uses nor cap");
    for (std::uint32_t u = begin; u < end; ++u) {
      require(problem.use_server[u] < water.size(), "maxmin: unknown server");
      require(weight(u) > 0.0, "maxmin: weight must be positive");
      water[problem.use_server[u]].load += weight(u) * share(f);
      ++user_offset[problem.use_server[u]];
    }
  }
}

// Counting sort; on entry user_offset holds counts, on exit the start of each server's flows.
void Filling::transpose() {
  std::exclusive_scan(user_offset.begin(), user_offset.end(), user_offset.begin(), 0U);
  users.resize(problem.use_server.size());
  for (std::uint32_t f = 0; f < flows(); ++f) {
    for (std::uint32_t u = problem.use_offset[f]; u < problem.use_offset[f + 1]; ++u) {
      users[user_offset[problem.use_server[u]]++] = f;
    }
  }
  std::shift_right(user_offset.begin(), user_offset.end(), 1);
  user_offset.front() = 0;
}

void Filling::sort_caps() {
  for (std::uint32_t f = 0; f < problem.cap.size(); ++f) {
    require(problem.cap[f] > 0.0, "maxmin: cap must be positive");
    if (problem.cap[f] < kInfinity) capped.push_back(f);
  }
  std::sort(capped.begin(), capped.end(), [this](std::uint32_t a, std::uint32_t b) {
    return cap_level(a) != cap_level(b) ? cap_level(a) < cap_level(b) : a < b;
  });
}

void Filling::fill_heap() {
  heap.reserve(water.size());
  for (std::uint32_t s = 0; s < water.size(); ++s) {
    if (water[s].load > 0.0) heap.push_back({water[s].left / water[s].load, s});
  }
  std::make_heap(heap.begin(), heap.end(), later);
}

void Filling::fix(std::uint32_t flow, double rate, std::uint32_t limiter) {
  solution.rate[flow] = rate;
  solution.limiter[flow] = limiter;
  for (std::uint32_t u = problem.use_offset[flow]; u < problem.use_offset[flow + 1]; ++u) {
    Water& w = water[problem.use_server[u]];
    w.rise_to(level);
    w.load -= weight(u) * share(flow);
  }
}

void Filling::close(std::uint32_t server) {
  for (std::uint32_t i = user_offset[server]; i < user_offset[server + 1]; ++i) {
    const std::uint32_t f = users[i];
    if (solution.limiter[f] == kOpen) fix(f, level * share(f), server);
  }
  water[server].load = 0.0;
}

void Filling::run() {
  std::size_t next_cap = 0;
  while (!heap.empty() || next_cap < capped.size()) {
    const double filled = heap.empty() ? kInfinity : heap.front().key;
    if (next_cap < capped.size() && cap_level(capped[next_cap]) <= filled) {
      const std::uint32_t f = capped[next_cap++];
      if (solution.limiter[f] != kOpen) continue;
      level = std::max(level, cap_level(f));
      fix(f, problem.cap[f], kOwnCap);
      continue;
    }
    const std::uint32_t s = heap.front().server;
    std::pop_heap(heap.begin(), heap.end(), later);
    const Water& w = water[s];
    // A load of rounding dust is harmless: its server closes without a flow.
    const double fills_at = w.level + std::max(0.0, w.left) / w.load;
    const double slack = kTie * problem.capacity[s];
    const bool ties = (fills_at - level) * w.load <= slack;
    if (!(w.load > 0.0)) {
      heap.pop_back();
    } else if (ties || fills_at <= filled) {
      heap.pop_back();
      if (!ties) level = std::max(level, fills_at);
      close(s);
    } else {  // flows were fixed below since the key was made: it fills later
      heap.back().key = fills_at;
      std::push_heap(heap.begin(), heap.end(), later);
    }
  }
}

}  // namespace

MaxMinSolution maxmin_rates(const MaxMinProblem& problem) {
  Filling filling{problem};
  filling.check_shape();
  filling.user_offset.assign(problem.capacity.size() + 1, 0);
  filling.add_loads();
  filling.transpose();
  filling.sort_caps();
  filling.solution.rate.assign(filling.flows(), 0.0);
  filling.solution.limiter.assign(filling.flows(), kOpen);
  filling.fill_heap();
  filling.run();
  return std::move(filling.solution);
}

}  // namespace weft
