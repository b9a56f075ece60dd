#pragma once

#include <cstdint>

#include "models/perftest/perftest.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// What one end does.
struct PerftestTask {
  PerftestEnds ends{};
  RdmaOp op{RdmaOp::kWrite};
  Bytes size{};
  std::uint64_t iterations{1};  ///< of each queue pair
  std::uint32_t qps{1};
  std::uint32_t tx_depth{1};
  std::uint32_t cq_moderation{1};
  std::uint32_t rx_depth{512};
  std::uint32_t post_list{1};  ///< requests for one doorbell; iterations are a multiple of it
  PerftestPost post{PerftestPost::kCpu};
  bool is_inline{false};
  /// As ping-pong has it: a message begins when the one before has been seen where it went.
  bool is_one_at_a_time{false};
  bool is_staged{false};
  std::uint64_t offset{0};  ///< of its buffers

  std::uint64_t messages() const { return iterations * qps; }
};

inline constexpr std::uint64_t kBufferStride = std::uint64_t{1}
                                               << 32;  ///< between queue pairs' buffers

/// A plan of perftest, and what it says to whoever looks on. A program of its own puts a token into
/// flag i for each part of a message on queue pair i that is known to be done, and perhaps more.
struct MeteredPlan {
  Plan plan{};
  std::uint32_t posters{1};       ///< its first actors post
  ActorIndex receiver{kNoIndex};  ///< that takes what has come and posts receives or answers
  std::uint64_t parts{1};         ///< of a message
  /// Gets a token for each part that is begun; kNoIndex: a message is begun as it is posted.
  FlagIndex begun{kNoIndex};
  Duration target_poll{};  ///< from the last message's arrival until who waits for it sees it
};

/// The plan of one program of perftest, with one thread, as run_iter_bw() of linux-rdma/perftest
/// has it: for each queue pair in turn it posts as long as fewer than `tx_depth` requests are under
/// way as far as it knows; then it takes the completions that are there, and begins anew. The
/// thread at the other end of sends takes the completion of each and posts another receive.
MeteredPlan posting_plan(const Machine& machine, const PerftestTask& task);

/// Threads of a GPU, one for each queue pair. By themselves (IBGDA): each writes elements into the
/// send queue and then the doorbell record, each followed by a fence, rings the doorbell and polls
/// its own memory. Or by a proxy: each stores a request to host memory, where a CPU thread that
/// serves all of them finds it and posts; of completions it tells by a store to the GPU's memory.
MeteredPlan gpu_plan(const Machine& machine, const PerftestTask& task);

/// From GPU to GPU through pinned host memory at both ends: a copy engine brings a chunk to the
/// host, an RDMA write takes it to the other host, a copy engine there takes it on. A buffer at
/// either end is used again when the other end has said, by a small RDMA write, that it has copied
/// the chunk out. A thread at each end waits for copies and posts.
MeteredPlan staged_plan(const Machine& machine, const PerftestTask& task);

}  // namespace weft
