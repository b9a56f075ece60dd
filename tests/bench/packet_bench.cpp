// How fast the packet transport is: permutation i -> i + N/2 over a fat tree of three tiers, RoCEv2
// with PFC, 100 Gb/s, 1 us a hop, MTU 4096, store and forward, one ECMP way a flow. One size a
// process, so that the peak memory is its own:
//
//     packet_bench HOSTS [BYTES [PACKETS_PER_ACK]]
//
// HOSTS fill a fat tree: ports^3 / 4 (16, 128, 1024, 8192). BYTES: of each flow, 2,000,000 unless
// given; PACKETS_PER_ACK: 1 unless given, as in htsim (mlx5 asks for one in 256).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/bench/shapes.hpp"
#include "tests/models/wire_cluster.hpp"

namespace {

using namespace weft;

/// Of a run: how many events were pending, and what ran while there were many.
struct Pending {
  static constexpr std::size_t kMany = 100'000;
  std::size_t most{0};
  double mean{0};  ///< over the events run
  std::uint64_t events_with_many{0};
  double seconds_with_many{0};
};

/// Runs all, a thousand events at a time. `with_many` counts those thousands that had many pending
/// when they began and when they ended.
Pending run_counting(EventQueue& events) {
  constexpr int kAtATime = 1000;
  Pending pending;
  double sum = 0;
  while (events.pending() > 0) {
    const bool begins_with_many = events.pending() >= Pending::kMany;
    const std::uint64_t before = events.executed();
    const bench::Stopwatch watch;
    for (int i = 0; i < kAtATime && events.step(); ++i) {
      pending.most = std::max(pending.most, events.pending());
    }
    const std::uint64_t count = events.executed() - before;
    sum += static_cast<double>(events.pending()) * static_cast<double>(count);
    if (!begins_with_many || events.pending() < Pending::kMany) continue;
    pending.events_with_many += count;
    pending.seconds_with_many += watch.seconds();
  }
  pending.mean = sum / static_cast<double>(events.executed());
  return pending;
}

int permutation(std::uint32_t hosts, std::uint32_t ports, Bytes bytes,
                const char* packets_per_ack) {
  const bench::Stopwatch building;
  test::WireCluster cluster({.network = test::WirePlant::shape(NetworkSpec::Kind::kFatTree, ports),
                             .hosts = hosts,
                             .rate = Bandwidth::gigabits_per_s(100),
                             .delay = Duration::us(1),
                             .crossing = Duration{},
                             .settings = {{"wire.kind", "roce"},
                                          {"wire.forwarding", "store-and-forward"},
                                          {"wire.packets_per_ack", packets_per_ack}}});
  for (std::uint32_t h = 0; h < hosts; ++h) cluster.connect(h, (h + hosts / 2) % hosts);
  const double built_s = building.seconds();

  const bench::Stopwatch watch;
  for (std::uint32_t h = 0; h < hosts; ++h) cluster.pairs().post(QueuePairId{h}, bytes, h);
  const Pending pending = run_counting(cluster.events());
  const double seconds = watch.seconds();

  QueuePairCounters total;
  double sum_us = 0;
  double last_us = 0;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    const QueuePairCounters& counters = cluster.pairs().counters(QueuePairId{h});
    total.packets += counters.packets;
    total.acks += counters.acks;
    total.repeated += counters.repeated;
    const double us = (cluster.delivered(QueuePairId{h}) - Time{}).as_us();
    sum_us += us;
    last_us = std::max(last_us, us);
  }
  const test::WireCluster::Sums sums = cluster.sums();
  const auto events = static_cast<double>(cluster.events().executed());
  const auto packets = static_cast<double>(total.packets);
  const auto hops = static_cast<double>(sums.hops);
  const bool all_done = cluster.deliveries() == hosts && cluster.acknowledged() == hosts;
  const auto number = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
  std::printf("%u hosts, %.0f B a flow, an ACK for %s: %s, last after %.3f us, mean %.3f us\n",
              hosts, bytes.as_double(), packets_per_ack,
              all_done ? "all delivered" : "NOT ALL DELIVERED", last_us, sum_us / hosts);
  std::printf(
      "  %llu packets, %llu ACKs, %llu packet-hops, %llu pauses, %llu dropped, %llu repeated\n",
      number(total.packets), number(total.acks), number(sums.hops), number(sums.pauses),
      number(sums.dropped), number(total.repeated));
  std::printf(
      "  %.3f s (and %.3f s to build): %.2f M packets/s, %.2f M packet-hops/s, %.2f M "
      "events/s, %.1f events a packet (%.2f a packet-hop)\n",
      seconds, built_s, packets / seconds / 1e6, hops / seconds / 1e6, events / seconds / 1e6,
      events / packets, events / hops);
  std::printf("  pending events: at most %zu, mean %.0f", pending.most, pending.mean);
  if (pending.events_with_many > 0) {
    std::printf("; %.2f M events/s while at least %zu were (%.1f M events in %.3f s)",
                static_cast<double>(pending.events_with_many) / pending.seconds_with_many / 1e6,
                Pending::kMany, static_cast<double>(pending.events_with_many) / 1e6,
                pending.seconds_with_many);
  }
  std::printf("\n");
  std::printf("  peak %.1f MB, %.1f kB a host\n", bench::peak_megabytes(),
              bench::peak_megabytes() * 1e3 / hosts);
  return all_done && cluster.network().packets_alive() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  const auto hosts = argc > 1 ? static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 0;
  const auto ports = static_cast<std::uint32_t>(std::lround(std::cbrt(4.0 * hosts)));
  if (argc < 2 || argc > 4 || hosts < 2 || ports * ports * ports / 4 != hosts) {
    std::fprintf(stderr, "usage: packet_bench HOSTS [BYTES [PACKETS_PER_ACK]]\n");
    return 2;
  }
  const Bytes bytes{argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 2'000'000};
  const int result = permutation(hosts, ports, bytes, argc > 3 ? argv[3] : "1");
  std::string command;
  for (const std::string& argument : arguments) command += (command.empty() ? "" : " ") + argument;
  std::printf("  command: %s\n  machine: %s\n", command.c_str(), bench::machine().c_str());
  return result;
}
