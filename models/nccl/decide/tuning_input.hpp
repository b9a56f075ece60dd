#pragma once

#include "models/nccl/decide/decide.hpp"
#include "models/nccl/decide/tuning.hpp"

namespace weft {

/// What the tuning model needs of a communicator whose graphs and channels are decided. Networks
/// that gather and scatter by themselves (CollNet's all-gather) are taken not to be there.
TuningInput tuning_input(const NcclDecisions& decisions);

}  // namespace weft
