#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "replay/simulate/ends.hpp"
#include "replay/simulate/recorded.hpp"
#include "sim/plan/plan.hpp"

namespace weft::replay {

/// When threads post.
enum class Loop : std::uint8_t {
  kOpen,    ///< at the recorded times
  kClosed,  ///< so long after the completion that the thread took before, as it was recorded
};

/// Something that a program tells of by a token of its flag, in its turn.
struct Told {
  std::uint32_t operation{0};
  bool is_completion{false};
};

/// A trace as a Plan. A thread of the trace is a host thread's program; in an open loop completions
/// are taken by threads of their own.
struct ReplayPlan {
  Plan plan;
  /// By flag: what its tokens tell, in their order. Empty for flags that are no such.
  std::vector<std::vector<Told>> told;
  std::set<std::uint32_t> nodes;  ///< that take part
  /// What was replayed in another way than it was recorded, and how often.
  std::map<std::string, std::uint64_t> notes;
};

/// Throws InputError as Ends does, and where both ends of a queue pair are on one NIC.
ReplayPlan replay_plan(const Machine& machine, const Recorded& recorded, const Ends& ends,
                       Loop loop);

}  // namespace weft::replay
