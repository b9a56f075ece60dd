#include "models/nccl/ring_plan.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/nccl/ring.hpp"

namespace weft {
namespace {

Leg read(DeviceId initiator, DeviceId from) {
  return {Leg::Kind::kRead, Leg::Medium::kPcie, initiator, from, initiator};
}

Leg write(DeviceId initiator, DeviceId to, Leg::Medium medium = Leg::Medium::kPcie) {
  return {Leg::Kind::kWrite, medium, initiator, initiator, to};
}

Leg message(DeviceId from, DeviceId to) {
  return {Leg::Kind::kMessage, Leg::Medium::kWire, from, from, to};
}

/// What all connections of one plan share.
struct PlanContext {
  DeviceParams& devices;
  Protocol protocol;
  MemoryPath path;
};

/// Two GPUs of one node. The credit comes back as the data went: a flag the other side writes.
Connection local_connection(const PlanContext& context, DeviceId from, DeviceId to) {
  const Fabric& fabric = context.devices.fabric();
  Connection c;
  c.slots = context.protocol.slots;
  c.after_push = {"kernel hands slice over", context.protocol.sync};
  c.credit = {"FIFO slot freed", context.devices.duration("gpu.nvlink_latency", from)};
  if (fabric.nvlink_route(from, to)) {
    c.push = {write(from, to, Leg::Medium::kNvlink)};
    return c;
  }
  if (!fabric.pcie_route(from, to)) {
    throw InputError(fabric.spec().file + ": no path between " + fabric.full_name(from) + " and " +
                     fabric.full_name(to) + ": neither NVLink nor PCIe joins them");
  }
  if (fabric.path_label(from, to).path_class <= PathClass::kPxb) {
    c.push = {write(from, to)};
    return c;
  }
  const DeviceId memory = fabric.root_cpu(from);
  c.push = {write(from, memory)};
  c.pull = {read(to, memory)};
  return c;
}

/// Two GPUs of two nodes, by way of a NIC of each.
Connection network_connection(const PlanContext& context, DeviceId from, DeviceId from_nic,
                              DeviceId to_nic, DeviceId to) {
  const Fabric& fabric = context.devices.fabric();
  Params& params = context.devices.params();
  if (!fabric.wire_route(from_nic, to_nic)) {
    throw InputError(fabric.spec().file + ": no network joins " + fabric.full_name(from_nic) +
                     " and " + fabric.full_name(to_nic));
  }
  const bool staged = context.path == MemoryPath::kHostStaged;
  // LL sends leave from host memory even with GDR: the proxy polls the flags in the data
  // (NCCL src/transport/net.cc).
  const bool send_from_host = staged || context.protocol.name == "LL";
  const DeviceId from_memory = send_from_host ? fabric.root_cpu(from) : from;
  const DeviceId to_memory = staged ? fabric.root_cpu(to) : to;

  Connection c;
  c.slots = context.protocol.slots;
  if (send_from_host) c.push = {write(from, from_memory)};
  c.carry = Walk{read(from_nic, from_memory), message(from_nic, to_nic), write(to_nic, to_memory)};
  if (staged) c.pull = {read(to, to_memory)};
  const Duration poll = params.duration("nccl.proxy_poll");
  const Duration completion = context.devices.duration("nic.completion_latency", to_nic);
  c.after_push = {"proxy posts the send", context.protocol.sync + poll};
  c.after_carry = {"proxy sees the completion", completion + poll + context.protocol.net_extra};
  c.credit = {"FIFO slot freed", completion + poll};
  return c;
}

/// What one rank does on its channel: loops of full chunks, then one of what is left.
std::vector<Loop> ring_loops(const Protocol& protocol, Bytes channel_bytes, std::uint32_t ranks,
                             ConnectionIndex in, ConnectionIndex out) {
  constexpr std::int64_t kAlign = 8;
  const auto on_wire = [&](Bytes data) {
    return Bytes{std::llround(std::ceil(data.as_double() / protocol.data_fraction))};
  };
  const auto body = [&](Bytes chunk) {
    const Bytes data_slice =
        std::max(Bytes{pieces(chunk, Bytes{protocol.slices})}, protocol.min_slice);
    const Bytes bytes = on_wire(chunk);
    const Bytes slice = std::max(on_wire(data_slice), Bytes{1});
    return std::vector<Step>{{std::nullopt, out, bytes, slice, 1},
                             {in, out, bytes, slice, 2 * ranks - 3},
                             {in, std::nullopt, bytes, slice, 1}};
  };
  const Bytes loop = protocol.chunk * ranks;
  const std::int64_t full = channel_bytes.count() / loop.count();
  const Bytes rest = channel_bytes - loop * full;
  std::vector<Loop> loops;
  if (full > 0) loops.push_back({static_cast<std::uint64_t>(full), body(protocol.chunk)});
  if (rest > Bytes{0} || full == 0) {
    const Bytes chunk{pieces(Bytes{pieces(rest, Bytes{ranks})}, Bytes{kAlign}) * kAlign};
    loops.push_back({1, body(chunk)});
  }
  return loops;
}

void add_channel(Plan& plan, const PlanContext& context, const Ring& ring, std::uint32_t channel,
                 Bytes channel_bytes) {
  const Fabric& fabric = context.devices.fabric();
  const auto n = static_cast<std::uint32_t>(ring.order.size());
  const auto first = static_cast<ConnectionIndex>(plan.connections.size());
  for (std::uint32_t i = 0; i < n; ++i) {  // connection first + i joins position i to i + 1
    const std::uint32_t from_rank = ring.order[i];
    const std::uint32_t to_rank = ring.order[(i + 1) % n];
    const DeviceId from = plan.gpu_of_rank[from_rank];
    const DeviceId to = plan.gpu_of_rank[to_rank];
    const std::uint32_t from_node = *fabric.node_of(from);
    const std::uint32_t to_node = *fabric.node_of(to);
    Connection c = from_node == to_node
                       ? local_connection(context, from, to)
                       : network_connection(
                             context, from,
                             fabric.device(from_node, DeviceKind::kNic, ring.exit_nic[from_node]),
                             fabric.device(to_node, DeviceKind::kNic, ring.entry_nic[to_node]), to);
    c.from = from_rank;
    c.to = to_rank;
    c.channel = channel;
    plan.connections.push_back(std::move(c));
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    const DeviceId gpu = plan.gpu_of_rank[ring.order[i]];
    Program program;
    program.rank = ring.order[i];
    program.channel = channel;
    program.local = {{Leg::Kind::kCopy, Leg::Medium::kLocal, gpu, gpu, gpu}};
    program.start = {"launch of the collective", context.protocol.launch};
    program.loops =
        ring_loops(context.protocol, channel_bytes, n, first + (i + n - 1) % n, first + i);
    plan.programs.push_back(std::move(program));
  }
}

}  // namespace

std::string_view memory_path_name(MemoryPath path) {
  return path == MemoryPath::kGdr ? "gdr" : "host-staged";
}

MemoryPath parse_memory_path(std::string_view text) {
  if (text == "gdr") return MemoryPath::kGdr;
  if (text == "host-staged") return MemoryPath::kHostStaged;
  throw InputError("no memory path '" + std::string(text) + "'; known: gdr, host-staged");
}

std::uint32_t channel_count(DeviceParams& devices, const Protocol& protocol, Bytes bytes) {
  const Fabric& fabric = devices.fabric();
  Params& params = devices.params();
  double channels = params.number("nccl.channels");
  if (channels == 0) {
    channels = fabric.nodes() > 1 ? params.number("nccl.channels_per_nic") *
                                        static_cast<double>(fabric.count(DeviceKind::kNic))
                                  : params.number("nccl.local_channels");
  }
  auto count = std::clamp<std::int64_t>(std::llround(channels), 1, 64);  // NCCL's MAXCHANNELS
  const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, 0);
  const auto threads = std::llround(devices.number("gpu.block_threads", gpu));
  while (count > 1 && bytes.count() < count * threads * protocol.bytes_per_thread) --count;
  return static_cast<std::uint32_t>(count);
}

