#pragma once

#include <vector>

#include "models/perftest/sender.hpp"
#include "sim/plan/plan.hpp"
#include "sim/run/runner.hpp"

namespace weft {

/// A plan of perftest, and what its flags say to whoever looks on. A program of its own puts a
/// token into flag i for each part of a message that is known to be done, by queue pair.
struct MeteredPlan {
  Plan plan;
  std::uint64_t parts{1};  ///< of a message
  /// Gets a token for each part that is begun; kNoIndex: a message is begun as it is posted.
  FlagIndex begun{kNoIndex};
};

/// The plan of one program of perftest, with one thread, as run_iter_bw() of linux-rdma/perftest
/// has it: for each queue pair in turn it posts as long as fewer than `tx_depth` requests are under
/// way as far as it knows; then it takes the completions that are there, and begins anew. The
/// thread at the other end of sends takes the completion of each and posts another receive. The
/// first flags are the queue pairs' free places.
MeteredPlan posting_plan(const Machine& machine, const PerftestPlan& plan);

/// From GPU to GPU through pinned host memory at both ends: a copy engine brings a chunk to the
/// host, an RDMA write takes it to the other host, a copy engine there takes it on. A buffer at
/// either end is used again when the other end has said, by a small RDMA write, that it has copied
/// the chunk out. A thread at each end waits for copies and posts.
MeteredPlan staged_plan(const Machine& machine, const PerftestPlan& plan);

/// Such a plan on a runner, and what it has come to.
class Posting final : public PerftestProgram, private RunObserver {
 public:
  Posting(PacketCluster& cluster, Runner& runner, const PerftestPlan& plan);

  void start() override {}  // the runner does
  /// Every queue pair has had a completion, and a quarter is done.
  bool has_settled() const override;
  bool has_posted_all() const override { return begun_ == messages() * plan_.parts; }
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
  void begun(std::uint64_t parts);
  void on_posted(QueuePairIndex queue_pair, std::uint64_t requests) override;
  void on_delivered(QueuePairIndex queue_pair, Bytes bytes) override;
  void on_received(QueuePairIndex queue_pair, Bytes bytes) override;
  void on_signalled(FlagIndex flag, std::uint64_t tokens) override;

  PacketCluster& cluster_;
  Runner& runner_;
  PerftestPlan options_;
  MeteredPlan plan_;
  Duration poll_time_;
  std::size_t job_;
  // Parts of messages.
  std::uint64_t begun_{0};
  std::uint64_t done_{0};
  std::vector<std::uint64_t> done_of_;  ///< by queue pair
  Time visible_;
  Time received_;
};

}  // namespace weft
