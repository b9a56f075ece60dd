// FluidSystem as a whole against a naive simulation, and against itself transformed.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/random.hpp"
#include "tests/flow/reference.hpp"

namespace weft::test::flow_fluid_random {
namespace {

using test::FluidRun;
using test::Happening;
using test::PlainFlow;
using test::RandomSystem;

std::vector<std::int64_t> sorted(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST(FluidRandom, FinishTimesEqualANaiveSimulation) {
  std::mt19937_64 stream = random_stream(1, "fluid");
  for (int round = 0; round < 1500; ++round) {
    const RandomSystem system{stream, 8, 24};
    const auto happenings = test::random_happenings(system, stream, false);
    const auto expected = test::naive_finish_times(system, happenings);
    const FluidRun run = test::run_fluid(system, happenings);
    for (std::size_t f = 0; f < expected.size(); ++f) {
      // Each simulation rounds every finish up by its own last bits: 1 ps, which the flows behind
      // it may inherit.
      ASSERT_NEAR(static_cast<double>(run.finish_ps[f]), static_cast<double>(expected[f]), 2.0)
          << "round " << round << " flow " << f;
    }
  }
}

TEST(FluidRandom, FinishTimesEqualANaiveSimulationWhenLinksFlap) {
  std::mt19937_64 stream = random_stream(2, "fluid");
  for (int round = 0; round < 1500; ++round) {
    const RandomSystem system{stream, 8, 24};
    const auto happenings = test::random_happenings(system, stream, true);
    const auto expected = test::naive_finish_times(system, happenings);
    const FluidRun run = test::run_fluid(system, happenings);
    for (std::size_t f = 0; f < expected.size(); ++f) {
      ASSERT_NEAR(static_cast<double>(run.finish_ps[f]), static_cast<double>(expected[f]), 2.0)
          << "round " << round << " flow " << f;
    }
  }
}

TEST(FluidRandom, LimitsSumExactlyAndNameWhatTheFlowCrosses) {
  std::mt19937_64 stream = random_stream(3, "fluid");
  for (int round = 0; round < 500; ++round) {
    const RandomSystem system{stream, 8, 24};
    const FluidRun run = test::run_fluid(system, test::random_happenings(system, stream, true));
    for (std::size_t f = 0; f < system.flows.size(); ++f) {
      Duration sum{};
      for (std::size_t i = 0; i < run.limits[f].size(); ++i) {
        const LimitedFor& l = run.limits[f][i];
        ASSERT_GT(l.duration, Duration{});
        sum += l.duration;
        ASSERT_TRUE(i == 0 || !(l.limiter == run.limits[f][i - 1].limiter));
        const auto& uses = system.flows[f].uses;
        ASSERT_TRUE(l.limiter.is_own_cap() ||
                    std::any_of(uses.begin(), uses.end(), [&](const auto& u) {
                      return l.limiter.server().value == u.server;
                    }));
      }
      ASSERT_EQ(sum.count_ps(), run.finish_ps[f] - run.start_ps[f]);
    }
  }
}

TEST(FluidRandom, ServersCarryExactlyTheBytesOfTheirFlows) {
  std::mt19937_64 stream = random_stream(4, "fluid");
  for (int round = 0; round < 300; ++round) {
    const RandomSystem system{stream, 8, 24};
    const auto happenings = test::random_happenings(system, stream, true);
    const FluidRun run = test::run_fluid(system, happenings);
    std::vector<double> expected(system.capacity.size(), 0.0);
    for (const Happening& h : happenings) {
      if (!h.is_start) continue;
      for (const auto& u : system.flows[h.index].uses) {
        expected[u.server] += u.weight * static_cast<double>(h.bytes);
      }
    }
    for (std::size_t r = 0; r < expected.size(); ++r) {
      ASSERT_NEAR(run.used_bytes[r], expected[r], 1e-9 * expected[r]);
    }
  }
}

TEST(FluidRandom, TheIntegralOfTheRateIsTheBytes) {
  // Sampled between changes, where rates are constant: what remains falls by rate x time.
  std::mt19937_64 stream = random_stream(5, "fluid");
  for (int round = 0; round < 100; ++round) {
    const RandomSystem system{stream, 6, 12};
    FluidSystem fluid;
    for (const double c : system.capacity) fluid.add_server(Bandwidth::bytes_per_s(c));
    std::vector<double> moved(system.flows.size(), 0.0);
    for (std::size_t f = 0; f < system.flows.size(); ++f) {
      std::vector<Use> uses;
      for (const auto& u : system.flows[f].uses) uses.push_back({FlowServerIndex{u.server}});
      const RouteIndex route = fluid.add_route(uses, Bandwidth::gigabytes_per_s(1.5));
      fluid.start(route, Bytes{static_cast<std::int64_t>(1000 * (f + 1))}, f);
    }
    std::vector<Finished> finished;
    while (const auto t = fluid.next_change()) {
      const double seconds = (*t - fluid.now()).as_s();
      for (const FlowInProgress& f : fluid.in_progress()) {
        moved[f.tag] += f.rate_bytes_per_s * seconds;
      }
      fluid.advance(*t, finished);
    }
    for (std::size_t f = 0; f < moved.size(); ++f) {
      // Finishing up to 1 ps late at up to 1.5e9 B/s is 0.0015 bytes.
      ASSERT_NEAR(moved[f], 1000.0 * static_cast<double>(f + 1), 0.0016);
    }
  }
}

TEST(FluidRandom, DoublingCapacitiesAndCapsHalvesTimes) {
  std::mt19937_64 stream = random_stream(6, "fluid");
  for (int round = 0; round < 200; ++round) {
    RandomSystem system{stream, 8, 24};
    std::vector<Happening> starts;
    for (std::uint32_t f = 0; f < system.flows.size(); ++f) {
      const auto bytes = static_cast<std::int64_t>(uniform_below(stream, 2'000'000));
      starts.push_back({.at_ps = 0, .is_start = true, .index = f, .bytes = bytes});
    }
    const FluidRun slow = test::run_fluid(system, starts);
    for (double& c : system.capacity) c *= 2;
    for (auto& f : system.flows) f.cap *= 2;
    const FluidRun fast = test::run_fluid(system, starts);
    for (std::size_t f = 0; f < system.flows.size(); ++f) {
      // Both round every finish up, so the halves may part by a picosecond or two.
      ASSERT_NEAR(static_cast<double>(fast.finish_ps[f]),
                  static_cast<double>(slow.finish_ps[f]) / 2, 2.0);
    }
  }
}

// Flows that cross the same servers from the same instant on get equal shares, so that one flow
// with the share, the cap and the bytes of all of them stands for them: aggregation, where traffic
// has such flows, is exact. Programs that fold (sim/plan/fold.hpp) rest on this.
TEST(FluidRandom, OneFlowStandsForAllOnTheSameServers) {
  std::mt19937_64 stream = random_stream(12, "fluid");
  for (int round = 0; round < 500; ++round) {
    RandomSystem apart{stream, 8, 12};
    RandomSystem together = apart;
    std::vector<Happening> of_apart;
    std::vector<Happening> of_together;
    const std::size_t flows = apart.flows.size();
    std::vector<std::size_t> stands_in;  // by flow of `apart`, which of `together`
    for (std::size_t f = 0; f < flows; ++f) stands_in.push_back(f);
    for (std::uint32_t f = 0; f < flows; ++f) {
      const auto copies = static_cast<std::int64_t>(1 + uniform_below(stream, 6));
      const auto at_ps = static_cast<std::int64_t>(uniform_below(stream, 1'000'000));
      const auto bytes = static_cast<std::int64_t>(uniform_below(stream, 2'000'000));
      of_together.push_back(
          {.at_ps = at_ps, .is_start = true, .index = f, .bytes = copies * bytes});
      together.flows[f].share *= static_cast<double>(copies);
      together.flows[f].cap *= static_cast<double>(copies);
      of_apart.push_back({.at_ps = at_ps, .is_start = true, .index = f, .bytes = bytes});
      for (std::int64_t copy = 1; copy < copies; ++copy) {
        const auto index = static_cast<std::uint32_t>(apart.flows.size());
        apart.flows.push_back(PlainFlow{apart.flows[f]});
        stands_in.push_back(f);
        of_apart.push_back({.at_ps = at_ps, .is_start = true, .index = index, .bytes = bytes});
      }
    }
    for (auto* happenings : {&of_apart, &of_together}) {
      std::stable_sort(happenings->begin(), happenings->end(),
                       [](const Happening& a, const Happening& b) { return a.at_ps < b.at_ps; });
    }
    const FluidRun all = test::run_fluid(apart, of_apart);
    const FluidRun one = test::run_fluid(together, of_together);
    for (std::size_t f = 0; f < stands_in.size(); ++f) {
      const auto finish = static_cast<double>(one.finish_ps[stands_in[f]]);
      // Both round finishes up to a picosecond, which the flows behind may inherit.
      ASSERT_NEAR(static_cast<double>(all.finish_ps[f]), finish, 2.0 + 1e-9 * finish) << round;
      ASSERT_EQ(all.finish_ps[f], all.finish_ps[stands_in[f]]) << round;
    }
  }
}

TEST(FluidRandom, AnIdleServerChangesNothing) {
  std::mt19937_64 stream = random_stream(7, "fluid");
  for (int round = 0; round < 200; ++round) {
    RandomSystem system{stream, 8, 24};
    const auto happenings = test::random_happenings(system, stream, true);
    const FluidRun before = test::run_fluid(system, happenings);
    system.capacity.push_back(1.0);
    ASSERT_EQ(test::run_fluid(system, happenings).finish_ps, before.finish_ps);
  }
}

TEST(FluidRandom, AnUnsaturatedServerChangesNoFinishTime) {
  std::mt19937_64 stream = random_stream(8, "fluid");
  for (int round = 0; round < 200; ++round) {
    RandomSystem system{stream, 8, 24};
    const auto happenings = test::random_happenings(system, stream, true);
    const FluidRun before = test::run_fluid(system, happenings);
    const auto wide = static_cast<std::uint32_t>(system.capacity.size());
    system.capacity.push_back(1e13);
    for (auto& f : system.flows) f.uses.push_back({wide, 1.0});
    ASSERT_EQ(test::run_fluid(system, happenings).finish_ps, before.finish_ps);
  }
}

TEST(FluidRandom, TheOrderOfStartsWithinAnInstantDoesNotMatter) {
  std::mt19937_64 stream = random_stream(9, "fluid");
  for (int round = 0; round < 300; ++round) {
    const RandomSystem system{stream, 8, 24};
    std::vector<Happening> happenings = test::random_happenings(system, stream, false);
    const FluidRun before = test::run_fluid(system, happenings);
    std::reverse(happenings.begin(), happenings.end());
    std::stable_sort(happenings.begin(), happenings.end(),
                     [](const Happening& a, const Happening& b) { return a.at_ps < b.at_ps; });
    const FluidRun after = test::run_fluid(system, happenings);
    const auto a = sorted(before.finish_ps);
    const auto b = sorted(after.finish_ps);
    for (std::size_t f = 0; f < a.size(); ++f) {
      // Other orders add the same numbers up differently; the last bit may round a finish up.
      ASSERT_NEAR(static_cast<double>(a[f]), static_cast<double>(b[f]), 1.0);
    }
  }
}

TEST(FluidRandom, TheSameInputGivesTheSameRun) {
  std::mt19937_64 stream = random_stream(10, "fluid");
  const RandomSystem system{stream, 8, 24};
  const auto happenings = test::random_happenings(system, stream, true);
  const FluidRun first = test::run_fluid(system, happenings);
  const FluidRun second = test::run_fluid(system, happenings);
  EXPECT_EQ(first.finish_ps, second.finish_ps);
  EXPECT_EQ(first.used_bytes, second.used_bytes);
}

TEST(FluidRandom, AsManySolvesPerInstantAsOneLikesChangeNothing) {
  // next_change() after every single start solves each on its own; the limiters that hold for no
  // time leave no trace.
  std::mt19937_64 stream = random_stream(11, "fluid");
  for (int round = 0; round < 100; ++round) {
    const RandomSystem system{stream, 6, 16};
    std::vector<std::int64_t> finish[2];
    for (int eager = 0; eager < 2; ++eager) {
      FluidSystem fluid;
      for (const double c : system.capacity) fluid.add_server(Bandwidth::bytes_per_s(c));
      for (std::size_t f = 0; f < system.flows.size(); ++f) {
        std::vector<Use> uses;
        for (const auto& u : system.flows[f].uses) {
          uses.push_back({FlowServerIndex{u.server}, u.weight});
        }
        const RouteIndex route = fluid.add_route(uses, Bandwidth::gigabytes_per_s(1.5));
        fluid.start(route, Bytes{static_cast<std::int64_t>(100'000 + 9'999 * f)}, f);
        if (eager == 1) fluid.next_change();
      }
      std::vector<Finished> finished;
      while (const auto t = fluid.next_change()) {
        fluid.advance(*t, finished);
        for (const Finished& f : finished) {
          finish[eager].push_back(f.finish.since_start().count_ps());
          for (std::size_t i = 0; i < f.limits.size(); ++i) {
            ASSERT_GT(f.limits[i].duration, Duration{});
            ASSERT_TRUE(i == 0 || !(f.limits[i].limiter == f.limits[i - 1].limiter));
          }
        }
      }
    }
    ASSERT_EQ(finish[0].size(), finish[1].size());
    for (std::size_t i = 0; i < finish[0].size(); ++i) {
      ASSERT_NEAR(static_cast<double>(finish[0][i]), static_cast<double>(finish[1][i]), 1.0);
    }
  }
}

}  // namespace
}  // namespace weft::test::flow_fluid_random
