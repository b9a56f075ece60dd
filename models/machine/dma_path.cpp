#include "models/machine/dma_path.hpp"

#include <algorithm>

#include "models/pcie/acs.hpp"

namespace weft {
namespace {

/// Finds the way of one DMA.
class PathFinder {
 public:
  PathFinder(const Machine& machine, DeviceId initiator, DeviceId target, bool is_read)
      : machine_{machine},
        fabric_{machine.fabric()},
        initiator_{initiator},
        target_{target},
        is_read_{is_read} {}

  std::optional<DmaPath> find() {
    std::optional<Route> way = fabric_.pcie_route(initiator_, target_);
    if (!way) return std::nullopt;
    out_.request = *way;
    if (is_read_) out_.completion = *fabric_.pcie_route(target_, initiator_);
    find_meeting(out_.request);
    if (meeting_ && machine_.model(*meeting_).kind == DeviceKind::kSwitch) {
      cross_switch();
    }
    note_root_port();
    if (root_cpu_) pass_root_complex();
    return std::move(out_);
  }

 private:
  DeviceId end_of(Hop hop) const {
    const Link link = fabric_.link(hop.link);
    return hop.forward ? link.b : link.a;
  }
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

  /// Where the way up ends and the way down begins, and the devices before and after it.
  void find_meeting(const Route& way) {
    DeviceId at = initiator_;
    for (std::size_t i = 0; i < way.size() && is_upward(way[i]); ++i) {
      before_meeting_ = at;
      at = end_of(way[i]);
      if (i + 1 < way.size() && !is_upward(way[i + 1])) {
        meeting_ = at;
        after_meeting_ = end_of(way[i + 1]);
      }
    }
  }

  /// ACS decides at the two ports of the switch where the ways part: the request at the
  /// initiator's, the completion at the target's.
  void cross_switch() {
    const DeviceId cpu = fabric_.root_cpu(initiator_);
    const std::uint32_t source_bits = machine_.acs_above(before_meeting_);
    const std::uint32_t target_bits = machine_.acs_above(after_meeting_);
    const bool translates = machine_.model(cpu).iommu == IommuMode::kTranslate;
    const bool translated = translates && machine_.model(initiator_).ats;
    // The IOMMU's addresses lie in no peer's window: a switch sends them up. Linux hands out bus
    // addresses instead for DMA-BUF if nothing on the way redirects (drivers/pci/p2pdma.c).
    constexpr std::uint32_t kRedirects =
        acs::kRequestRedirect | acs::kCompletionRedirect | acs::kEgressControl;
    const bool bus_address = machine_.model(target_).peer_mapping == PeerMapping::kDmaBuf &&
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
    if (route_peer_completion(target_bits, machine_.model(initiator_).relaxed_ordering) ==
        PeerRouting::kRedirect) {
      over_root(out_.completion, target_, initiator_);
      turn_around(after_meeting_);
    }
  }

  /// Up to the root complex and down again.
  void over_root(Route& way, DeviceId from, DeviceId to) {
    const DeviceId cpu = fabric_.root_cpu(from);
    way = *fabric_.pcie_route(from, cpu);
    const Route down = *fabric_.pcie_route(cpu, to);
    way.insert(way.end(), down.begin(), down.end());
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
    const PeerSupport p2p = machine_.model(cpu).p2p;
    if (p2p == PeerSupport::kFull || (p2p == PeerSupport::kWritesOnly && !is_read_)) return;
    if (out_.blocked.empty()) out_.refused_by = cpu;
    block("the root complex of " + name(cpu) +
          (p2p == PeerSupport::kNone ? " forwards no peer traffic (cpu.p2p=none)"
                                     : " forwards peer writes only (cpu.p2p=writes-only)"));
  }

  void note_root_port() {
    DeviceId below = initiator_;
    for (const Hop hop : out_.request) {
      if (!is_upward(hop)) return;
      const DeviceId at = end_of(hop);
      if (machine_.model(at).kind == DeviceKind::kCpu) {
        out_.root_port = below;
        root_cpu_ = at;
        return;
      }
      below = at;
    }
  }

  void pass_root_complex() {
    const DeviceModel& root = machine_.model(*root_cpu_);
    out_.peer_through_root = machine_.model(target_).kind != DeviceKind::kCpu;
    if (root.iommu == IommuMode::kTranslate && !machine_.model(initiator_).ats) {
      out_.translator = root_cpu_;
    }
    if (!out_.peer_through_root) return;
    for (const Hop hop : out_.request) {
      if (machine_.model(end_of(hop)).kind == DeviceKind::kCpu) check_forwards(end_of(hop));
    }
  }

  const Machine& machine_;
  const Fabric& fabric_;
  DeviceId initiator_;
  DeviceId target_;
  bool is_read_;
  DmaPath out_;
  std::optional<DeviceId> meeting_;
  DeviceId before_meeting_;
  DeviceId after_meeting_;
  std::optional<DeviceId> root_cpu_;
};

}  // namespace

double path_mps(const Machine& machine, DeviceId from, const Route& route) {
  double mps = machine.model(from).mps;
  for (const Hop hop : route) {
    const Link link = machine.fabric().link(hop.link);
    mps = std::min(mps, machine.model(hop.forward ? link.b : link.a).mps);
  }
  return mps;
}

double completion_payload(const Machine& machine, DeviceId source, const Route& completion) {
  return std::min(path_mps(machine, source, completion), machine.model(source).completion_payload);
}

std::optional<DmaPath> dma_path(const Machine& machine, DeviceId initiator, DeviceId target,
                                bool is_read) {
  return PathFinder(machine, initiator, target, is_read).find();
}

}  // namespace weft
