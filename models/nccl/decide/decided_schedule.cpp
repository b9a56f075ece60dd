#include "models/nccl/decide/decided_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "models/nccl/decide/peer_nets.hpp"
#include "models/nccl/decide/tuning_input.hpp"
#include "models/nccl/decide/write_topo.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

NcclOp nccl_op(Op op) {
  switch (op) {
    case Op::kAllGather:
      return NcclOp::kAllGather;
    case Op::kReduceScatter:
      return NcclOp::kReduceScatter;
    case Op::kBroadcast:
      return NcclOp::kBroadcast;
    case Op::kReduce:
      return NcclOp::kReduce;
    case Op::kAllReduce:
    case Op::kAllToAll:
    case Op::kSendRecv:
      break;
  }
  return NcclOp::kAllReduce;
}

/// What the user forces by parameter, as NCCL's variables would.
void force(NcclEnv& env, const Params& params) {
  const std::string algo(params.choice("nccl.algo"));
  const std::string proto(params.choice("nccl.proto"));
  const auto channels = static_cast<int>(std::lround(params.number("nccl.channels")));
  if (algo != "auto") env.algo = algo;
  if (proto != "auto") env.proto = proto;
  if (channels > 0) env.min_nchannels = env.max_nchannels = channels;
}

/// The host's GPUs, by their places in the system.
std::vector<int> gpus_by_rank(const NcclDecisions& d) {
  std::vector<int> out;
  for (int rank = 0; rank < d.gpus_per_host; ++rank) {
    out.push_back(d.views.front().system.gpu_of_rank(rank));
  }
  return out;
}

/// Where NCCL by itself takes GPUDirect RDMA, and where not, in host 0.
class Takes {
 public:
  explicit Takes(const NcclDecisions& decisions)
      : decisions_{decisions}, view_{decisions.views.front()} {}

  void look_at(int gpu, int net, bool read) {
    if (net < 0) return;
    NcclGdr gdr;
    gdr.rank = view_.system.node(NcclNodeType::kGpu, gpu).gpu.rank;
    gdr.net_dev = view_.system.node(NcclNodeType::kNet, net).net.dev;
    gdr.read = read;
    gdr.check = check_gdr(view_.system, view_.paths, decisions_.env, gpu, net, read);
    if (gdr.check.enabled) {
      any_ = true;
      return;
    }
    const auto same = [&](const NcclGdr& g) {
      return g.rank == gdr.rank && g.net_dev == gdr.net_dev && g.read == read;
    };
    if (std::ranges::none_of(declined_, same)) declined_.push_back(gdr);
  }
  NcclTaken all() && {
    const MemoryPath some = any_ ? MemoryPath::kNccl : MemoryPath::kHostStaged;
    return {declined_.empty() ? MemoryPath::kGdr : some, std::move(declined_)};
  }

 private:
  const NcclDecisions& decisions_;
  const NcclNodeView& view_;
  bool any_{false};
  std::vector<NcclGdr> declined_;
};

/// On odd hosts rings that may cross NICs go the other way.
NcclTaken by_rings(const NcclDecisions& d) {
  const NcclGraph& ring = d.views.front().ring;
  Takes takes(d);
  for (const NcclGraphChannel& channel : ring.channels) {
    takes.look_at(channel.gpus.front(), channel.net_in, false);
    takes.look_at(channel.gpus.back(), channel.net_out, true);
    if (ring.cross_nic != 2) continue;
    takes.look_at(channel.gpus.back(), channel.net_out, false);
    takes.look_at(channel.gpus.front(), channel.net_in, true);
  }
  return std::move(takes).all();
}

/// Of sends from some GPUs of a host to some of another.
NcclTaken by_sends(const NcclDecisions& d, const PeerNets& nets, const std::vector<int>& from,
                   const std::vector<int>& to) {
  Takes takes(d);
  for (const int peer : to) {
    for (const int net : nets.own(peer)) takes.look_at(peer, net, false);
    for (const int gpu : from) {
      for (const NcclNetUse& use : nets.to(gpu, peer)) takes.look_at(gpu, use.net, true);
    }
  }
  return std::move(takes).all();
}

/// What a schedule's choice needs of an NcclRun; its connections grow with the ranks, and each
/// thread has a schedule.
struct Choosing {
  int p2p_channels;
  std::shared_ptr<const Tuning> tuning;
  bool multicast;

