#include "models/machine/dma_routes.hpp"

#include <algorithm>

#include "models/pcie/acs.hpp"

namespace weft {
namespace {

/// Finds the routes of one DMA.
class RouteFinder {
 public:
  RouteFinder(const Machine& machine, DeviceId initiator, DeviceId target, bool is_read)
      : machine_{machine},
        fabric_{machine.fabric()},
        initiator_{initiator},
        target_{target},
        is_read_{is_read} {}

  std::optional<DmaRoutes> find() {
    std::optional<Route> route = fabric_.pcie_route(initiator_, target_);
    if (!route) return std::nullopt;
    out_.request = *route;
    if (is_read_) out_.completion = back(*route);
    find_meeting(out_.request);
    if (meeting_ && !is_root(*meeting_)) cross_switch();
    note_root_port();
    if (root_cpu_) pass_root_complex();
    return std::move(out_);
  }

 private:
  /// The same links the other way: of routes over sockets that are equally long, the request's.
  static Route back(const Route& route) {
    Route out(route.rbegin(), route.rend());
    for (Hop& hop : out) hop.forward = !hop.forward;
    return out;
  }
  DeviceId end_of(Hop hop) const { return weft::end_of(fabric_, hop); }
  bool is_root(DeviceId device) const { return machine_.model(device).root.has_value(); }
  const RootComplex& root(DeviceId cpu) const { return *machine_.model(cpu).root; }
  const Requester& initiator() const { return *machine_.model(initiator_).requester; }
  bool is_upward(Hop hop) const {
    return fabric_.link(hop.link).kind == LinkKind::kPcie && !hop.forward;
  }
  std::string name(DeviceId id) const { return fabric_.device(id).name; }
  std::string port_above(DeviceId id) const {
    return "the port of " + name(*fabric_.upstream(id)) + " above " + name(id);
  }
  void block(const std::string& why) {
    if (out_.blocked.empty()) out_.blocked = why;
  }

  /// Where the route's links up end and those down begin, and the devices before and after it.
  void find_meeting(const Route& route) {
    for (std::size_t i = 0; i < route.size() && is_upward(route[i]); ++i) {
      // The lower end of the link: of a NIC's further port the first one.
      before_meeting_ = fabric_.link(route[i].link).b;
      if (i + 1 < route.size() && !is_upward(route[i + 1])) {
        meeting_ = end_of(route[i]);
        after_meeting_ = fabric_.link(route[i + 1].link).b;
      }
    }
  }

  /// ACS decides at the two ports of the switch where the routes part: the request at the
  /// initiator's, the completion at the target's.
  void cross_switch() {
    const DeviceId cpu = fabric_.root_cpu(initiator_);
    const std::uint32_t source_bits = machine_.acs_above(before_meeting_);
    const std::uint32_t target_bits = machine_.acs_above(after_meeting_);
    const bool translates = root(cpu).iommu == IommuMode::kTranslate;
    const bool translated = translates && initiator().ats;
    // The IOMMU's addresses lie in no peer's window: a switch sends them up. Linux hands out bus
    // addresses instead for DMA-BUF if nothing on the way redirects (drivers/pci/p2pdma.c).
    constexpr std::uint32_t kRedirects =
        acs::kRequestRedirect | acs::kCompletionRedirect | acs::kEgressControl;
    const auto& bar1 = machine_.model(target_).bar1;
    const bool bus_address = bar1 && bar1->mapping == PeerMapping::kDmaBuf &&
                             ((source_bits | target_bits) & kRedirects) == 0;
    if (translates && !translated && !bus_address) {
      over_root(out_.request, initiator_, target_);
    } else {
      const bool named = machine_.egress_names(before_meeting_, after_meeting_);
      switch (route_peer_request(source_bits, named, translated)) {
        case PeerRouting::kDirect:
          break;
        case PeerRouting::kRedirect:
          over_root(out_.request, initiator_, target_);
          turn_around(before_meeting_);
          break;
        case PeerRouting::kBlock:
          block("ACS at " + port_above(before_meeting_) +
                (translated && (source_bits & acs::kTranslationBlocking) != 0
                     ? " blocks translated addresses (TB set, nic.ats=on)"
                     : " blocks requests to " + name(after_meeting_) + " (EC set, RR clear)"));
          break;
      }
    }
    if (!is_read_) return;
    // Completions are routed by the requester's id, whatever the address was.
    if (route_peer_completion(target_bits, initiator().relaxed_ordering) ==
        PeerRouting::kRedirect) {
      over_root(out_.completion, target_, initiator_);
      turn_around(after_meeting_);
    }
  }

