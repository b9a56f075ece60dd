#include "sim/engine/event_queue.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <span>
#include <stdexcept>
#include <string>

#include "sim/base/random.hpp"

namespace weft {
namespace {

/// Sweeping few husks is not worth the walk over all buckets.
constexpr std::size_t kHusksWorthASweep = 256;

/// The most that a run begins with. Of what is pending it takes a sixteenth at most, so that few of
/// the events scheduled meanwhile fall into it.
constexpr std::size_t kFewEntries = 64;
constexpr std::size_t kFewestEntries = 8;
constexpr std::size_t kRunsInPending = 16;

/// With fewer events pending the targets are in the cache anyway.
constexpr std::size_t kManyPending = 2048;

/// How many events before it an event's preparation begins, where an instant has more.
constexpr std::size_t kAheadOfARound = 8;
constexpr std::size_t kAhead = (EventTarget::kPrefetchRounds + 1) * kAheadOfARound;

[[noreturn]] void refuse_past(Duration by) {
  throw std::logic_error("EventQueue: scheduled " + std::to_string(by.count_ps()) +
                         " ps in the past");
}

}  // namespace

EventQueue::EventQueue(std::uint64_t seed) : shuffle_{random_stream(seed, "event queue ties")} {}

EventId EventQueue::schedule_at(Time when, Phase phase, EventTarget& target, std::uint64_t what) {
  if (when < now_) refuse_past(now_ - when);
  if (free_slot_ == kNoSlot) add_slot();
  const std::uint32_t number = free_slot_;
  Slot& slot = slots_[number];
  free_slot_ = static_cast<std::uint32_t>(slot.what);
  slot.target = &target;
  slot.what = what;
  ++pending_;
  const EventId id{number, slot.generation};
  place({static_cast<std::uint64_t>(when.since_start().count_ps()), number, phase});
  return id;
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
    const std::uint32_t slot = pop();
    const Slot event = slots_[slot];
    give_back(slot);
    if (event.target == nullptr) {
      --husks_;
      continue;
    }
    ++slots_[slot].generation;
    --pending_;
    ++executed_;
    event.target->on_event(event.what);
    return true;
  }
}

void EventQueue::run() {
  while (step()) {
  }
}

[[gnu::noinline]] void EventQueue::add_slot() {
  const std::size_t capacity = slots_.capacity();
  slots_.push_back({nullptr, 0, 1});
  give_back(static_cast<std::uint32_t>(slots_.size() - 1));
  if (slots_.capacity() > capacity) provide_for(slots_.capacity());
}

void EventQueue::give_back(std::uint32_t slot) {
  slots_[slot].what = free_slot_;
  free_slot_ = slot;
}

/// Makes room for `events` at once, wherever they stand: a list has at most one chunk that is not
/// full, and the list being consumed holds at most one chunk's entries twice. Few of one time reach
/// the instant now and then, where mostly the run has them.
void EventQueue::provide_for(std::size_t events) {
  const std::size_t lists = std::min(events, std::size_t{kLevels} * kDigits);
  chunks_.provide(events / ChunkPool<Entry>::kItemsAChunk + lists + 2);
  for (Fifo<std::uint32_t>& ready : instant_) ready.reserve(kFewEntries);
}

/// Files an entry: in the run, in the instant, or under the highest digit in which its time differs
/// from now. What it calls at its end is kept apart (noinline), so that it needs no stack.
void EventQueue::place(Entry entry) {
  if (entry.when_ps < run_until_ps_) {
    insert_into_run(entry);
    return;
  }
  const std::uint64_t differing = entry.when_ps ^ now_ps();
  if (differing == 0) {
    push_ready(entry);
    return;
  }
  const auto highest_bit = static_cast<unsigned>(std::bit_width(differing)) - 1;
  const unsigned level = highest_bit / kDigitBits;
  const auto digit = static_cast<unsigned>(entry.when_ps >> (level * kDigitBits)) % kDigits;
  filled_digits_[level] |= 1U << digit;
  filled_levels_ |= 1U << level;
  buckets_[level][digit].push(chunks_, entry);
}

[[gnu::noinline]] void EventQueue::push_ready(Entry entry) {
  const auto phase = static_cast<unsigned>(entry.phase);
  instant_[phase].push(entry.slot);
  ready_phases_ |= 1U << phase;
}

/// In order; among equals last.
[[gnu::noinline]] void EventQueue::insert_into_run(Entry entry) {
  if (run_end_ == run_.size()) {
    end_run();
    place(entry);
    return;
  }
  Entry* const next = &run_[run_next_];
  Entry* free = &run_[run_end_++];
  for (; free > next && free[-1].when_ps > entry.when_ps; --free) *free = free[-1];
  for (; free > next && entry.is_before(free[-1]); --free) *free = free[-1];
  *free = entry;
}

