#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/operation.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// None of a table.
inline constexpr std::uint32_t kNoTask = UINT32_MAX;
/// The queues of a rank that no group's calls stand in: of what its GPU computes, and its host.
inline constexpr std::uint32_t kComputeQueue = kNoTask;
inline constexpr std::uint32_t kHostQueue = kNoTask - 1;

/// Ranks that exchange data with each other: an NCCL communicator. Rank r is GPU r mod g of node
/// r / g, g GPUs a node.
struct TaskGroup {
  std::string name;  ///< "tensor"; groups of one name do the same for different ranks
  std::vector<std::uint32_t> ranks;
  /// The communicator that these ranks call, if it has others too; else empty.
  std::vector<std::uint32_t> communicator{};
};

/// What a rank of a communicator sends another, by their numbers there.
struct TaskSend {
  std::uint32_t from;
  std::uint32_t to;
  Bytes bytes;
  friend bool operator==(const TaskSend&, const TaskSend&) = default;
};

/// A collective, or sends and receives, that a group calls once or many times.
struct Exchange {
  std::uint32_t group;
  Op op{Op::kAllReduce};
  Bytes bytes;  ///< as nccl-tests counts them
  /// One group of sends and receives in place of `op`; no pair of ranks twice. Empty: `op`.
  std::vector<TaskSend> sends{};
  /// What each call takes beyond what is simulated of it, in the queues of all its ranks, behind
  /// another one and alone (no less), and why. Where its data are there at r and its queue is free
  /// at q it ends at max(r + alone, q + behind) + what is simulated.
  Duration further_behind{};
  Duration further_alone{};
  std::string further_cause{};
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

/// What one rank does: computes for so long, or takes part in the next call of an exchange.
struct Task {
  std::uint32_t exchange{kNoTask};
  bool on_host{false};     ///< its CPU computes, not its GPU
  std::uint32_t label{0};  ///< of what it computes: "forward"
  Duration time;           ///< of computing
  /// Of the same rank's tasks, before this one, those that must have ended: events between streams.
  std::vector<std::uint32_t> after;
  bool computes() const { return exchange == kNoTask; }
};

/// The cause of time that is computed.
inline std::string compute_cause(const std::string& label) { return "compute: " + label; }

/// What every rank does, and what must have ended before. Each rank has a queue of what its GPU
/// computes, one of what its host does, and one for each of its groups: a queue's tasks run one
/// after another, in their order (CUDA's streams). The n-th call of an exchange is the same on all
/// ranks of its group.
struct TaskGraph {
  std::vector<std::string> labels;
  std::vector<TaskGroup> groups;
  std::vector<Exchange> exchanges;
  std::vector<std::vector<Task>> ranks;

  /// The queue of a task: its group, or one of those above.
  std::uint32_t queue_of(const Task& task) const {
    if (!task.computes()) return exchanges[task.exchange].group;
    return task.on_host ? kHostQueue : kComputeQueue;
  }
  /// How often each exchange is called.
  std::vector<std::uint64_t> calls() const;
};

}  // namespace weft
