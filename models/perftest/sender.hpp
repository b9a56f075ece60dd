#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "models/perftest/perftest.hpp"
#include "models/transport/packet_cluster.hpp"
#include "sim/run/trajectory.hpp"

namespace weft {

/// What one end does.
struct PerftestPlan {
  PerftestEnds ends{};
  RdmaOp op{RdmaOp::kWrite};
  Bytes size{};
  std::uint64_t iterations{1};  ///< of each queue pair
  std::uint32_t qps{1};
  std::uint32_t tx_depth{1};
  std::uint32_t cq_moderation{1};
  std::uint32_t rx_depth{512};
  std::uint32_t post_list{1};  ///< requests for one doorbell
  PerftestPost post{PerftestPost::kCpu};
  bool is_inline{false};
  bool is_staged{false};
  std::uint64_t offset{0};  ///< of its buffers
};

/// A program at one end, and what its thread has done so far.
class PerftestProgram {
 public:
  /// What was known and true at a time.
  struct Step {
    Time at;
    std::uint64_t messages;  ///< known to be done
    Bytes delivered;         ///< in the target's memory, of messages under way too
  };

  virtual ~PerftestProgram() = default;
  virtual void start() = 0;
  /// Its rate can be looked at from now on.
  virtual bool has_settled() const = 0;
  virtual bool has_posted_all() const = 0;
  virtual std::uint64_t messages() const = 0;
  /// How long it has posted, and had to wait before it could post.
  virtual Duration posting() const = 0;
  /// How long the other end's thread has taken and posted receives.
  virtual Duration receiving() const { return {}; }
  virtual Duration waiting() const = 0;
  /// When whoever waits for the last message saw it.
  virtual Time ended() const = 0;
  /// Of the last message, from its post; right if none was under way then.
  Duration lone_latency() const {
    return ended() - (steps_.size() > 1 ? steps_[steps_.size() - 2].at : Time{});
  }
  virtual Bytes delivered() const = 0;

  std::uint64_t known() const { return steps_.empty() ? 0 : steps_.back().messages; }
  bool is_done() const { return known() == messages(); }
  const std::vector<Step>& steps() const { return steps_; }
  /// Messages a second from the post of one until any later one is known to be done, at best: what
  /// perftest prints as its peak.
  double peak() const;
  /// Posts, and what was known and true with each completion.
  void add_to(Trajectory& trajectory, Bytes message) const {
    for (const Time at : posted_at_) trajectory.add(Trajectory::What::kSubmitted, at, message);
    for (const Step& s : steps_) {
      trajectory.add(Trajectory::What::kFinished, s.at,
                     message * static_cast<std::int64_t>(s.messages));
      trajectory.add(Trajectory::What::kDelivered, s.at, s.delivered);
    }
  }
  /// Called with each step, and with the last post.
  void on_step(std::function<void()> call) { on_step_ = std::move(call); }

 protected:
  /// So many messages more were posted just now.
  void posted(Time at, std::uint64_t messages) {
    posted_at_.insert(posted_at_.end(), messages, at);
  }
  void step(Time at, std::uint64_t messages) {
    steps_.push_back({at, messages, delivered()});
    changed();
  }
  void changed() {
    if (on_step_) on_step_();
  }

 private:
  std::vector<Step> steps_;
  std::vector<Time> posted_at_;
  std::function<void()> on_step_;
};

inline constexpr std::uint64_t kBufferStride = std::uint64_t{1}
                                               << 32;  ///< between queue pairs' buffers

/// The thread at the other end of sends: for each that came it takes the completion and posts
/// another receive.
class Receiver final : private EventTarget {
 public:
  Receiver(PacketCluster& cluster, const PerftestPlan& plan)
      : cluster_{cluster},
        poll_time_{cluster.machine().devices().duration("nic.poll_time", plan.ends.to_nic)},
        work_{cluster.machine().devices().duration("nic.cqe_time", plan.ends.to_nic) +
              cluster.machine().devices().duration("nic.receive_time", plan.ends.to_nic)} {}

