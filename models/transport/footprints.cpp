#include "models/transport/footprints.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <stdexcept>

#include "models/transport/contraction.hpp"
#include "sim/base/random.hpp"

namespace weft {
namespace {

std::uint64_t digest(const std::vector<LatencyPart>& parts) {
  std::uint64_t out = parts.size();
  for (const LatencyPart& part : parts) {
    out = combined(out, fnv1a(part.cause.kind));
    out = combined(out, static_cast<std::uint64_t>(part.time.count_ps()));
  }
  return out;
}

std::uint64_t digest(Duration time) { return static_cast<std::uint64_t>(time.count_ps()); }

/// The row of SMs, or of what holds their loads, in which a server is the first of a walk's mover.
std::optional<std::uint32_t> row_of_mover(const Machine& machine, const Walk& walk,
                                          ServerId server) {
  for (const Leg& leg : walk) {
    const auto& blocks = machine.model(leg.initiator).blocks;
    if (!blocks) continue;
    const bool is_own = server == sm_of(machine, leg.initiator, 0) ||
                        server == sm_loads_of(machine, leg.initiator, 0);
    if (is_own) return blocks->sms;
  }
  return std::nullopt;
}

Footprint footprint(const Machine& machine, const Walk& walk) {
  const Contraction contraction = contract(machine, walk);
  if (contraction.flush) throw std::logic_error("fold: copies of a copy engine");
  Footprint out;
  for (const ServerUse& use : contraction.uses) {
    if (const auto row = row_of_mover(machine, walk, use.server)) {
      out.own.push_back({use.server.value, *row, use.weight});
    } else {
      out.uses.push_back({use.server.value, use.weight});
    }
  }
  out.alone = combined(digest(contraction.head), digest(contraction.tail));
  out.alone = combined(out.alone, std::bit_cast<std::uint64_t>(contraction.share));
  if (contraction.cap) {
    out.alone = combined(out.alone, fnv1a(contraction.cap->cause.kind));
    out.alone =
        combined(out.alone, std::bit_cast<std::uint64_t>(contraction.cap->rate.as_bytes_per_s()));
  }
  return out;
}

/// A walk, as if the nodes that it meets were the first.
struct OnFirstNodes {
  Walk walk;
  std::vector<std::uint32_t> nodes;  ///< that it meets, in this order
};

/// None if it matters which nodes they are: where some are not like the others, or it leaves one
/// through a network of several switches.
std::optional<OnFirstNodes> on_first_nodes(const Machine& machine, std::span<const Leg> walk) {
  if (machine.has_unlike_nodes()) return std::nullopt;
  const Fabric& fabric = machine.fabric();
  OnFirstNodes out{{walk.begin(), walk.end()}, {}};
  const auto move = [&](DeviceId& device) {
    const std::size_t devices = fabric.devices_per_node();
    const auto node = static_cast<std::uint32_t>(device.index() / devices);
    const auto at = std::ranges::find(out.nodes, node) - out.nodes.begin();
    if (at == std::ssize(out.nodes)) out.nodes.push_back(node);
    device = DeviceId{static_cast<std::size_t>(at) * devices + device.index() % devices};
  };
  for (Leg& leg : out.walk) {
    if (leg.medium == Leg::Medium::kWire) {
      if (!machine.has_one_switch()) return std::nullopt;
      leg.connection = 0;  // there is one route only
    }
    move(leg.initiator);
    move(leg.source);
    move(leg.sink);
  }
  return out;
}

}  // namespace

std::uint64_t MachineFootprints::kind(std::uint32_t server) const {
  const ServerId id{server};
  return combined(combined(static_cast<std::uint64_t>(machine_->unit(id)),
                           std::bit_cast<std::uint64_t>(machine_->capacity(id))),
                  fnv1a(machine_->cause(id).kind));
}

bool MachineFootprints::connections_differ() const {
  return !machine_->has_one_switch() && !machine_->routing().spread();
}

Footprint MachineFootprints::of_walk(std::span<const Leg> walk) const {
  const std::optional<OnFirstNodes> alike = on_first_nodes(*machine_, walk);
  if (!alike) return footprint(*machine_, {walk.begin(), walk.end()});
  const WalkIndex index = walks_.add(alike->walk);
  if (index >= known_.size()) known_.resize(index + 1);
  if (!known_[index]) known_[index] = footprint(*machine_, alike->walk);
  Footprint out = *known_[index];
  const auto move = [&](std::uint32_t& server) {
    server = machine_->on_node_of(ServerId{server}, alike->nodes).value;
  };
  for (Footprint::Use& use : out.uses) move(use.server);
  for (Footprint::Own& own : out.own) move(own.first);
  return out;
}

Footprint MachineFootprints::of_queue_pair(const QueuePair& q) const {
  Footprint out;
  const auto add = [&](bool is_read) {
    const Footprint data = of_walk(data_walk(q, is_read));
    out.uses.insert(out.uses.end(), data.uses.begin(), data.uses.end());
    out.alone = combined(out.alone, data.alone);
  };
  if (q.writes || q.sends) add(false);
  if (q.reads) add(true);
  for (const bool back : {false, true}) {
    out.alone = combined(out.alone, of_walk(std::array{message_leg(q, back)}).alone);
  }
  for (const DeviceId nic : {q.nic, q.peer_nic}) {
    const Adapter& adapter = *machine_->model(nic).adapter;
    out.alone = combined(out.alone, digest(adapter.completion_latency));
    out.alone = combined(out.alone, digest(adapter.qp_wqe_time));
    out.alone = combined(out.alone, static_cast<std::uint64_t>(adapter.send_buffer.count()));
  }
  if (const std::optional<ServerId> doorbells = machine_->doorbells_of(q.nic)) {
    out.in_turn.push_back(doorbells->value);
  }
  out.in_turn.push_back(machine_->elements_of(q.nic).value);
  return out;
}

std::optional<Folded> fold_on(const Machine& machine, const Plan& plan, const Stop* stop) {
  if (machine.has_emulated_nics()) return std::nullopt;
  return fold(plan, MachineFootprints(machine), stop);
}

std::optional<FoldedPlans> fold_on(const Machine& machine, std::span<const Plan> plans,
                                   const Stop* stop) {
  if (machine.has_emulated_nics()) return std::nullopt;
  return fold(plans, MachineFootprints(machine), stop);
}

}  // namespace weft
