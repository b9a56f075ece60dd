#include "models/transport/contraction.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "models/gpu/nvlink.hpp"
#include "models/gpu/sm_copy.hpp"
#include "models/host/iommu.hpp"
#include "models/machine/dma_path.hpp"
#include "models/nic/dma.hpp"

namespace weft {
namespace {

/// Gathers what the legs of one walk ask for.
class Builder {
 public:
  explicit Builder(const Machine& machine) : machine_{machine}, fabric_{machine.fabric()} {}

  void add(const Leg& leg) {
    branch_ = leg.branch;
    switch (leg.medium) {
      case Leg::Medium::kLocal:
        add_local(leg);
        return;
      case Leg::Medium::kNvlink:
        add_nvlink(leg);
        return;
      case Leg::Medium::kWire:
        add_wire(leg);
        return;
      case Leg::Medium::kPcie:
        if (leg.kind == Leg::Kind::kRead) {
          add_pcie_read(leg);
        } else {
          add_pcie_write(leg);
        }
        return;
    }
  }

  Contraction take() {
    std::vector<ResourceUse>& uses = out_.uses;
    std::sort(uses.begin(), uses.end(),
              [](const auto& a, const auto& b) { return a.resource < b.resource; });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      if (kept > 0 && uses[kept - 1].resource == uses[i].resource) {
        uses[kept - 1].weight += uses[i].weight;
      } else {
        uses[kept++] = uses[i];
      }
    }
    uses.resize(kept);
    out_.head = longest(heads_);
    out_.tail = longest(tails_);
    return std::move(out_);
  }

 private:
  void use(std::size_t resource, double weight) {
    if (weight > 0.0) out_.uses.push_back({resource, weight});
  }
  void use_memory(DeviceId device) {
    use(machine_.memory_of(device), machine_.model(device).memory_weight);
  }
  void write_memory(DeviceId device) {
    use(machine_.memory_of(device), machine_.model(device).memory_write_weight);
  }
  void cap(Bandwidth rate, Cause cause) {
    if (!out_.cap || rate < out_.cap->rate) out_.cap = WalkCap{rate, std::move(cause)};
  }
  void head(const char* kind, DeviceId device, Duration time) {
    heads_[branch_].push_back({{kind, fabric_.full_name(device)}, time});
  }
  void tail(const char* kind, DeviceId device, Duration time) {
    tails_[branch_].push_back({{kind, fabric_.full_name(device)}, time});
  }

  /// Of branches that run side by side the one that takes longest; the first of equals.
  using Branches = std::map<std::uint8_t, std::vector<LatencyPart>>;
  static std::vector<LatencyPart> longest(const Branches& branches) {
    std::vector<LatencyPart> out;
    Duration most;
    for (const auto& [branch, parts] : branches) {
      Duration sum;
      for (const LatencyPart& part : parts) sum += part.time;
      if (out.empty() || sum > most) {
        out = parts;
        most = sum;
      }
    }
    return out;
  }

  /// What the thread block, or the warps of it that move this leg, keep in flight.
  Bytes in_flight(const Leg& leg) const {
    const DeviceParams& d = machine_.devices();
    return bytes_in_flight(d.params(), d.scope(leg.initiator), leg.threads);
  }

  template <class Find>
  Route require_route(const Leg& leg, const char* medium, Find&& find) const {
    const std::optional<Route> route = find();
    if (route) return *route;
    throw InputError(fabric_.spec().file + ": no " + medium + " path from " +
                     fabric_.full_name(leg.source) + " to " + fabric_.full_name(leg.sink));
  }

  DeviceId hop_end(Hop hop) const {
    const Link link = fabric_.link(hop.link);
    return hop.forward ? link.b : link.a;
  }
  static Hop reversed(Hop hop) { return {hop.link, !hop.forward}; }

  /// Latency of everything between the ends of a route, ends that forward (CPUs) included.
  Duration crossing_time(DeviceId from, const Route& route) const {
    Duration sum =
        machine_.model(from).kind == DeviceKind::kCpu ? machine_.model(from).crossing : Duration{};
    for (const Hop hop : route) {
      const Link link = fabric_.link(hop.link);
      sum += machine_.model(hop_end(hop)).crossing;
      if (link.kind == LinkKind::kSocket) {
        sum += machine_.devices().duration("cpu.socket_latency", link.a);
      }
    }
    return sum;
  }

  /// The GPU's SMs read its own memory: bound by the loads in flight. No latency of its own: the
  /// loads are issued while the kernel waits for its neighbour's flag.
  void add_local(const Leg& leg) {
    use_memory(leg.source);
    const DeviceParams& d = machine_.devices();
    const Duration latency = d.duration("gpu.hbm_latency", leg.initiator);
    cap(Bandwidth::bytes_per_s(in_flight(leg).as_double() / latency.as_s()),
        {"SM loads of GPU memory in flight", fabric_.full_name(leg.initiator)});
  }

