#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/params/parts.hpp"
#include "sim/base/params.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {

/// Whether what is set of one node alone counts; not where a few nodes are looked at that stand for
/// others, as NCCL decides nothing by it.
enum class NodesAre : std::uint8_t { kAsSet, kAlike };

/// The parameters of one fabric's devices: each value by the device's own settings, its part and
/// the declared default, in the order that Params states. `fabric`, `params` and `parts` must
/// outlive it.
class DeviceParams {
 public:
  /// Throws InputError if the topology names a part that does not exist, or something is set for a
  /// node that does not.
  DeviceParams(const Fabric& fabric, const Params& params, const PartLibrary& parts,
               NodesAre nodes = NodesAre::kAsSet);

  const Fabric& fabric() const { return *fabric_; }
  /// For parameters without a device ("wire.mtu").
  const Params& params() const { return *params_; }
  ParamScope scope(DeviceId device) const;
  /// The nodes of which something is set that is not set for all, ascending.
  const std::vector<std::uint32_t>& unlike_nodes() const { return unlike_nodes_; }
  /// The first of the others; where there are none, the first of all.
  std::uint32_t like_node() const { return like_node_; }

  double number(std::string_view key, DeviceId device) const {
    return params_->number(key, scope(device));
  }
  Duration duration(std::string_view key, DeviceId device) const {
    return params_->duration(key, scope(device));
  }
  Bandwidth bandwidth(std::string_view key, DeviceId device) const {
    return params_->bandwidth(key, scope(device));
  }
  Bytes bytes(std::string_view key, DeviceId device) const {
    return params_->bytes(key, scope(device));
  }
  std::uint32_t flags(std::string_view key, DeviceId device) const {
    return params_->flags(key, scope(device));
  }
  std::string_view choice(std::string_view key, DeviceId device) const {
    return params_->choice(key, scope(device));
  }

 private:
  const Fabric* fabric_;
  const Params* params_;
  std::vector<const ParamValues*> part_of_;       // by device of one node
  std::vector<const ParamValues*> part_of_tier_;  // of the network's switches
  std::map<DeviceId, std::string> on_node_;       // "nic3@5", of what is set for it alone
  std::vector<std::uint32_t> unlike_nodes_;
  std::uint32_t like_node_{0};
};

}  // namespace weft
