#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result/measured.hpp"

namespace weft {

/// One size of a run that is to be explained.
struct Point {
  std::string op;
  std::string path;  ///< "host-staged": it was forced; "": the memory path that NCCL takes
  std::int64_t bytes{0};
  double slow_us{0};
  double healthy_us{0};  ///< 0: no healthy run was given

  bool is_of(const Point& other) const { return op == other.op && path == other.path; }
};

/// What was measured, and on how many GPUs.
struct Measurement {
  std::vector<Point> points;  ///< by operation and path, then size
  std::int64_t hosts{1};
  std::int64_t ranks{0};
  MeasuredRow row;       ///< one of them: what of the machine and of NCCL it states
  std::size_t sizes{0};  ///< that were given, of which the points are some
};

/// Reads what nccl-tests prints or writes, or a measured table; `file` is the name that messages
/// use. How GPUs are joined need not be stated: by the network where there are several hosts.
/// Throws InputError.
MeasuredTable parse_run(std::string_view text, const std::string& file,
                        const StatedColumns& stated);

/// The sizes that both runs have, at most `most` of each operation and path, evenly spread over
/// their logarithms; of what was measured several times the mean. `healthy`: nullptr if there is
/// none. Throws InputError: rows of perftest or nvbandwidth, of several numbers of hosts or GPUs or
/// other configurations; runs without a size in common.
Measurement measurement_of(const MeasuredTable& slow, const MeasuredTable* healthy,
                           std::size_t most);

}  // namespace weft
