#include "models/copies/plan.hpp"

#include <algorithm>

#include "models/transport/contraction.hpp"
#include "models/transport/copier.hpp"

namespace weft {
namespace {

constexpr std::int64_t kBlockThreads = 512;
constexpr std::int64_t kAccess = 16;  ///< bytes that a thread has in flight
constexpr Bytes kStride{kBlockThreads * kAccess};

/// As many threads of NCCL's loop as keep in flight what these do.
std::uint16_t threads_of_loop(const ThreadBlocks& blocks) {
  const std::int64_t threads = kStride.count() / blocks.bytes_per_thread.count();
  return static_cast<std::uint16_t>(std::clamp<std::int64_t>(threads, 1, UINT16_MAX));
}

Walk kernel_walk(const Machine& machine, const CopyOrder& order) {
  const auto [from, to, gpu] = order.pair;
  Leg load = read_leg(gpu, from, Leg::Medium::kLocal);
  Leg store = write_leg(gpu, to, Leg::Medium::kLocal);
  Leg& beyond = gpu == from ? store : load;
  beyond.medium = copy_medium(machine.fabric(), from, to);
  load.threads = store.threads = threads_of_loop(*machine.model(gpu).blocks);
  if (is_far_load(load)) {  // 16 B a thread, as where a word's flag is waited for
    load.flags = Leg::Flags::kEachWord;
    load.threads = kBlockThreads;
  }
  if (!order.uses_own_memory) return {beyond};
  return {load, store};
}

void add_engine(Plan& plan, const Machine& machine, const CopyOrder& order) {
  const auto [from, to, gpu] = order.pair;
  const Leg leg = copy_leg(gpu, from, to, copy_medium(machine.fabric(), from, to));
  plan.actors.push_back(copy_engine(leg));
  Program p;
  const WalkIndex walk = plan.walks.add({leg});
  p.repeat(order.times, [&] { p.move(walk, order.bytes); });
  plan.programs.push_back(std::move(p));
}

/// A block ends when its last stores are visible.
void add_blocks(Plan& plan, const Machine& machine, const CopyOrder& order) {
  const WalkIndex walk = plan.walks.add(kernel_walk(machine, order));
  const std::int64_t blocks = std::min<std::int64_t>(order.blocks, pieces(order.bytes, kStride));
  const std::int64_t part = pieces(order.bytes, Bytes{blocks});
  for (std::int64_t at = 0; at < order.bytes.count(); at += part) {
    const Bytes bytes{std::min(part, order.bytes.count() - at)};
    const auto number = static_cast<std::uint32_t>(plan.actors.size());
    plan.actors.push_back({Actor::Kind::kThreadBlock, order.pair.gpu, order.first_block + number});
    plan.flags.push_back({});
    Program p;
    p.actor = number;
    p.repeat(order.times - 1, [&] { p.move(walk, bytes); });
    p.move(walk, bytes);
    p.raise(number);
    p.wait(number);
    plan.programs.push_back(std::move(p));
  }
}

}  // namespace

Leg::Medium copy_medium(const Fabric& fabric, DeviceId from, DeviceId to) {
  const auto is_gpu = [&](DeviceId id) { return fabric.device(id).kind == DeviceKind::kGpu; };
  return is_gpu(from) && is_gpu(to) && fabric.nvlink_route(from, to) ? Leg::Medium::kNvlink
                                                                     : Leg::Medium::kPcie;
}

Plan copy_plan(const Machine& machine, const CopyOrder& order) {
  Plan plan;
  plan.op = "copy";
  plan.bytes = order.bytes;
  if (order.by == CopyBy::kEngine) {
    add_engine(plan, machine, order);
  } else {
    add_blocks(plan, machine, order);
  }
  return plan;
}

}  // namespace weft