  /// Up to the root complex and down again.
  void over_root(Route& route, DeviceId from, DeviceId to) {
    const DeviceId cpu = fabric_.root_cpu(from);
    route = *fabric_.pcie_route(from, cpu);
    const Route down = *fabric_.pcie_route(cpu, to);
    route.insert(route.end(), down.begin(), down.end());
  }

  /// What a switch redirects comes back through the ports above that switch: they must forward it,
  /// and its root complex must forward peer traffic.
  void turn_around(DeviceId below_switch) {
    DeviceId at = *fabric_.upstream(below_switch);
    while (fabric_.upstream(at)) {
      if ((machine_.acs_above(at) & acs::kUpstreamForwarding) == 0) {
        block("ACS at " + port_above(below_switch) + " redirects, but " + port_above(at) +
              " does not turn the packets round (UF clear)");
      }
      at = *fabric_.upstream(at);
    }
    check_forwards(at);
  }

  void check_forwards(DeviceId cpu) {
    const PeerSupport p2p = root(cpu).peers;
    if (p2p == PeerSupport::kFull || (p2p == PeerSupport::kWritesOnly && !is_read_)) return;
    if (out_.blocked.empty()) out_.refused_by = cpu;
    block("the root complex of " + name(cpu) +
          (p2p == PeerSupport::kNone ? " forwards no peer traffic (cpu.p2p=none)"
                                     : " forwards peer writes only (cpu.p2p=writes-only)"));
  }

  void note_root_port() {
    for (const Hop hop : out_.request) {
      if (!is_upward(hop)) return;
      if (is_root(end_of(hop))) {
        out_.root_port = fabric_.link(hop.link).b;
        root_cpu_ = end_of(hop);
        return;
      }
    }
  }

  void pass_root_complex() {
    out_.peer_through_root = !is_root(target_);
    if (root(*root_cpu_).iommu == IommuMode::kTranslate && !initiator().ats) {
      out_.translator = root_cpu_;
    }
    if (!out_.peer_through_root) return;
    for (const Hop hop : out_.request) {
      if (is_root(end_of(hop))) check_forwards(end_of(hop));
    }
  }

  const Machine& machine_;
  const Fabric& fabric_;
  DeviceId initiator_;
  DeviceId target_;
  bool is_read_;
  DmaRoutes out_;
  std::optional<DeviceId> meeting_;
  DeviceId before_meeting_;
  DeviceId after_meeting_;
  std::optional<DeviceId> root_cpu_;
};

/// Which limits hold one DMA.
class LimitFinder {
 public:
  LimitFinder(const Machine& machine, DeviceId initiator, DeviceId target, bool is_read,
              const DmaRoutes& routes)
      : machine_{machine},
        is_strict_{!is_read && writes_strictly(machine.model(initiator))},
        target_{target},
        is_read_{is_read},
        routes_{routes},
        data_{is_read ? routes.completion : routes.request} {}

  std::vector<DmaLimit> find() {
    if (routes_.root_port) {
      const DeviceId root = machine_.fabric().root_cpu(*routes_.root_port);
      for (const Limit& limit : machine_.model(*routes_.root_port).port->limits) {
        add(limit, *routes_.root_port, root);
      }
    }
    for (std::size_t i = 0; i + 1 < data_.size(); ++i) {
      const DeviceId at = end_of(machine_.fabric(), data_[i]);
      for (const Limit& limit : machine_.model(at).crossing->limits) add(limit, at, at);
    }
    return std::move(out_);
  }

