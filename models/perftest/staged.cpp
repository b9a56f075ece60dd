#include <algorithm>
#include <cmath>
#include <utility>

#include "models/perftest/perftest_builder.hpp"
#include "models/transport/copier.hpp"

namespace weft {
namespace {

constexpr Bytes kFreed{8};

class StagedBuilder : private PerftestBuilder {
 public:
  StagedBuilder(const Machine& machine, const PerftestTask& task)
      : PerftestBuilder{machine, task},
        chunk_{std::min(task.size, machine.devices().params().bytes("staging.chunk"))},
        chunks_{static_cast<std::uint64_t>(pieces(task.size, chunk_))},
        buffers_{static_cast<std::uint64_t>(
            std::llround(machine.devices().params().number("staging.buffers")))} {}

  MeteredPlan build() && {
    for (std::uint32_t i = 0; i < task_.qps; ++i) add_flag();
    free_ = add_flag(buffers_);
    begun_ = add_flag();
    arrived_ = add_flag();
    const End from = add_end(task_.ends.from, task_.ends.from_nic);
    const End to = add_end(task_.ends.to, task_.ends.to_nic);
    for (std::uint32_t i = 0; i < task_.qps; ++i) add_queue_pairs(i, from, to);
    add_sender(from, add_copies(from, true));
    add_receiver(to, add_copies(to, false));
    return {.plan = std::move(plan_), .receiver = to.thread, .parts = chunks_, .begun = begun_};
  }

 private:
  struct End {
    DeviceId gpu;
    DeviceId nic;
    DeviceId cpu;
    ActorIndex thread;
    LagIndex poll;
  };
  End add_end(DeviceId gpu, DeviceId nic) {
    const DeviceId cpu = machine_.fabric().root_cpu(gpu);
    return {gpu, nic, cpu, add_actor({Actor::Kind::kHostThread, cpu}),
            add_lag("poll", adapter(nic).poll_time)};
  }

  static QueuePairIndex there(std::uint32_t i) { return 2 * i; }
  static QueuePairIndex back(std::uint32_t i) { return 2 * i + 1; }

  /// One for chunks, each behind the last in its part of the buffers, and one for what frees them.
  void add_queue_pairs(std::uint32_t i, const End& from, const End& to) {
    QueuePair q;
    q.nic = from.nic;
    q.peer_nic = to.nic;
    q.memory = from.cpu;
    q.peer_memory = to.cpu;
    q.number = i;
    q.writes = true;
    q.span = static_cast<std::uint64_t>(chunk_.count()) * ((buffers_ + task_.qps - 1) / task_.qps);
    q.address = task_.offset + i * q.span;
    q.receive_cq = arrived_;
    q.receive_lag = to.poll;
    plan_.queue_pairs.push_back(q);
    std::swap(q.nic, q.peer_nic);
    std::swap(q.memory, q.peer_memory);
    q.span = 0;
    q.receive_cq = free_;
    q.receive_lag = from.poll;
    plan_.queue_pairs.push_back(q);
  }

  /// An end's copy engine, to the host or from it; the flag of chunks that it has copied, as the
  /// end's thread sees them.
  FlagIndex add_copies(const End& end, bool to_host) {
    const Leg leg =
        to_host ? copy_leg(end.gpu, end.gpu, end.cpu) : copy_leg(end.gpu, end.cpu, end.gpu);
    const WalkIndex walk = plan_.walks.add({leg});
    const FlagIndex copied = add_flag();
    Program p;
    p.actor = add_actor(copy_engine(leg));
    if (to_host) {
      const auto copy = [&](Bytes bytes) {
        p.wait(free_);
        p.signal(begun_);
        p.move(walk, bytes);
        p.raise(copied, end.poll);
      };
      p.repeat(task_.messages(), [&] {
        p.repeat(chunks_ - 1, [&] { copy(chunk_); });
        copy(task_.size - chunk_ * static_cast<std::int64_t>(chunks_ - 1));
      });
    } else {
      p.repeat(task_.messages() * chunks_, [&] {
        p.wait(arrived_);  // a small last chunk may be here before the one before it
        p.move(walk, {}, Instruction::kBytesOfToken);
        p.raise(copied, end.poll);
      });
    }
    plan_.programs.push_back(std::move(p));
    return copied;
  }

  /// An end's thread does `add(program, i)` for each chunk that was copied; the queue pairs take
  /// turns.
  template <class Add>
  void add_thread(const End& end, FlagIndex copied, Add&& add) {
    Program p;
    p.actor = end.thread;
    p.repeat(task_.iterations * chunks_, [&] {
      for (std::uint32_t i = 0; i < task_.qps; ++i) {
        p.wait(copied);
        add(p, i);
      }
    });
    plan_.programs.push_back(std::move(p));
  }
  void add_sender(const End& end, FlagIndex copied) {
    const Post post = add_post(end.nic);
    add_thread(end, copied, [&](Program& p, std::uint32_t i) {
      p.compute(post.doorbell, post.request);
      p.post(Verb::kWrite, there(i), {}, Instruction::kBytesOfToken);
    });
  }
  void add_receiver(const End& end, FlagIndex copied) {
    const Post post = add_post(end.nic);
    add_thread(end, copied, [&](Program& p, std::uint32_t i) {
      p.signal(i);
      p.compute(post.doorbell, post.request);
      p.post(Verb::kWrite, back(i), kFreed, Instruction::kInline);
    });
  }

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