  void received(RdmaQpId qp) {
    cluster_.events().schedule_after(poll_time_, Phase::kCompute, *this, 1 + qp.value);
  }
  Duration working() const { return working_; }

 private:
  void on_event(std::uint64_t what) override {
    if (what == 0) {
      working_ += work_;
      cluster_.nics().post_receives(seen_.pop(), 1);
    } else {
      seen_.push(RdmaQpId{what - 1});
      if (seen_.size() > 1) return;  // it is at work
    }
    if (!seen_.empty()) cluster_.events().schedule_after(work_, Phase::kCompute, *this, 0);
  }

  PacketCluster& cluster_;
  Duration poll_time_;
  Duration work_;
  Duration working_;
  Fifo<RdmaQpId> seen_;
};

/// One program of perftest, with one thread, as run_iter_bw() of linux-rdma/perftest has it: for
/// each queue pair in turn it posts as long as fewer than `tx_depth` requests are under way as far
/// as it knows; then it takes the completions that are there, and begins anew.
class Sender final : public PerftestProgram, private RdmaClient, private EventTarget {
 public:
  Sender(PacketCluster& cluster, const PerftestPlan& plan)
      : cluster_{cluster},
        plan_{plan},
        post_time_{cluster.machine().devices().duration("nic.post_time", plan.ends.from_nic)},
        doorbell_time_{
            cluster.machine().devices().duration("nic.doorbell_time", plan.ends.from_nic)},
        cqe_time_{cluster.machine().devices().duration("nic.cqe_time", plan.ends.from_nic)},
        poll_time_{cluster.machine().devices().duration("nic.poll_time", plan.ends.from_nic)},
        receiver_{cluster, plan} {
    const bool is_read = plan.op == RdmaOp::kRead;
    for (std::uint32_t i = 0; i < plan.qps; ++i) {
      const std::uint64_t offset = plan.offset + i * kBufferStride;
      qps_.push_back({.id = cluster.connect(plan.ends.from_nic, plan.ends.to_nic, i),
                      .local = cluster.buffer(plan.ends.from_nic, plan.ends.from, !is_read, offset),
                      .remote = cluster.buffer(plan.ends.to_nic, plan.ends.to, is_read, offset)});
      if (plan.op == RdmaOp::kSend) cluster.nics().post_receives(qps_.back().id, plan.rx_depth);
    }
  }

  void start() override { next(); }
  /// Every queue pair has had a completion, and a quarter is done.
  bool has_settled() const override {
    return 4 * known_ >= messages() &&
           std::all_of(qps_.begin(), qps_.end(), [](const Qp& qp) { return qp.known > 0; });
  }
  std::uint64_t messages() const override { return plan_.iterations * plan_.qps; }
  Duration posting() const override { return posting_; }
  Duration receiving() const override { return receiver_.working(); }
  Duration waiting() const override {
    return waited_ + (waits_ ? cluster_.events().now() - waits_since_ : Duration{});
  }
  Time ended() const override {
    switch (plan_.op) {
      case RdmaOp::kRead:
        return steps().back().at;
      case RdmaOp::kSend:
        return received_ + poll_time_;
      case RdmaOp::kWrite:
        return visible_ + poll_time_;
    }
    return {};
  }
  bool has_posted_all() const override { return posted_ == messages(); }
  Bytes delivered() const override {
    const bool is_read = plan_.op == RdmaOp::kRead;
    return cluster_.nics().landed(cluster_.nic(is_read ? plan_.ends.from_nic : plan_.ends.to_nic));
  }

 private:
  struct Qp {
    RdmaQpId id;
    RdmaBuffer local;
    RdmaBuffer remote;
    std::uint64_t posted{0};
    std::uint64_t known{0};  ///< done, as far as completions told
  };

