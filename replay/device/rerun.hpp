#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "replay/simulate/recorded.hpp"
#include "replay/trace/record.hpp"

namespace weft::replay {

struct RerunSettings {
  std::string device;  ///< "mlx5_0"
  std::string peer;    ///< where the other ends run; "": here they do, and wait for one that comes
  std::uint16_t port{18520};
  /// The GPU whose memory the messages lie in, as CUDA counts; none: host memory. The peer has its
  /// own.
  std::optional<unsigned> gpu_memory{};
};

/// What one process did again.
struct Rerun {
  struct Count {
    std::uint64_t posts{0};
    std::uint64_t bytes{0};
    std::uint64_t completions{0};
  };
  std::map<trace::Opcode, Count> operations;
  std::uint64_t span_ns{0};           ///< first post or completion to the last
  std::uint64_t recorded_span_ns{0};  ///< ... of the same operations in the trace
};

/// Does a trace's operations again on a real device, with a second process that has the same trace:
/// the one with a `peer` runs the first end of each connection, the other the second, which where
/// the trace lacks it only receives. Each queue pair posts in the recorded order, each request once
/// the completions have come that were taken before it was posted, and as long after the last post
/// or completion as it was recorded (closed loop, with the program's think time); receives are
/// posted ahead. Reliable connections.
///
/// Throws InputError: no libibverbs, no such device, no such GPU or none of its memory exported, no
/// peer, another trace there, an operation that ends with an error.
Rerun rerun(const Recorded& recorded, const RerunSettings& settings);

std::string rerun_text(const Recorded& recorded, const Rerun& result,
                       const RerunSettings& settings);

}  // namespace weft::replay
