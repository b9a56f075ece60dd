#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/doctor/finding.hpp"
#include "sim/input/evidence/evidence.hpp"

namespace weft {

/// A machine as it was found and as it should be.
struct Subject {
  MachineCase found;
  MachineCase healthy;
  std::vector<ScenarioSetting> found_set;  ///< what the user sets beside
  std::vector<ScenarioSetting> healthy_set;
  std::vector<std::string> mended;  ///< what is otherwise on the healthy one, one each
  std::vector<std::string> notes;   ///< what had to be assumed
  std::string nccl_version;         ///< as evidence says it; "" where none does
  bool is_fitted{false};            ///< what is set has values that `weft calibrate` fitted
};

/// What a topology and settings say that no healthy machine has, undone: trained_gen and
/// trained_width lower than the ports can, ACS bits that redirect or block, an IOMMU that
/// translates, nic.mrrs below 4096 B, relaxed ordering or GPUDirect RDMA off at a NIC, uplinks that
/// are down, and what failed.* says.
Subject subject_of(TopologySpec spec, std::vector<ScenarioSetting> set,
                   const ParamCatalog& catalog);

/// The machine that evidence shows, and the same with all mended that the doctor's checks find and
/// can mend. `nodes`, `gpu`: as Patient has them. Throws InputError where no evidence names a GPU,
/// or it is of several hosts.
Subject subject_of(const Evidence& evidence, std::optional<std::uint32_t> nodes,
                   const std::string& gpu, std::vector<ScenarioSetting> set,
                   const ParamCatalog& catalog);

}  // namespace weft
