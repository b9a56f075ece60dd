#include "models/nccl/execute/plan_builder.hpp"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

Leg read(DeviceId initiator, DeviceId from) {
  return {Leg::Kind::kRead, Leg::Medium::kPcie, initiator, from, initiator};
}

Leg write(DeviceId initiator, DeviceId to, Leg::Medium medium = Leg::Medium::kPcie) {
  return {Leg::Kind::kWrite, medium, initiator, initiator, to};
}

Leg message(DeviceId from, DeviceId to, std::uint32_t connection) {
  return {Leg::Kind::kMessage, Leg::Medium::kWire, from, from, to, connection};
}

}  // namespace

PlanBuilder::PlanBuilder(DeviceParams& devices, MemoryPath path, Op op, Bytes bytes,
                         const Choice& choice)
    : devices_{&devices},
      path_{path},
      gpus_{static_cast<std::uint32_t>(devices.fabric().count(DeviceKind::kGpu))} {
  const Fabric& fabric = devices.fabric();
  plan_.op = op_name(op);
  plan_.algo = algorithm_name(choice.algorithm);
  plan_.ranks = gpus_ * fabric.nodes();
  plan_.channels = choice.channels;
  plan_.bytes = bytes;
  for (std::uint32_t r = 0; r < plan_.ranks; ++r) {
    plan_.gpu_of_rank.push_back(fabric.device(r / gpus_, DeviceKind::kGpu, r % gpus_));
  }
}

Plan PlanBuilder::take(const Protocol& protocol) && {
  plan_.proto = protocol.name;
  plan_.start = {"launch of the collective", protocol.launch};
  return std::move(plan_);
}

ConnectionIndex PlanBuilder::connect(const Protocol& protocol, Endpoint from, Endpoint to,
                                     std::uint32_t channel) {
  Connection c;
  c.from = from.rank;
  c.to = to.rank;
  c.channel = channel;
  if (same_node(from.rank, to.rank)) {
    connect_inside(c, protocol, plan_.gpu_of_rank[from.rank], plan_.gpu_of_rank[to.rank]);
  } else {
    connect_nodes(c, protocol, from, to);
  }
  plan_.connections.push_back(c);
  return static_cast<ConnectionIndex>(plan_.connections.size() - 1);
}

void PlanBuilder::connect_inside(Connection& connection, const Protocol& protocol, DeviceId from,
                                 DeviceId to) {
  const Fabric& fabric = devices_->fabric();
  connection.handover = handover(protocol, std::nullopt, from);
  if (fabric.nvlink_route(from, to)) {
    connection.push = plan_.walks.add({write(from, to, Leg::Medium::kNvlink)});
    return;
  }
  if (!fabric.pcie_route(from, to)) {
    throw InputError(fabric.spec().file + ": no path between " + fabric.full_name(from) + " and " +
                     fabric.full_name(to) + ": neither NVLink nor PCIe joins them");
  }
  if (fabric.path_label(from, to).path_class <= PathClass::kPxb) {
    connection.push = plan_.walks.add({write(from, to)});
    return;
  }
  const DeviceId memory = fabric.root_cpu(from);
  connection.push = plan_.walks.add({write(from, memory)});
  connection.pull = plan_.walks.add({read(to, memory)});
}

void PlanBuilder::connect_nodes(Connection& connection, const Protocol& protocol, Endpoint from,
                                Endpoint to) {
  const Fabric& fabric = devices_->fabric();
  const DeviceId from_gpu = plan_.gpu_of_rank[from.rank];
  const DeviceId to_gpu = plan_.gpu_of_rank[to.rank];
  const DeviceId from_nic = fabric.device(from.rank / gpus_, DeviceKind::kNic, from.nic);
  const DeviceId to_nic = fabric.device(to.rank / gpus_, DeviceKind::kNic, to.nic);
  if (!fabric.wire_route(from_nic, to_nic)) {
    throw InputError(fabric.spec().file + ": no network joins " + fabric.full_name(from_nic) +
                     " and " + fabric.full_name(to_nic));
  }
  const bool staged = path_ == MemoryPath::kHostStaged;
  // LL sends leave from host memory even with GDR: the proxy polls the flags in the data
  // (NCCL src/transport/net.cc).
  const bool send_from_host = staged || protocol.name == "LL";
  const DeviceId near_nic = plan_.gpu_of_rank[from.proxy.value_or(from.rank)];
  const DeviceId from_memory = send_from_host ? fabric.root_cpu(near_nic) : near_nic;
  const DeviceId to_memory = staged ? fabric.root_cpu(to_gpu) : to_gpu;
  connection.handover = handover(protocol, to_nic, from_gpu);
  if (send_from_host) {
    connection.push = plan_.walks.add({write(from_gpu, from_memory)});
  } else if (near_nic != from_gpu) {
    connection.push = plan_.walks.add({write(from_gpu, near_nic, Leg::Medium::kNvlink)});
  }
  // Each channel between two GPUs has queue pairs of its own.
  const std::uint32_t number =
      (connection.channel * gpus_ + from.rank % gpus_) * gpus_ + to.rank % gpus_;
  connection.carry = plan_.walks.add(
      {read(from_nic, from_memory), message(from_nic, to_nic, number), write(to_nic, to_memory)});
  if (staged) connection.pull = plan_.walks.add({read(to_gpu, to_memory)});
}

/// Inside a node the credit comes back as the data went, a flag that the other side writes; over
/// the network a proxy at each end has its part.
std::uint32_t PlanBuilder::handover(const Protocol& protocol, std::optional<DeviceId> to_nic,
                                    DeviceId from) {
  const DeviceId device = to_nic.value_or(from);
  const auto [at, is_new] = handovers_.try_emplace(
      {to_nic.has_value(), protocol.name, device.index() % devices_->fabric().devices_per_node()},
      static_cast<std::uint32_t>(plan_.handovers.size()));
  if (!is_new) return at->second;
  Handover h;
  h.slots = protocol.slots;
  if (to_nic) {
    const Duration poll = devices_->params().duration("nccl.proxy_poll");
    const Duration completion = devices_->duration("nic.completion_latency", *to_nic);
    h.after_push = {"proxy posts the send", protocol.sync + poll};
    h.after_carry = {"proxy sees the completion", completion + poll + protocol.net_extra};
    h.credit = {"FIFO slot freed", completion + poll};
  } else {
    h.after_push = {"kernel hands slice over", protocol.sync};
    h.credit = {"FIFO slot freed", devices_->duration("gpu.nvlink_latency", from)};
  }
  plan_.handovers.push_back(std::move(h));
  return at->second;
}

Program& PlanBuilder::add_program(std::uint32_t rank, std::uint32_t channel,
                                  std::uint32_t threads) {
  const DeviceId gpu = plan_.gpu_of_rank[rank];
  Program program;
  program.rank = rank;
  program.channel = channel;
  program.threads = threads;
  program.local = plan_.walks.add({{Leg::Kind::kCopy, Leg::Medium::kLocal, gpu, gpu, gpu}});
  plan_.programs.push_back(std::move(program));
  return plan_.programs.back();
}

Step PlanBuilder::step(const Protocol& protocol, Bytes data, ConnectionList in,
                       ConnectionList out) {
  const auto on_wire = [&](Bytes bytes) {
    return Bytes{std::llround(std::ceil(bytes.as_double() / protocol.data_fraction))};
  };
  const Bytes slice = std::max(Bytes{pieces(data, Bytes{protocol.slices})}, protocol.min_slice);
  return {in, out, on_wire(data), std::max(on_wire(slice), Bytes{1}), 1};
}

}  // namespace weft
