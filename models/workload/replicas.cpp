#include "models/workload/replicas.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

#include "models/workload/step_limits.hpp"
#include "models/workload/training.hpp"

namespace weft {

std::optional<std::uint32_t> Replicas::filling_nodes(const StepSpec& step, const Fabric& fabric) {
  const auto gpus = static_cast<std::uint32_t>(fabric.count(DeviceKind::kGpu));
  const std::uint32_t stride = stride_of(step, Parallel::kData);
  const std::uint32_t in_one_node = gpus / std::gcd(stride, gpus);
  if (stride % gpus != 0 && gpus % stride != 0) return {};
  if (step.degree(Parallel::kData) % in_one_node != 0) return {};
  return in_one_node;
}

std::unique_ptr<Replicas> Replicas::few(std::uint32_t replicas, const StepSpec& step,
                                        const Machine& cluster, const PartLibrary& parts,
                                        const CommunicatorDecisions::Asked& asked,
                                        std::optional<SampleNetwork> network) {
  StepSpec fewer = step;
  fewer.degrees[static_cast<std::size_t>(Parallel::kData)] = replicas;
  const auto nodes =
      static_cast<std::uint32_t>(fewer.ranks() / cluster.fabric().count(DeviceKind::kGpu));
  return std::unique_ptr<Replicas>(new Replicas(std::move(fewer), step.degree(Parallel::kData),
                                                nodes, cluster, parts, network, asked));
}

std::unique_ptr<Replicas> Replicas::of(const StepSpec& step, const Machine& cluster,
                                       const PartLibrary& parts,
                                       const CommunicatorDecisions::Asked& asked) {
  const std::optional<std::uint32_t> in_one_node = filling_nodes(step, cluster.fabric());
  const std::uint32_t all = step.degree(Parallel::kData);
  if (!in_one_node || kSampled * *in_one_node >= all) return nullptr;
  const std::uint32_t replicas = kSampled * *in_one_node;
  if (!may_be_sampled(Op::kAllReduce, cluster)) return nullptr;
  if (!cluster.devices().unlike_nodes().empty()) return nullptr;  // some replica has it
  const auto on = [&](std::uint32_t of_all, std::optional<SampleNetwork> network) {
    return few(of_all, step, cluster, parts, asked, network);
  };
  if (cluster.has_one_switch()) return on(replicas, {});
  if (cluster.network_never_blocks()) {
    const std::optional<Duration> takes = farthest_nics(cluster, cabled_pairs(cluster));
    if (!takes) return nullptr;
    return on(replicas, SampleNetwork{*takes, *takes});
  }
  if (!cluster.network_spreads()) return nullptr;
  const NetworkSpec& network = cluster.fabric().spec().network;
  // A ring's hops there are unlike in an order that fewer groups have not.
  if (network.kind == NetworkSpec::Kind::kDragonflyPlus) return nullptr;
  // Few nodes may lack those leaves, and more of what they send would pass by them.
  if (!network.failed_uplinks.empty()) return nullptr;
  const std::optional<StepLimits> limits = step_limits(cluster, step);
  if (!limits) return nullptr;
  constexpr std::uint32_t kMost = 8;  // times as many
  for (std::uint32_t times = 1; times <= kMost && times * replicas < all; ++times) {
    std::unique_ptr<Replicas> out = on(times * replicas, {});
    const std::optional<StepLimits> here = step_limits(out->machine(), out->step());
    if (here && hold_up_alike(*limits, *here)) return out;
  }
  return nullptr;
}

Replicas::Replicas(StepSpec step, std::uint32_t stand_for, std::uint32_t nodes,
                   const Machine& cluster, const PartLibrary& parts,
                   std::optional<SampleNetwork> network, const CommunicatorDecisions::Asked& asked)
    : step_{std::move(step)},
      stand_for_{stand_for},
      may_block_{!cluster.network_never_blocks()},
      sample_{nodes, cluster.fabric().nodes(), cluster, parts, network},
      decisions_{sample_.devices, parts, asked} {}

std::string Replicas::in_cluster(const std::string& text) const {
  const auto gpus = static_cast<std::uint32_t>(sample_.fabric.count(DeviceKind::kGpu));
  const std::uint32_t stride = stride_of(step_, Parallel::kData);
  const std::uint32_t block = stride * step_.degree(Parallel::kData);
  const auto node_in_cluster = [&](std::uint32_t node) {
    const std::uint32_t rank = node * gpus;
    return (rank % block + rank / block * stride * stand_for_) / gpus;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    out += text[i];
    if (text[i++] != '@') continue;
    std::uint32_t node = 0;
    const auto [end, error] = std::from_chars(&text[i], text.data() + text.size(), node);
    if (error != std::errc{}) continue;
    out += std::to_string(node_in_cluster(node));
    i = static_cast<std::size_t>(end - text.data());
  }
  return out;
}

bool Replicas::joins_replicas(std::string_view group) {
  return group == kDataGroup || group == kExpertDataGroup;
}

bool Replicas::stand_for_all(const TaskGraph& graph, CommunicatorDecisions& cluster,
                             MemoryPath path) {
  return std::ranges::all_of(graph.exchanges, [&](const Exchange& exchange) {
    const TaskGroup& group = graph.groups[exchange.group];
    if (!joins_replicas(group.name)) return true;
    const Communicator here = communicator_of(sample_.fabric, group);
    const Schedule& all = cluster.schedule_of(here, nodes_of_all(here), path);
    const Choice choice = all.choose(exchange.op, exchange.bytes);
    if (may_block_ && choice.algorithm == Algorithm::kPat) return false;
    return stands_for(decisions_.schedule_of(here, here.node_count(), path), all, exchange.op,
                      choice);
  });
}

GroupSchedules Replicas::schedules(CommunicatorDecisions& cluster, MemoryPath path) {
  return [this, &cluster, path](const TaskGroup& group, const Communicator& communicator) {
    Schedule out = decisions_.schedule(communicator, path);
    if (joins_replicas(group.name)) {
      out.nodes = nodes_of_all(communicator);
      out.choose = cluster.schedule_of(communicator, out.nodes, path).choose;
    }
    return out;
  };
}

}  // namespace weft
