#pragma once

#include <cstdint>
#include <functional>

#include "sim/base/params.hpp"
#include "sim/run/runner.hpp"

namespace weft {

/// How a collective is launched: what the parameters say of it.
struct Launches {
  /// kOnce: nothing comes before or after it (samples).
  enum class Kind : std::uint8_t { kBackToBack, kGraph, kSingle, kOnce };
  Kind kind;
  Duration wait;  ///< of the host for the last one, where each is alone
  Duration host;  ///< that the host takes for one

  explicit Launches(const Params& params);
  /// Alone, whatever the parameters say.
  static Launches once() { return {}; }
  std::uint64_t digest() const;

 private:
  Launches() : kind{Kind::kOnce} {}
};

/// One launch of many that the host waits for, each of which is `alone`.
RunOutcome waited_for(const Launches& launches, RunOutcome alone, CauseTable& causes);

/// One launch of many behind each other, which overlaps with the tail of the one before, and a
/// connection's next operation waits for the last one: what each of the `before` last launches of a
/// run adds to as many first ones, whose end is its lap. Throws InputError if that is
/// nothing.
RunOutcome told_by_lap(const Launches& launches, std::uint32_t before, RunOutcome run,
                       CauseTable& causes);

/// The same where the second disturbs the end of the first: what it adds to one launch alone, whose
/// end is the lap then, counts. Or that one itself, and nothing is run, where its first block ends
/// no more than 0.5 % of the time before all others and their proxies' operations.
RunOutcome told_by_one(const Launches& launches, RunOutcome alone,
                       const std::function<RunOutcome()>& run_twice, CauseTable& causes);

/// The same of a chain of ranks, which takes longer alone the more there are, and a little more or
/// less at each of them comes to more than a launch: what twice as many add, each, to `n` of them,
/// where that has settled (of 2, 4, 8, ...), or where more than `most` would have to be run at
/// once. Precondition: `most` >= 4. Throws InputError as told_by_lap() does.
RunOutcome told_by_twice_as_many(const Launches& launches,
                                 const std::function<RunOutcome(std::uint32_t)>& run_times,
                                 std::uint32_t most, CauseTable& causes);

/// How many launches of so many transfers each are run at once at most, to tell one of a chain.
std::uint32_t most_of_chain(double transfers);
/// Likewise on packets, each of which takes so many seconds.
std::uint32_t most_of_chain_on_packets(double seconds);
/// How many are run in all then.
constexpr double all_of_chain(std::uint32_t most) { return 2.0 * most - 2; }

}  // namespace weft
