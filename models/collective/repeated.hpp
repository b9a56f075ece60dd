#pragma once

#include <cstdint>
#include <functional>

#include "sim/base/params.hpp"
#include "sim/run/runner.hpp"

namespace weft {

/// How a collective is launched: what the parameters say of it.
struct Launches {
  enum class Kind : std::uint8_t { kBackToBack, kGraph, kSingle };
  Kind kind;
  Duration wait;  ///< of the host for the last one, where each is alone
  Duration host;  ///< that the host takes for one

  explicit Launches(const Params& params);
};

/// One launch of many behind each other, which overlaps with the tail of the one before, and a
/// connection's next operation waits for the last one: what each of the `before` last launches of a
/// run adds to as many first ones, whose end is its lap. Throws InputError if that is
/// nothing.
RunOutcome told_by_lap(std::uint32_t before, RunOutcome run);

/// The same where the second disturbs the end of the first: what it adds to one launch alone, whose
/// end is the lap then, counts. Or that one itself, and nothing is run, where its first block ends
/// no more than 0.5 % of the time before all others and their proxies' operations.
RunOutcome told_by_one(RunOutcome alone, const std::function<RunOutcome()>& run_twice);

/// The same of a chain of ranks, which takes longer alone the more there are, and a little more or
/// less at each of them comes to more than a launch: what twice as many add, each, to `n` of them,
/// where that has settled (of 2, 4, 8, ...), or where more than `most` would have to be run at
/// once. Precondition: `most` >= 4. Throws InputError as told_by_lap() does.
RunOutcome told_by_twice_as_many(const std::function<RunOutcome(std::uint32_t)>& run_times,
                                 std::uint32_t most);

/// One launch of many, each of which takes so long, with what the host adds: where each is alone it
/// waits for the last one; behind each other none is faster than the host launches them.
RunOutcome with_the_host(const Launches& launches, RunOutcome one, CauseTable& causes);

/// How many launches of so many transfers each are run at once at most, to tell one of a chain.
std::uint32_t most_of_chain(double transfers);
/// Likewise on packets, each of which takes so many seconds.
std::uint32_t most_of_chain_on_packets(double seconds);
/// How many are run in all then.
constexpr double all_of_chain(std::uint32_t most) { return 2.0 * most - 2; }

}  // namespace weft