  std::optional<Algorithm> executed(NcclAlgo algo) const {
    if (needs_multicast(algo) && !multicast) return std::nullopt;
    return executed_as(algo, tuning->input().nodes, tuning->input().ranks);
  }
};

[[noreturn]] void refuse_choice(const Choosing& by, Op op, std::string_view nccl_choice) {
  std::vector<std::string> known;
  for (const AlgorithmRow& row : algorithms()) {
    if (row.nccl && runs(row.algorithm, op) && by.executed(*row.nccl)) known.emplace_back(row.name);
  }
  const std::string why =
      nccl_choice.empty()
          ? fmt::format(
                "NCCL has no algorithm and protocol left for {}: NCCL_ALGO, NCCL_PROTO, "
                "nccl.algo and nccl.proto exclude all that is possible here (weft nccl says why "
                "each of the others is not)",
                op_name(op))
          : fmt::format(
                "NCCL_ALGO and nccl.algo leave {} for {}, which weft does not execute "
                "here{}",
                nccl_choice, op_name(op),
                nccl_choice.starts_with("NVLS") && !by.multicast
                    ? " (--fidelity fluid does, where no network switch reduces)"
                    : "");
  throw InputError(why + "; algorithms that can run it: " + known_names(known));
}

/// Where NCCL picks what is not executed, the best of what the user leaves that is.
Choice choose(const Choosing& by, Op op, Bytes bytes) {
  if (is_point_to_point(op)) {
    return {.algorithm = Algorithm::kPointToPoint,
            .protocol = "Simple",
            .channels = static_cast<std::uint32_t>(by.p2p_channels)};
  }
  std::optional<Tuning::Choice> picked = by.tuning->choose(nccl_op(op), bytes);
  Choice out;
  if (picked && !by.executed(picked->algo)) {
    out.nccl_choice = nccl_algo_name(picked->algo);
    picked = by.tuning->choose(nccl_op(op), bytes,
                               [&](NcclAlgo algo) { return by.executed(algo).has_value(); });
  }
  if (!picked) refuse_choice(by, op, out.nccl_choice);
  out.algorithm = by.executed(picked->algo).value();
  out.protocol = nccl_proto_name(picked->proto);
  out.channels = static_cast<std::uint32_t>(picked->channels);
  out.threads = static_cast<std::uint32_t>(picked->threads);
  return out;
}

/// The fabric's NIC (index among a node's) for each NIC of NCCL's system, by name.
std::vector<std::uint32_t> fabric_nics(const Fabric& fabric, const NcclSystem& system) {
  std::map<std::string, std::uint32_t> by_name;
  for (std::size_t n = 0; n < fabric.count(DeviceKind::kNic); ++n) {
    by_name[fabric.device(fabric.device(0, DeviceKind::kNic, n)).name] =
        static_cast<std::uint32_t>(n);
  }
  std::vector<std::uint32_t> out;
  for (const int node : system.of(NcclNodeType::kNet)) {
    out.push_back(by_name.at(system.nodes[static_cast<std::size_t>(node)].net.name));
  }
  return out;
}

/// For which GPU, NIC and direction of a host data crosses by GPUDirect RDMA.
std::function<bool(std::uint32_t, std::uint32_t, bool)> gdr_of(const Fabric& fabric,
                                                               const NcclRun& run) {
  if (run.memory_path != MemoryPath::kNccl) {
    return [all = run.memory_path == MemoryPath::kGdr](std::uint32_t, std::uint32_t, bool) {
      return all;
    };
  }
  const NcclDecisions& d = run.decisions;
  const NcclNodeView& view = d.views.front();
  const std::vector<std::uint32_t> nics = fabric_nics(fabric, view.system);
  std::set<std::tuple<std::uint32_t, std::uint32_t, bool>> enabled;
  for (int gpu = 0; gpu < d.gpus_per_host; ++gpu) {
    const int place = view.system.gpu_of_rank(gpu);
    for (std::size_t net = 0; net < nics.size(); ++net) {
      for (const bool sends : {false, true}) {
        if (check_gdr(view.system, view.paths, d.env, place, static_cast<int>(net), sends)
                .enabled) {
          enabled.emplace(gpu, nics[net], sends);
        }
      }
    }
  }
  return [enabled = std::move(enabled)](std::uint32_t gpu, std::uint32_t nic, bool sends) {
    return enabled.contains({gpu, nic, sends});
  };
}

