#pragma once

#include <vector>

#include "sim/plan/plan.hpp"

namespace weft {

/// Follows what a thread block hands over to where another one waits for it.
class Handover {
 public:
  explicit Handover(const Plan& plan)
      : plan_{plan}, servers_{servers_of_flags(plan)}, handed_on_{handed_on(plan)} {}

  /// The flag that the receiver's block waits for, of one that the sender's block raises: itself,
  /// or by a queue pair, its completions and those who serve them.
  FlagIndex ready(FlagIndex raised) const {
    FlagIndex flag = raised;
    if (handed_on_[flag].flag != kNoIndex) {
      const QueuePair& q = plan_.queue_pairs[handed_on_[flag].tag];
      flag = servers_[q.receive_cq] == kNoIndex ? q.receive_cq : q.context;
    }
    return told(flag);
  }
  /// The flag that gets a token in the end for one of this.
  FlagIndex told(FlagIndex flag) const {
    while (servers_[flag] != kNoIndex) flag = plan_.programs[servers_[flag]].code.back().index;
    return flag;
  }

 private:
  const Plan& plan_;
  std::vector<std::uint32_t> servers_;
  std::vector<HandedOn> handed_on_;
};

}  // namespace weft
