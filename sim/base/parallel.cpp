#include "sim/base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace weft {
namespace {

unsigned threads_or_all(unsigned threads) {
  return threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : threads;
}

}  // namespace

unsigned threads_each(std::size_t count, unsigned threads) {
  const unsigned all = threads_or_all(threads);
  return all / static_cast<unsigned>(std::clamp<std::size_t>(count, 1, all));
}

void parallel_for(std::size_t count, unsigned threads,
                  const std::function<void(std::size_t)>& work) {
  const std::size_t workers = std::min<std::size_t>(threads_or_all(threads), count);
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