/// For which GPU and NIC of a host NCCL flushes, by their places.
std::function<bool(std::uint32_t, std::uint32_t)> flushes_of(const Fabric& fabric,
                                                             const NcclDecisions& d) {
  const NcclNodeView& view = d.views.front();
  std::vector<std::vector<bool>> flushes(static_cast<std::size_t>(d.gpus_per_host),
                                         std::vector<bool>(fabric.count(DeviceKind::kNic), true));
  const std::vector<std::uint32_t> nics = fabric_nics(fabric, view.system);
  for (std::size_t gpu = 0; gpu < flushes.size(); ++gpu) {
    const int place = view.system.gpu_of_rank(static_cast<int>(gpu));
    for (std::size_t net = 0; net < nics.size(); ++net) {
      flushes[gpu][nics[net]] =
          needs_flush(view.system, view.paths, d.env, place, static_cast<int>(net));
    }
  }
  return [flushes = std::move(flushes)](std::uint32_t gpu, std::uint32_t nic) {
    return flushes.at(gpu).at(nic);
  };
}

/// What joins the GPUs of a host, by their places.
std::function<Inside(std::uint32_t, std::uint32_t)> inside_of(const Fabric& fabric,
                                                              const NcclNodeView& view, int gpus) {
  std::vector<std::size_t> place;  // in the view's system, by rank of a host
  for (int r = 0; r < gpus; ++r) {
    place.push_back(static_cast<std::size_t>(view.system.gpu_of_rank(r)));
  }
  return
      [&fabric, place, transports = view.paths.transports](std::uint32_t from, std::uint32_t to) {
        switch (transports.at(place.at(from)).at(place.at(to))) {
          case NcclTransport::kP2p:
            return Inside::kPeer;
          case NcclTransport::kP2pRead:
            return Inside::kPeerRead;
          case NcclTransport::kShm:
            return Inside::kShared;
          case NcclTransport::kNet:
            break;
        }
        const auto name = [&](std::uint32_t gpu) {
          return fabric.full_name(fabric.device(0, DeviceKind::kGpu, gpu));
        };
        throw InputError(fabric.spec().file + ": NCCL joins " + name(from) + " and " + name(to) +
                         " over the network, though they are in one node: weft does not run that");
      };
}

/// The ranks of a host by their GPU's place in NCCL's system.
class Places {
 public:
  /// `nics`: the fabric's, by place in NCCL's system.
  Places(const NcclDecisions& decisions, std::vector<std::uint32_t> nics)
      : view_{decisions.views.front()}, gpus_{decisions.gpus_per_host}, nics_{std::move(nics)} {}

  bool has_nics() const { return !nics_.empty(); }
  std::uint32_t nic(int net) const { return nics_[static_cast<std::size_t>(net)]; }
  /// The host's GPU, by its place in the system.
  std::uint32_t gpu_of(int place) const {
    return static_cast<std::uint32_t>(view_.system.node(NcclNodeType::kGpu, place).gpu.rank);
  }

  /// By which a rank reaches the network in a channel.
  struct Exit {
    std::uint32_t nic{0};
    int proxy{0};  ///< the rank from whose memory it sends: with PXN another
  };
  Exit exit(const NcclGraph& graph, int rank, int channel) const {
    if (nics_.empty() || graph.channels.empty()) return {0, rank};
    const int gpu = view_.system.gpu_of_rank(rank % gpus_);
    const NcclNetUse use = net_of_channel(view_, graph, gpu, channel);
    if (use.net < 0) return {0, rank};
    const auto proxy = static_cast<int>(gpu_of(use.proxy_gpu));
    return {nic(use.net), host(rank) * gpus_ + proxy};
  }
  int host(int rank) const { return rank / gpus_; }

 private:
  const NcclNodeView& view_;
  int gpus_;
  std::vector<std::uint32_t> nics_;
};

