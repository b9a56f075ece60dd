#pragma once

#include "sim/plan/plan.hpp"

namespace weft {

/// The plan with each set of channels that do the same as one channel, whose programs
/// stand for so many `copies`. On a transport that shares out max-min fairly the copies
/// would do the same things at the same times, so the times are those of the plan as it was; inside
/// a node, where NCCL's channels are often alike, it is that many times less work.
///
/// Two channels are alike if their actors and programs are, in order, up to the numbers of flags
/// and of actors of a device. A plan stays as it is if it has messages (each goes over a connection
/// of its own), or if channels share flags or actors.
Plan fold_channels(Plan plan);

/// Whether two programs of a plan do the same up to the numbers of their flags: the n-th flag that
/// one names first is the n-th of the other, and begins with as many tokens.
bool same_but_flags(const Plan& plan, const Program& a, const Program& b);

}  // namespace weft
