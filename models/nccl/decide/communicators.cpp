#include "models/nccl/decide/communicators.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "models/nccl/decide/write_topo.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

/// The machine as a communicator's nodes are to NCCL: of each node's GPUs only some.
Fabric with_gpus(const Fabric& fabric, const std::vector<std::uint32_t>& places,
                 std::uint32_t nodes) {
  TopologySpec spec = fabric.spec();
  std::set<std::string> gone;
  for (std::uint32_t g = 0; g < fabric.count(DeviceKind::kGpu); ++g) {
    if (std::find(places.begin(), places.end(), g) != places.end()) continue;
    gone.insert(fabric.device(fabric.device(0, DeviceKind::kGpu, g)).name);
  }
  std::erase_if(spec.node.devices, [&](const DeviceSpec& d) { return gone.contains(d.name); });
  std::erase_if(spec.node.links, [&](const PeerLinkSpec& link) {
    return gone.contains(link.a) || gone.contains(link.b);
  });
  spec.network.failed_uplinks.clear();  // NCCL sees none, and few nodes may lack those switches
  return {std::move(spec), nodes};
}

[[noreturn]] void refuse_unlike(const Fabric& fabric, const Communicator& communicator) {
  throw InputError(fmt::format(
      "{}: a communicator of {} GPUs from {} on has not the same GPUs on each of its nodes, in "
      "their order and node by node: NCCL's decisions for such are not modelled",
      fabric.spec().file, communicator.ranks(), fabric.full_name(communicator.gpu(0))));
}

/// Whether each of its GPUs is alone in its node, and two of them are at different places.
bool is_of_unlike_places(const Communicator& communicator) {
  if (communicator.node_count() != communicator.ranks()) return false;
  for (std::uint32_t rank = 1; rank < communicator.ranks(); ++rank) {
    if (communicator.place(rank) != communicator.place(0)) return true;
  }
  return false;
}

/// The places of a communicator's GPUs in each of its nodes.
std::vector<std::uint32_t> places_of(const Fabric& fabric, const Communicator& communicator) {
  const std::vector<std::vector<std::uint32_t>> by_node = communicator.ranks_by_node();
  const auto places = [&](const std::vector<std::uint32_t>& ranks) {
    std::vector<std::uint32_t> out;
    for (const std::uint32_t rank : ranks) out.push_back(communicator.place(rank));
    return out;
  };
  std::vector<std::uint32_t> first = places(by_node.front());
  std::uint32_t next = 0;
  for (const std::vector<std::uint32_t>& node : by_node) {
    bool in_order = true;
    for (const std::uint32_t rank : node) in_order = in_order && rank == next++;
    if (in_order && std::is_sorted(first.begin(), first.end()) && places(node) == first) continue;
    refuse_unlike(fabric, communicator);
  }
  return first;
}

/// A schedule for nodes 0, 1, ... of a machine with some of the GPUs, as the communicator on the
/// whole machine takes it.
Schedule placed(Schedule schedule, const Fabric& fabric, const Communicator& communicator,
                const std::vector<std::uint32_t>& places) {
  std::vector<std::uint32_t> nodes;
  for (const auto& ranks : communicator.ranks_by_node()) {
    nodes.push_back(communicator.node(ranks.front()));
  }
  const auto by_node = [&](auto& of_each) {
    auto out = of_each;
    out.assign(fabric.nodes(), 0);
    for (std::size_t n = 0; n < of_each.size(); ++n) out[nodes[n]] = of_each[n];
    of_each = std::move(out);
  };
  for (Ring& ring : schedule.rings) {
    by_node(ring.entry_nic);
    by_node(ring.exit_nic);
    if (ring.exit_proxy.empty()) continue;
    for (std::uint32_t& proxy : ring.exit_proxy) proxy = places[proxy];
    by_node(ring.exit_proxy);
  }
  for (std::uint32_t& head : schedule.nvls.places) head = places[head];
  std::vector<std::uint32_t> index(fabric.count(DeviceKind::kGpu));
  for (std::uint32_t i = 0; i < places.size(); ++i) index[places[i]] = i;
  const auto by_place = [&](auto of_each) {
    auto out = of_each;
    if (!of_each.empty()) out.assign(index.size(), {});
    for (std::size_t i = 0; i < of_each.size(); ++i) out[places[i]] = std::move(of_each[i]);
    return out;
  };
  schedule.p2p_nics = by_place(std::move(schedule.p2p_nics));
  for (auto& to_each : schedule.p2p_exits) {
    for (std::vector<P2pExit>& exits : to_each) {
      for (P2pExit& exit : exits) exit.gpu = places[exit.gpu];
    }
    to_each = by_place(std::move(to_each));
  }
  schedule.p2p_exits = by_place(std::move(schedule.p2p_exits));
  schedule.inside = [inside = schedule.inside, index](std::uint32_t from, std::uint32_t to) {
    return inside(index.at(from), index.at(to));
  };
  schedule.gdr = [gdr = schedule.gdr, index](std::uint32_t gpu, std::uint32_t nic, bool sends) {
    return gdr(index.at(gpu), nic, sends);
  };
  schedule.flushes = [flushes = schedule.flushes, index](std::uint32_t gpu, std::uint32_t nic) {
    return flushes(index.at(gpu), nic);
  };
  return schedule;
}

}  // namespace

