#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/input/scenario.hpp"
#include "sim/topology/fabric.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// A setting of what has failed or lies ready: "failed.nodes", "spare.uplinks", ...
struct SparesKey {
  std::string_view key;
  std::string_view meaning;
};
std::span<const SparesKey> spares_keys();
inline constexpr std::string_view kSparesRange = "whole number from 0, or a share of all: 2 %";
bool is_spares_key(std::string_view key);
/// Whether it says what has failed, so that a cluster as it is bought has none of it.
inline bool is_failed_key(std::string_view key) { return key.starts_with("failed."); }

/// Whether it says none: "0", "0 %".
bool says_none(const ScenarioSetting& setting);

/// What a note says of spares that nothing makes use of.
inline constexpr std::string_view kSparesAreIdle =
    "where none has failed, but on costs (weft sweep --prices)";

/// Of nodes, NICs or links from leaves to spines.
struct FailedAndSpare {
  std::uint64_t failed{0};
  std::uint64_t spare{0};

  /// What no spare makes good.
  std::uint64_t missing() const { return failed > spare ? failed - spare : 0; }
};

/// What has failed of a cluster and what was bought to take its place, as settings say. A share is
/// of what was bought without spares, rounded up. Spares stand wherever what they replace stood. A
/// NIC that is not made good takes its node out of service (each one of its own), which a spare
/// node may make good; links that are not are missing of one leaf after the other, and what they
/// carried goes by the leaf's others.
struct Spares {
  FailedAndSpare nodes;
  FailedAndSpare nics;
  FailedAndSpare uplinks;

  std::uint64_t missing_nodes() const {
    return FailedAndSpare{nodes.failed + nics.missing(), nodes.spare}.missing();
  }
};

/// Whether there are leaves whose links to spines may fail: several, of a folded Clos.
bool has_leaves_below_spines(const Fabric& fabric);

/// Takes out what is of failures or spares: of a cluster of which they are taken out already.
void erase_spares(std::vector<ScenarioSetting>& settings);

/// Throws InputError where one of the settings is of failures or spares: for what runs on a few
/// devices by their names, such as a perftest.
void refuse_spares(const std::vector<ScenarioSetting>& settings);

/// `spec`: with all other settings applied. Throws InputError: no such number; a number of uplinks
/// where there are none.
Spares spares_of(const std::vector<ScenarioSetting>& settings, const TopologySpec& spec);

/// Leaves out of the cluster what is missing, and says so in its notes: of nodes the last ones, of
/// a network that stays as it was built for all. Throws InputError where nothing is left.
void take_out_missing(const Spares& spares, TopologySpec& spec);

}  // namespace weft
