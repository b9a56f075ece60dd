#include "models/nccl/decide/release.hpp"

#include "models/nccl/decide/tuning_constants.hpp"

namespace weft {

// Read in NCCL's sources of 2.18.1, 2.20.3, 2.20.5, 2.21.5, 2.22.3, 2.25.1, 2.26.2, 2.27.3, 2.28.3
// and 2.30, or told by what 2.20.5, 2.21.5, 2.23.4, 2.27.7, 2.28.9, 2.29.7 and 2.30.7 decided
// (tests/nccl_decisions). Between two of these a rule may have changed in either: decisions.md.
NcclRelease nccl_release(NcclVersion version) {
  const auto since = [version](int minor) { return version >= NcclVersion{2, minor, 0}; };
  NcclRelease r;
  r.version = version;

  r.has_c2c = since(26);
  r.has_p2c = since(27);
  r.p2c_before_pxn = since(28);
  r.amd_socket_bw = since(19) ? 16.0F : 6.0F;
  r.knows_sapphire = since(26);
  r.knows_blackwell = since(25);
  r.has_dev_nodes = since(30);
  r.has_gin_nodes = since(29);
  r.fuses_views = since(22);
  r.prints_start_twice = since(23) && !since(26);
  r.path_decimals = since(21) ? 1 : 6;

  r.prefers_types = since(30);
  r.p2p_to_pxb = since(23);
  r.p2c_nearest_only = since(29);
  r.pxn_c2c = since(28);
  r.pxn_needs_gdr = since(29);
  r.gdr_c2c = since(27);
  r.gdr_counts_c2c = since(26) && !since(29);
  r.gdr_to_p2c = since(29);
  r.diverts_far_nets = !since(21);
  r.spreads_local_gpus = since(30);

  r.most_channels = since(25) ? 64 : 32;
  r.tries_neighbours_only = since(21);
  r.replays_first = !since(27);
  r.nearest_by_hops = !since(27);
  r.starts_at_best_types = since(23);
  r.crosses_in_pairs = since(23);
  r.splits_nvlink = since(23);
  r.boundless_single_gpu = !since(21);
  r.hopper_11 = since(21);
  r.blackwell_speeds = since(30) ? 30 : since(29) ? 29 : since(27) ? 27 : since(25) ? 25 : 0;
  r.scatters_nets = since(28);

  r.swaps_any_crossing = !since(26);
  r.repeats_for_nvls = !since(28);
  r.p2p_by_net_bw = since(29);

  r.tuning = &tuning_constants(version);
  return r;
}

int NcclRelease::number(NcclPathType type) const {
  const int place = static_cast<int>(type);
  if (p2c_before_pxn) return place;
  if (has_p2c) {
    if (type == NcclPathType::kP2c) return place + 1;
    return type == NcclPathType::kPxn ? place - 1 : place;
  }
  const int without_p2c = type > NcclPathType::kP2c ? place - 1 : place;
  return !has_c2c && type > NcclPathType::kC2c ? without_p2c - 1 : without_p2c;
}

NcclPathType NcclRelease::next_worse(NcclPathType type) const {
  auto next = static_cast<NcclPathType>(static_cast<int>(type) + 1);
  if (next == NcclPathType::kC2c && !has_c2c) next = NcclPathType::kPix;
  if (next == NcclPathType::kP2c && !has_p2c) next = NcclPathType::kPxn;
  return next;
}

}  // namespace weft
