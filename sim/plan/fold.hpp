#pragma once

#include "sim/plan/plan.hpp"

namespace weft {

/// The plan with each set of channels that do the same as one channel, whose programs
/// stand for so many `copies`. On a transport that shares out max-min fairly the copies
/// would do the same things at the same times, so the times are those of the plan as it was; inside
/// a node, where NCCL's channels are often alike, it is that many times less work.
///
/// Two channels are alike if their connections and programs are, in order, up to the channel's
/// number. Messages of two channels are never: each goes over a connection of its own.
Plan fold_channels(Plan plan);

}  // namespace weft
