#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "replay/trace/record.hpp"

namespace weft::record {

/// What was not kept.
struct Dropped {
  std::uint64_t records{0};
  std::uint64_t posts{0};
  std::uint64_t completions{0};
  std::uint64_t posted_bytes{0};
};

/// One thread's records on their way to the writer: a ring of bytes with one producer and one
/// consumer, neither of which waits. A record lies whole; where it does not fit into the rest of a
/// lap, eight zero bytes close the lap.
///
/// Where there is no room, records are counted instead of kept, until a quarter of the ring is free
/// again: so what lacks lacks in one piece, and a Drop record says how much it was.
class Ring {
 public:
  static constexpr std::size_t kLeastBytes = 4 * trace::kMaxRecordBytes;

  /// `bytes` is rounded up to a power of two, at least kLeastBytes. Throws std::bad_alloc.
  explicit Ring(std::size_t bytes);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // The producer's. Room is taken piece by piece, then published or given back at once.

  /// Room for a record behind what was taken; nullptr where there is none. `bytes` is a multiple of
  /// 8.
  std::byte* take(std::size_t bytes) {
    const std::size_t offset = next_ & mask_;
    const std::size_t rest = mask_ + 1 - offset;
    const std::size_t skipped = bytes > rest ? rest : 0;
    if (!has_room(skipped + bytes)) return nullptr;
    if (skipped != 0) std::memset(bytes_ + offset, 0, 8);
    std::byte* const place = bytes_ + ((next_ + skipped) & mask_);
    next_ += skipped + bytes;
    return place;
  }
  void publish() { head_.store(next_, std::memory_order_release); }
  void give_back() { next_ = head_.load(std::memory_order_relaxed); }
  /// Visits what was taken and not yet published: `f(std::byte* record)`.
  template <typename F>
  void for_each_taken(F f) {
    for (std::uint64_t at = head_.load(std::memory_order_relaxed); at != next_;) {
      std::byte* const record = bytes_ + (at & mask_);
      const std::size_t bytes = length_at(at);
      if (is_record(at)) f(record);
      at += bytes;
    }
  }
  /// Counts records at `now_ns` that are not kept.
  void drop(std::uint64_t now_ns, const Dropped& what);
  /// Whether records are kept now. Ends a drop once there is room again, with its record.
  bool is_open(std::uint32_t thread) { return !is_dropping_ || reopened(thread); }

  // The consumer's.

  std::uint64_t head() const { return head_.load(std::memory_order_acquire); }
  std::uint64_t tail() const { return tail_.load(std::memory_order_relaxed); }
  std::size_t bytes() const { return mask_ + 1; }
  /// Whole records from the tail on: up to `head`, a lap's end or `most` bytes.
  std::span<const std::byte> readable(std::uint64_t head, std::size_t most);
  void release(std::size_t bytes) {
    tail_.store(tail_.load(std::memory_order_relaxed) + bytes, std::memory_order_release);
  }
  /// The drop that no record tells of yet; its `head.bytes` is 0 where there is none. For a
  /// producer that is gone, or at the program's end.
  trace::Drop open_drop(std::uint32_t thread) const;
  /// Once the producer is gone.
  void forget_drop();

 private:
  bool has_room(std::size_t bytes) {
    if (next_ + bytes - known_tail_ <= mask_ + 1) return true;
    known_tail_ = tail_.load(std::memory_order_acquire);
    return next_ + bytes - known_tail_ <= mask_ + 1;
  }
  bool is_record(std::uint64_t at) const {
    std::uint16_t type = 0;
    std::memcpy(&type, bytes_ + (at & mask_), sizeof type);
    return type != 0;
  }
  std::size_t length_at(std::uint64_t at) const;
  bool reopened(std::uint32_t thread);

  std::byte* bytes_{nullptr};
  std::size_t mask_{0};

  // Each side's own cache line.
  alignas(64) std::uint64_t next_{0};
  std::uint64_t known_tail_{0};
  bool is_dropping_{false};
  std::atomic<std::uint64_t> head_{0};
  std::atomic<std::uint64_t> first_dropped_ns_{0};  ///< 0: nothing is dropped
  std::atomic<std::uint64_t> last_dropped_ns_{0};
  std::atomic<std::uint64_t> records_{0};
  std::atomic<std::uint64_t> posts_{0};
  std::atomic<std::uint64_t> completions_{0};
  std::atomic<std::uint64_t> posted_bytes_{0};
  alignas(64) std::atomic<std::uint64_t> tail_{0};
};

}  // namespace weft::record