  void add_nvlink(const Leg& leg) {
    const DeviceParams& d = machine_.devices();
    const Route route =
        require_route(leg, "NVLink", [&] { return fabric_.nvlink_route(leg.source, leg.sink); });
    const double weight = nvlink_weight(d.params(), d.scope(leg.source));
    for (const Hop hop : route) use(machine_.resource_of(hop), weight);
    use_memory(leg.sink);
    tail("NVLink latency", leg.source, d.duration("gpu.nvlink_latency", leg.source));
  }

  bool is_pcie(Hop hop) const { return fabric_.link(hop.link).kind == LinkKind::kPcie; }
  int generation(Hop hop) const { return machine_.model(fabric_.link(hop.link).b).pcie_generation; }
  PcieCosts costs(Hop hop) const { return PcieCosts(machine_.devices().params(), generation(hop)); }

  /// `size` on each hop of a route, or what a root complex cuts it to that forwards peer traffic,
  /// on the target's side of it.
  std::vector<double> packet_sizes(const Route& route, double size, bool target_is_at_end) const {
    std::vector<double> sizes(route.size(), size);
    for (std::size_t i = 0; i + 1 < route.size(); ++i) {
      const DeviceModel& between = machine_.model(hop_end(route[i]));
      if (between.kind != DeviceKind::kCpu) continue;
      const std::size_t from = target_is_at_end ? i + 1 : 0;
      const std::size_t to = target_is_at_end ? route.size() : i + 1;
      for (std::size_t j = from; j < to; ++j) sizes[j] = std::min(sizes[j], between.p2p_payload);
    }
    return sizes;
  }
  bool through_cpu(const Route& route) const {
    for (std::size_t i = 0; i + 1 < route.size(); ++i) {
      if (machine_.model(hop_end(route[i])).kind == DeviceKind::kCpu) return true;
    }
    return false;
  }

  DmaPath require_path(const Leg& leg, DeviceId target, bool is_read) const {
    std::optional<DmaPath> path = dma_path(machine_, leg.initiator, target, is_read);
    if (path && path->blocked.empty()) return std::move(*path);
    throw InputError(fabric_.spec().file + ": no PCIe path from " + fabric_.full_name(leg.source) +
                     " to " + fabric_.full_name(leg.sink) +
                     (path ? ": " + path->blocked : std::string()));
  }

  void use_limit(DeviceId below, PortLimit limit, double weight) {
    const std::size_t resource = machine_.port_limit_of(below, limit);
    if (machine_.capacity(resource)) use(resource, weight);
  }

  /// What the DMA takes of the root complex; returns how long a request waits for its translation.
  Duration use_root_complex(const Leg& leg, const DmaPath& path, DeviceId target, bool is_read) {
    if (!path.root_port) return {};
    const DeviceId port = *path.root_port;
    const DeviceModel& initiator = machine_.model(leg.initiator);
    if (!is_read && initiator.kind == DeviceKind::kNic && !initiator.relaxed_ordering) {
      use_limit(port,
                path.peer_through_root ? PortLimit::kStrictPeerWrites : PortLimit::kStrictWrites,
                1.0);
    }
    const Route& data = is_read ? path.completion : path.request;
    if (path.peer_through_root && through_cpu(data)) {
      use_limit(port, is_read ? PortLimit::kPeerReads : PortLimit::kPeerWrites, 1.0);
      for (const Hop hop : data) {
        const std::size_t resource = machine_.peer_traffic_of(hop);
        if (machine_.capacity(resource)) use(resource, 1.0);
      }
    }
    if (!path.translator) return {};
    const double misses = machine_.iotlb_miss_share(*path.translator, target);
    use_limit(port, PortLimit::kPageWalks,
              misses * kWalkUnit.as_double() / machine_.model(target).dma_page.as_double());
    return Duration::from_ns(machine_.model(*path.translator).page_walk.as_s() * 1e9 * misses);
  }

  void add_pcie_write(const Leg& leg) {
    const DmaPath path = require_path(leg, leg.sink, false);
    const Route& route = path.request;
    double largest = path_mps(machine_, leg.source, route);
    if (machine_.model(leg.initiator).kind == DeviceKind::kGpu) {
      largest = std::min(largest, machine_.devices().number("gpu.sm_line", leg.initiator));
    }
    const std::vector<double> payload = packet_sizes(route, largest, true);
    for (std::size_t i = 0; i < route.size(); ++i) {
      if (!is_pcie(route[i])) {
        use(machine_.resource_of(route[i]), 1.0);
        continue;
      }
      use(machine_.resource_of(route[i]), costs(route[i]).write_weight(payload[i]));
      use(machine_.resource_of(reversed(route[i])), costs(route[i]).dllp_weight(payload[i]));
    }
    write_memory(leg.sink);
    const Duration walk = use_root_complex(leg, path, leg.sink, false);
    tail("PCIe write latency", leg.source,
         crossing_time(leg.source, route) + walk + machine_.model(leg.sink).write_latency);
  }

