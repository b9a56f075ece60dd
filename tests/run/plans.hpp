#pragma once

#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "sim/run/runner.hpp"
#include "tests/run/fixed_rates.hpp"

namespace weft {

/// A walk of `legs` legs: that many ns a byte.
inline WalkIndex walk(Plan& plan, std::size_t legs) { return plan.walks.add(Walk(legs)); }

inline LagIndex lag(Plan& plan, const char* cause, std::int64_t ns) {
  plan.lags.push_back({cause, Duration::ns(ns)});
  return static_cast<LagIndex>(plan.lags.size() - 1);
}

inline FlagIndex flag(Plan& plan, std::uint32_t tokens = 0) {
  plan.flags.push_back({tokens});
  return static_cast<FlagIndex>(plan.flags.size() - 1);
}

/// A program of an actor of its own, which works 50 ns first; valid until the next.
inline Program& add_program(Plan& plan, Actor::Kind kind = Actor::Kind::kThreadBlock) {
  Program program;
  program.actor = static_cast<ActorIndex>(plan.actors.size());
  program.compute(lag(plan, "launch", 50));
  plan.actors.push_back({kind, {}, program.actor});
  plan.programs.push_back(std::move(program));
  return plan.programs.back();
}

/// A FIFO between two ranks.
struct Pipe {
  FlagIndex ready;
  FlagIndex free;
  LagIndex notify;
  LagIndex credit;
};

inline Pipe add_pipe(Plan& plan, std::uint32_t slots) {
  return {flag(plan), flag(plan, slots), lag(plan, "notify", 7), lag(plan, "credit", 3)};
}

/// Pushes `bytes` in slices of 10 B, `times` times, along a walk.
inline void push(Program& p, const Pipe& pipe, std::uint64_t times, WalkIndex way,
                 std::int64_t bytes = 10) {
  const auto slice = [&](std::int64_t size) {
    p.wait(pipe.free);
    p.move(way, Bytes{size});
    p.raise(pipe.ready, pipe.notify);
  };
  p.repeat(times, [&] {
    p.repeat(static_cast<std::uint64_t>(bytes / 10), [&] { slice(10); });
    if (bytes % 10 > 0) slice(bytes % 10);
  });
}

inline void pull(Program& p, const Pipe& pipe, std::uint64_t times, WalkIndex way,
                 std::int64_t bytes = 10) {
  const auto slice = [&](std::int64_t size) {
    p.wait(pipe.ready);
    p.move(way, Bytes{size});
    p.signal(pipe.free, pipe.credit);
  };
  p.repeat(times, [&] {
    p.repeat(static_cast<std::uint64_t>(bytes / 10), [&] { slice(10); });
    if (bytes % 10 > 0) slice(bytes % 10);
  });
}

/// Rank 0 sends `slices` slices of 10 B to rank 1 through a FIFO of `slots`.
inline Plan pipe(std::uint32_t slots, std::uint32_t slices, std::int64_t bytes = 10) {
  Plan plan;
  const Pipe fifo = add_pipe(plan, slots);
  const WalkIndex way = walk(plan, 1);
  push(add_program(plan), fifo, slices, way, bytes);
  pull(add_program(plan), fifo, slices, way, bytes);
  return plan;
}

struct Ran {
  Duration time;
  std::map<std::string, Duration> causes;
  std::uint64_t transfers;
  std::uint64_t trajectory;
};

inline Ran ran(const RunOutcome& outcome, const CauseTable& causes) {
  Ran out{outcome.time, {}, outcome.transfers, outcome.trajectory};
  Duration sum;
  for (const auto& [id, time] : outcome.causes) {
    out.causes[causes[id].kind] += time;
    sum += time;
  }
  EXPECT_EQ(sum, outcome.time);  // every picosecond has a cause
  return out;
}

inline Ran run(const Plan& plan) {
  EventQueue events;
  CauseTable causes;
  FixedRates transport(events, causes);
  return ran(run_plan(plan, transport, events, causes), causes);
}

}  // namespace weft
