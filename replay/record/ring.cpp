#include "replay/record/ring.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <sys/mman.h>

namespace weft::record {
namespace {

void add(std::atomic<std::uint64_t>& to, std::uint64_t what) {
  to.store(to.load(std::memory_order_relaxed) + what, std::memory_order_relaxed);
}

}  // namespace

// Pages come when they are first written.
Ring::Ring(std::size_t bytes) : mask_{std::bit_ceil(std::max(bytes, kLeastBytes)) - 1} {
  void* const map = mmap(nullptr, mask_ + 1, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  bytes_ = static_cast<std::byte*>(map);
}

Ring::~Ring() { munmap(bytes_, mask_ + 1); }

std::size_t Ring::length_at(std::uint64_t at) const {
  if (!is_record(at)) return mask_ + 1 - (at & mask_);
  trace::RecordHead head{};
  std::memcpy(&head, bytes_ + (at & mask_), sizeof head);
  return head.bytes;
}

void Ring::drop(std::uint64_t now_ns, const Dropped& what) {
  is_dropping_ = true;
  if (first_dropped_ns_.load(std::memory_order_relaxed) == 0) {
    first_dropped_ns_.store(now_ns, std::memory_order_relaxed);
  }
  last_dropped_ns_.store(now_ns, std::memory_order_relaxed);
  add(records_, what.records);
  add(posts_, what.posts);
  add(completions_, what.completions);
  add(posted_bytes_, what.posted_bytes);
}

bool Ring::reopened(std::uint32_t thread) {
  if (!has_room(bytes() / 4)) return false;
  const trace::Drop record = open_drop(thread);
  std::byte* const place = take(sizeof record);
  if (place == nullptr) return false;
  std::memcpy(place, &record, sizeof record);
  publish();
  forget_drop();
  return true;
}

void Ring::forget_drop() {
  for (std::atomic<std::uint64_t>* count :
       {&first_dropped_ns_, &last_dropped_ns_, &records_, &posts_, &completions_, &posted_bytes_}) {
    count->store(0, std::memory_order_relaxed);
  }
  is_dropping_ = false;
}

std::span<const std::byte> Ring::readable(std::uint64_t head, std::size_t most) {
  const std::uint64_t begin = tail();
  if (begin != head && !is_record(begin)) {
    release(length_at(begin));
    return readable(head, most);
  }
  std::uint64_t end = begin;
  while (end != head && is_record(end)) {
    const std::size_t bytes = length_at(end);
    if (end + bytes - begin > most) break;
    end += bytes;
    if ((end & mask_) == 0) break;
  }
  return {bytes_ + (begin & mask_), static_cast<std::size_t>(end - begin)};
}

trace::Drop Ring::open_drop(std::uint32_t thread) const {
  trace::Drop drop{};
  drop.first_ns = first_dropped_ns_.load(std::memory_order_relaxed);
  if (drop.first_ns == 0) return drop;
  drop.head = {.type = trace::RecordType::kDrop,
               .bytes = sizeof drop,
               .thread = thread,
               .time_ns = last_dropped_ns_.load(std::memory_order_relaxed)};
  drop.records = records_.load(std::memory_order_relaxed);
  drop.posts = posts_.load(std::memory_order_relaxed);
  drop.completions = completions_.load(std::memory_order_relaxed);
  drop.posted_bytes = posted_bytes_.load(std::memory_order_relaxed);
  return drop;
}

}  // namespace weft::record
