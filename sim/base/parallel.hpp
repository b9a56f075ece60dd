#pragma once

#include <cstddef>
#include <functional>

namespace weft {

/// Calls work(0) to work(count - 1), in that order of beginning, on up to `threads` threads (0: as
/// many as the machine has), this one among them. After an exception no more calls begin; one of
/// those that were thrown comes out here when the calls under way have ended.
void parallel_for(std::size_t count, unsigned threads,
                  const std::function<void(std::size_t)>& work);

/// How many threads each of `count` tasks may use on its own where parallel_for runs them on
/// `threads`: few tasks would leave threads idle.
unsigned threads_each(std::size_t count, unsigned threads);

}  // namespace weft
