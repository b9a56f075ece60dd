// How fast the packet transport is: permutation i -> i + N/2 over a fat tree of three tiers, RoCEv2
// with PFC, 100 Gb/s, 1 us a hop, MTU 4096, store and forward, one ECMP way a flow. One size a
// process, so that the peak memory is its own:
//
//     packet_bench HOSTS [BYTES [PACKETS_PER_ACK]]
//
// HOSTS fill a fat tree: ports^3 / 4 (16, 128, 1024, 8192). BYTES: of each flow, 2,000,000 unless
// given; PACKETS_PER_ACK: 1 unless given, as in htsim (mlx5 asks for one in 256).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/wire/link.hpp"
#include "models/wire/packet_network.hpp"
#include "models/wire/queue_pairs.hpp"
#include "models/wire/routing.hpp"
#include "tests/bench/shapes.hpp"

namespace {

using namespace weft;

Fabric fat_tree(std::uint32_t hosts, std::uint32_t ports) {
  TopologySpec spec;
  spec.file = "packet_bench";
  const auto add = [&spec](const char* name, DeviceKind kind, const char* upstream) {
    DeviceSpec device;
    device.name = name;
    device.kind = kind;
    device.upstream = upstream;
    if (kind == DeviceKind::kNic) device.network = "net";
    spec.node.devices.push_back(std::move(device));
  };
  add("cpu0", DeviceKind::kCpu, "");
  add("gpu0", DeviceKind::kGpu, "cpu0");
  add("nic0", DeviceKind::kNic, "cpu0");
  spec.network.kind = NetworkSpec::Kind::kFatTree;
  spec.network.name = "net";
  spec.network.ports = ports;
  return {std::move(spec), hosts};
}

struct Done final : QueuePairSink {
  explicit Done(const PacketNetwork& packets) : network{packets} {}
  void on_delivered(QueuePairId /*pair*/, std::uint64_t /*tag*/) override {
    ++delivered;
    last = network.now();
    sum_us += (last - Time{}).as_us();
  }
  void on_acknowledged(QueuePairId /*pair*/, std::uint64_t /*tag*/) override { ++acknowledged; }
  void on_failure(QueuePairId /*pair*/) override { ++failed; }

  const PacketNetwork& network;
  std::uint32_t delivered{0};
  std::uint32_t acknowledged{0};
  std::uint32_t failed{0};
  double sum_us{0};
  Time last;
};

int permutation(std::uint32_t hosts, std::uint32_t ports, Bytes bytes,
                const char* packets_per_ack) {
  const std::vector<std::span<const ParamSpec>> tables{kWireParams, kWirePacketParams};
  const ParamCatalog catalog(tables);
  Params params(catalog);
  const auto set = [&params](std::string_view key, const char* text) {
    const ParamSpec& spec = params.catalog().require(key);
    params.set_by_user(key, "",
                       {ParamCatalog::parse(spec, text), Origin::kAssumed, "packet_bench"});
  };
  set("wire.kind", "roce");
  set("wire.forwarding", "store-and-forward");
  set("wire.packets_per_ack", packets_per_ack);
  const WirePackets packets(params);
  const Routing routing(params);

  const bench::Stopwatch building;
  EventQueue events;
  PacketNetwork network(events);
  Done done(network);
  QueuePairs pairs(network, packets, done);
  const Fabric fabric = fat_tree(hosts, ports);
  const WireNumbers numbers{.rate = [](LinkId) { return Bandwidth::gigabits_per_s(100); },
                            .delay = [](LinkId) { return Duration::us(1); },
                            .crossing = [](DeviceId) { return Duration{}; }};
  std::vector<WirePortId> port;
  for (std::uint32_t h = 0; h < hosts; ++h) port.push_back(pairs.add_port());
  WireNetwork wire(fabric, numbers, packets, network, [&](DeviceId nic) -> PacketEndpoint& {
    return pairs.endpoint(port[fabric.node_of(nic).value()]);
  });
  network.seal();
  for (std::uint32_t h = 0; h < hosts; ++h) {
    const std::uint32_t peer = (h + hosts / 2) % hosts;
    const DeviceId from = fabric.device(h, DeviceKind::kNic, 0);
    const DeviceId to = fabric.device(peer, DeviceKind::kNic, 0);
    const auto there = wire.way(from, to, routing.pick(from, to, 0, 0));
    const auto back = wire.way(to, from, routing.pick(to, from, 0, 0));
    pairs.connect(port[h], port[peer], {there.first, there.rest, back.first, back.rest});
  }
  const double built_s = building.seconds();

  const bench::Stopwatch watch;
  for (std::uint32_t h = 0; h < hosts; ++h) pairs.post(QueuePairId{h}, bytes, h);
  std::size_t most_pending = 0;
  while (events.step()) most_pending = std::max(most_pending, events.pending());
  const double seconds = watch.seconds();

  QueuePairCounters total;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    total.packets += pairs.counters(QueuePairId{h}).packets;
    total.acks += pairs.counters(QueuePairId{h}).acks;
    total.repeated += pairs.counters(QueuePairId{h}).repeated;
  }
  std::uint64_t hops = 0;
  std::uint64_t pauses = 0;
  std::uint64_t dropped = 0;
  for (std::size_t l = 0; l < network.links(); ++l) {
    hops += network.counters(PacketLinkId{l}).packets;
    pauses += network.counters(PacketLinkId{l}, 0).pauses;
    dropped += network.counters(PacketLinkId{l}, 0).dropped;
  }
  const auto executed = static_cast<double>(events.executed());
  const auto count = static_cast<double>(total.packets);
  std::printf(
      "%u hosts, %.0f B a flow, an ACK for %s: %u delivered, %u acknowledged, last after "
      "%.3f us, mean %.3f us\n",
      hosts, bytes.as_double(), packets_per_ack, done.delivered, done.acknowledged,
      (done.last - Time{}).as_us(), done.sum_us / hosts);
  std::printf(
      "  %llu packets, %llu ACKs, %llu packet-hops, %llu pauses, %llu dropped, %llu repeated\n",
      static_cast<unsigned long long>(total.packets), static_cast<unsigned long long>(total.acks),
      static_cast<unsigned long long>(hops), static_cast<unsigned long long>(pauses),
      static_cast<unsigned long long>(dropped), static_cast<unsigned long long>(total.repeated));
  std::printf(
      "  %.3f s (and %.3f s to build): %.2f M packets/s, %.2f M packet-hops/s, %.2f M "
      "events/s at most %zu pending, %.1f events a packet (%.2f a packet-hop)\n",
      seconds, built_s, count / seconds / 1e6, static_cast<double>(hops) / seconds / 1e6,
      executed / seconds / 1e6, most_pending, executed / count,
      executed / static_cast<double>(hops));
  std::printf("  peak %.1f MB, %.1f kB a host\n", bench::peak_megabytes(),
              bench::peak_megabytes() * 1e3 / hosts);
  return done.delivered == hosts && done.acknowledged == hosts && network.packets_alive() == 0
             ? EXIT_SUCCESS
             : EXIT_FAILURE;
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
