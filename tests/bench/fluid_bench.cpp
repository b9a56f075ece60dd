// How fast FluidSystem is on three shapes of collective traffic. One shape a process, so that the
// peak memory is its own: fluid_bench ring | unequal | equal
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <sys/resource.h>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/flow/fluid.hpp"

namespace {

using namespace weft;

constexpr Bandwidth kLink = Bandwidth::bytes_per_s(50e9);

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0 / 1e6;
}

// Processor time, which a busy machine does not stretch; the programs have one thread.
class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t begin_{std::clock()};
};

// Ring all-reduce, message by message: 2 (N - 1) steps of a chunk on a two-level fat tree. A rank
// sends its chunk of step k + 1 once its send k is delivered and its receive k is there.
class Ring {
 public:
  static constexpr std::uint32_t kHosts = 1024;
  static constexpr std::uint32_t kLeafSize = 32;
  static constexpr std::uint32_t kSteps = 2 * (kHosts - 1);
  static constexpr Bytes kChunk = Bytes::mib(1);  // 1 GiB / 1024

  Ring() {
    constexpr std::uint32_t kLeaves = kHosts / kLeafSize;
    for (std::uint32_t i = 0; i < 2 * kHosts + 2 * kLeaves * kLeaves; ++i) {
      fluid_.add_resource(kLink);
    }
    for (std::uint32_t r = 0; r < kHosts; ++r) {
      const std::uint32_t peer = (r + 1) % kHosts;
      const std::uint32_t from = r / kLeafSize;
      const std::uint32_t to = peer / kLeafSize;
      const std::uint32_t spine = from;  // as many spines as leaves: one for each leaf's ring flow
      std::vector<Use> uses{{ResourceIndex{r}}};
      if (from != to) {
        uses.push_back({ResourceIndex{2 * kHosts + from * kLeaves + spine}});
        uses.push_back({ResourceIndex{2 * kHosts + (kLeaves + to) * kLeaves + spine}});
      }
      uses.push_back({ResourceIndex{kHosts + peer}});
      ranks_.push_back({.route = fluid_.add_route(uses),
                        .latency = Duration::ns(500) * static_cast<std::int64_t>(uses.size())});
    }
  }

  /// The time of the last delivery.
  Time run() {
    for (std::uint32_t r = 0; r < kHosts; ++r) start_if_ready(r);
    std::vector<Finished> finished;
    for (;;) {
      const std::optional<Time> change = fluid_.next_change();
      if (!change && deliveries_.empty()) return fluid_.now();
      const Time t = deliveries_.empty() || (change && *change < deliveries_.front().at)
                         ? *change
                         : deliveries_.front().at;
      fluid_.advance(t, finished);
      for (const Finished& f : finished) {
        const auto rank = static_cast<std::uint32_t>(f.tag);
        deliveries_.push_back({t + ranks_[rank].latency, rank});
        std::push_heap(deliveries_.begin(), deliveries_.end());
      }
      while (!deliveries_.empty() && deliveries_.front().at == t) deliver();
    }
  }

 private:
  struct Rank {
    RouteIndex route;
    Duration latency;
    std::uint32_t started{0};
    std::uint32_t delivered{0};
    std::uint32_t received{0};
  };
  struct Delivery {
    Time at;
    std::uint32_t rank;
    bool operator<(const Delivery& other) const {  // std::push_heap keeps the largest on top
      return at != other.at ? at > other.at : rank > other.rank;
    }
  };

  void deliver() {
    const std::uint32_t rank = deliveries_.front().rank;
    std::pop_heap(deliveries_.begin(), deliveries_.end());
    deliveries_.pop_back();
    const std::uint32_t peer = (rank + 1) % kHosts;
    ++ranks_[rank].delivered;
    ++ranks_[peer].received;
    start_if_ready(rank);
    start_if_ready(peer);
  }

  void start_if_ready(std::uint32_t rank) {
    Rank& r = ranks_[rank];
    if (r.started == kSteps || r.delivered < r.started || r.received < r.started) return;
    ++r.started;
    fluid_.start(r.route, kChunk, rank);
  }

  FluidSystem fluid_;
  std::vector<Rank> ranks_;
  std::vector<Delivery> deliveries_;
};

int ring() {
  const Stopwatch watch;
  Ring ring;
  const double simulated_s = (ring.run() - Time{}).as_s();
  const double processor_s = watch.seconds();
  // The ranks with a neighbour on another leaf set the pace: 4 links of 500 ns a step.
  const double expected_s = Ring::kSteps * (Ring::kChunk.as_double() / 50e9 + 2e-6);
  std::printf("ring: %u messages, simulated %.9f s (expected %.9f s), %.3f s, peak %.1f MB\n",
              Ring::kSteps * Ring::kHosts, simulated_s, expected_s, processor_s, peak_megabytes());
  return std::abs(simulated_s / expected_s - 1.0) < 1e-6 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// All-to-all on one crossbar, an up and a down link a host.
int all_to_all(std::uint32_t hosts, bool equal) {
  const Stopwatch watch;
  std::mt19937_64 stream = random_stream(1, "fluid_bench");
  FluidSystem fluid;
  for (std::uint32_t i = 0; i < 2 * hosts; ++i) fluid.add_resource(kLink);
  for (std::uint32_t a = 0; a < hosts; ++a) {
    for (std::uint32_t b = 0; b < hosts; ++b) {
      if (a == b) continue;
      const std::vector<Use> uses{{ResourceIndex{a}}, {ResourceIndex{hosts + b}}};
      const auto bytes =
          equal ? 1'000'000 : static_cast<std::int64_t>(1 + uniform_below(stream, 2'000'000));
      fluid.start(fluid.add_route(uses), Bytes{bytes}, std::uint64_t{a} * hosts + b);
    }
  }
  std::vector<Finished> finished;
  std::size_t flows = 0;
  std::size_t instants = 0;
  std::size_t segments = 0;
  while (const auto t = fluid.next_change()) {
    fluid.advance(*t, finished);
    flows += finished.size();
    ++instants;
    for (const Finished& f : finished) segments += f.limits.size();
  }
  const double processor_s = watch.seconds();
  std::printf(
      "%s: %zu flows, %zu instants, %zu limiter segments, simulated %.9f s, %.3f s, "
      "%.0f finishes/s, peak %.1f MB\n",
      equal ? "equal" : "unequal", flows, instants, segments, (fluid.now() - Time{}).as_s(),
      processor_s, static_cast<double>(flows) / processor_s, peak_megabytes());
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const char* shape = argc == 2 ? argv[1] : "";
  if (std::strcmp(shape, "ring") == 0) return ring();
  if (std::strcmp(shape, "unequal") == 0) return all_to_all(64, false);
  if (std::strcmp(shape, "equal") == 0) return all_to_all(256, true);
  std::fprintf(stderr, "usage: fluid_bench ring|unequal|equal\n");
  return 2;
}
