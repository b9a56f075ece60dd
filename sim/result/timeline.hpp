#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace weft {

/// Who did what when in a run: rows of slices that do not overlap, as timelines are drawn.
struct Timeline {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// A row, or what rows stand below.
  struct Track {
    std::string name;             ///< "thread block 3"
    std::uint32_t parent{kNone};  ///< an earlier one
    friend bool operator==(const Track&, const Track&) = default;
  };
  struct Slice {
    std::uint32_t track;
    std::uint32_t name;  ///< in `names`
    Time begin;
    Time end;            ///< after the begin
    std::int64_t bytes;  ///< moved; 0: none
    friend bool operator==(const Slice&, const Slice&) = default;
  };

  std::vector<Track> tracks;
  std::vector<std::string> names;  ///< of slices: "moves, NVLink write gpu0@0 -> gpu1@0"
  std::vector<Slice> slices;
  std::uint64_t left_out{0};  ///< slices that came when there were too many
};

}  // namespace weft
