#include <algorithm>
#include <cmath>
#include <utility>

#include "models/perftest/plan_builder.hpp"

namespace weft {
namespace {

constexpr Bytes kFreed{8};

class StagedBuilder : private PlanBuilder {
 public:
  StagedBuilder(const Machine& machine, const PerftestTask& task)
      : PlanBuilder{machine, task},
        from_cpu_{machine.fabric().root_cpu(task.ends.from)},
        to_cpu_{machine.fabric().root_cpu(task.ends.to)},
        chunk_{std::min(task.size, machine.devices().params().bytes("staging.chunk"))},
        chunks_{static_cast<std::uint64_t>(pieces(task.size, chunk_))},
        buffers_{static_cast<std::uint64_t>(
            std::llround(machine.devices().params().number("staging.buffers")))} {}

  MeteredPlan build() && {
    for (std::uint32_t i = 0; i < task_.qps; ++i) add_flag();
    free_ = add_flag(buffers_);
    begun_ = add_flag();
    arrived_ = add_flag();
    for (std::uint32_t i = 0; i < task_.qps; ++i) add_queue_pairs(i);
    const ActorIndex sender = add_actor(Actor::Kind::kHostThread, from_cpu_);
    const ActorIndex receiver = add_actor(Actor::Kind::kHostThread, to_cpu_);
    add_sender(sender, add_copies_out());
    add_receiver(receiver, add_copies_in());
    return {.plan = std::move(plan_), .receiver = receiver, .parts = chunks_, .begun = begun_};
  }

 private:
  static QueuePairIndex there(std::uint32_t i) { return 2 * i; }
  static QueuePairIndex back(std::uint32_t i) { return 2 * i + 1; }

  /// One for chunks, each behind the last in its part of the buffers, and one for what frees them.
  void add_queue_pairs(std::uint32_t i) {
    const PerftestEnds& ends = task_.ends;
    QueuePair q;
    q.nic = ends.from_nic;
    q.peer_nic = ends.to_nic;
    q.memory = from_cpu_;
    q.peer_memory = to_cpu_;
    q.number = i;
    q.writes = true;
    q.span = static_cast<std::uint64_t>(chunk_.count()) * ((buffers_ + task_.qps - 1) / task_.qps);
    q.address = task_.offset + i * q.span;
    q.receive_cq = arrived_;
    q.receive_lag = add_lag("poll", adapter(q.peer_nic).poll_time);
    plan_.queue_pairs.push_back(q);
    std::swap(q.nic, q.peer_nic);
    std::swap(q.memory, q.peer_memory);
    q.span = 0;
    q.receive_cq = free_;
    q.receive_lag = add_lag("poll", adapter(q.peer_nic).poll_time);
    plan_.queue_pairs.push_back(q);
  }

  /// `add(bytes)` for each chunk of all messages.
  template <class Add>
  void for_each_chunk(Program& program, Add&& add) {
    program.repeat(task_.messages(), [&] {
      program.repeat(chunks_ - 1, [&] { add(chunk_); });
      add(task_.size - chunk_ * static_cast<std::int64_t>(chunks_ - 1));
    });
  }
  /// `add(i)` for each chunk's queue pair: they take turns.
  template <class Add>
  void for_each_turn(Program& program, Add&& add) {
    program.repeat(task_.iterations * chunks_, [&] {
      for (std::uint32_t i = 0; i < task_.qps; ++i) add(i);
    });
  }

  /// The flag of chunks that have come to the host.
  FlagIndex add_copies_out() {
    const FlagIndex copied = add_flag();
    const LagIndex poll = add_lag("poll", adapter(task_.ends.from_nic).poll_time);
    const DeviceId gpu = task_.ends.from;
    Leg leg{Leg::Kind::kWrite, Leg::Medium::kPcie, gpu, gpu, from_cpu_};
    leg.by_copy_engine = true;
    const WalkIndex walk = plan_.walks.add({leg});
    Program p;
    p.actor = add_actor(Actor::Kind::kCopyEngine, gpu, 0);
    for_each_chunk(p, [&](Bytes bytes) {
      p.wait(free_);
      p.signal(begun_);
      p.move(walk, bytes);
      p.raise(copied, poll);
    });
    plan_.programs.push_back(std::move(p));
    return copied;
  }
  /// The flag of chunks that have come to the other GPU.
  FlagIndex add_copies_in() {
    const FlagIndex copied = add_flag();
    const LagIndex poll = add_lag("poll", adapter(task_.ends.to_nic).poll_time);
    const DeviceId gpu = task_.ends.to;
    Leg leg{Leg::Kind::kRead, Leg::Medium::kPcie, gpu, to_cpu_, gpu};
    leg.by_copy_engine = true;
    const WalkIndex walk = plan_.walks.add({leg});
    Program p;
    p.actor = add_actor(Actor::Kind::kCopyEngine, gpu, 1);
    for_each_chunk(p, [&](Bytes bytes) {
      p.wait(arrived_);
      p.move(walk, bytes);
      p.raise(copied, poll);
    });
    plan_.programs.push_back(std::move(p));
    return copied;
  }

  void add_sender(ActorIndex thread, FlagIndex copied) {
    const Post post = add_post(task_.ends.from_nic);
    Program p;
    p.actor = thread;
    for_each_turn(p, [&](std::uint32_t i) {
      p.wait(copied);
      p.compute(post.doorbell, post.request);
      p.post(Verb::kWrite, there(i), {}, Instruction::kBytesOfToken);
    });
    plan_.programs.push_back(std::move(p));
  }
  void add_receiver(ActorIndex thread, FlagIndex copied) {
    const Post post = add_post(task_.ends.to_nic);
    Program p;
    p.actor = thread;
    for_each_turn(p, [&](std::uint32_t i) {
      p.wait(copied);
      p.signal(i);
      p.compute(post.doorbell, post.request);
      p.post(Verb::kWrite, back(i), kFreed, Instruction::kInline);
    });
    plan_.programs.push_back(std::move(p));
  }

  DeviceId from_cpu_;
  DeviceId to_cpu_;
  Bytes chunk_;
  std::uint64_t chunks_;  ///< of a message
  std::uint64_t buffers_;
  FlagIndex free_{};     ///< buffers
  FlagIndex begun_{};    ///< chunks that are copied out
  FlagIndex arrived_{};  ///< at the other host
};

}  // namespace

MeteredPlan staged_plan(const Machine& machine, const PerftestTask& task) {
  return StagedBuilder(machine, task).build();
}

}  // namespace weft
