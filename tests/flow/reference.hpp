#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "sim/flow/fluid.hpp"
#include "sim/flow/maxmin.hpp"

namespace weft::test {

/// One flow of a sharing problem, written plainly.
struct PlainFlow {
  struct PlainUse {
    std::uint32_t server;
    double weight;
  };
  std::vector<PlainUse> uses;
  double cap = std::numeric_limits<double>::infinity();
  double share = 1.0;
};

/// Progressive filling as the textbook has it: raise all open flows by the largest common step,
/// stop those at a cap or on a full server, repeat. O(rounds x uses).
std::vector<double> naive_maxmin(const std::vector<double>& capacity,
                                 const std::vector<PlainFlow>& flows);

/// PlainFlow's in the flat form of MaxMinProblem.
struct FlatProblem {
  FlatProblem(const std::vector<double>& capacities, const std::vector<PlainFlow>& flows);
  MaxMinProblem view() const;

  std::vector<double> capacity;
  std::vector<std::uint32_t> use_offset{0};
  std::vector<std::uint32_t> use_server;
  std::vector<double> use_weight;
  std::vector<double> cap;
  std::vector<double> share;
};

/// "" if the rates are feasible and max-min fair with these limiters, else what is wrong.
std::string maxmin_violation(const std::vector<double>& capacity,
                             const std::vector<PlainFlow>& flows, const std::vector<double>& rate,
                             const std::vector<std::uint32_t>& limiter);

/// A random sharing problem. Half of them draw capacities and weights from few values, so that many
/// things happen at one level.
struct RandomSystem {
  RandomSystem(std::mt19937_64& stream, std::size_t most_servers, std::size_t most_flows);
  std::vector<double> capacity;
  std::vector<PlainFlow> flows;
};

/// One thing that happens to a fluid system.
struct Happening {
  std::int64_t at_ps;
  bool is_start;  // of flow `index`; else `capacity` for server `index`
  std::uint32_t index;
  std::int64_t bytes{0};
  double capacity{0};
};

/// Finish times (ps) by flow, by re-solving everything naively at every change.
std::vector<std::int64_t> naive_finish_times(const RandomSystem& system,
                                             const std::vector<Happening>& happenings);

/// The same with FluidSystem; the tag is the flow's index. `limits` sums of each flow are checked
/// against finish - start, and reported through `exact`.
struct FluidRun {
  std::vector<std::int64_t> start_ps;
  std::vector<std::int64_t> finish_ps;
  std::vector<std::vector<LimitedFor>> limits;
  std::vector<double> used_bytes;  // by server, at the end
};
FluidRun run_fluid(const RandomSystem& system, const std::vector<Happening>& happenings);

/// Starts of all flows at random times with random bytes, and some capacity changes; in time order.
std::vector<Happening> random_happenings(const RandomSystem& system, std::mt19937_64& stream,
                                         bool change_capacities);

}  // namespace weft::test
