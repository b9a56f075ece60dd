#include "models/perftest/posting.hpp"

#include <algorithm>

#include "models/perftest/plan_builder.hpp"

namespace weft {
namespace {

Verb verb_of(RdmaOp op) {
  return op == RdmaOp::kWrite ? Verb::kWrite : op == RdmaOp::kRead ? Verb::kRead : Verb::kSend;
}

class PostingBuilder : private PlanBuilder {
 public:
  PostingBuilder(const Machine& machine, const PerftestPlan& options)
      : PlanBuilder{machine, options} {}

  MeteredPlan build() && {
    const Fabric& fabric = machine_.fabric();
    add_actor(Actor::Kind::kHostThread, fabric.root_cpu(options_.ends.from_nic));
    add_actor(Actor::Kind::kHostThread, fabric.root_cpu(options_.ends.to_nic));
    for (std::uint32_t i = 0; i < options_.qps; ++i) add_flag(options_.tx_depth);
    for (std::uint32_t i = 0; i < options_.qps; ++i) left_.push_back(add_flag(options_.iterations));
    cq_ = add_flag();
    receive_cq_ = add_flag();
    const std::uint64_t completions =
        (options_.iterations + options_.cq_moderation - 1) / options_.cq_moderation * options_.qps;
    untold_ = add_flag(completions);
    for (std::uint32_t i = 0; i < options_.qps; ++i) add_queue_pair(i);
    add_poster();
    if (options_.op == RdmaOp::kSend) add_receiver();
    return {.plan = std::move(plan_)};
  }

 private:
  void add_queue_pair(std::uint32_t i) {
    const PerftestEnds& ends = options_.ends;
    const bool is_send = options_.op == RdmaOp::kSend;
    QueuePair q;
    q.nic = ends.from_nic;
    q.peer_nic = ends.to_nic;
    q.memory = ends.from;
    q.peer_memory = ends.to;
    q.number = i;
    q.writes = options_.op == RdmaOp::kWrite;
    q.sends = is_send;
    q.reads = options_.op == RdmaOp::kRead;
    q.address = options_.offset + i * kBufferStride;
    q.signal_every = options_.cq_moderation;
    q.requests = options_.iterations;
    q.send_cq = cq_;
    q.send_lag = add_lag("poll", adapter(ends.from_nic).poll_time);
    if (is_send) {
      q.receive_cq = receive_cq_;
      q.receive_lag = add_lag("poll", adapter(ends.to_nic).poll_time);
    }
    q.context = i;
    plan_.queue_pairs.push_back(q);
  }

  void add_poster() {
    const DeviceId nic = options_.ends.from_nic;
    const auto [doorbell, request] = add_post(nic);
    const LagIndex completion = add_lag("completion taken", adapter(nic).cqe_time);
    Program p;
    const auto take = [&] {
      p.compute(completion);
      p.signal(0, kNoIndex, 0, Instruction::kOfToken | Instruction::kForEach);
    };
    p.while_has(untold_, 1, kNoIndex, [&] {
      for (std::uint32_t i = 0; i < options_.qps; ++i) {
        p.while_has(i, options_.post_list, left_[i], [&, doorbell = doorbell, request = request] {
          p.compute(doorbell, request);
          p.post(verb_of(options_.op), i, options_.size,
                 options_.is_inline ? Instruction::kInline : 0);
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
    const DeviceId nic = options_.ends.to_nic;
    Program first;
    first.actor = Posting::kReceiver;
    for (std::uint32_t i = 0; i < options_.qps; ++i) first.post_receives(i, options_.rx_depth);
    plan_.programs.push_back(std::move(first));
    Program each;
    each.actor = Posting::kReceiver;
    each.serves = receive_cq_;
    each.compute(add_lag("receive posted", adapter(nic).cqe_time + adapter(nic).receive_time));
    each.post_receives(kNoIndex, 1, Instruction::kOfToken);
    plan_.programs.push_back(std::move(each));
  }

  std::vector<FlagIndex> left_;  ///< messages that were not posted, by queue pair
  FlagIndex cq_{};
  FlagIndex receive_cq_{};
  FlagIndex untold_{};  ///< completions that were not taken
};

}  // namespace

MeteredPlan posting_plan(const Machine& machine, const PerftestPlan& plan) {
  return PostingBuilder(machine, plan).build();
}

Posting::Posting(PacketCluster& cluster, Runner& runner, const PerftestPlan& plan)
    : cluster_{cluster},
      runner_{runner},
      options_{plan},
      plan_{plan.is_staged ? staged_plan(cluster.machine(), plan)
                           : posting_plan(cluster.machine(), plan)},
      poll_time_{cluster.machine().model(plan.ends.from_nic).adapter->poll_time},
      job_{runner.add(plan_.plan, this)},
      done_of_(plan.qps) {}

bool Posting::has_settled() const {
  return 4 * known() >= messages() &&
         std::all_of(done_of_.begin(), done_of_.end(), [](std::uint64_t done) { return done > 0; });
}

Time Posting::ended() const {
  if (options_.is_staged) return steps().back().at;
  switch (options_.op) {
    case RdmaOp::kRead:
      return steps().back().at;
    case RdmaOp::kSend:
      return received_ + poll_time_;
    case RdmaOp::kWrite:
      return visible_ + poll_time_;
  }
  return {};
}

Bytes Posting::delivered() const {
  if (options_.is_staged) return options_.size * static_cast<std::int64_t>(done_ / plan_.parts);
  const bool is_read = options_.op == RdmaOp::kRead;
  return cluster_.nics().landed(
      cluster_.nic(is_read ? options_.ends.from_nic : options_.ends.to_nic));
}

void Posting::begun(std::uint64_t parts) {
  const std::uint64_t messages_before = (begun_ + plan_.parts - 1) / plan_.parts;
  begun_ += parts;
  posted(cluster_.events().now(), (begun_ + plan_.parts - 1) / plan_.parts - messages_before);
  if (has_posted_all()) changed();
}

void Posting::on_posted(QueuePairIndex /*queue_pair*/, std::uint64_t requests) {
  if (plan_.begun == kNoIndex) begun(requests);
}

void Posting::on_delivered(QueuePairIndex /*queue_pair*/, Bytes /*bytes*/) {
  visible_ = cluster_.events().now();
}

void Posting::on_received(QueuePairIndex /*queue_pair*/, Bytes /*bytes*/) {
  received_ = cluster_.events().now();
}

void Posting::on_signalled(FlagIndex flag, std::uint64_t tokens) {
  if (flag == plan_.begun) return begun(tokens);
  done_ += tokens;
  done_of_[flag] += tokens;
  if (done_ / plan_.parts > known()) step(cluster_.events().now(), done_ / plan_.parts);
}

}  // namespace weft
