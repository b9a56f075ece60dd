#pragma once

#include "models/perftest/plans.hpp"

namespace weft {

/// What builders of perftest's plans share.
class PerftestBuilder {
 protected:
  PerftestBuilder(const Machine& machine, const PerftestTask& task)
      : machine_{machine}, task_{task} {
    plan_.op = "perftest";
    plan_.bytes = task.size;
  }

  FlagIndex add_flag(std::uint64_t tokens = 0) {
    plan_.flags.push_back({static_cast<std::uint32_t>(tokens)});
    return static_cast<FlagIndex>(plan_.flags.size() - 1);
  }
  LagIndex add_lag(const char* cause, Duration time) {
    plan_.lags.push_back({cause, time});
    return static_cast<LagIndex>(plan_.lags.size() - 1);
  }
  ActorIndex add_actor(const Actor& actor) {
    plan_.actors.push_back(actor);
    return static_cast<ActorIndex>(plan_.actors.size() - 1);
  }
  const Adapter& adapter(DeviceId nic) const { return *machine_.model(nic).adapter; }
  /// What a thread works for a doorbell, and for each request that it is for.
  struct Post {
    LagIndex doorbell;
    LagIndex request;
  };
  Post add_post(DeviceId nic) {
    return {add_lag("post", adapter(nic).doorbell_time), add_lag("post", adapter(nic).post_time)};
  }

  /// The i-th of those that carry the messages, between the memories of both ends.
  QueuePair queue_pair(std::uint32_t i) const {
    QueuePair q;
    q.nic = task_.ends.from_nic;
    q.peer_nic = task_.ends.to_nic;
    q.memory = task_.ends.from;
    q.peer_memory = task_.ends.to;
    q.number = i;
    q.writes = task_.op == RdmaOp::kWrite;
    q.sends = task_.op == RdmaOp::kSend;
    q.reads = task_.op == RdmaOp::kRead;
    q.address = task_.offset + i * kBufferStride;
    q.signal_every = task_.cq_moderation;
    q.requests = task_.iterations;
    q.context = i;
    return q;
  }
  /// Of messages one at a time: flags of what has been seen at the other end and of what begins.
  void add_turns() {
    if (!task_.is_one_at_a_time) return;
    begun_ = add_flag();
    if (task_.op != RdmaOp::kRead) seen_ = add_flag(1);  // a read's completion says it
  }
  /// Before what posts a message.
  void begin_message(Program& program) const {
    if (seen_ != kNoIndex) program.wait(seen_);
    if (begun_ != kNoIndex) program.signal(begun_);
  }
  /// So many does each of them have.
  std::uint64_t completions() const {
    return (task_.iterations + task_.cq_moderation - 1) / task_.cq_moderation;
  }
  /// A message on the i-th, or as many as a kWhile took.
  void add_message(Program& program, std::uint32_t i) const {
    const Verb verb = task_.op == RdmaOp::kWrite  ? Verb::kWrite
                      : task_.op == RdmaOp::kRead ? Verb::kRead
                                                  : Verb::kSend;
    program.post(verb, i, task_.size, task_.is_inline ? Instruction::kInline : 0);
  }

  const Machine& machine_;
  const PerftestTask& task_;
  Plan plan_;
  FlagIndex begun_{kNoIndex};
  FlagIndex seen_{kNoIndex};
};

}  // namespace weft