Ring ring_of(const NcclDecisions& d, const Places& places, std::size_t channel) {
  const std::vector<int>& ranks = d.connections.rings[channel];
  const auto c = static_cast<int>(channel);
  Ring ring;
  ring.entry_nic.resize(static_cast<std::size_t>(d.hosts));
  ring.exit_nic.resize(static_cast<std::size_t>(d.hosts));
  ring.exit_proxy.resize(static_cast<std::size_t>(d.hosts));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int rank = ranks[i];
    const int before = ranks[(i + ranks.size() - 1) % ranks.size()];
    const int after = ranks[(i + 1) % ranks.size()];
    const auto host = static_cast<std::size_t>(places.host(rank));
    ring.order.push_back(static_cast<std::uint32_t>(rank));
    const Places::Exit exit = places.exit(d.views.front().ring, rank, c);
    if (places.host(before) != places.host(rank)) ring.entry_nic[host] = exit.nic;
    if (places.host(after) != places.host(rank)) {
      ring.exit_nic[host] = exit.nic;
      ring.exit_proxy[host] = static_cast<std::uint32_t>(exit.proxy % d.gpus_per_host);
    }
  }
  return ring;
}

Tree tree_of(const NcclDecisions& d, const Places& places, std::size_t channel) {
  const std::vector<NcclTreeNode>& nodes = d.connections.trees[channel];
  Tree tree(nodes.size());
  for (std::size_t r = 0; r < nodes.size(); ++r) {
    TreeRank& rank = tree[r];
    if (nodes[r].up >= 0) rank.up = static_cast<std::uint32_t>(nodes[r].up);
    std::size_t children = 0;
    for (const int down : nodes[r].down) {
      if (down >= 0) rank.down[children++] = static_cast<std::uint32_t>(down);
    }
    const Places::Exit exit =
        places.exit(d.views.front().tree, static_cast<int>(r), static_cast<int>(channel));
    rank.nic = exit.nic;
    if (exit.proxy != static_cast<int>(r)) rank.proxy = static_cast<std::uint32_t>(exit.proxy);
  }
  return tree;
}

/// By which NICs sends and receives go.
void add_sends(const NcclDecisions& d, const Places& places, Schedule& schedule) {
  if (!places.has_nics()) return;
  const PeerNets peers(d.views.front(), d.env);
  const std::vector<int> gpus = gpus_by_rank(d);
  for (const int gpu : gpus) {
    std::vector<std::uint32_t>& nics = schedule.p2p_nics.emplace_back();
    for (const int net : peers.own(gpu)) nics.push_back(places.nic(net));
    std::vector<std::vector<P2pExit>>& to_each = schedule.p2p_exits.emplace_back();
    for (const int peer : gpus) {
      std::vector<P2pExit>& exits = to_each.emplace_back();
      for (const NcclNetUse& use : peers.to(gpu, peer)) {
        exits.push_back({places.nic(use.net), places.gpu_of(use.proxy_gpu)});
      }
    }
  }
}

/// One of the two trees between the nodes' heads of one number (graph/connect.cc, connectNvls).
/// `place`: of the head among a node's GPUs.
void add_heads(const NcclDecisions& d, const Places& places, int head, int place, std::size_t which,
               Tree& tree) {
  const auto rank_on = [&](int host) {
    return static_cast<std::uint32_t>(host * d.gpus_per_host + place);
  };
  for (int host = 0; host < d.hosts; ++host) {
    const NcclNodeTree node = nccl_node_trees(d.hosts, host)[which];
    TreeRank& rank = tree[rank_on(host)];
    if (node.up >= 0) rank.up = rank_on(node.up);
    std::size_t children = 0;
    for (const int child : {node.down0, node.down1}) {
      if (child >= 0) rank.down[children++] = rank_on(child);
    }
    const auto self = static_cast<int>(rank_on(host));
    const Places::Exit exit = places.exit(*d.views.front().nvls, self, head);
    rank.nic = exit.nic;
    if (exit.proxy != self) rank.proxy = static_cast<std::uint32_t>(exit.proxy);
  }
}