  enum Event : std::uint64_t { kPosted, kTaken, kSeen };  // kSeen and more: of queue pair 0...
  void on_completion(std::uint64_t tag) override {
    cluster_.events().schedule_after(poll_time_, Phase::kCompute, *this, kSeen + tag);
  }
  void on_visible(std::uint64_t /*tag*/) override { visible_ = cluster_.events().now(); }
  void on_received(std::uint64_t tag) override {
    received_ = cluster_.events().now();
    receiver_.received(qps_[tag].id);
  }

  /// How many requests the next doorbell is for.
  std::uint64_t room(const Qp& qp) const {
    const std::uint64_t left = plan_.iterations - qp.posted;
    const std::uint64_t depth = plan_.tx_depth - (qp.posted - qp.known);
    const std::uint64_t list = std::min<std::uint64_t>(plan_.post_list, left);
    return depth < list ? 0 : list;
  }
  /// The thread's next work: a post, else a completion; else it waits.
  void next() {
    const Time now = cluster_.events().now();
    for (; turn_ < plan_.qps; ++turn_) {
      const std::uint64_t requests = room(qps_[turn_]);
      if (requests == 0) continue;
      stop_waiting();
      busy_for_ = post_time_ * static_cast<std::int64_t>(requests) + doorbell_time_;
      cluster_.events().schedule_after(busy_for_, Phase::kCompute, *this, kPosted);
      return;
    }
    if (!seen_.empty()) {
      stop_waiting();
      busy_for_ = cqe_time_;
      cluster_.events().schedule_after(busy_for_, Phase::kCompute, *this, kTaken);
    } else if (!waits_) {
      waits_ = true;
      waits_since_ = now;
    }
  }
  void stop_waiting() {
    if (waits_) waited_ += cluster_.events().now() - waits_since_;
    waits_ = false;
  }
  void on_event(std::uint64_t what) override {
    if (what >= kSeen) {
      seen_.push(static_cast<std::uint32_t>(what - kSeen));
      if (waits_) next();
      return;
    }
    posting_ += busy_for_;
    if (what == kPosted) {
      post();
    } else {
      take(seen_.pop());
    }
    next();
  }
  void post() {
    Qp& qp = qps_[turn_];
    requests_.clear();
    for (std::uint64_t left = room(qp); left > 0; --left) {
      ++posted_;
      ++qp.posted;
      const bool is_last = qp.posted == plan_.iterations;
      requests_.push_back({.op = plan_.op,
                           .bytes = plan_.size,
                           .local = qp.local,
                           .remote = qp.remote,
                           .is_inline = plan_.is_inline,
                           .is_signalled = is_last || qp.posted % plan_.cq_moderation == 0,
                           .tag = turn_,
                           .client = this});
    }
    posted(cluster_.events().now(), requests_.size());
    cluster_.nics().post(qp.id, requests_);
    if (has_posted_all()) changed();
  }
  /// A completion tells of all requests up to its own.
  void take(std::uint32_t index) {
    Qp& qp = qps_[index];
    const std::uint64_t known = std::min(plan_.iterations, qp.known + plan_.cq_moderation);
    known_ += known - qp.known;
    qp.known = known;
    step(cluster_.events().now(), known_);
    if (seen_.empty()) turn_ = 0;
  }

  PacketCluster& cluster_;
  PerftestPlan plan_;
  Duration post_time_;
  Duration doorbell_time_;
  Duration cqe_time_;
  Duration poll_time_;
  Receiver receiver_;
  std::vector<Qp> qps_;
  std::vector<RdmaRequest> requests_;  ///< of one post
  std::uint32_t turn_{0};              ///< queue pair that is posted to; behind the last: none
  Fifo<std::uint32_t> seen_;           ///< completions that are there, by queue pair
  Duration busy_for_;
  std::uint64_t posted_{0};
  std::uint64_t known_{0};
  bool waits_{false};
  Time waits_since_;
  Duration waited_;
  Duration posting_;
  Time visible_;
  Time received_;
};

}  // namespace weft
