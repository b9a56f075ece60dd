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
  };
  struct Slice {
    std::uint32_t track;
    std::uint32_t name;  ///< in `names`
    Time begin;
    Time end;            ///< after the begin
    std::int64_t bytes;  ///< moved; 0: none
  };

  /// How much of a server is in use.
  struct Series {
    std::string server;       ///< "wire, NIC to switch: nic0@0 -> leaf0"
    std::vector<double> use;  ///< 0 to 1, by step from the start on
  };

  std::vector<Track> tracks;
  std::vector<std::string> names;  ///< of slices: "moves: NVLink write gpu0@0 -> gpu1@0"
  std::vector<Slice> slices;
  std::uint64_t left_out{0};  ///< slices that came when there were too many
  Duration step{};
  std::vector<Series> series;  ///< of the servers that were used most, most first
  std::size_t series_left_out{0};
};

}  // namespace weft
