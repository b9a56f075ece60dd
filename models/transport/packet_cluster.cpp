#include "models/transport/packet_cluster.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "models/machine/registration.hpp"

namespace weft {
namespace {

// Work and completion queues stand above all payload in a socket's memory.
constexpr std::uint64_t kWqesAt = std::uint64_t{1} << 43;
constexpr std::uint64_t kCqesAt = kWqesAt + kPciePage;

}  // namespace

PacketCluster::PacketCluster(const Machine& machine, const std::vector<std::uint32_t>& nodes,
                             std::optional<std::uint64_t> shuffle_ties)
    : machine_{machine},
      events_{shuffle_ties ? EventQueue::shuffling_ties(*shuffle_ties) : EventQueue{}},
      network_{events_, machine.routing().seed()},
      nics_{network_, machine.packets()},
      wire_{machine.fabric(), wire_numbers(), machine.packets(), network_,
            [this](DeviceId device) -> PacketEndpoint& { return endpoint(device); }} {
  for (const std::uint32_t node : nodes) {
    if (!hosts_.contains(node)) {
      hosts_[node] = std::make_unique<PacketHost>(machine_, node, network_);
    }
  }
  network_.seal();
  injure_cables();
}

/// Losses and flaps of NICs' cables, as their parameters say. A flap is two events: number 2 i
/// takes the cable of device i down, 2 i + 1 brings it back.
void PacketCluster::injure_cables() {
  for (const auto& [nic, id] : nic_of_) {
    const Adapter& adapter = *machine_.model(nic).adapter;
    if (adapter.cable_loss > 0) set_loss(nic, adapter.cable_loss);
    const Duration down = adapter.flap_time;
    if (down == Duration{}) continue;
    const Time at = Time{} + adapter.flap_at;
    events_.schedule_at(at, Phase::kDeliver, *this, std::uint64_t{nic.value} * 2);
    events_.schedule_at(at + down, Phase::kDeliver, *this, std::uint64_t{nic.value} * 2 + 1);
  }
}

void PacketCluster::set_loss(DeviceId nic, double chance) {
  const LinkId cable = *machine_.fabric().wire_link(nic);
  for (const bool forward : {true, false}) {
    network_.set_loss(wire_.direction(cable, forward), chance);
  }
}

void PacketCluster::on_event(std::uint64_t flap) {
  const DeviceId nic{static_cast<std::size_t>(flap / 2)};
  set_loss(nic, flap % 2 == 0 ? 1.0 : machine_.model(nic).adapter->cable_loss);
}

/// The same rates and latencies as the fluid transport's.
WireNumbers PacketCluster::wire_numbers() const {
  return {.rate = [this](LinkId link) { return machine_.link_rate(link); },
          .delay = [this](LinkId link) { return machine_.wire_latency(link); },
          .crossing = [this](DeviceId device) { return machine_.model(device).crossing_time(); }};
}

RdmaNics::Settings PacketCluster::nic_settings(DeviceId nic,
                                               std::optional<ServerId> doorbells) const {
  const Adapter& a = *machine_.model(nic).adapter;
  return {.name = machine_.fabric().full_name(nic),
          .latency = a.latency,
          .doorbell = a.doorbell_latency,
          .doorbell_gap = doorbells ? machine_.service_time(*doorbells) : Duration{},
          .wqe_time = machine_.service_time(machine_.elements_of(nic)),
          .qp_wqe_time = a.qp_wqe_time,
          .wqe = a.wqe_bytes,
          .cqe = a.cqe_bytes,
          .blueflame = a.blueflame,
          .send_buffer = a.send_buffer.count(),
          .max_reads = a.max_reads,
          .icm_cache = a.icm_cache,
          .qp_context = a.qp_context,
          .icm_fetches = a.icm_fetches,
          .seed = machine_.routing().seed()};
}

PacketEndpoint& PacketCluster::endpoint(DeviceId nic) {
  const auto [at, is_new] = nic_of_.try_emplace(nic);
  if (is_new) at->second = nics_.add_nic();
  return nics_.endpoint(at->second);
}

RdmaNicId PacketCluster::nic(DeviceId device) {
  const RdmaNicId id = nic_of_.at(device);
  if (attached_.contains(device)) return id;
  PacketHost& host = host_of(device);
  DmaEngine::Settings queues = host.nic_engine(device);
  queues.name += " (work queues)";
  const Attached engines{&host.add_engine(host.nic_engine(device)), &host.add_engine(queues)};
  attached_[device] = engines;
  const DeviceId cpu = machine_.fabric().root_cpu(device);
  const std::uint64_t memory = PacketHost::memory_at(cpu);
  const std::optional<ServerId> doorbells = machine_.doorbells_of(device);
  nics_.attach(id, nic_settings(device, doorbells),
               {.data = engines.data,
                .queues = engines.queues,
                .elements = &serial_[machine_.elements_of(device)],
                .doorbells = doorbells ? &serial_[*doorbells] : nullptr,
                .wqes = {host.routes(device, cpu, true), memory + kWqesAt},
                .cqes = {host.routes(device, cpu, false, true), memory + kCqesAt}});
  return id;
}

bool PacketCluster::has_drawn() const {
  return network_.has_drawn() || machine_.routing().decides(machine_.fabric()) ||
         std::any_of(nic_of_.begin(), nic_of_.end(),
                     [this](const auto& nic) { return nics_.icm_misses(nic.second) > 0; });
}

RdmaQpId PacketCluster::connect(DeviceId from, DeviceId to, std::uint32_t i,
                                std::uint32_t connection) {
  const Routing& routing = machine_.routing();
  const PacketRoute there = wire_.route(from, to, routing.pick(from, to, connection, i));
  const PacketRoute back = wire_.route(to, from, routing.pick(to, from, connection, i));
  return nics_.connect(nic(from), nic(to), there, back);
}

RdmaBuffer PacketCluster::buffer(DeviceId nic, DeviceId memory, bool is_read,
                                 std::uint64_t offset) {
  return {.routes = host_of(nic).routes(nic, memory, is_read),
          .address = PacketHost::memory_at(memory) + offset,
          .page = registered_page(machine_, memory, nic)};
}

std::vector<PacketLinkId> PacketCluster::links_of(ServerId server) const {
  const Fabric& fabric = machine_.fabric();
  if (!machine_.is_link(server)) return {};
  const LinkId link{server.index() / 2};
  const bool forward = server.index() % 2 == 0;
  if (fabric.link(link).kind != LinkKind::kWire) {
    return {hosts_.at(*fabric.node_of(fabric.link(link).a))->packet_link({link, forward})};
  }
  if (!machine_.routing().spread()) return {wire_.direction(link, forward)};
  const Trunk trunk = fabric.trunk(link);
  std::vector<PacketLinkId> out;
  for (std::size_t i = trunk.first.index(); out.size() < trunk.count; ++i) {
    if (!fabric.is_down(LinkId{i})) out.push_back(wire_.direction(LinkId{i}, forward));
  }
  return out;
}

std::optional<PacketCluster::Server> PacketCluster::server(ServerId server) {
  for (const auto& [node, host] : hosts_) {
    const auto gate = host->gates().find(server);
    if (gate != host->gates().end()) return Server(host->domain(), gate->second);
    const auto sm = host->sms().find(server);
    if (sm != host->sms().end()) return Server(sm->second, events_);
  }
  const auto serial = serial_.find(server);
  if (serial != serial_.end()) return Server(serial->second, events_);
  const auto device = machine_.memory_behind(server);
  if (!device) return std::nullopt;
  const auto host = hosts_.find(*machine_.fabric().node_of(*device));
  if (host == hosts_.end()) return std::nullopt;
  return Server(host->second->memory(*device));
}

UsageMeter::Look PacketCluster::look() {
  UsageMeter::Look out;
  for (const auto& [node, host] : hosts_) {
    std::vector<DmaEngine*> engines;
    for (const auto& [device, attached] : attached_) {
      if (machine_.fabric().node_of(device) == node) engines.push_back(attached.data);
    }
    UsageMeter::add(out, *host, engines);
  }
  for (const auto& [server, serial] : serial_) {
    const Cause cause = machine_.cause(server);
    out.push_back({UsedShare::What::kWork, cause.kind + ", " + cause.where,
                   serial.worked(events_.now()).as_s()});
  }
  for (const auto& [device, attached] : attached_) {
    const std::string name = machine_.fabric().full_name(device);
    const RdmaNicId nic = nic_of_.at(device);
    const auto waited = [&out](const std::string& what, Duration time,
                               UsedShare::Behind behind = UsedShare::Behind::kNothing) {
      out.push_back({UsedShare::What::kWait, what, time.as_s(), behind});
    };
    const QueuePairs::Waits waits = nics_.waits(nic);
    waited("receives for what " + name + " sends (RNR)", waits.receives);
    waited("retransmission timeouts of " + name, waits.timeouts);
    waited("outstanding reads of a queue pair of " + name + " (nic.max_rd_atomic)",
           nics_.waited_for_reads(nic), UsedShare::Behind::kReads);
    waited("DCQCN's rate at " + name, waits.pacing);
    waited("contexts and translations of " + name, nics_.icm_waited(nic));
    const LinkId link = *machine_.fabric().wire_link(device);
    for (const bool forward : {true, false}) {
      const PacketLinkId wire = wire_.direction(link, forward);
      const Cause cause = machine_.link_cause(link, forward);
      const double busy = network_.counters(wire).busy.as_s();
      out.push_back({UsedShare::What::kLink, cause.kind + ", " + cause.where, busy});
      for (std::size_t vl = 0; vl < network_.vls(wire); ++vl) {
        out.push_back({UsedShare::What::kWait, "credits or pauses of " + cause.where,
                       network_.counters(wire, vl).stalled.as_s(), UsedShare::Behind::kCredits,
                       busy});
      }
    }
  }
  return out;
}

PortProbe PacketCluster::probe(PacketLinkId link, const std::string& kind, Duration time) const {
  const PacketLinkCounters all = network_.counters(link);
  PortProbe out;
  out.kind = kind;
  out.link = network_.name(link);
  out.lost = all.lost;
  out.utilisation = std::min(1.0, all.busy.as_s() / std::max(time, Duration::ps(1)).as_s());
  for (std::size_t vl = 0; vl < network_.vls(link); ++vl) {
    const PacketVlCounters c = network_.counters(link, vl);
    out.wait += c.stalled;
    out.most_queued = std::max(out.most_queued, c.most_queued);
    out.most_held = std::max(out.most_held, c.most_held);
    out.pauses += c.pauses;
    out.dropped += c.dropped;
    out.marked += c.marked;
  }
  return out;
}

std::vector<PacketHost::NamedLink> PacketCluster::named_links() const {
  std::vector<PacketHost::NamedLink> out;
  for (const auto& [node, host] : hosts_) {
    out.insert(out.end(), host->links().begin(), host->links().end());
  }
  const Fabric& fabric = machine_.fabric();
  for (std::size_t i = 0; i < fabric.link_count(); ++i) {
    if (fabric.link(LinkId{i}).kind != LinkKind::kWire) continue;
    for (const bool forward : {true, false}) {
      const Hop hop{LinkId{i}, forward};
      out.push_back({wire_.direction(hop.link, forward), machine_.server_of(hop), hop.link});
    }
  }
  return out;
}

std::vector<std::string> PacketCluster::servers() const {
  std::vector<std::string> out;
  for (const PacketHost::NamedLink& named : named_links()) {
    out.push_back(cause_text({machine_.cause(named.server).kind, network_.name(named.link)}));
  }
  return out;
}

std::vector<double> PacketCluster::busy_s() const {
  std::vector<double> out;
  for (const PacketHost::NamedLink& named : named_links()) {
    out.push_back(network_.counters(named.link).busy.as_s());
  }
  return out;
}

Probes PacketCluster::probes(Duration time) const {
  constexpr std::size_t kMostPorts = 64;
  Probes out;
  const Fabric& fabric = machine_.fabric();
  for (const PacketHost::NamedLink& named : named_links()) {
    out.ports.push_back(probe(named.link, machine_.cause(named.server).kind, time));
    out.ports.back().link += fabric.kind_beside(named.of);
  }
  for (const PortProbe& port : out.ports) {
    out.pauses += port.pauses;
    out.dropped += port.dropped;
    out.lost += port.lost;
    out.marked += port.marked;
  }
  std::erase_if(out.ports, [](const PortProbe& port) { return port.utilisation == 0; });
  const auto counts = [&](const PortProbe& port) {
    return std::max(port.utilisation, port.wait.as_s() / std::max(time, Duration::ps(1)).as_s());
  };
  std::stable_sort(out.ports.begin(), out.ports.end(),
                   [&](const auto& a, const auto& b) { return counts(a) > counts(b); });
  if (out.ports.size() > kMostPorts) {
    out.ports_left_out = out.ports.size() - kMostPorts;
    out.ports.resize(kMostPorts);
  }
  for (const auto& [device, attached] : attached_) {
    const RdmaNicId nic = nic_of_.at(device);
    const QueuePairCounters sent = nics_.sent_by(nic);
    const QueuePairs::Waits waits = nics_.waits(nic);
    out.nics.push_back({.nic = fabric.full_name(device),
                        .tags = attached.data->tags().count(),
                        .most_tags_in_use = attached.data->tags().most_in_use(),
                        .tag_wait = attached.data->tags().stalled(),
                        .packets = sent.packets,
                        .repeated = sent.repeated,
                        .timeouts = sent.timeouts,
                        .naks = sent.naks,
                        .rnr_naks = sent.rnr_naks,
                        .cnps = sent.cnps,
                        .icm_misses = nics_.icm_misses(nic),
                        .icm_wait = nics_.icm_waited(nic),
                        .rnr_wait = waits.receives,
                        .timeout_wait = waits.timeouts,
                        .pacing_wait = waits.pacing});
  }
  return out;
}

std::string PacketCluster::deadlock() const {
  const auto stall = network_.find_stall();
  if (!stall || !stall->is_loop) return "";
  return machine_.fabric().spec().file + ": " + network_.describe(*stall) +
         "; larger receive buffers make it rarer, routes without this loop avoid it";
}

void PacketCluster::throw_stuck(const std::string& what) const {
  if (const std::string loop = deadlock(); !loop.empty()) throw InputError(loop);
  const auto stall = network_.find_stall();
  throw std::logic_error(what + ": " +
                         (stall ? network_.describe(*stall) : "messages that never end"));
}

void PacketCluster::throw_timed_out(const InputError& error) const {
  const std::string loop = deadlock();
  throw InputError(loop.empty() ? error.what() : loop + " (" + error.what() + ")");
}

}  // namespace weft
