#pragma once

#include <cstdint>
#include <ctime>

namespace weft::record {

/// Nanoseconds of `clock`; of CLOCK_MONOTONIC_RAW unless told otherwise, as all times of a trace.
inline std::uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC_RAW) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace weft::record