Plan ring_all_reduce(DeviceParams& devices, Bytes bytes, MemoryPath path) {
  const Fabric& fabric = devices.fabric();
  const std::size_t gpus = fabric.count(DeviceKind::kGpu);
  const auto ranks = static_cast<std::uint32_t>(gpus * fabric.nodes());
  if (ranks < 2) throw InputError(fabric.spec().file + ": an all-reduce needs at least 2 GPUs");
  if (fabric.nodes() > 1 && fabric.count(DeviceKind::kNic) == 0) {
    throw InputError(fabric.spec().file + ": " + std::to_string(fabric.nodes()) +
                     " nodes but no NIC to join them; use one node or add NICs");
  }
  const std::string_view name =
      choose_protocol(devices.params(), bytes, path == MemoryPath::kHostStaged);
  const PlanContext context{devices, make_protocol(devices.params(), name, ranks), path};

  Plan plan;
  plan.op = "allreduce";
  plan.algo = devices.params().choice("nccl.algo");
  plan.proto = name;
  plan.ranks = ranks;
  plan.channels = channel_count(devices, context.protocol, bytes);
  plan.bytes = bytes;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    plan.gpu_of_rank.push_back(
        fabric.device(static_cast<std::uint32_t>(r / gpus), DeviceKind::kGpu, r % gpus));
  }
  const std::vector<Ring> rings = make_rings(fabric, plan.channels);
  const Bytes per_channel{pieces(bytes, Bytes{plan.channels})};
  for (std::uint32_t c = 0; c < plan.channels; ++c) {
    add_channel(plan, context, rings[c], c, per_channel);
  }
  return plan;
}

}  // namespace weft