NvlsHeads nvls_of(const NcclDecisions& d, const Places& places) {
  NvlsHeads out;
  if (!d.nvls) return out;
  const NcclNodeView& view = d.views.front();
  if (d.hosts > 1) out.trees.assign(2, Tree(static_cast<std::size_t>(d.ranks)));
  for (int h = 0; h < d.nvls->channel_count(); ++h) {
    const int gpu = view.nvls->channels[static_cast<std::size_t>(h)].gpus.front();
    const int place = view.system.node(NcclNodeType::kGpu, gpu).gpu.rank;
    out.places.push_back(static_cast<std::uint32_t>(place));
    for (std::size_t t = 0; t < out.trees.size(); ++t) {
      add_heads(d, places, h, place, t, out.trees[t]);
    }
  }
  return out;
}

}  // namespace

std::variant<NcclRun, NcclNotFollowed> decide_run(const DeviceParams& devices, MemoryPath path,
                                                  const NcclEnv& env, NcclVersion version,
                                                  bool multicast,
                                                  std::vector<std::uint32_t> gpu_numbers) {
  require_peers(devices.fabric());
  std::string why = why_not_decided(devices.fabric());
  if (!why.empty()) return NcclNotFollowed{std::move(why)};
  const NcclTree tree = nccl_tree_of(devices, gpu_numbers).tree;
  const auto hosts = static_cast<int>(devices.fabric().nodes());
  NcclEnv asked = env;
  force(asked, devices.params());
  NcclRun run;
  if (path == MemoryPath::kHostStaged) asked.net_gdr_level = NcclPathType::kLoc;
  run.decisions = decide_nccl(tree, hosts, asked, version);
  run.memory_path = path;
  if (run.decisions.views.size() > 1) {
    return NcclNotFollowed{fmt::format(
        "NCCL takes the {} GPUs of a node for {} nodes of its own that meet over the network only",
        run.decisions.gpus_per_host, run.decisions.views.size())};
  }
  if (path != MemoryPath::kHostStaged && hosts > 1) {
    const std::vector<int> gpus = gpus_by_rank(run.decisions);
    run.by_rings = by_rings(run.decisions);
    const PeerNets nets(run.decisions.views.front(), run.decisions.env);
    run.by_sends = by_sends(run.decisions, nets, gpus, gpus);
    run.by_the_next = by_sends(run.decisions, nets, {gpus.back()}, {gpus.front()});
  }
  if (path == MemoryPath::kGdr && !run.by_rings.declined.empty()) {
    asked.net_gdr_level = NcclPathType::kSys;
    asked.net_gdr_read = 1;
    run.decisions = decide_nccl(tree, hosts, asked, version);
  }
  run.tuning = std::make_shared<const Tuning>(tuning_input(run.decisions));
  run.multicast = multicast;
  run.gpu_numbers = std::move(gpu_numbers);
  return run;
}

NcclRun followed(std::variant<NcclRun, NcclNotFollowed> made, const Fabric& fabric) {
  if (const auto* const not_followed = std::get_if<NcclNotFollowed>(&made)) {
    throw InputError(fabric.spec().file +
                     ": weft cannot follow NCCL's decisions here: " + not_followed->why +
                     "; --set nccl.decisions=simple runs weft's simple rules instead");
  }
  return std::get<NcclRun>(std::move(made));
}

Schedule decided_schedule(const DeviceParams& devices, const NcclRun& run) {
  const NcclDecisions& d = run.decisions;
  const Fabric& fabric = devices.fabric();
  const Places places(d, fabric_nics(fabric, d.views.front().system));
  Schedule schedule;
  for (std::size_t c = 0; c < d.connections.rings.size(); ++c) {
    schedule.rings.push_back(ring_of(d, places, c));
  }
  for (std::size_t c = 0; c < d.connections.trees.size(); ++c) {
    schedule.trees.push_back(tree_of(d, places, c));
  }
  schedule.inside = inside_of(fabric, d.views.front(), d.gpus_per_host);
  schedule.gdr = gdr_of(fabric, run);
  schedule.flushes = flushes_of(fabric, d);
  schedule.nvls = nvls_of(d, places);
  add_sends(d, places, schedule);
  schedule.p2p_channels = static_cast<std::uint32_t>(d.channels.p2p);
  schedule.p2p_channels_per_peer = static_cast<std::uint32_t>(d.channels.p2p_per_peer);
  schedule.choose = [by = Choosing{d.channels.p2p, run.tuning, run.multicast}](Op op, Bytes bytes) {
    return choose(by, op, bytes);
  };
  return schedule;
}

}  // namespace weft
