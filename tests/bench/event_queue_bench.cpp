// How fast the event queue is, beside a ceiling measured in the same process.
//
// Hold model (Jones, "An empirical comparison of priority-queue and event-set implementations",
// CACM 29, 1986): `population` events are pending; each step runs the earliest and schedules one a
// random increment later. The ceiling is a monotone radix heap that keeps nothing but a time and a
// number: no phase, no order among equals, no cancelling, no target to call.
//
// The last lines print product over ceiling, best repetition against best repetition.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "sim/engine/event_queue.hpp"

namespace {

using namespace weft;

/// SplitMix64 by Steele, Lea and Flood: cheap, so that little of the measured time is not the
/// queue's.
class Increments {
 public:
  /// Exponential-like with a mean near 1 us, in ps: -log2(u) with the logarithm's mantissa taken as
  /// linear. Integers only, so it is the same on every machine.
  std::uint64_t next_ps() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    x = (x ^ (x >> 31)) | 1;
    const auto zeros = static_cast<unsigned>(std::countl_zero(x));
    const std::uint64_t mantissa = (x << zeros << 1) >> 44;  // 20 bits
    const std::uint64_t minus_log2 = ((zeros + 1ULL) << 20) - mantissa;
    return minus_log2 * 5 / 8;  // the mean of -log2(u), 1.44 * 2^20, becomes 0.95e6 ps
  }

 private:
  std::uint64_t state_{42};
};

/// The ceiling: the textbook radix heap, one bucket a bit.
class PlainRadixHeap {
 public:
  struct Event {
    std::uint64_t when;
    std::uint64_t payload;
  };

  void push(Event event) {
    const auto index = static_cast<unsigned>(std::bit_width(event.when ^ last_));
    buckets_[index].push_back(event);
    filled_ |= 1ULL << index;
  }
  Event pop() {
    if ((filled_ & 1) == 0) redistribute();
    const Event event = buckets_[0].back();
    buckets_[0].pop_back();
    if (buckets_[0].empty()) filled_ &= ~1ULL;
    return event;
  }

 private:
  void redistribute() {
    std::vector<Event>& bucket = buckets_[static_cast<unsigned>(std::countr_zero(filled_))];
    filled_ &= filled_ - 1;
    last_ = bucket.front().when;
    for (const Event& event : bucket) last_ = std::min(last_, event.when);
    for (const Event& event : bucket) push(event);
    bucket.clear();
  }

  std::uint64_t last_{0};
  std::uint64_t filled_{0};
  std::array<std::vector<Event>, 64> buckets_;
};
static_assert(sizeof(PlainRadixHeap::Event) == 16);

/// Schedules its successor whenever it runs.
class Holder final : public EventTarget {
 public:
  explicit Holder(EventQueue& queue) : queue_{queue} {}
  void on_event(std::uint64_t what) override {
    const auto delay = Duration::ps(static_cast<std::int64_t>(increments_.next_ps()));
    queue_.schedule_after(delay, Phase::kDeliver, *this, what);
  }

 private:
  EventQueue& queue_;
  Increments increments_;
};

constexpr int kHoldsPerIteration = 1024;

void report_rate(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * kHoldsPerIteration);
}

void ceiling_hold(benchmark::State& state) {
  PlainRadixHeap heap;
  Increments increments;
  const auto hold = [&](PlainRadixHeap::Event event) {
    heap.push({event.when + increments.next_ps(), event.payload});
  };
  const auto population = static_cast<std::uint64_t>(state.range(0));
  for (std::uint64_t i = 0; i < population; ++i) hold({0, i});
  for (std::uint64_t i = 0; i < 10 * population; ++i) hold(heap.pop());  // to the steady state
  for ([[maybe_unused]] const auto iteration : state) {
    for (int i = 0; i < kHoldsPerIteration; ++i) hold(heap.pop());
  }
  report_rate(state);
}

void product_hold(benchmark::State& state) {
  EventQueue queue;
  Holder holder{queue};
  const auto population = static_cast<std::uint64_t>(state.range(0));
  for (std::uint64_t i = 0; i < population; ++i) holder.on_event(i);
  for (std::uint64_t i = 0; i < 10 * population; ++i) queue.step();
  for ([[maybe_unused]] const auto iteration : state) {
    for (int i = 0; i < kHoldsPerIteration; ++i) queue.step();
  }
  report_rate(state);
}

constexpr int kRepetitions = 7;
BENCHMARK(ceiling_hold)->Arg(1'000)->Arg(100'000)->Repetitions(kRepetitions)->MinTime(0.2);
BENCHMARK(product_hold)->Arg(1'000)->Arg(100'000)->Repetitions(kRepetitions)->MinTime(0.2);

/// Prints as usual and keeps the best rate of each benchmark.
class BestOf final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const auto rate = run.counters.find("items_per_second");
      if (run.run_type != Run::RT_Iteration || rate == run.counters.end()) continue;
      const std::string name = run.run_name.function_name + "/" + run.run_name.args;
      best_[name] = std::max(best_[name], rate->second.value);
    }
    ConsoleReporter::ReportRuns(runs);
  }
  double best(const std::string& name) const {
    const auto found = best_.find(name);
    return found == best_.end() ? 0 : found->second;
  }

 private:
  std::map<std::string, double> best_;
};

}  // namespace

int main(int argc, char** argv) {
  // Interleaving lets a slow moment of a shared machine hit both sides alike.
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  std::vector<char*> arguments(argv, argv + argc);
  arguments.insert(arguments.begin() + 1, interleave.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  BestOf reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  for (const char* population : {"1000", "100000"}) {
    const double ceiling = reporter.best(std::string{"ceiling_hold/"} + population);
    const double product = reporter.best(std::string{"product_hold/"} + population);
    if (ceiling == 0 || product == 0) continue;
    std::printf("%s pending: product %.1f M/s, ceiling %.1f M/s, ratio %.2f\n", population,
                product / 1e6, ceiling / 1e6, product / ceiling);
  }
  return 0;
}
