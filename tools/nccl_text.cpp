#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/nccl_view.hpp"

namespace weft {
namespace {

using enum NcclNodeType;

constexpr std::size_t kRanksShown = 20;  // of a ring; NCCL cuts its lines likewise

const NcclNode& node_of(const NcclSystem& system, int index) {
  return system.nodes[static_cast<std::size_t>(index)];
}

/// The numbers NCCL gives to what it knows of a CPU (graph/topo.h).
std::string cpu_numbers_text(const NcclCpuInfo& cpu) {
  const int arch = cpu.arch == NcclCpuArch::kX86 ? 1 : (cpu.arch == NcclCpuArch::kPower ? 2 : 3);
  int vendor = -1;
  if (cpu.vendor == NcclCpuVendor::kIntel) vendor = 1;
  if (cpu.vendor == NcclCpuVendor::kAmd) vendor = 2;
  if (cpu.vendor == NcclCpuVendor::kZhaoxin) vendor = 3;
  int model = -1;
  if (cpu.model == NcclCpuModel::kBroadwell || cpu.model == NcclCpuModel::kYongfeng) model = 1;
  if (cpu.model == NcclCpuModel::kSkylake) model = 2;
  if (cpu.model == NcclCpuModel::kSapphire) model = 3;
  if (cpu.model == NcclCpuModel::kEmerald) model = 4;
  return fmt::format("({}/{}/{})", arch, vendor, model);
}

std::string node_text(const NcclNode& node) {
  switch (node.type) {
    case kGpu:
      return fmt::format("{} ({})", node.name(), node.gpu.rank);
    case kCpu:
      return node.name() + " " + cpu_numbers_text(node.cpu);
    case kPci:
      return fmt::format("{} ({:x})", node.name(), node.pci_device);
    case kNet:
      return fmt::format("{} ({}/{:x}/{}/{:.6f})", node.name(), node.net.name, node.net.asic,
                         node.net.port, node.net.bw);
    default:
      return node.name();
  }
}

std::string_view link_name(NcclLinkType type) {
  switch (type) {
    case NcclLinkType::kNvl:
      return "NVL";
    case NcclLinkType::kC2c:
      return "C2C";
    case NcclLinkType::kPci:
      return "PCI";
    case NcclLinkType::kSys:
      return "SYS";
    case NcclLinkType::kNet:
      return "NET";
    default:
      return "LOC";
  }
}

/// A node's line and, indented, those of what hangs below it; other links are named only.
void add_system(const NcclSystem& system, int index, int above, const std::string& start,
                std::size_t indent, std::string& out) {
  const NcclNode& node = node_of(system, index);
  out += start + node_text(node) + "\n";
  for (const int l : node.links) {
    const NcclLink& link = system.links[static_cast<std::size_t>(l)];
    if (link.to == above) continue;
    const std::string lead =
        fmt::format("{:{}}+ {}[{:.1f}] - ", "", indent, link_name(link.type), link.bw);
    const NcclNodeType to = node_of(system, link.to).type;
    const bool hangs_below = link.type == NcclLinkType::kPci || link.type == NcclLinkType::kNet;
    if (hangs_below && to != kCpu) {
      add_system(system, link.to, index, lead, lead.size(), out);
    } else {
      out += lead + node_of(system, link.to).name() + "\n";
    }
  }
}

std::string system_text(const NcclNodeView& view) {
  std::string out = fmt::format("=== System : maxBw {:.1f} totalBw {:.1f} ===\n", view.bw.max_bw,
                                view.bw.total_bw);
  for (const int cpu : view.system.of(kCpu)) add_system(view.system, cpu, -1, "", 0, out);
  return out + "==========================================\n";
}

std::string paths_text(const NcclNodeView& view) {
  std::string out;
  for (const NcclNodeType from : {kGpu, kNet}) {
    for (const int node : view.system.of(from)) {
      out += node_of(view.system, node).name() + " :";
      for (const NcclNodeType to : {kGpu, kNvs, kCpu, kNet}) {
        for (int i = 0; i < view.system.count(to); ++i) {
          const NcclPath& path = view.paths.at(node, to, i);
          if (path.type == NcclPathType::kDis) continue;
          out += fmt::format("{} ({}/{:.1f}/{}) ", view.system.node(to, i).name(), path.hops(),
                             path.bw, nccl_path_type_name(path.type));
        }
      }
      out += '\n';
    }
  }
  return out;
}

std::string gdr_line(const NcclGdr& gdr, const std::string& directions) {
  const NcclGdrCheck& check = gdr.check;
  std::string out = fmt::format("GPU Direct RDMA {} for GPU {} / HCA {}",
                                check.enabled ? "Enabled" : "Disabled", gdr.rank, gdr.net_dev);
  if (!check.measured) return out + ", " + directions + ": " + check.why + "\n";
  const std::string_view name = nccl_path_type_name(check.needed);
  out += fmt::format(" (distance {} {} {}), {}", name, check.enabled ? "<=" : ">",
                     nccl_path_type_name(check.limit), directions);
  if (check.enabled) {
    out += check.pci_mode ? " mode PCI" : " mode Default";
    if (gdr.flush) out += ", flush after receives";
  } else if (check.needed <= NcclPathType::kSys) {
    out += fmt::format("; NCCL_NET_GDR_LEVEL={} would allow it", name);
  }
  return out + "\n";
}

/// The GPUs and NICs of the first host; one line for both directions where they are alike.
std::string gdr_text(const NcclDecisions& decisions) {
  const std::vector<NcclGdr>& all = decisions.gdr;
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool alike = i + 1 < all.size() && all[i + 1].rank == all[i].rank &&
                       all[i + 1].net_dev == all[i].net_dev &&
                       all[i + 1].check.enabled == all[i].check.enabled &&
                       all[i + 1].check.measured == all[i].check.measured;
    out += gdr_line(all[i], alike ? "read 0/1" : (all[i].read ? "read 1" : "read 0"));
    if (alike) ++i;
  }
  return out;
}

std::string graph_text(const NcclNodeView& view, const NcclGraph& graph) {
  std::string out = fmt::format(
      "Pattern {}, crossNic {}, nChannels {}, bw {:.6f}/{:.6f}, type {}/{}, sameChannels {}\n",
      static_cast<int>(graph.pattern), graph.cross_nic, graph.channel_count(), graph.bw_intra,
      graph.bw_inter, nccl_path_type_name(graph.type_intra), nccl_path_type_name(graph.type_inter),
      graph.same_channels ? 1 : 0);
  for (std::size_t c = 0; c < graph.channels.size(); ++c) {
    const NcclGraphChannel& channel = graph.channels[c];
    out += fmt::format("{:2} :", c);
    const auto add = [&](NcclNodeType type, int i) {
      if (i >= 0) out += " " + view.system.node(type, i).name();
    };
    add(kNet, channel.net_in);
    for (const int gpu : channel.gpus) add(kGpu, gpu);
    add(kNet, channel.net_out);
    out += '\n';
  }
  return out;
}

std::string graphs_text(const NcclNodeView& view) {
  std::string out = graph_text(view, view.ring) + graph_text(view, view.tree);
  for (const auto* graph : {&view.collnet_chain, &view.collnet_direct, &view.nvls}) {
    if (*graph) out += graph_text(view, **graph);
  }
  return out;
}

/// Rings from rank 0 on; rank 0's neighbours in the trees.
std::string channels_text(const NcclDecisions& decisions) {
  const NcclConnections& connections = decisions.connections;
  std::string out;
  for (std::size_t c = 0; c < connections.rings.size(); ++c) {
    out += fmt::format("Channel {:02}/{:02} :", c, connections.rings.size());
    const std::vector<int>& ring = connections.rings[c];
    for (std::size_t i = 0; i < std::min(ring.size(), kRanksShown); ++i) {
      out += fmt::format(" {}", ring[i]);
    }
    out += ring.size() > kRanksShown ? " ...\n" : "\n";
  }
  out += "Trees";
  for (std::size_t c = 0; c < connections.trees.size(); ++c) {
    const NcclTreeNode& node = connections.trees[c].front();
    out +=
        fmt::format(" [{}] {}/{}/{}->0->{}", c, node.down[0], node.down[1], node.down[2], node.up);
  }
  const NcclChannelCounts& counts = decisions.channels;
  return out +
         fmt::format(
             "\n{} coll channels, {} nvls channels, {} p2p channels, {} p2p channels per peer\n",
             counts.coll, counts.nvls, counts.p2p, counts.p2p_per_peer);
}

/// Three algorithms a block, as NCCL prints its table; algorithms that no cell allows are left out.
std::string tuning_text(const Tuning& tuning) {
  std::vector<NcclAlgo> algos;
  for (const NcclAlgo algo : kNcclAlgoList) {
    bool used = algo == NcclAlgo::kTree || algo == NcclAlgo::kRing;
    for (const NcclOp op : kNcclOpList) {
      for (const NcclProto proto : kNcclProtoList) {
        used = used || tuning.cell(op, algo, proto).bandwidth > 0;
      }
    }
    if (used) algos.push_back(algo);
  }
  constexpr std::size_t kBlock = 3;
  std::string out;
  for (std::size_t first = 0; first < algos.size(); first += kBlock) {
    const std::span<const NcclAlgo> block =
        std::span(algos).subspan(first, std::min(kBlock, algos.size() - first));
    std::string names = "  Algorithm   |";
    std::string protos = "  Protocol    |";
    std::string threads = " Max NThreads |";
    for (const NcclAlgo algo : block) {
      names += fmt::format(" {:14}   {:>14}   {:14} |", "", nccl_algo_name(algo), "");
      for (const NcclProto proto : kNcclProtoList) {
        protos += fmt::format(" {:>14} |", nccl_proto_name(proto));
        threads += fmt::format(" {:14} |", tuning.max_threads(algo, proto));
      }
    }
    out += names + "\n" + protos + "\n" + threads + "\n";
    for (const NcclOp op : kNcclOpList) {
      out += fmt::format("{:>13} |", nccl_op_name(op));
      for (const NcclAlgo algo : block) {
        for (const NcclProto proto : kNcclProtoList) {
          const Tuning::Cell& cell = tuning.cell(op, algo, proto);
          out += fmt::format("{:8.1f}/{:6.1f} |", cell.latency_us, cell.bandwidth);
        }
      }
      out += '\n';
    }
  }
  return out;
}

std::string excluded_text(const Tuning& tuning) {
  std::string out;
  for (const Tuning::Excluded& excluded : tuning.excluded()) {
    std::vector<std::string_view> ops;
    for (const NcclOp op : excluded.ops) ops.push_back(nccl_op_name(op));
    const std::string of = excluded.everywhere ? "" : fmt::format(" of {}", fmt::join(ops, ", "));
    out += fmt::format("Excluded {}{}: {}\n", nccl_algo_name(excluded.algo), of, excluded.why);
  }
  return out;
}

/// What is excluded is so at all sizes.
std::string choice_text(const Tuning& tuning, std::span<const Bytes> sizes) {
  std::string out;
  for (const NcclOp op : kNcclOpList) {
    for (const Bytes bytes : sizes) {
      const auto choice = tuning.choose(op, bytes);
      if (!choice) {
        out += fmt::format("{}: no algorithm is allowed, and NCCL fails\n", nccl_op_name(op));
        break;
      }
      out += fmt::format(
          "{}: {} Bytes -> Algo {} proto {} channel{{Lo..Hi}}={{0..{}}}  ({} threads, {:.1f} us",
          nccl_op_name(op), bytes.count(), nccl_algo_upper_name(choice->algo),
          nccl_proto_upper_name(choice->proto), choice->channels - 1, choice->threads,
          choice->time_us);
      if (const auto& next = choice->next) {
        out += fmt::format("; next {} {} {:.1f} us", nccl_algo_name(next->algo),
                           nccl_proto_name(next->proto), next->time_us);
      }
      out += ")\n";
    }
  }
  return out;
}

}  // namespace

std::vector<Bytes> nccl_choice_sizes() {
  std::vector<Bytes> out;
  for (Bytes size = Bytes::kib(1); size <= Bytes::gib(1); size = size * 4) out.push_back(size);
  return out;
}

std::string nccl_text(const NcclDecisions& decisions, const Tuning& tuning,
                      std::span<const Bytes> sizes) {
  const NcclNodeView& view = decisions.views.front();
  return fmt::format("NCCL {}: {} host{} x {} GPUs, nRanks {} nNodes {}\n",
                     decisions.version.text(), decisions.hosts, decisions.hosts == 1 ? "" : "s",
                     decisions.gpus_per_host, decisions.ranks, decisions.nodes) +
         system_text(view) + paths_text(view) + gdr_text(decisions) + graphs_text(view) +
         channels_text(decisions) + tuning_text(tuning) + excluded_text(tuning) +
         choice_text(tuning, sizes);
}

}  // namespace weft