  void add_pcie_read(const Leg& leg) {
    const DmaPath path = require_path(leg, leg.source, true);
    const DeviceParams& d = machine_.devices();
    const bool nic = machine_.model(leg.initiator).kind == DeviceKind::kNic;
    const double request =
        nic ? d.number("nic.mrrs", leg.initiator) : d.number("gpu.sm_line", leg.initiator);
    const double largest =
        std::min(request, completion_payload(machine_, leg.source, path.completion));
    const std::vector<double> payload = packet_sizes(path.completion, largest, false);
    for (std::size_t i = 0; i < path.completion.size(); ++i) {
      const Hop hop = path.completion[i];
      if (!is_pcie(hop)) {
        use(machine_.resource_of(hop), 1.0);
        continue;
      }
      use(machine_.resource_of(hop), costs(hop).completion_weight(payload[i]));
      use(machine_.resource_of(reversed(hop)), costs(hop).dllp_weight(payload[i]));
    }
    // A root complex that takes the completions has asked for them itself, in its own sizes.
    const std::vector<double> asked = through_cpu(path.completion)
                                          ? packet_sizes(path.request, request, true)
                                          : std::vector<double>(path.request.size(), request);
    for (std::size_t i = 0; i < path.request.size(); ++i) {
      const Hop hop = path.request[i];
      if (!is_pcie(hop)) continue;
      use(machine_.resource_of(hop), costs(hop).request_weight(asked[i]));
      use(machine_.resource_of(reversed(hop)), costs(hop).dllp_weight(asked[i]));
    }
    use_memory(leg.source);
    const DeviceModel& source = machine_.model(leg.source);
    if (source.reads > 0 && source.read_latency > Duration{}) {
      const double inside = static_cast<double>(source.reads) * asked.back();
      cap(Bandwidth::bytes_per_s(inside / source.read_latency.as_s()),
          {"reads that it answers at a time", fabric_.full_name(leg.source)});
    }
    Duration round_trip = round_trip_of(path, leg.initiator, leg.source) +
                          use_root_complex(leg, path, leg.source, true);
    if (nic) {
      cap(nic_read_cap(d.params(), d.scope(leg.initiator), round_trip),
          {"NIC read tags in flight", fabric_.full_name(leg.initiator)});
      head("NIC read round trip", leg.initiator, round_trip);
      return;
    }
    round_trip += d.duration("gpu.host_load_extra", leg.initiator);
    cap(Bandwidth::bytes_per_s(in_flight(leg).as_double() / round_trip.as_s()),
        {"SM loads of host memory in flight", fabric_.full_name(leg.initiator)});
    head("SM load of host memory", leg.initiator, round_trip);
  }

  Duration round_trip_of(const DmaPath& path, DeviceId initiator, DeviceId target) const {
    return crossing_time(initiator, path.request) + crossing_time(target, path.completion) +
           machine_.model(target).read_latency;
  }

  /// A work queue element that does not come with its doorbell is read from host memory.
  void head_wqe_fetch(DeviceId nic) {
    const DeviceId cpu = fabric_.root_cpu(nic);
    const std::optional<DmaPath> path = dma_path(machine_, nic, cpu, true);
    if (path) head("WQE fetch", nic, round_trip_of(*path, nic, cpu));
  }

  /// Equal ways are equally long, so they are alike in latency.
  void add_wire(const Leg& leg) {
    const DeviceParams& d = machine_.devices();
    const Routing& routing = machine_.routing();
    const double part = 1.0 / routing.queue_pairs();
    Duration latency;
    for (std::uint32_t i = 0; i < routing.queue_pairs(); ++i) {
      const std::uint64_t pick = routing.pick(leg.source, leg.sink, leg.connection, i);
      const Route route = require_route(
          leg, "network", [&] { return fabric_.wire_route(leg.source, leg.sink, pick); });
      latency = Duration{};
      for (const Hop hop : route) {
        use(machine_.resource_of(hop), part * machine_.wire().data_weight());
        use(machine_.resource_of(reversed(hop)), part * machine_.wire().ack_weight());
        latency += machine_.wire_latency(hop.link) + machine_.model(hop_end(hop)).crossing;
      }
    }
    head("doorbell", leg.source, d.duration("nic.doorbell_latency", leg.source));
    if (d.choice("nic.blueflame", leg.source) == "off") head_wqe_fetch(leg.source);
    tail("NIC processing", leg.source,
         d.duration("nic.latency", leg.source) + d.duration("nic.latency", leg.sink));
    tail("wire and switch latency", leg.source, latency);
  }

  const Machine& machine_;
  const Fabric& fabric_;
  Contraction out_;
  std::uint8_t branch_{0};  // of the leg being added
  Branches heads_;
  Branches tails_;
};

}  // namespace

Contraction contract(const Machine& machine, const Walk& walk) {
  Builder builder(machine);
  for (const Leg& leg : walk) builder.add(leg);
  return builder.take();
}

Bandwidth solo_rate(const Machine& machine, const Contraction& contraction) {
  std::optional<Bandwidth> rate;
  if (contraction.cap) rate = contraction.cap->rate;
  for (const ResourceUse& use : contraction.uses) {
    const Bandwidth fill = *machine.capacity(use.resource) * (1.0 / use.weight);
    if (!rate || fill < *rate) rate = fill;
  }
  if (!rate) throw std::logic_error("solo_rate: a walk without limits");
  return *rate;
}

}  // namespace weft