/// Too much falls into the run's time: the rest goes back to the buckets.
[[gnu::noinline]] void EventQueue::end_run() {
  run_until_ps_ = 0;
  while (run_next_ < run_end_) place(run_[run_next_++]);
}

/// The earliest buckets become the run, if the first of them has few entries. Else now moves to its
/// earliest entry, and its entries to lower levels or into the instant.
void EventQueue::open_buckets() {
  assert(filled_levels_ != 0);
  const auto level = static_cast<unsigned>(std::countr_zero(filled_levels_));
  run_next_ = run_end_ = 0;
  run_until_ps_ = 0;
  const std::size_t most = std::clamp(pending_ / kRunsInPending, kFewestEntries, kFewEntries);
  do {
    const auto digit = static_cast<unsigned>(std::countr_zero(filled_digits_[level]));
    ChunkList<Entry>& bucket = buckets_[level][digit];
    const bool is_run = !shuffle_ && bucket.has_at_most(most - run_end_);
    if (!is_run && run_end_ > 0) break;
    filled_digits_[level] &= filled_digits_[level] - 1;
    if (is_run) {
      run_until_ps_ = ((bucket.front().when_ps >> (level * kDigitBits)) + 1)
                      << (level * kDigitBits);
      bucket.consume(chunks_, [this](const Entry& entry) { insert_into_run(entry); });
    } else {
      spread(bucket);
    }
  } while (run_end_ > 0 && filled_digits_[level] != 0);
  if (filled_digits_[level] == 0) filled_levels_ &= ~(1U << level);
  if (prepares_) prepare_run();
}

/// What open_buckets does with a bucket of many.
void EventQueue::spread(ChunkList<Entry>& bucket) {
  std::uint64_t earliest_ps = bucket.front().when_ps;
  bucket.for_each([&](const Entry& entry) { earliest_ps = std::min(earliest_ps, entry.when_ps); });
  now_ = Time{} + Duration::ps(static_cast<std::int64_t>(earliest_ps));
  bucket.consume(chunks_, [this](const Entry& entry) {
    place(entry);  // into a lower level, never into this bucket
  });
}

/// Lets the targets of the run fetch what they will need. Each round's loads are under way
/// together.
void EventQueue::prepare_run() const {
  const std::span<const Entry> run(run_.data(), run_end_);
  const bool few = pending_ < kManyPending;
  for (const Entry& entry : run) __builtin_prefetch(&slots_[entry.slot]);
  for (unsigned round = few ? 1 : 0; round < (few ? 2 : EventTarget::kPrefetchRounds); ++round) {
    for (const Entry& entry : run) prepare(entry.slot, round);
  }
}

/// The same for an instant of many events, as they run: each round some events further ahead.
void EventQueue::prepare_ahead(const Fifo<std::uint32_t>& ready) const {
  __builtin_prefetch(&slots_[ready.at(kAhead)]);
  for (unsigned round = 0; round < EventTarget::kPrefetchRounds; ++round) {
    prepare(ready.at(kAhead - (round + 1) * kAheadOfARound), round);
  }
}

void EventQueue::prepare(std::uint32_t slot, unsigned round) const {
  if (!is_husk(slot)) slots_[slot].target->prefetch(slots_[slot].what, round);
}

/// The slot of the next entry.
std::uint32_t EventQueue::pop() {
  for (;;) {
    if (run_next_ < run_end_) {
      const Entry& first = run_[run_next_++];
      now_ = Time{} + Duration::ps(static_cast<std::int64_t>(first.when_ps));
      return first.slot;
    }
    if (ready_phases_ != 0) return pop_instant();
    open_buckets();
  }
}

std::uint32_t EventQueue::pop_instant() {
  const auto phase = static_cast<unsigned>(std::countr_zero(ready_phases_));
  Fifo<std::uint32_t>& ready = instant_[phase];
  if (shuffle_) ready.bring_to_front(uniform_below(*shuffle_, ready.size()));
  if (prepares_ && ready.size() > kAhead) prepare_ahead(ready);
  const std::uint32_t slot = ready.pop();
  if (ready.empty()) ready_phases_ &= ~(1U << phase);
  return slot;
}

void EventQueue::sweep_husks() {
  const auto drop = [this](std::uint32_t slot) {
    if (!is_husk(slot)) return false;
    give_back(slot);
    return true;
  };
  for (Fifo<std::uint32_t>& ready : instant_) ready.remove_if(drop);
  const auto run_end = std::remove_if(run_.begin() + run_next_, run_.begin() + run_end_,
                                      [&](const Entry& entry) { return drop(entry.slot); });
  run_end_ = static_cast<std::size_t>(run_end - run_.begin());
  for (unsigned phase = 0; phase < kPhases; ++phase) {
    if (instant_[phase].empty()) ready_phases_ &= ~(1U << phase);
  }
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
