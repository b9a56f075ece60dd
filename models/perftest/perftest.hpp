#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/machine/machine.hpp"
#include "models/machine/registration.hpp"
#include "models/nic/rdma.hpp"
#include "models/transport/dma_traffic.hpp"
#include "sim/base/stop.hpp"
#include "sim/result/probes.hpp"

namespace weft {

/// Point-to-point RDMA as linux-rdma/perftest measures it, on the packet transport. The page is
/// models/perftest/README.md.

/// In which memory the data begin and end: that of the GPUs (GPUDirect RDMA), that of the sockets,
/// or that of the GPUs by way of the sockets'.
enum class PerftestMemory : std::uint8_t { kGpu, kHost, kStaged };

/// Who posts: a CPU thread, as perftest has it; threads of the GPU whose memory it is (GPUDirect
/// Async, IBGDA); or these by way of a CPU thread.
enum class PerftestPost : std::uint8_t { kCpu, kGpu, kProxy };

struct PerftestOptions {
  RdmaOp op{RdmaOp::kWrite};
  PerftestPost post{PerftestPost::kCpu};
  PerftestMemory memory{PerftestMemory::kGpu};
  std::string from{"gpu0"};  ///< "gpu0", "cpu1@0": a GPU or CPU, and its node (0 if not given)
  std::string to{"gpu0@1"};  ///< node 1 if not given
  std::string from_nic{};    ///< "nic3"; "" for the nearest
  std::string to_nic{};
  std::uint32_t iterations{0};  ///< a queue pair; 0: until the rate is steady (see the page)
  std::uint32_t tx_depth{128};
  std::uint32_t qps{1};
  std::uint32_t cq_moderation{0};  ///< 0: as perftest has it
  bool all_sizes{false};           ///< of a run over all sizes, whose moderation stays the same
  std::uint32_t rx_depth{512};     ///< receives that are posted, of each queue pair
  std::uint32_t post_list{1};      ///< requests for one doorbell
  bool bidirectional{false};
  /// For tests: the events of one instant run in an order drawn with this seed (EventQueue).
  std::optional<std::uint64_t> shuffle_ties{};
  const Stop* stop{nullptr};  ///< asks it to end early
};

/// One message size.
struct PerftestRow {
  Bytes bytes;
  std::uint64_t iterations{0};     ///< that were simulated, of all queue pairs
  std::uint64_t cq_moderation{1};  ///< of these
  Bandwidth peak{
      Bandwidth::bytes_per_s(1)};  ///< the best run of messages, from a post to a completion
  Bandwidth average{Bandwidth::bytes_per_s(1)};  ///< steady; both directions together
  double messages_per_s{0};
  Duration latency;  ///< of one message alone
  /// Of the buffer at either end, before all that.
  Registration from_registration;
  Registration to_registration;
  Duration steady_from;   ///< from the run's begin until rates were taken
  bool has_drawn{false};  ///< something depended on the run's seed
  std::string limited_by;
  std::vector<UsedShare> used;  ///< while steady
  Probes probes;                ///< of the whole run
  std::uint64_t trajectory{0};  ///< Trajectory::digest of its posts and completions
};

/// The ends of a perftest, by device.
struct PerftestEnds {
  DeviceId from;  ///< whose memory it is: a GPU, or a CPU for its socket's
  DeviceId to;
  DeviceId from_nic;
  DeviceId to_nic;
};

/// What outage of a NIC's cable (nic.flap_at, nic.flap_time) ends before any rate of a row is
/// taken, and so is in none; "" if there is no such.
std::string outage_before_rates(const Machine& machine, const PerftestEnds& ends,
                                const std::vector<PerftestRow>& rows);

/// Nodes that the names speak of, and one: what Fabric must have at least. Throws InputError.
std::uint32_t perftest_nodes(const PerftestOptions& options);

/// Finds them in a machine and sees that the NICs can reach the memory. Throws InputError with the
/// reason.
PerftestEnds perftest_ends(const Machine& machine, const PerftestOptions& options);

/// One completion for so many requests: what was asked for, or perftest's 100, and 1 for messages
/// of more than 8 KiB, unless it runs over all sizes; no more than may be in flight.
std::uint32_t cq_moderation(const PerftestOptions& options, Bytes size);

/// Runs one size. Each run has a cluster of its own, so the same call gives the same row. Throws
/// Stopped some thousand events after `options.stop` asks for it.
PerftestRow perftest(const Machine& machine, const PerftestOptions& options, Bytes size);

}  // namespace weft
