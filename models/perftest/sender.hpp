#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "models/perftest/perftest.hpp"
#include "models/transport/packet_cluster.hpp"
#include "sim/plan/plan.hpp"
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

}  // namespace weft
