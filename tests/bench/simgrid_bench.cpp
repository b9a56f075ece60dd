// The shapes of fluid_bench and maxmin_bench on SimGrid 3.32, as its S4U interface has them done.
// Model CM02 with factors 1, no cross-traffic, precision far below what is compared. One shape a
// process: simgrid_bench ring [HOSTS] | unequal | equal | maxmin [FLOWS LINKS]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "tests/bench/shapes.hpp"

namespace {

namespace s4u = simgrid::s4u;
using weft::bench::RingShape;

std::vector<s4u::Host*> create_hosts(s4u::NetZone& zone, std::size_t count) {
  std::vector<s4u::Host*> hosts;
  for (std::size_t i = 0; i < count; ++i) {
    hosts.push_back(zone.create_host("h" + std::to_string(i), 1e9)->seal());
  }
  return hosts;
}

s4u::Link* create_link(s4u::NetZone& zone, std::size_t number, double bytes_per_s,
                       double latency_s) {
  return zone.create_link("l" + std::to_string(number), bytes_per_s)
      ->set_latency(latency_s)
      ->seal();
}

s4u::LinkInRoute in_route(const s4u::Link* link) { return s4u::LinkInRoute(link); }

// An actor a rank. A mailbox with a receiver takes messages before it is read, so a send waits for
// nobody.
void ring_rank(const RingShape& shape, std::uint32_t rank) {
  auto* const mine = s4u::Mailbox::by_name(std::to_string(rank));
  auto* const right = s4u::Mailbox::by_name(std::to_string((rank + 1) % shape.hosts));
  int token = 0;
  int* received = nullptr;
  for (std::uint32_t step = 0; step < shape.steps; ++step) {
    const s4u::CommPtr send =
        right->put_async(&token, static_cast<std::uint64_t>(shape.chunk_bytes));
    const s4u::CommPtr receive = mine->get_async<int>(&received);
    send->wait();
    receive->wait();
  }
  mine->set_receiver(nullptr);
}

void ring(s4u::Engine& engine, const RingShape& shape) {
  const weft::bench::Stopwatch watch;
  s4u::NetZone* const zone = s4u::create_full_zone("ring");
  const std::vector<s4u::Host*> hosts = create_hosts(*zone, shape.hosts);
  std::vector<s4u::LinkInRoute> links;
  for (std::uint32_t i = 0; i < shape.links; ++i) {
    links.push_back(in_route(
        create_link(*zone, i, weft::bench::kLinkBytesPerS, RingShape::kLinkLatencyNs * 1e-9)));
  }
  for (std::uint32_t r = 0; r < shape.hosts; ++r) {
    std::vector<s4u::LinkInRoute> route;
    for (const std::uint32_t link : shape.route(r)) route.push_back(links[link]);
    zone->add_route(hosts[r]->get_netpoint(), hosts[(r + 1) % shape.hosts]->get_netpoint(), nullptr,
                    nullptr, route, false);
  }
  zone->seal();
  for (std::uint32_t r = 0; r < shape.hosts; ++r) {
    s4u::Mailbox::by_name(std::to_string(r))
        ->set_receiver(s4u::Actor::create("rank", hosts[r], [&shape, r] { ring_rank(shape, r); }));
  }
  engine.run();
  weft::bench::report("ring", s4u::Engine::get_clock(), "s simulated", watch.seconds());
}

void all_to_all(s4u::Engine& engine, const char* shape, std::uint32_t count, bool equal) {
  const std::vector<std::int64_t> bytes = weft::bench::all_to_all_bytes(count, equal);
  const weft::bench::Stopwatch watch;
  s4u::NetZone* const zone = s4u::create_star_zone("crossbar");
  const std::vector<s4u::Host*> hosts = create_hosts(*zone, count);
  for (std::uint32_t h = 0; h < count; ++h) {
    s4u::Link* const up = create_link(*zone, h, weft::bench::kLinkBytesPerS, 0);
    s4u::Link* const down = create_link(*zone, count + h, weft::bench::kLinkBytesPerS, 0);
    zone->add_route(hosts[h]->get_netpoint(), nullptr, nullptr, nullptr, {in_route(up)}, false);
    zone->add_route(nullptr, hosts[h]->get_netpoint(), nullptr, nullptr, {in_route(down)}, false);
  }
  zone->seal();
  for (std::uint32_t a = 0; a < count; ++a) {
    s4u::Actor::create("sender", hosts[a], [&bytes, &hosts, count, a] {
      std::vector<s4u::CommPtr> sends;
      for (std::uint32_t b = 0; b < count; ++b) {
        const std::int64_t size = bytes[std::size_t{a} * count + b];
        if (size == 0) continue;
        sends.push_back(
            s4u::Comm::sendto_async(hosts[a], hosts[b], static_cast<std::uint64_t>(size)));
      }
      for (const s4u::CommPtr& send : sends) send->wait();
    });
  }
  engine.run();
  weft::bench::report(shape, s4u::Engine::get_clock(), "s simulated", watch.seconds());
}

// A pair of hosts a flow, with a route of its own. What is timed is from the moment when all flows
// have been handed over to when time has moved on by a little, which takes one solution.
void maxmin(s4u::Engine& engine, std::size_t flows, std::size_t link_count) {
  const weft::bench::RandomLinks random(flows, link_count);
  s4u::NetZone* const zone = s4u::create_full_zone("random");
  const auto side = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(flows)))) + 1;
  const std::vector<s4u::Host*> hosts = create_hosts(*zone, side);
  std::vector<s4u::LinkInRoute> links;
  for (std::size_t i = 0; i < link_count; ++i) {
    links.push_back(in_route(create_link(*zone, i, random.capacity[i], 0)));
  }
  struct Pair {
    s4u::Host* from;
    s4u::Host* to;
  };
  std::vector<Pair> pairs;
  for (std::size_t i = 0; pairs.size() < flows; ++i) {
    if (i / side == i % side) continue;
    const auto first = random.link.begin() + static_cast<std::ptrdiff_t>(pairs.size() * 4);
    std::vector<s4u::LinkInRoute> route;
    for (auto link = first; link != first + 4; ++link) route.push_back(links[*link]);
    pairs.push_back({hosts[i / side], hosts[i % side]});
    zone->add_route(pairs.back().from->get_netpoint(), pairs.back().to->get_netpoint(), nullptr,
                    nullptr, route, false);
  }
  zone->seal();
  s4u::Actor::create("driver", hosts[0], [&] {
    constexpr std::uint64_t kBytes = 1'000'000'000;
    constexpr double kWhile_s = 1000;
    std::vector<s4u::CommPtr> comms;
    for (const Pair& pair : pairs) {
      comms.push_back(s4u::Comm::sendto_async(pair.from, pair.to, kBytes));
    }
    const weft::bench::Stopwatch watch;
    s4u::this_actor::sleep_for(kWhile_s);
    const double seconds = watch.seconds();
    double sum = 0;
    for (const s4u::CommPtr& comm : comms) {
      sum += (static_cast<double>(kBytes) - comm->get_remaining()) / kWhile_s;
    }
    weft::bench::report("maxmin", sum, "B/s in all", seconds);
    std::fflush(stdout);
    std::_Exit(0);  // taking a million activities down again is not asked for
  });
  engine.run();
}

}  // namespace

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  for (const char* setting :
       {"network/model:CM02", "network/crosstraffic:0", "network/bandwidth-factor:1",
        "network/latency-factor:1", "network/weight-S:0", "surf/precision:1e-12",
        "maxmin/precision:1e-9", "contexts/stack-size:64"}) {
    s4u::Engine::set_config(setting);
  }
  const std::string shape = argc > 1 ? argv[1] : "";
  const auto number = [&](int i, std::size_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const auto hosts = static_cast<std::uint32_t>(number(2, 1024));
  if (shape == "ring" && RingShape::takes(hosts)) {
    ring(engine, RingShape{.hosts = hosts});
  } else if (shape == "unequal") {
    all_to_all(engine, "unequal", 64, false);
  } else if (shape == "equal") {
    all_to_all(engine, "equal", static_cast<std::uint32_t>(number(2, 256)), true);
  } else if (shape == "maxmin") {
    maxmin(engine, number(2, 1'000'000), number(3, 100'000));
  } else {
    std::fprintf(stderr,
                 "usage: simgrid_bench ring [HOSTS] | unequal | equal | maxmin; HOSTS: a power of "
                 "two, 64 or more\n");
    return 2;
  }
  return 0;
}
