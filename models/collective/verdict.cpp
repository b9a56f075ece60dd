#include "models/collective/verdict.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "models/nccl/decide/bar1.hpp"
#include "models/nccl/decide/gdr.hpp"
#include "models/nccl/ring.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

const ResultRow* largest(const std::vector<ResultRow>& rows, std::string_view path) {
  const ResultRow* best = nullptr;
  for (const ResultRow& row : rows) {
    if (row.memory_path == path && (best == nullptr || row.bytes > best->bytes)) best = &row;
  }
  return best;
}

std::string sentence(const ResultRow& row) {
  const std::string_view how = row.nodes == 1              ? "within the node"
                               : row.memory_path == "gdr"  ? "over GPUDirect RDMA"
                               : row.memory_path == "nccl" ? "as NCCL decides"
                                                           : "over host-staged buffers";
  std::string out = fmt::format("{} {}: busbw {:.1f} GB/s", format_size(Bytes{row.bytes}), how,
                                row.busbw_gb_per_s);
  if (row.nic_gb_per_s > 0) {
    out += fmt::format(" (the busiest NIC sends {:.1f})", row.nic_gb_per_s);
  }
  if (row.limited_by.empty()) return out;
  const CauseShare& top = row.limited_by.front();
  out += fmt::format(", limited by {}", top.cause);
  if (!top.where.empty()) out += fmt::format(" ({})", top.where);
  return out + fmt::format(" for {:.0f} % of the time", top.share * 100.0);
}

/// "its packets: 2173 pauses (most of spine0->leaf1), 78 marked, 64 congestion notifications, 0
/// dropped, 0 sent again"; "" where nothing of it happened, or no packets ran.
std::string congestion(const ResultRow& row) {
  if (!row.probes) return "";
  const Probes& probes = *row.probes;
  std::uint64_t cnps = 0;
  std::uint64_t repeated = 0;
  for (const NicProbe& nic : probes.nics) {
    cnps += nic.cnps;
    repeated += nic.repeated;
  }
  const std::uint64_t dropped = probes.dropped + probes.lost;
  if (probes.pauses + probes.marked + cnps + dropped + repeated == 0) return "";
  const auto most = std::ranges::max_element(probes.ports, {}, &PortProbe::pauses);
  const std::string by =
      most != probes.ports.end() && most->pauses > 0 ? " (most of " + most->link + ")" : "";
  return fmt::format(
      "its packets at {}: {} pauses{}, {} marked, {} congestion notifications, {} dropped or lost, "
      "{} sent again",
      format_size(Bytes{row.bytes}), probes.pauses, by, probes.marked, cnps, dropped, repeated);
}

std::string pair_name(const Fabric& fabric, DeviceId gpu, DeviceId nic) {
  return fabric.device(gpu).name + "-" + fabric.device(nic).name;
}

/// Why there is none, and whether NCCL finds out.
std::string obstacle(const GdrPossible& gdr) {
  return gdr.why + (gdr.nccl_sees ? ""
                                  : "; NCCL does not see it: where its rule turns GPUDirect RDMA "
                                    "on, transfers fail");
}

/// The NIC that NCCL numbers `dev`.
DeviceId nic_of(const Fabric& fabric, const NcclDecisions& decisions, int dev) {
  const NcclSystem& system = decisions.views.front().system;
  for (const int index : system.of(NcclNodeType::kNet)) {
    const NcclNetInfo& net = system.nodes[static_cast<std::size_t>(index)].net;
    if (net.dev != dev) continue;
    for (std::size_t n = 0; n < fabric.count(DeviceKind::kNic); ++n) {
      const DeviceId nic = fabric.device(0, DeviceKind::kNic, n);
      if (fabric.device(nic).name == net.name) return nic;
    }
  }
  throw std::logic_error("a NIC of NCCL's decisions is not in the fabric");
}

/// "; NCCL_NET_GDR_LEVEL=PHB would allow it: +12 % busbw at 8 GiB by this model", beside what NCCL
/// does or, where that was not run, beside host-staged.
std::string what_allowing_brings(const NcclGdr& declined, const std::vector<ResultRow>& rows) {
  if (!declined.check.measured) return "";
  std::string out = fmt::format("; NCCL_NET_GDR_LEVEL={} would allow it",
                                nccl_path_type_name(declined.check.needed));
  const ResultRow* gdr = largest(rows, "gdr");
  const ResultRow* now = largest(rows, "nccl");
  if (now == nullptr) now = largest(rows, "host-staged");
  if (gdr == nullptr || now == nullptr || gdr->bytes != now->bytes) return out;
  const double change = gdr->busbw_gb_per_s / now->busbw_gb_per_s - 1;
  return out + fmt::format(": {:+.0f} % busbw at {} by this model", 100 * change,
                           format_size(Bytes{gdr->bytes}));
}

/// A GPU and a NIC of a node.
using Places = std::pair<std::uint32_t, std::uint32_t>;

std::vector<GdrPair> pairs_at(const Machine& machine, const std::set<Places>& places,
                              const std::vector<PinnedMemory>& pinned) {
  const Fabric& fabric = machine.fabric();
  std::vector<GdrPair> out;
  for (const auto& [g, n] : places) {
    const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, g);
    const DeviceId nic = fabric.device(0, DeviceKind::kNic, n);
    out.push_back({gpu, nic, gdr_possible(machine, gpu, nic, pinned[g])});
  }
  return out;
}

}  // namespace