 private:
  void add(const Limit& limit, DeviceId owner, DeviceId at) {
    if (!holds(limit.traffic)) return;
    DmaLimit out{
        .server = machine_.server_of(owner, limit.server), .at = at, .traffic = limit.traffic};
    if (limit.traffic == Traffic::kTranslated) {
      const RootComplex& root = *machine_.model(*routes_.translator).root;
      const Bytes page = machine_.model(target_).memory->page;
      out.per_byte = root.iotlb_miss_share(page) / page.as_double();
      // A walk of no time is never a limit; a picosecond stands for it.
      out.hold = std::max(root.page_walk, Duration::ps(1));
    } else {
      out.hold = held_from(at);
    }
    if (out.per_byte > 0) out_.push_back(out);
  }

  /// A CPU's own stores are no requester's: no root port orders them.
  static bool writes_strictly(const DeviceModel& m) {
    return m.requester && m.requester->may_be_strict && !m.requester->relaxed_ordering;
  }

  bool holds(Traffic traffic) const {
    const bool is_peer = routes_.peer_through_root && through_root(machine_, data_);
    switch (traffic) {
      case Traffic::kTranslated:
        return routes_.translator.has_value();
      case Traffic::kStrictWrites:
        return is_strict_ && !routes_.peer_through_root;
      case Traffic::kStrictPeerWrites:
        return is_strict_ && routes_.peer_through_root;
      case Traffic::kPeerWrites:
        return is_peer && !is_read_;
      case Traffic::kPeerReads:
        return is_peer && is_read_;
    }
    return false;
  }

  /// A read is held from its request until its data are back; a write until what follows has it,
  /// over the socket link that may lie between, and has said so.
  Duration held_from(DeviceId at) const {
    std::size_t i = 0;
    while (end_of(machine_.fabric(), routes_.request[i]) != at) ++i;
    Duration one_way = machine_.model(at).crossing_time() + socket_time(i + 1);
    if (!is_read_) return one_way * 2;
    for (++i; i + 1 < routes_.request.size(); ++i) {
      one_way += machine_.model(end_of(machine_.fabric(), routes_.request[i])).crossing_time() +
                 socket_time(i + 1);
    }
    return one_way * 2 + machine_.model(target_).memory->read_latency;
  }
  /// Of the i-th link of the request's route, if there is one and it joins sockets.
  Duration socket_time(std::size_t i) const {
    if (i == routes_.request.size()) return {};
    const Link link = machine_.fabric().link(routes_.request[i].link);
    return link.kind == LinkKind::kSocket ? machine_.model(link.a).root->socket_latency
                                          : Duration{};
  }

  const Machine& machine_;
  bool is_strict_;
  DeviceId target_;
  bool is_read_;
  const DmaRoutes& routes_;
  const Route& data_;
  std::vector<DmaLimit> out_;
};

}  // namespace

std::vector<DmaLimit> dma_limits(const Machine& machine, DeviceId initiator, DeviceId target,
                                 bool is_read, const DmaRoutes& routes) {
  return LimitFinder(machine, initiator, target, is_read, routes).find();
}

Duration crossing_time(const Machine& machine, DeviceId from, const Route& route) {
  const DeviceModel& first = machine.model(from);
  Duration sum = first.root ? first.crossing_time() : Duration{};
  for (const Hop hop : route) {
    sum += machine.model(end_of(machine.fabric(), hop)).crossing_time();
    const Link link = machine.fabric().link(hop.link);
    if (link.kind == LinkKind::kSocket) sum += machine.model(link.a).root->socket_latency;
  }
  return sum;
}

bool through_root(const Machine& machine, const Route& route) {
  for (std::size_t i = 0; i + 1 < route.size(); ++i) {
    if (machine.model(end_of(machine.fabric(), route[i])).root) return true;
  }
  return false;
}

double route_mps(const Machine& machine, DeviceId from, const Route& route) {
  double mps = machine.model(from).mps;
  for (const Hop hop : route) mps = std::min(mps, machine.model(end_of(machine.fabric(), hop)).mps);
  return mps;
}

double completion_payload(const Machine& machine, DeviceId source, const Route& completion) {
  return std::min(route_mps(machine, source, completion),
                  machine.model(source).memory->completion_payload);
}

std::optional<DmaRoutes> dma_routes(const Machine& machine, DeviceId initiator, DeviceId target,
                                    bool is_read) {
  return RouteFinder(machine, initiator, target, is_read).find();
}

}  // namespace weft
