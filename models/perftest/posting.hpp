#pragma once

#include <vector>

#include "models/perftest/sender.hpp"
#include "sim/plan/plan.hpp"
#include "sim/run/runner.hpp"

namespace weft {

/// The plan of one program of perftest, with one thread, as run_iter_bw() of linux-rdma/perftest
/// has it: for each queue pair in turn it posts as long as fewer than `tx_depth` requests are under
/// way as far as it knows; then it takes the completions that are there, and begins anew. The
/// thread at the other end of sends takes the completion of each and posts another receive. The
/// first flags are the queue pairs' free places.
Plan posting_plan(const Machine& machine, const PerftestPlan& plan);

/// Such a plan on a runner, and what it has come to.
class Posting final : public PerftestProgram, private RunObserver {
 public:
  Posting(PacketCluster& cluster, Runner& runner, const PerftestPlan& plan);

  void start() override {}  // the runner does
  /// Every queue pair has had a completion, and a quarter is done.
  bool has_settled() const override;
  bool has_posted_all() const override { return posted_ == messages(); }
  std::uint64_t messages() const override { return options_.iterations * options_.qps; }
  Duration posting() const override { return runner_.work(job_, kPoster).worked; }
  Duration receiving() const override { return runner_.work(job_, kReceiver).worked; }
  Duration waiting() const override { return runner_.work(job_, kPoster).waited; }
  Time ended() const override;
  Bytes delivered() const override;

  // Actors of the plan.
  static constexpr ActorIndex kPoster = 0;
  static constexpr ActorIndex kReceiver = 1;

 private:
  void on_posted(QueuePairIndex queue_pair, std::uint64_t requests) override;
  void on_delivered(QueuePairIndex queue_pair, Bytes bytes) override;
  void on_received(QueuePairIndex queue_pair, Bytes bytes) override;
  void on_signalled(FlagIndex flag, std::uint64_t tokens) override;

  PacketCluster& cluster_;
  Runner& runner_;
  PerftestPlan options_;
  Plan plan_;
  Duration poll_time_;
  std::size_t job_;
  std::uint64_t posted_{0};
  std::uint64_t known_{0};
  std::vector<std::uint64_t> known_of_;  ///< by queue pair
  Time visible_;
  Time received_;
};

}  // namespace weft
