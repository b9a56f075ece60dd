#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/nccl/decide/path_type.hpp"
#include "sim/base/params.hpp"
#include "sim/input/scenario.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// A machine, and how NCCL runs on it.
struct MachineCase {
  TopologySpec spec;
  std::map<std::string, std::string> env;
  /// NCCL's log shows that data was staged in host memory, which neither its rule nor the machine
  /// explains.
  bool is_staged{false};
  std::vector<ScenarioSetting> set{};    ///< the user's parameters, which beat the topology's
  std::optional<NcclVersion> version{};  ///< of this case, where it is not that of all
};

/// What is otherwise on a machine, as data: a fault, or its mend.
struct Change {
  struct Setting {
    std::string device;     ///< "": of all, by full key
    std::string parameter;  ///< "trained_width"; "wire.mtu"
    std::string value;      ///< with its unit; "": as if it were not set
  };
  struct Links {
    std::string gpu;
    std::uint32_t count;
    std::string peer{};  ///< at their other end; "": to all
  };
  struct Place {
    std::string nic;
    std::string upstream;
  };
  std::vector<Setting> set;
  std::vector<std::string> unset;            ///< NCCL's variables
  std::map<std::string, std::string> env{};  ///< that are set
  std::vector<std::string> cable;            ///< NICs that are on no network
  std::vector<std::string> uncable{};        ///< NICs that are taken off it
  std::vector<Links> nvlinks;                ///< of GPUs, to NVSwitches or each other
  std::vector<Place> hang;                   ///< NICs in another slot
  bool by_rule{false};                       ///< the memory path is the one that NCCL's rule gives
  bool staged{false};                        ///< it is by host memory whatever the rule gives
  std::optional<NcclVersion> version{};      ///< NCCL's release

  bool empty() const { return lines().empty(); }
  /// "gpu0.trained_width=16", "unset NCCL_P2P_DISABLE": one each.
  std::vector<std::string> lines() const;
};

/// The case with something otherwise. Throws InputError where a value is none of the parameter's,
/// or there is no such device.
MachineCase changed(MachineCase what, const Change& change, const ParamCatalog& catalog);

/// Makes the pages that an IOMMU translates so large, of host memory and of GPUs.
void add_iommu_pages(const std::string& size, const std::vector<const DeviceSpec*>& cpus,
                     const std::vector<const DeviceSpec*>& gpus, Change& change);

/// What makes `changed(what, change)` the case `what` again.
Change undone(const MachineCase& what, const Change& change, const ParamCatalog& catalog);

}  // namespace weft
