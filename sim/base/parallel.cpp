#include "sim/base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace weft {

void parallel_for(std::size_t count, unsigned threads,
                  const std::function<void(std::size_t)>& work) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t workers = std::min<std::size_t>(threads, count);
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> failures(std::max<std::size_t>(workers, 1));
  const auto run = [&](std::size_t worker) {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      failures[worker] = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  try {
    for (std::size_t i = 1; i < workers; ++i) pool.emplace_back(run, i);
  } catch (const std::system_error&) {
    // The system allows no more threads: those that began, and this one, do the work.
  }
  run(0);
  for (std::thread& thread : pool) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace weft
