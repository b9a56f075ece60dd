#pragma once

#include <map>

#include "models/nccl/decide/decided_schedule.hpp"

namespace weft {

/// NCCL's decisions by memory path.
struct Decided {
  bool simple{false};    ///< weft's simple rules are used instead
  bool multicast{true};  ///< the transport has it
  std::map<MemoryPath, NcclRun> runs;

  const NcclRun* of(MemoryPath path) const {
    const auto at = runs.find(path);
    return at == runs.end() ? nullptr : &at->second;
  }
};

/// What is decided for a path, or else weft's simple rules.
Schedule schedule_of(const DeviceParams& devices, const Decided& decided, MemoryPath path);

/// Adds what NCCL decides for a memory path, unless the user wants the simple rules. Throws
/// InputError if a run cannot follow NCCL: the simple rules are the user's choice, never a
/// fallback.
void decide(MemoryPath path, const DeviceParams& devices, const NcclEnv& env, NcclVersion version,
            Decided& decided);

}  // namespace weft
