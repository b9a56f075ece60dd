#pragma once

#include <algorithm>
#include <cstdint>

#include "replay/trace/reader.hpp"

namespace weft::trace {

/// What was lost of a trace, to be carried into what is made from it: so many numbers of blocks are
/// left out there (TraceWriter::lose), which whoever reads that is told of as blocks that are
/// missing.
class CarriedLosses {
 public:
  explicit CarriedLosses(const TraceReader& reader) : reader_{&reader} {}

  /// The blocks that were lost since the last call, at least one where anything was; 0: nothing.
  /// To be asked after each block that was read, and after the last one.
  std::uint64_t blocks() {
    const Losses& losses = reader_->losses();
    if (losses.places == places_) return 0;
    const std::uint64_t lost = std::max<std::uint64_t>(losses.blocks - blocks_, 1);
    places_ = losses.places;
    blocks_ = losses.blocks;
    return lost;
  }

 private:
  const TraceReader* reader_;
  std::uint64_t places_{0};
  std::uint64_t blocks_{0};
};

}  // namespace weft::trace
