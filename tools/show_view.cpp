#include "tools/show_view.hpp"

#include <cstdint>
#include <map>
#include <utility>

#include "models/machine/alike_devices.hpp"
#include "models/machine/gdr_possible.hpp"
#include "models/nccl/decide/bar1.hpp"
#include "models/nccl/decide/gdr.hpp"
#include "models/nccl/schedule.hpp"
#include "models/transport/contraction.hpp"

namespace weft {
namespace {

/// Gathers pairs of a node's GPUs and NICs. Of those that are alike the first is computed; of the
/// others only what their names or NCCL's order of devices is in.
class PairsAlike {
 public:
  PairsAlike(const Machine& machine, const NcclGdrRule& rule)
      : machine_{machine}, rule_{rule}, alike_{machine} {}

  void add(DeviceId gpu, DeviceId nic, const PinnedMemory& pinned) {
    std::uint32_t& place = first_like(gpu, nic, pinned);
    if (place == kNone) {
      place = static_cast<std::uint32_t>(pairs_.size());
      pairs_.push_back(computed(gpu, nic, pinned));
      return;
    }
    PairView view = pairs_[place];
    view.gpu = gpu;
    view.nic = nic;
    if (view.gdr_possible) {
      if (rule_.seen()) decide(view);
    } else if (names_itself(pairs_[place])) {
      view.why = gdr_possible(machine_, gpu, nic, pinned).why;
    }
    pairs_.push_back(std::move(view));
  }

  std::vector<PairView> take() { return std::move(pairs_); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t& first_like(DeviceId gpu, DeviceId nic, const PinnedMemory& pinned) {
    std::vector<std::uint32_t>& of_gpu = first_[{alike_.class_of(gpu), pinned.bytes.count()}];
    if (of_gpu.empty()) of_gpu.resize(alike_.count(), kNone);
    return of_gpu[alike_.class_of(nic)];
  }

  bool names_itself(const PairView& view) const {
    const auto names = [&](DeviceId device) {
      return view.why.find(machine_.fabric().device(device).name) != std::string::npos;
    };
    return names(view.gpu) || names(view.nic);
  }

  void decide(PairView& view) const {
    GdrDecision nccl = rule_.of(view.gpu, view.nic);
    view.nccl_default = nccl.enabled;
    view.why = std::move(nccl.why);
  }

  PairView computed(DeviceId gpu, DeviceId nic, const PinnedMemory& pinned) const {
    PairView view{.gpu = gpu, .nic = nic, .label = machine_.fabric().path_label(gpu, nic)};
    GdrPossible possible = gdr_possible(machine_, gpu, nic, pinned);
    view.gdr_possible = possible.possible;
    view.why = std::move(possible.why);
    if (!view.gdr_possible) return view;
    decide(view);
    const auto rate = [&](const Leg& leg) {
      return solo_rate(machine_, contract(machine_, {leg})).as_gigabytes_per_s();
    };
    view.write_gb_per_s = rate({Leg::Kind::kWrite, Leg::Medium::kPcie, nic, nic, gpu});
    view.read_gb_per_s = rate({Leg::Kind::kRead, Leg::Medium::kPcie, nic, gpu, nic});
    return view;
  }

  const Machine& machine_;
  const NcclGdrRule& rule_;
  AlikeDevices alike_;
  std::vector<PairView> pairs_;
  // By a GPU's class and what is pinned on it, then by the NIC's class: places among the pairs.
  std::map<std::pair<std::size_t, std::int64_t>, std::vector<std::uint32_t>> first_;
};

}  // namespace

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

NodeView node_view(const Machine& machine, const ShownNccl& asked) {
  const Fabric& fabric = machine.fabric();
  const NcclGdrRule rule(fabric, asked.env, nccl_seen(machine.devices(), asked.env, asked.version));
  NodeView out;
  out.gpu_nics = nccl_gpu_nics(fabric, asked.env, rule.seen());
  // One GPU alone, or nodes that no NIC joins, can be shown too.
  const bool has_rings = fabric.nodes() > 1 && fabric.count(DeviceKind::kNic) > 0;
  const std::vector<PinnedMemory> pinned =
      nccl_pinned(machine.devices(),
                  has_rings ? make_schedule(machine.devices(), MemoryPath::kGdr) : Schedule{});
  const std::vector<DeviceId> nics = devices_of_kind(fabric, DeviceKind::kNic);
  PairsAlike pairs(machine, rule);
  for (std::size_t g = 0; g < fabric.count(DeviceKind::kGpu); ++g) {
    const DeviceId gpu = fabric.device(0, DeviceKind::kGpu, g);
    for (const DeviceId nic : nics) pairs.add(gpu, nic, pinned[g]);
  }
  out.pairs = pairs.take();
  return out;
}

}  // namespace weft
