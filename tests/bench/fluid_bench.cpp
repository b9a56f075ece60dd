// How fast FluidSystem is on three shapes of collective traffic. One shape a process, so that the
// peak memory is its own: fluid_bench ring [HOSTS] | unequal | equal
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "sim/flow/fluid.hpp"
#include "tests/bench/shapes.hpp"

namespace {

using namespace weft;
using bench::RingShape;

constexpr Bandwidth kLink = Bandwidth::bytes_per_s(bench::kLinkBytesPerS);

// A rank sends its chunk of step k + 1 once its send k is delivered and its receive k is there.
class Ring {
 public:
  explicit Ring(const RingShape& shape) : shape_(shape) {
    for (std::uint32_t i = 0; i < shape_.links; ++i) fluid_.add_server(kLink);
    for (std::uint32_t r = 0; r < shape_.hosts; ++r) {
      std::vector<Use> uses;
      for (const std::uint32_t link : shape_.route(r)) uses.push_back({FlowServerIndex{link}});
      const auto hops = static_cast<std::int64_t>(uses.size());
      ranks_.push_back({.route = fluid_.add_route(uses),
                        .latency = Duration::ns(RingShape::kLinkLatencyNs) * hops});
    }
  }

  /// The time of the last delivery.
  Time run() {
    for (std::uint32_t r = 0; r < shape_.hosts; ++r) start_if_ready(r);
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
    const std::uint32_t peer = (rank + 1) % shape_.hosts;
    ++ranks_[rank].delivered;
    ++ranks_[peer].received;
    start_if_ready(rank);
    start_if_ready(peer);
  }

  void start_if_ready(std::uint32_t rank) {
    Rank& r = ranks_[rank];
    if (r.started == shape_.steps || r.delivered < r.started || r.received < r.started) return;
    ++r.started;
    fluid_.start(r.route, Bytes{shape_.chunk_bytes}, rank);
  }

  RingShape shape_;
  FluidSystem fluid_;
  std::vector<Rank> ranks_;
  std::vector<Delivery> deliveries_;
};

int ring(const RingShape& shape) {
  const bench::Stopwatch watch;
  Ring ring(shape);
  const double simulated_s = (ring.run() - Time{}).as_s();
  bench::report("ring", simulated_s, "s simulated", watch.seconds());
  return std::abs(simulated_s / shape.seconds() - 1.0) < 1e-6 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int all_to_all(const char* shape, std::uint32_t hosts, bool equal) {
  const std::vector<std::int64_t> bytes = bench::all_to_all_bytes(hosts, equal);
  const bench::Stopwatch watch;
  FluidSystem fluid;
  for (std::uint32_t i = 0; i < 2 * hosts; ++i) fluid.add_server(kLink);
  for (std::uint32_t pair = 0; pair < bytes.size(); ++pair) {
    if (bytes[pair] == 0) continue;
    const std::vector<Use> uses{{FlowServerIndex{pair / hosts}},
                                {FlowServerIndex{hosts + pair % hosts}}};
    fluid.start(fluid.add_route(uses), Bytes{bytes[pair]}, pair);
  }
  std::vector<Finished> finished;
  while (const auto t = fluid.next_change()) fluid.advance(*t, finished);
  bench::report(shape, (fluid.now() - Time{}).as_s(), "s simulated", watch.seconds());
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const char* shape = argc > 1 ? argv[1] : "";
  const auto hosts =
      static_cast<std::uint32_t>(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1024);
  if (std::strcmp(shape, "ring") == 0 && RingShape::takes(hosts)) {
    return ring(RingShape{.hosts = hosts});
  }
  if (std::strcmp(shape, "unequal") == 0) return all_to_all(shape, 64, false);
  if (std::strcmp(shape, "equal") == 0) return all_to_all(shape, 256, true);
  std::fprintf(
      stderr,
      "usage: fluid_bench ring [HOSTS] | unequal | equal; HOSTS: a power of two, 64 or more\n");
  return 2;
}