/// Decisions for one shape of communicators.
struct CommunicatorDecisions::Decided {
  Decided(const DeviceParams& whole, const PartLibrary& parts,
          const std::vector<std::uint32_t>& places, std::uint32_t nodes)
      : fabric{with_gpus(whole.fabric(), places, nodes)},
        devices{fabric, whole.params(), parts, NodesAre::kAlike} {}
  Decided(const Decided&) = delete;
  Decided& operator=(const Decided&) = delete;

  Fabric fabric;
  DeviceParams devices;
  Schedule schedule{};
};

CommunicatorDecisions::CommunicatorDecisions(const DeviceParams& devices, const PartLibrary& parts,
                                             Asked asked)
    : devices_{&devices}, parts_{&parts}, asked_{std::move(asked)} {}
CommunicatorDecisions::~CommunicatorDecisions() = default;

const CommunicatorDecisions::Decided& CommunicatorDecisions::decide(const Key& key) {
  std::unique_ptr<Decided>& at = decided_[key];
  if (at) return *at;
  auto made = std::make_unique<Decided>(*devices_, *parts_, key.places, key.nodes);
  if (asked_.simple) {
    made->schedule = make_schedule(made->devices, key.path);
    made->schedule.p2p_nics = local_nics(made->fabric, key.places);
  } else {
    const std::vector<std::uint32_t> all = gpu_numbers_of(*devices_);
    std::vector<std::uint32_t> numbers;
    for (const std::uint32_t place : key.places) numbers.push_back(all[place]);
    const NcclRun decided = followed(decide_run(made->devices, key.path, asked_.env, asked_.version,
                                                asked_.multicast, std::move(numbers)),
                                     made->fabric);
    made->schedule = decided_schedule(made->devices, decided);
    if (key.path == MemoryPath::kGdr) add_declined(made->fabric, decided);
  }
  at = std::move(made);
  return *at;
}

void CommunicatorDecisions::add_declined(const Fabric& fabric, const NcclRun& run) {
  for (const NcclGdr& gdr : run.by_rings.declined) {
    const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, static_cast<std::size_t>(gdr.rank));
    const std::string& name = fabric.device(gpu).name;
    if (std::find(declined_.begin(), declined_.end(), name) == declined_.end()) {
      declined_.push_back(name);
    }
  }
}

/// Each rank looks for the NICs of its own GPU; all take the fewest channels of any.
Schedule CommunicatorDecisions::of_unlike_places(const Communicator& communicator,
                                                 MemoryPath path) {
  const Fabric& fabric = devices_->fabric();
  const auto by_place = std::make_shared<std::map<std::uint32_t, Schedule>>();
  for (std::uint32_t rank = 0; rank < communicator.ranks(); ++rank) {
    const std::uint32_t place = communicator.place(rank);
    if (by_place->contains(place)) continue;
    const Decided& alone = decide({{place}, communicator.node_count(), path});
    by_place->emplace(place, placed(alone.schedule, fabric, communicator, {place}));
  }
  const Schedule& first = by_place->begin()->second;
  Schedule out;
  out.p2p_nics.resize(first.p2p_nics.size());
  out.p2p_channels = first.p2p_channels;
  out.p2p_channels_per_peer = first.p2p_channels_per_peer;
  for (const auto& [place, its] : *by_place) {
    out.p2p_nics[place] = its.p2p_nics[place];
    out.p2p_channels = std::min(out.p2p_channels, its.p2p_channels);
    out.p2p_channels_per_peer = std::min(out.p2p_channels_per_peer, its.p2p_channels_per_peer);
  }
  out.choose = [&fabric, communicator, choose = first.choose](Op op, Bytes bytes) {
    if (!is_point_to_point(op)) refuse_unlike(fabric, communicator);
    return choose(op, bytes);
  };
  out.gdr = [by_place](std::uint32_t gpu, std::uint32_t nic, bool sends) {
    return by_place->at(gpu).gdr(gpu, nic, sends);
  };
  out.flushes = [by_place](std::uint32_t gpu, std::uint32_t nic) {
    return by_place->at(gpu).flushes(gpu, nic);
  };
  return out;
}

Schedule CommunicatorDecisions::schedule(const Communicator& communicator, MemoryPath path) {
  if (is_of_unlike_places(communicator)) return of_unlike_places(communicator, path);
  const Fabric& fabric = devices_->fabric();
  const std::vector<std::uint32_t> places = places_of(fabric, communicator);
  const Decided& decided = decide({places, communicator.node_count(), path});
  return placed(decided.schedule, fabric, communicator, places);
}

const Schedule& CommunicatorDecisions::schedule_of(const Communicator& like, std::uint32_t nodes,
                                                   MemoryPath path) {
  return decide({places_of(devices_->fabric(), like), nodes, path}).schedule;
}

}  // namespace weft
