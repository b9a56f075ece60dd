#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace weft::record {

/// A hash table that threads read without a lock while one at a time changes it: open addressing
/// with linear probing; a reader whose look-up overlapped a change repeats it. Keys are not 0.
class Table {
 public:
  struct Value {
    std::uint64_t first{0};
    std::uint64_t second{0};
  };

  Table() { slots_.store(&grown(kFirst), std::memory_order_relaxed); }

  /// Whether `key` is there; its value then in `found`.
  bool find(std::uint64_t key, Value& found) const {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const std::uint64_t before = changes_.load(std::memory_order_acquire);
      if ((before & 1) != 0) continue;
      const bool is_there = probe(key, found);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (changes_.load(std::memory_order_relaxed) == before) return is_there;
    }
    const std::lock_guard lock(mutex_);  // a change was interrupted in its middle: wait for its end
    return probe(key, found);
  }

  void put(std::uint64_t key, Value value);
  /// Does nothing where `key` is not there.
  void erase(std::uint64_t key);
  std::size_t size() const { return size_; }

  /// Held over a fork, so that the child's table is whole.
  std::mutex& mutex() { return mutex_; }

 private:
  struct Slot {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint64_t> first{0};
    std::atomic<std::uint64_t> second{0};
  };
  struct Slots {
    explicit Slots(std::size_t count) : mask{count - 1}, slot{std::make_unique<Slot[]>(count)} {}
    std::size_t mask;
    std::unique_ptr<Slot[]> slot;
  };
  class Change;

  static constexpr std::size_t kFirst = 1024;
  static constexpr int kAttempts = 256;

  static std::size_t home(std::uint64_t key, const Slots& in) {
    return ((key ^ (key >> 32)) * 0x9e3779b97f4a7c15ULL >> 24) & in.mask;
  }
  bool probe(std::uint64_t key, Value& found) const {
    const Slots& in = *slots_.load(std::memory_order_acquire);
    std::size_t at = home(key, in);
    // Bounded: a reader that overlaps a change may see no empty slot.
    for (std::size_t seen = 0; seen <= in.mask; ++seen, at = (at + 1) & in.mask) {
      const Slot& slot = in.slot[at];
      const std::uint64_t have = slot.key.load(std::memory_order_relaxed);
      if (have == 0) return false;
      if (have != key) continue;
      found = {slot.first.load(std::memory_order_relaxed),
               slot.second.load(std::memory_order_relaxed)};
      return true;
    }
    return false;
  }
  Slots& grown(std::size_t count) { return all_.emplace_back(count); }
  void place(Slots& in, std::uint64_t key, Value value);

  std::atomic<std::uint64_t> changes_{0};  ///< odd while one is under way
  std::atomic<Slots*> slots_{nullptr};
  mutable std::mutex mutex_;
  std::size_t size_{0};
  std::deque<Slots> all_;  ///< outgrown ones stay: a reader may be in them
};

}  // namespace weft::record
