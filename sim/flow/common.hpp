#pragma once

#include <stdexcept>

namespace weft::flow {

/// A server is full when less than this fraction of its capacity is left, and levels this close
/// are one: some thousand times what double arithmetic loses, far below what any user can see.
inline constexpr double kTie = 1e-13;

/// A precondition that callers of this layer must keep.
inline void require(bool holds, const char* rule) {
  if (!holds) throw std::logic_error(rule);
}

}  // namespace weft::flow
