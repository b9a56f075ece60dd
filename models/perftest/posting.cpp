#include <utility>
#include <vector>

#include "models/perftest/perftest_builder.hpp"

namespace weft {
namespace {

class PostingBuilder : private PerftestBuilder {
 public:
  PostingBuilder(const Machine& machine, const PerftestTask& task)
      : PerftestBuilder{machine, task} {}

  MeteredPlan build() && {
    const Fabric& fabric = machine_.fabric();
    poster_ = add_actor({Actor::Kind::kHostThread, fabric.root_cpu(task_.ends.from_nic)});
    receiver_ = add_actor({Actor::Kind::kHostThread, fabric.root_cpu(task_.ends.to_nic)});
    for (std::uint32_t i = 0; i < task_.qps; ++i) add_flag(task_.tx_depth);
    for (std::uint32_t i = 0; i < task_.qps; ++i) left_.push_back(add_flag(task_.iterations));
    cq_ = add_flag();
    receive_cq_ = add_flag();
    untold_ = add_flag(completions() * task_.qps);
    add_turns();
    for (std::uint32_t i = 0; i < task_.qps; ++i) add_queue_pair(i);
    add_poster();
    if (task_.op == RdmaOp::kSend) add_receiver();
    return {.plan = std::move(plan_),
            .receiver = receiver_,
            .begun = begun_,
            .target_poll = adapter(task_.ends.to_nic).poll_time};
  }

 private:
  void add_queue_pair(std::uint32_t i) {
    QueuePair q = queue_pair(i);
    q.send_cq = cq_;
    q.send_lag = add_lag("poll", adapter(q.nic).poll_time);
    if (q.sends) {
      q.receive_cq = receive_cq_;
      q.receive_lag = add_lag("poll", adapter(q.peer_nic).poll_time);
    }
    if (q.writes && seen_ != kNoIndex) {
      q.receive_cq = seen_;
      q.receive_lag = add_lag("poll", adapter(q.peer_nic).poll_time);
    }
    plan_.queue_pairs.push_back(q);
  }

  void add_poster() {
    const DeviceId nic = task_.ends.from_nic;
    const Post post = add_post(nic);
    const LagIndex completion = add_lag("completion taken", adapter(nic).cqe_time);
    Program p;
    p.actor = poster_;
    const auto take = [&] {
      p.compute(completion);
      p.signal(0, kNoIndex, 0, Instruction::kOfToken | Instruction::kForEach);
    };
    p.while_has(untold_, 1, kNoIndex, [&] {
      for (std::uint32_t i = 0; i < task_.qps; ++i) {
        p.while_has(i, task_.post_list, left_[i], [&] {
          begin_message(p);
          p.compute(post.doorbell, post.request);
          add_message(p, i);
        });
      }
      p.wait(cq_);
      take();
      p.while_has(cq_, 1, kNoIndex, [&] {
        p.wait(untold_);
        take();
      });
    });
    plan_.programs.push_back(std::move(p));
  }

  void add_receiver() {
    const DeviceId nic = task_.ends.to_nic;
    Program first;
    first.actor = receiver_;
    for (std::uint32_t i = 0; i < task_.qps; ++i) first.post_receives(i, task_.rx_depth);
    plan_.programs.push_back(std::move(first));
    Program each;
    each.actor = receiver_;
    each.serves = receive_cq_;
    each.compute(add_lag("receive posted", adapter(nic).cqe_time + adapter(nic).receive_time));
    each.post_receives(kNoIndex, 1, Instruction::kOfToken);
    if (seen_ != kNoIndex) each.signal(seen_);
    plan_.programs.push_back(std::move(each));
  }

  ActorIndex poster_{};
  ActorIndex receiver_{};
  std::vector<FlagIndex> left_;  ///< messages that were not posted, by queue pair
  FlagIndex cq_{};
  FlagIndex receive_cq_{};
  FlagIndex untold_{};  ///< completions that were not taken
};

}  // namespace

MeteredPlan posting_plan(const Machine& machine, const PerftestTask& task) {
  return PostingBuilder(machine, task).build();
}

}  // namespace weft
