#include "tools/show_view.hpp"

#include "models/machine/gdr_possible.hpp"
#include "models/nccl/decide/bar1.hpp"
#include "models/nccl/decide/gdr.hpp"
#include "models/nccl/schedule.hpp"
#include "models/transport/contraction.hpp"

namespace weft {

std::vector<DeviceId> devices_of_kind(const Fabric& fabric, DeviceKind kind) {
  std::vector<DeviceId> out;
  for (std::size_t i = 0; i < fabric.count(kind); ++i) out.push_back(fabric.device(0, kind, i));
  return out;
}

double trunk_gigabytes_per_s(const Machine& machine, LinkId id) {
  return machine.capacity(ServerId{2 * id.index()}) / 1e9;
}

std::vector<TierView> tier_views(const Machine& machine) {
  const Fabric& fabric = machine.fabric();
  std::vector<TierView> out;
  Bandwidth down = machine.fastest_nic_link();
  Duration up_and_down;  // what a way that goes higher adds
  for (const DeviceId nic : devices_of_kind(fabric, DeviceKind::kNic)) {
    if (const auto wire = fabric.wire_link(nic)) up_and_down = machine.wire_latency(*wire) * 2;
  }
  for (std::size_t t = 0; t < fabric.network_tiers().size(); ++t) {
    const DeviceId id = fabric.network_switch(t, 0);
    const DeviceModel& model = machine.model(id);
    out.push_back({fabric.network_tiers()[t], fabric.device(id).part, down, machine.uplink_rate(id),
                   machine.local_rate(id), model.crossing_time(),
                   up_and_down + model.crossing_time()});
    down = out.back().up;
    up_and_down += (model.crossing_time() + model.network->uplink_latency) * 2;
  }
  return out;
}

std::vector<PairView> pair_views(const Machine& machine, const ShownNccl& asked) {
  const Fabric& fabric = machine.fabric();
  std::vector<PairView> out;
  const std::vector<DeviceId> gpus = devices_of_kind(fabric, DeviceKind::kGpu);
  // One GPU alone, or nodes that no NIC joins, can be shown too.
  const bool has_rings = fabric.nodes() > 1 && fabric.count(DeviceKind::kNic) > 0;
  const std::vector<PinnedMemory> pinned =
      nccl_pinned(machine.devices(),
                  has_rings ? make_schedule(machine.devices(), MemoryPath::kGdr) : Schedule{});
  const NcclGdrRule rule(machine.devices(), asked.env, asked.version);
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const DeviceId gpu = gpus[g];
    for (const DeviceId nic : devices_of_kind(fabric, DeviceKind::kNic)) {
      const PathLabel label = fabric.path_label(gpu, nic);
      const GdrPossible possible = gdr_possible(machine, gpu, nic, pinned[g]);
      const GdrDecision nccl = rule.of(gpu, nic);
      PairView view{gpu,
                    nic,
                    label,
                    possible.possible,
                    possible.possible && nccl.enabled,
                    possible.possible ? nccl.why : possible.why};
      if (possible.possible) {
        const auto rate = [&](Leg leg) {
          return solo_rate(machine, contract(machine, {leg})).as_gigabytes_per_s();
        };
        view.write_gb_per_s = rate({Leg::Kind::kWrite, Leg::Medium::kPcie, nic, nic, gpu});
        view.read_gb_per_s = rate({Leg::Kind::kRead, Leg::Medium::kPcie, nic, gpu, nic});
      }
      out.push_back(std::move(view));
    }
  }
  return out;
}

}  // namespace weft
