#include "sim/engine/event_queue.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <stdexcept>
#include <string>

#include "sim/base/random.hpp"

namespace weft {
namespace {

/// Sweeping few husks is not worth the walk over all buckets.
constexpr std::size_t kHusksWorthASweep = 256;

/// The slots of a bucket this small are fetched into the cache when it moves, as all of them are
/// wanted soon. At 100,000 pending this is worth 10 to 20 % (tests/bench/event_queue_bench).
constexpr std::size_t kFewEntries = 64;
/// Of fewer entries the first runs before what it needs is there.
constexpr std::size_t kTooFewEntries = 4;

/// How many events before it an event's preparation begins, where an instant has more.
constexpr std::size_t kAhead = 32;

}  // namespace

EventQueue::EventQueue(std::uint64_t seed) : shuffle_{random_stream(seed, "event queue ties")} {}

EventId EventQueue::schedule_at(Time when, Phase phase, EventTarget& target, std::uint64_t what) {
  if (when < now_) {
    throw std::logic_error("EventQueue: scheduled " + std::to_string((now_ - when).count_ps()) +
                           " ps in the past");
  }
  const std::uint32_t slot = take_slot(target, what);
  place({static_cast<std::uint64_t>(when.since_start().count_ps()), slot, phase});
  ++pending_;
  return {slot, slots_[slot].generation};
}

EventId EventQueue::schedule_after(Duration delay, Phase phase, EventTarget& target,
                                   std::uint64_t what) {
  return schedule_at(now_ + delay, phase, target, what);
}

bool EventQueue::cancel(EventId id) {
  if (id.slot >= slots_.size() || slots_[id.slot].generation != id.generation) return false;
  ++slots_[id.slot].generation;
  slots_[id.slot].target = nullptr;
  --pending_;
  ++husks_;
  if (husks_ >= kHusksWorthASweep && husks_ > pending_) sweep_husks();
  return true;
}

bool EventQueue::step() {
  // With one event pending the search below ends, and now_ stops at a time that has one.
  if (pending_ == 0) return false;
  for (;;) {
    const std::uint32_t slot = pop_instant();
    free_slots_.push_back(slot);
    if (is_husk(slot)) {
      --husks_;
      continue;
    }
    Slot& event = slots_[slot];
    EventTarget& target = *event.target;
    ++event.generation;
    --pending_;
    ++executed_;
    target.on_event(event.what);
    return true;
  }
}

void EventQueue::run() {
  while (step()) {
  }
}

std::uint32_t EventQueue::take_slot(EventTarget& target, std::uint64_t what) {
  if (free_slots_.empty()) {
    slots_.push_back({&target, what, 1});
    if (free_slots_.capacity() < slots_.capacity()) provide_for(slots_.capacity());
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  slots_[slot].target = &target;
  slots_[slot].what = what;
  return slot;
}

/// Makes room for `events` at once, wherever they stand: a list has at most one chunk that is not
/// full, and the list being consumed holds at most one chunk's entries twice.
void EventQueue::provide_for(std::size_t events) {
  free_slots_.reserve(events);
  const std::size_t lists = std::min(events, std::size_t{kLevels} * kDigits);
  chunks_.provide(events / ChunkPool<Entry>::kItemsAChunk + lists + 2);
}

/// Files an entry under the highest digit in which its time differs from now.
void EventQueue::place(const Entry& entry) {
  const std::uint64_t differing = entry.when_ps ^ now_ps();
  if (differing == 0) {
    instant_[static_cast<std::size_t>(entry.phase)].push(entry.slot);
    return;
  }
  const auto highest_bit = static_cast<unsigned>(std::bit_width(differing)) - 1;
  const unsigned level = highest_bit / kDigitBits;
  const auto digit = static_cast<unsigned>(entry.when_ps >> (level * kDigitBits)) % kDigits;
  buckets_[level][digit].push(chunks_, entry);
  filled_digits_[level] |= 1U << digit;
  filled_levels_ |= 1U << level;
}

/// Moves now to the earliest filed entry, and all entries of that time into the instant.
void EventQueue::advance() {
  assert(filled_levels_ != 0);
  const auto level = static_cast<unsigned>(std::countr_zero(filled_levels_));
  const auto digit = static_cast<unsigned>(std::countr_zero(filled_digits_[level]));
  filled_digits_[level] &= filled_digits_[level] - 1;
  if (filled_digits_[level] == 0) filled_levels_ &= filled_levels_ - 1;

  ChunkList<Entry>& bucket = buckets_[level][digit];
  std::uint64_t earliest_ps = bucket.front().when_ps;
  std::size_t size = 0;
  bucket.for_each([&](const Entry& entry) {
    earliest_ps = std::min(earliest_ps, entry.when_ps);
    ++size;
  });
  now_ = Time{} + Duration::ps(static_cast<std::int64_t>(earliest_ps));
  const bool runs_soon = size <= kFewEntries;
  if (runs_soon && prepares_ && size > kTooFewEntries) prepare(bucket);
  bucket.consume(chunks_, [&](const Entry& entry) {
    if (runs_soon) __builtin_prefetch(&slots_[entry.slot]);
    place(entry);  // into a lower level, never into this bucket
  });
}

/// Lets the targets of a bucket fetch what they will need. Each round's loads are under way
/// together.
void EventQueue::prepare(const ChunkList<Entry>& bucket) {
  bucket.for_each([this](const Entry& entry) { __builtin_prefetch(&slots_[entry.slot]); });
  for (const bool again : {false, true}) {
    bucket.for_each([this, again](const Entry& entry) {
      const Slot& slot = slots_[entry.slot];
      if (slot.target != nullptr) slot.target->prefetch(slot.what, again);
    });
  }
}

/// The same for an instant of many events, as they run: each round is half as far ahead.
void EventQueue::prepare_ahead(const Fifo<std::uint32_t>& ready) const {
  __builtin_prefetch(&slots_[ready.at(kAhead)]);
  for (const bool again : {false, true}) {
    const Slot& slot = slots_[ready.at(again ? kAhead / 4 : kAhead / 2)];
    if (slot.target != nullptr) slot.target->prefetch(slot.what, again);
  }
}

std::uint32_t EventQueue::pop_instant() {
  for (;;) {
    for (Fifo<std::uint32_t>& ready : instant_) {
      if (ready.empty()) continue;
      if (shuffle_) ready.bring_to_front(uniform_below(*shuffle_, ready.size()));
      if (prepares_ && ready.size() > kAhead) prepare_ahead(ready);
      return ready.pop();
    }
    advance();
  }
}

void EventQueue::sweep_husks() {
  const auto drop = [this](std::uint32_t slot) {
    if (!is_husk(slot)) return false;
    free_slots_.push_back(slot);
    return true;
  };
  for (Fifo<std::uint32_t>& ready : instant_) ready.remove_if(drop);
  filled_levels_ = 0;
  filled_digits_ = {};
  for (auto& level : buckets_) {
    for (ChunkList<Entry>& bucket : level) {
      bucket.consume(chunks_, [&](const Entry& entry) {
        if (!drop(entry.slot)) place(entry);  // where it was, as now has not changed
      });
    }
  }
  husks_ = 0;
}

}  // namespace weft
