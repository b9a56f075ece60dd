#include <utility>

#include "models/perftest/perftest_builder.hpp"

namespace weft {
namespace {

constexpr Bytes kRequest{64};  // to the proxy: a cache line
constexpr Bytes kTold{8};      // by the proxy

class GpuBuilder : private PerftestBuilder {
 public:
  GpuBuilder(const Machine& machine, const PerftestTask& task)
      : PerftestBuilder{machine, task},
        gpu_{task.ends.from},
        cpu_{machine.fabric().root_cpu(task.ends.from)},
        has_proxy_{task.post == PerftestPost::kProxy},
        blocks_{*machine.model(task.ends.from).blocks} {}

  MeteredPlan build() && {
    for (std::uint32_t i = 0; i < task_.qps; ++i) add_flag(task_.tx_depth);
    if (has_proxy_) proxy_ = add_actor({Actor::Kind::kHostThread, cpu_});
    element_ = add_lag("element written", blocks_.post_time);
    fences_ = add_lag("fences", blocks_.fence_time * (has_proxy_ ? 1 : 2));
    poll_ = add_lag("poll", adapter(task_.ends.from_nic).poll_time);
    load_ = add_lag("poll", blocks_.load_latency);
    stores_ = store_walk(gpu_, cpu_, 1);
    add_turns();
    for (std::uint32_t i = 0; i < task_.qps; ++i) {
      plan_.queue_pairs.push_back(has_proxy_ ? add_by_proxy(i) : add_by_itself(i));
    }
    return {.plan = std::move(plan_),
            .posters = has_proxy_ ? 1 : task_.qps,
            .begun = begun_,
            .target_poll = machine_.model(task_.ends.to).blocks->load_latency};
  }

 private:
  WalkIndex store_walk(DeviceId from, DeviceId to, std::uint16_t threads) {
    Leg leg = write_leg(from, to);
    leg.threads = threads;
    return plan_.walks.add({leg});
  }

  /// Who waits for a write polls its own memory.
  QueuePair seen_queue_pair(std::uint32_t i) {
    QueuePair q = queue_pair(i);
    if (seen_ == kNoIndex) return q;
    q.receive_cq = seen_;
    q.receive_lag = add_lag("poll", machine_.model(task_.ends.to).blocks->load_latency);
    return q;
  }
  QueuePair add_by_itself(std::uint32_t i) {
    QueuePair q = seen_queue_pair(i);
    q.send_cq = add_flag();
    q.send_lag = load_;
    q.posting_gpu = gpu_;
    add_thread(i, q.send_cq, [&](Program& p) { ring(p, i); });
    return q;
  }
  QueuePair add_by_proxy(std::uint32_t i) {
    const FlagIndex asked = add_flag();
    const FlagIndex told = add_flag();
    QueuePair q = seen_queue_pair(i);
    q.send_cq = add_flag();
    q.send_lag = poll_;
    add_thread(i, told, [&](Program& p) { ask(p, asked); });
    add_proxy(i, asked);
    add_teller(q.send_cq, told);
    return q;
  }

  /// Thread i posts by `post` as long as there is room, and looks for completions after each post.
  template <class AddPost>
  void add_thread(std::uint32_t i, FlagIndex told, AddPost&& post) {
    const FlagIndex left = add_flag(task_.iterations);
    const FlagIndex untold = add_flag(completions());
    Program p;
    p.actor = add_actor({Actor::Kind::kThreadBlock, gpu_, i});
    const auto take_those_there = [&] {
      p.while_has(told, 1, kNoIndex, [&] {
        p.wait(untold);
        take(p, i);
      });
    };
    p.while_has(untold, 1, kNoIndex, [&] {
      p.while_has(i, task_.post_list, left, [&] {
        begin_message(p);
        p.compute(fences_, element_);
        post(p);
        take_those_there();
      });
      p.wait(told);
      take(p, i);
      take_those_there();
    });
    plan_.programs.push_back(std::move(p));
  }
  /// The places of what a completion tells of are free. The proxy's store says no number.
  void take(Program& p, std::uint32_t i) const {
    if (has_proxy_) {
      p.signal_times(i, task_.cq_moderation);
    } else {
      p.signal(i, kNoIndex, 0, Instruction::kForEach);
    }
  }

  /// Elements in host memory are there before the doorbell.
  void ring(Program& p, std::uint32_t i) {
    if (!blocks_.send_queues_in_gpu) {
      const FlagIndex stored = add_flag();
      p.move(stores_, adapter(task_.ends.from_nic).wqe_bytes * std::int64_t{task_.post_list});
      p.raise(stored);
      p.wait(stored);
    }
    add_message(p, i);
  }
  void ask(Program& p, FlagIndex asked) const {
    p.move(stores_, kRequest);
    p.raise(asked, poll_);
  }

  /// The proxy posts what a thread asks for, a list at a time.
  void add_proxy(std::uint32_t i, FlagIndex asked) {
    const Post post = add_post(task_.ends.from_nic);
    const FlagIndex list = add_flag();
    Program p;
    p.actor = proxy_;
    p.serves = asked;
    p.signal_times(list, task_.post_list);
    p.while_has(list, task_.post_list, kNoIndex, [&] {
      p.compute(post.doorbell, post.request);
      add_message(p, i);
    });
    plan_.programs.push_back(std::move(p));
  }
  /// It tells the thread of a completion, and works until its store has crossed the root complex.
  void add_teller(FlagIndex completed, FlagIndex told) {
    Program p;
    p.actor = proxy_;
    p.serves = completed;
    p.compute(add_lag("completion taken", adapter(task_.ends.from_nic).cqe_time +
                                              machine_.model(cpu_).crossing_time()));
    p.move(store_walk(cpu_, gpu_, 0), kTold);
    p.raise(told, load_);
    plan_.programs.push_back(std::move(p));
  }

  DeviceId gpu_;
  DeviceId cpu_;
  bool has_proxy_;
  const ThreadBlocks& blocks_;
  ActorIndex proxy_{};
  LagIndex element_{};
  LagIndex fences_{};
  LagIndex poll_{};
  LagIndex load_{};
  WalkIndex stores_{};  ///< of a thread to host memory
};

}  // namespace

MeteredPlan gpu_plan(const Machine& machine, const PerftestTask& task) {
  return GpuBuilder(machine, task).build();
}

}  // namespace weft
