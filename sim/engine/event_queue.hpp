#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/engine/chunk_list.hpp"
#include "sim/engine/fifo.hpp"

namespace weft {

/// The order within one instant: first everything arrives, then everyone decides, then probes look.
enum class Phase : std::uint8_t { kDeliver, kCompute, kObserve };

/// What an event calls. `what` is the number given when it was scheduled; its meaning is the
/// target's own (an index, a kind of event). A target outlives its pending events or cancels them.
class EventTarget {
 public:
  virtual void on_event(std::uint64_t what) = 0;
  /// A hint, once asked for, that on_event(what) follows within some dozen events, for targets with
  /// more state than a cache holds. It comes in rounds, each for what is found by reading what the
  /// one before fetched; or as round 1 alone, where few events are pending and the cache holds the
  /// targets themselves. May come any number of times; must not have an effect that a result could
  /// show.
  virtual void prefetch(std::uint64_t /*what*/, unsigned /*round*/) {}
  static constexpr unsigned kPrefetchRounds = 4;

 protected:
  ~EventTarget() = default;
};

/// Names one scheduled event of one queue. A default one names none. It stays safe to hold after
/// the event ran: the generation tells a reused slot apart (until that slot has served 2^32 more).
struct EventId {
  std::uint32_t slot{0};
  std::uint32_t generation{0};
  friend bool operator==(EventId, EventId) = default;
};

/// The clock and the pending events of one simulation. An ordinary object, passed by reference; any
/// number of them live side by side.
///
/// Order: by time, then phase, then first scheduled first. Every run of the same calls is the same.
/// An event may schedule others at its own instant, in any phase: one of an earlier phase than the
/// running one simply runs next.
///
/// Structure: a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest
/// path problem", J. ACM 37, 1990) with hexadecimal digits. It uses that nothing is scheduled in
/// the past. A pending time differs from now in a highest digit; this digit's place (level) and
/// value choose its bucket. The earliest event is in the lowest non-empty bucket of the lowest
/// non-empty level. When it is wanted and that bucket has few events, they become the run, with
/// those of the buckets behind it as long as they are few: an array in order, from which events run
/// one by one, and into which go new ones that belong there. If the bucket has many, now becomes
/// its least time, and its events move to lower levels or into the instant, one FIFO a phase. All
/// others stay right where they are. Events of one time are always together, and buckets are filled
/// and emptied in order, so the order of scheduling needs no stored sequence number. What an event
/// calls stands apart in a slot, so that only 16 bytes move.
///
/// Cost: an event moves at most once a level below the one where it entered (a time 1 us ahead
/// enters at level 4 or 5), until it is among few, each O(1); schedule_at is O(1) amortised, cancel
/// O(1) amortised. A cancelled event stays as a husk until met or until husks outnumber events,
/// then all are swept. Nothing allocates unless more is pending, husks included, or falls on one
/// instant, than ever before.
class EventQueue {
 public:
  EventQueue() = default;
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  /// A queue for tests: among the events of one time and phase the next is drawn at random instead
  /// of first come first served. The same seed gives the same order. Results that change by more
  /// than their tolerance depend on an order that nothing in life decides.
  static EventQueue shuffling_ties(std::uint64_t seed) { return EventQueue{seed}; }

  /// The time of the running event, or of the last one that ran; 0 at first.
  Time now() const { return now_; }

  /// Calls target.on_event(what) at `when`. Throws std::logic_error if `when` is before now().
  EventId schedule_at(Time when, Phase phase, EventTarget& target, std::uint64_t what = 0);
  /// The same, `delay` from now. Throws std::logic_error if `delay` is negative.
  EventId schedule_after(Duration delay, Phase phase, EventTarget& target, std::uint64_t what = 0);

  /// Takes a pending event back. False, and no effect, if it ran or was cancelled before, or `id`
  /// names none.
  bool cancel(EventId id);

  /// Runs the next event; false when none is left. What the event throws comes out here; that event
  /// has then run, and the queue may go on.
  bool step();
  /// Runs until none is left.
  void run();

  /// From now on targets get EventTarget::prefetch. Worth its time where they are many: half of
  /// that of tests/bench/packet_bench with 16,000 hosts, a sixth with 1,024, less than a tenth with
  /// 128.
  void prepare_targets() { prepares_ = true; }

  /// How many events wait to run.
  std::size_t pending() const { return pending_; }
  /// How many events have run.
  std::uint64_t executed() const { return executed_; }

 private:
  static constexpr unsigned kDigitBits = 4;
  static constexpr unsigned kDigits = 1U << kDigitBits;
  static constexpr unsigned kLevels = 64 / kDigitBits;
  static constexpr std::uint32_t kNoSlot = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kPhases = 3;
  static constexpr std::size_t kMostInRun = 128;  ///< then it goes back to the buckets

  /// An event as it moves through the buckets; `when_ps` is never negative, as time starts at 0.
  struct Entry {
    std::uint64_t when_ps;
    std::uint32_t slot;
    Phase phase;
    bool is_before(const Entry& other) const {
      return when_ps != other.when_ps ? when_ps < other.when_ps : phase < other.phase;
    }
  };
  /// What an event calls; no target once it is cancelled. Belongs to one entry, or is free.
  struct Slot {
    EventTarget* target;
    std::uint64_t what;
    std::uint32_t generation;
  };

  explicit EventQueue(std::uint64_t seed);

  std::uint64_t now_ps() const { return static_cast<std::uint64_t>(now_.since_start().count_ps()); }
  void add_slot();
  void give_back(std::uint32_t slot);
  bool is_husk(std::uint32_t slot) const { return slots_[slot].target == nullptr; }
  void provide_for(std::size_t events);
  void place(Entry entry);
  void push_ready(Entry entry);
  void insert_into_run(Entry entry);
  void open_buckets();
  void spread(ChunkList<Entry>& bucket);
  void end_run();
  void prepare_run() const;
  void prepare_ahead(const Fifo<std::uint32_t>& ready) const;
  void prepare(std::uint32_t slot, unsigned round) const;
  std::uint32_t pop();
  std::uint32_t pop_instant();
  void sweep_husks();

  Time now_{};
  std::size_t pending_{0};
  std::size_t husks_{0};
  std::uint64_t executed_{0};
  bool prepares_{false};
  std::vector<Slot> slots_;
  std::uint32_t free_slot_{kNoSlot};  ///< the first; each has the next one's number in `what`
  std::array<Fifo<std::uint32_t>, kPhases> instant_;  ///< slots of the events of time now_
  std::uint32_t ready_phases_{0};                     ///< bit p: the instant has entries of phase p
  ChunkPool<Entry> chunks_;
  std::array<std::array<ChunkList<Entry>, kDigits>, kLevels> buckets_;
  std::array<std::uint32_t, kLevels>
      filled_digits_{};             ///< bit d: bucket d of the level has entries
  std::uint32_t filled_levels_{0};  ///< bit l: level l has entries
  /// All entries of times before run_until_ps_, in order, from run_next_ to run_end_.
  std::array<Entry, kMostInRun> run_;
  std::size_t run_next_{0};
  std::size_t run_end_{0};
  std::uint64_t run_until_ps_{0};
  std::optional<std::mt19937_64> shuffle_;
};

}  // namespace weft
