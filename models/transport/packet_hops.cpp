#include "models/transport/packet_hops.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "models/machine/dma_routes.hpp"
#include "models/transport/contraction.hpp"

namespace weft {
namespace {

/// The packets of a leg: how many links each crosses and what it carries at most.
struct LegPackets {
  double links{0};
  double payload{1};
  double request_links{0};  ///< of reads
  double request{1};        ///< what one asks for

  double hops(double bytes, double transfers) const {
    return links * std::max(bytes / payload, transfers) +
           request_links * std::max(bytes / request, transfers);
  }
};

class HopCounter {
 public:
  explicit HopCounter(const Machine& machine) : machine_{machine} {}

  const LegPackets& packets(Leg leg) {
    leg.branch = 0;
    leg.threads = 0;
    leg.connection = 0;  // all connections of two NICs cross as many links
    const auto [at, is_new] = known_.try_emplace(leg);
    if (is_new) at->second = count(leg);
    return at->second;
  }

 private:
  LegPackets count(const Leg& leg) const {
    const Fabric& fabric = machine_.fabric();
    const auto over = [](const std::optional<Route>& route, double payload) {
      return LegPackets{.links = route ? static_cast<double>(route->size()) : 0,
                        .payload = payload};
    };
    switch (leg.medium) {
      case Leg::Medium::kLocal:
        return {};
      case Leg::Medium::kNvlink:
        return over(fabric.nvlink_route(leg.source, leg.sink),
                    machine_.model(nvlink_gpu(machine_, leg)).blocks->line.as_double());
      case Leg::Medium::kWire:
        return over(fabric.wire_route(leg.source, leg.sink),
                    static_cast<double>(machine_.packets().mtu));
      case Leg::Medium::kPcie:
        return count_pcie(leg);
    }
    return {};
  }

  /// A root complex may cut peer traffic smaller; this is an estimate.
  LegPackets count_pcie(const Leg& leg) const {
    const bool is_read = leg.kind == Leg::Kind::kRead;
    const DeviceId target = is_read ? leg.source : leg.sink;
    const auto routes = dma_routes(machine_, leg.initiator, target, is_read);
    if (!routes) return {};
    const Requester requester = requester_of(machine_, leg);
    const double request = requester.read_request;
    const auto there = static_cast<double>(routes->request.size());
    if (!is_read) {
      const double mps = route_mps(machine_, leg.initiator, routes->request);
      return {.links = there, .payload = std::min(mps, requester.write_payload)};
    }
    return {.links = static_cast<double>(routes->completion.size()),
            .payload = std::min(request, completion_payload(machine_, target, routes->completion)),
            .request_links = there,
            .request = request};
  }

  const Machine& machine_;
  std::map<Leg, LegPackets> known_;
};

}  // namespace

double packet_hops(const Machine& machine, const Plan& plan) {
  HopCounter counter(machine);
  double sum = 0;
  const auto add = [&](std::span<const Leg> walk, Bytes bytes, std::uint64_t times) {
    const auto transfers = static_cast<double>(times);
    for (const Leg& leg : walk) {
      sum += counter.packets(leg).hops(transfers * bytes.as_double(), transfers);
    }
  };
  const std::vector<std::uint64_t> runs = program_runs(plan);
  for (std::size_t p = 0; p < runs.size(); ++p) {
    for_each_instruction(plan.programs[p], [&](const Instruction& i, std::uint64_t times) {
      if (i.kind != Instruction::Kind::kMove) return;
      add(plan.walks[i.index], Bytes{i.amount}, runs[p] * times);
    });
  }
  for_each_message(plan, [&](QueuePairIndex q, Bytes bytes, std::uint64_t times) {
    add(data_walk(plan.queue_pairs[q], plan.queue_pairs[q].reads), bytes, times);
  });
  return sum;
}

}  // namespace weft
