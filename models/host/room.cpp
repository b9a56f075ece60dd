#include "models/host/room.hpp"

#include <cmath>

#include "models/host/dram.hpp"
#include "models/host/iommu.hpp"
#include "models/host/root_complex.hpp"
#include "models/host/socket_link.hpp"

namespace weft {
namespace {

std::size_t count(const DeviceParams& d, std::string_view key, DeviceId cpu) {
  return static_cast<std::size_t>(std::llround(d.number(key, cpu)));
}

/// Walks in flight at a root port.
void add_page_walks(const DeviceParams& d, DeviceId cpu, RootComplex& root) {
  root.iommu = static_cast<IommuMode>(d.number("cpu.iommu", cpu));
  root.page_walk = d.duration("cpu.iommu_walk", cpu);
  root.iotlb_entries = count(d, "cpu.iotlb_entries", cpu);
  root.page_walkers = count(d, "cpu.iommu_walkers", cpu);
  root.working_set = d.bytes("cpu.iommu_working_set", cpu);
  root.port_limits.push_back({Traffic::kTranslated,
                              {"IOMMU page walks", ServerUnit::kRequestsInFlight,
                               static_cast<double>(root.page_walkers)}});
}

/// Lines of strictly ordered writes are committed one after the other.
void add_strict_writes(const DeviceParams& d, DeviceId cpu, RootComplex& root) {
  const auto add = [&](Traffic traffic, const char* key, const char* kind) {
    if (const auto rate = strict_write_rate(d.duration(key, cpu))) {
      root.port_limits.push_back(
          {traffic, {kind, ServerUnit::kBytesPerSecond, rate->as_bytes_per_s()}});
    }
  };
  add(Traffic::kStrictWrites, "cpu.strict_write_time", "strictly ordered writes");
  add(Traffic::kStrictPeerWrites, "cpu.strict_peer_write_time", "strictly ordered peer writes");
}

/// Buffers for peer traffic: of each root port, and of all together.
void add_peer_buffers(const DeviceParams& d, DeviceId cpu, DeviceModel& m) {
  const auto buffer = [&](const char* key) { return d.bytes(key, cpu).as_double(); };
  const auto add_port = [&](Traffic traffic, const char* key, const char* kind) {
    if (buffer(key) == 0) return;
    m.root->port_limits.push_back({traffic, {kind, ServerUnit::kBytesInFlight, buffer(key)}});
  };
  const auto add_all = [&](Traffic traffic, const char* key, const char* kind) {
    if (buffer(key) == 0) return;
    m.crossing->limits.push_back(
        {traffic, m.add_server({kind, ServerUnit::kBytesInFlight, buffer(key)})});
  };
  add_port(Traffic::kPeerWrites, "cpu.p2p_port_writes", "peer writes that a root port holds");
  add_port(Traffic::kPeerReads, "cpu.p2p_port_reads", "peer reads that a root port holds");
  add_all(Traffic::kPeerWrites, "cpu.p2p_writes", "peer writes that a root complex holds");
  add_all(Traffic::kPeerReads, "cpu.p2p_reads", "peer reads that a root complex holds");
}

DeviceModel resolve_cpu(const DeviceParams& d, DeviceId cpu) {
  DeviceModel m;
  m.word = "CPU";
  m.mps = d.number("cpu.mps", cpu);
  m.crossing = Crossing{.latency = d.duration("cpu.root_latency", cpu),
                        .cut_through = false,
                        .acs = d.flags("cpu.acs", cpu)};
  m.memory =
      TargetMemory{.server = m.add_server({"DRAM of a socket", ServerUnit::kBytesPerSecond,
                                           dram_rate(d.params(), d.scope(cpu)).as_bytes_per_s()}),
                   .read_weight = dram_weight(d.params(), d.scope(cpu)),
                   .write_weight = dram_write_weight(d.params(), d.scope(cpu)),
                   .read_latency = d.duration("cpu.dram_latency", cpu),
                   .completion_payload = d.number("cpu.completion_payload", cpu),
                   .completion_boundary = kRootCompletionBoundary,
                   .page = d.bytes("cpu.iommu_page", cpu)};
  m.requester = Requester{.write_payload = kCacheLine};
  m.root = RootComplex{.peers = static_cast<PeerSupport>(d.number("cpu.p2p", cpu)),
                       .peer_payload = d.number("cpu.p2p_payload", cpu),
                       .socket_rate = d.bandwidth("cpu.socket_rate", cpu),
                       .socket_latency = d.duration("cpu.socket_latency", cpu),
                       .memlock_limit = d.bytes("cpu.memlock_limit", cpu),
                       .memcpy_rate = d.bandwidth("cpu.memcpy_rate", cpu)};
  add_page_walks(d, cpu, *m.root);
  add_strict_writes(d, cpu, *m.root);
  add_peer_buffers(d, cpu, m);
  return m;
}

}  // namespace

DeviceRoom cpu_room() {
  return {"cpu",
          DeviceKind::kCpu,
          {kRootComplexParams, kDramParams, kIommuParams, kSocketLinkParams},
          resolve_cpu};
}

}  // namespace weft
