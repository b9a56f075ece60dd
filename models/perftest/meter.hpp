#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "models/perftest/plans.hpp"
#include "models/transport/packet_cluster.hpp"
#include "sim/run/runner.hpp"
#include "sim/run/trajectory.hpp"

namespace weft {

/// One end's plan on a runner, and what it has come to.
class PerftestMeter final : private RunObserver {
 public:
  /// What was known and true at a time.
  struct Step {
    Time at;
    std::uint64_t messages;  ///< known to be done
    Bytes delivered;         ///< in the target's memory, of messages under way too
  };

  PerftestMeter(PacketCluster& cluster, Runner& runner, const PerftestTask& task, MeteredPlan plan);
  PerftestMeter(const PerftestMeter&) = delete;
  PerftestMeter& operator=(const PerftestMeter&) = delete;

  /// Every queue pair has had a completion, and a quarter is done: its rate can be looked at.
  bool has_settled() const;
  bool has_posted_all() const { return begun_ == messages() * plan_.parts; }
  std::uint64_t messages() const { return task_.messages(); }
  /// How long those who post have worked, on average; else they have waited.
  Duration posting() const;
  /// How long the other end's thread has worked.
  Duration receiving() const;
  /// When whoever waits for the last message saw it.
  Time ended() const;
  /// Of the last message, from when it is begun.
  Duration last_latency() const { return ended() - posted_at_.back(); }

  std::uint64_t known() const { return steps_.empty() ? 0 : steps_.back().messages; }
  bool is_done() const { return known() == messages(); }
  const std::vector<Step>& steps() const { return steps_; }
  /// Messages a second from the post of one until any later one is known to be done, at best: what
  /// perftest prints as its peak.
  double peak() const;
  /// Posts, and what was known and true with each completion.
  void add_to(Trajectory& trajectory) const;
  /// Called with each step, and with the last post.
  void on_step(std::function<void()> call) { on_step_ = std::move(call); }

 private:
  void on_posted(QueuePairIndex queue_pair, std::uint64_t requests) override;
  void on_delivered(QueuePairIndex queue_pair, Bytes bytes, Time posted) override;
  void on_received(QueuePairIndex queue_pair, Bytes bytes) override;
  void on_signalled(FlagIndex flag, std::uint64_t tokens) override;
  void begun(std::uint64_t parts);
  void done(std::uint32_t queue_pair, std::uint64_t parts);
  Bytes delivered() const;
  void changed() const {
    if (on_step_) on_step_();
  }
  Time now() const { return cluster_.events().now(); }

  PacketCluster& cluster_;
  Runner& runner_;
  PerftestTask task_;
  MeteredPlan plan_;
  std::size_t job_;
  // Parts of messages.
  std::uint64_t begun_{0};
  std::uint64_t done_{0};
  std::vector<std::uint64_t> done_of_;  ///< by queue pair
  std::vector<Step> steps_;
  std::vector<Time> posted_at_;
  Time arrived_;  ///< when the last message was in the target's memory; of sends, its completion
  std::function<void()> on_step_;
};

}  // namespace weft
