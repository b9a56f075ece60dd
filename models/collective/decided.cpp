#include "models/collective/decided.hpp"

namespace weft {

Schedule schedule_of(const DeviceParams& devices, const Decided& decided, MemoryPath path) {
  const NcclRun* run = decided.of(path);
  return run == nullptr ? make_schedule(devices, path) : decided_schedule(devices, *run);
}

void decide(MemoryPath path, const DeviceParams& devices, const NcclEnv& env, NcclVersion version,
            Decided& decided) {
  if (decided.simple || decided.runs.contains(path)) return;
  decided.runs.emplace(
      path, followed(decide_run(devices, path, env, version, decided.multicast), devices.fabric()));
}

}  // namespace weft