std::vector<std::string> verdict(const std::vector<ResultRow>& rows) {
  const ResultRow* nccl = largest(rows, "nccl");
  const ResultRow* gdr = largest(rows, "gdr");
  const ResultRow* staged = largest(rows, "host-staged");
  std::vector<std::string> out;
  for (const ResultRow* row : {nccl, gdr, staged}) {
    if (row == nullptr) continue;
    out.push_back(sentence(*row));
    if (std::string packets = congestion(*row); !packets.empty()) out.push_back(std::move(packets));
  }
  if (gdr != nullptr && staged != nullptr && gdr->bytes == staged->bytes && gdr->nodes > 1) {
    out.push_back(fmt::format("host-staged reaches {:.2f} of GPUDirect RDMA at {}",
                              staged->busbw_gb_per_s / gdr->busbw_gb_per_s,
                              format_size(Bytes{gdr->bytes})));
  }
  return out;
}

std::vector<GdrPair> ring_pairs(const Machine& machine, const Schedule& schedule) {
  const Fabric& fabric = machine.fabric();
  if (fabric.nodes() < 2) return {};
  std::set<Places> places;
  for (const std::size_t node : {0U, 1U}) {
    for (const RingGdr& end : ring_gdr(schedule, node, fabric.count(DeviceKind::kGpu))) {
      places.emplace(end.gpu, end.nic);
    }
  }
  return pairs_at(machine, places, nccl_pinned(machine.devices(), schedule));
}

std::vector<GdrPair> gdr_pairs(const Machine& machine, const Schedule& schedule, Op op) {
  if (!is_point_to_point(op) || machine.fabric().nodes() < 2) return ring_pairs(machine, schedule);
  std::set<Places> places;
  const auto last = static_cast<std::uint32_t>(schedule.p2p_nics.size() - 1);
  const bool to_the_next = op == Op::kSendRecv;  // the last GPU of a node to the first of the next
  for (std::uint32_t to = 0; to <= (to_the_next ? 0 : last); ++to) {
    for (const std::uint32_t nic : schedule.p2p_nics[to]) {
      if (schedule.gdr(to, nic, false)) places.emplace(to, nic);
    }
    for (std::uint32_t from = to_the_next ? last : 0; from <= last; ++from) {
      for (std::uint32_t c = 0; c < p2p_exits_between(schedule, from, to); ++c) {
        const P2pExit exit = p2p_exit(schedule, from, to, c);
        if (schedule.gdr(from, exit.nic, true)) places.emplace(exit.gpu, exit.nic);
      }
    }
  }
  return pairs_at(machine, places, nccl_pinned(machine.devices(), schedule));
}

std::vector<std::string> gdr_notes(const Machine& machine, const std::vector<GdrPair>& pairs,
                                   const NcclRun* run, Op op, const std::vector<ResultRow>& rows) {
  const Fabric& fabric = machine.fabric();
  std::vector<std::string> out;
  std::set<std::string> impossible;
  std::optional<NcclGdrRule> rule;  // where NCCL's decisions do not say it
  if (run == nullptr) rule.emplace(machine.devices());
  for (const GdrPair& pair : pairs) {
    const std::string name = pair_name(fabric, pair.gpu, pair.nic);
    if (!pair.gdr.possible) {
      out.push_back(name + ": GPUDirect RDMA is not possible: " + obstacle(pair.gdr));
      impossible.insert(name);
      continue;
    }
    if (!rule) continue;
    const GdrDecision nccl = rule->of(pair.gpu, pair.nic);
    if (!nccl.enabled) {
      out.push_back(name + ": possible, but NCCL leaves GPUDirect RDMA off: " + nccl.why);
    }
  }
  if (run != nullptr) {
    for (const NcclGdr& declined : run->taken(op).declined) {
      const DeviceId gpu =
          fabric.device(0, DeviceKind::kGpu, static_cast<std::size_t>(declined.rank));
      const std::string name =
          pair_name(fabric, gpu, nic_of(fabric, run->decisions, declined.net_dev));
      if (impossible.contains(name)) continue;
      out.push_back(fmt::format("GDR off for {}{}: {}{}", name, declined.read ? ", sending" : "",
                                declined.check.why, what_allowing_brings(declined, rows)));
    }
  }
  std::sort(out.begin(), out.end());
  constexpr std::size_t kMost = 16;  // a GPU may send by many NICs
  if (out.size() > kMost) {
    const std::size_t more = out.size() - kMost;
    out.resize(kMost);
    out.push_back(fmt::format("and {} more pairs of a GPU and a NIC likewise", more));
  }
  const bool declines = run != nullptr && !run->taken(op).declined.empty();
  if (declines && largest(rows, "gdr") != nullptr && largest(rows, "nccl") == nullptr) {
    out.emplace_back("rows of gdr force GPUDirect RDMA there; of nccl they run what NCCL does");
  }
  return out;
}

std::string gdr_obstacle(const std::vector<GdrPair>& pairs) {
  for (const GdrPair& pair : pairs) {
    if (!pair.gdr.possible) return obstacle(pair.gdr);
  }
  return "";
}

}  // namespace weft
