#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/machine/machine.hpp"
#include "sim/base/operation.hpp"
#include "sim/input/scenario.hpp"

namespace weft {

/// What decides which parameters take part in a run of NCCL's operations at all.
struct RunFacts {
  const Machine& machine;
  bool is_simple;          ///< nccl.decisions=simple
  bool has_packets;        ///< --fidelity packet
  bool asks_collnet;       ///< NCCL_COLLNET_ENABLE=1
  std::optional<Op> op{};  ///< none: several
};

/// Adds which of the settings cannot have an effect, whatever their values, and why: what they
/// belong to takes no part in this run. One note a reason. A setting that takes part and is no
/// limit just here is not among them; nor are those that add_packets_note() names.
void add_unused_notes(const std::vector<ScenarioSetting>& settings, const RunFacts& run,
                      std::vector<std::string>& notes);
/// "no effect on copies: nccl.algo, nic3.rate": the settings of what takes no part there, by the
/// scopes of their parameters; "" without any.
std::string no_effect_on(std::string_view what, const std::vector<ScenarioSetting>& settings,
                         const Machine& machine, std::initializer_list<std::string_view> scopes);
/// A rate of the network's links that the user set and that is beyond that of all NICs (of a NIC's
/// beyond the network's settle() says it), and one of NICs that their PCIe links do not carry; a
/// single switch that carries less than the NICs that it joins.
void add_rate_notes(const std::vector<ScenarioSetting>& settings, const Machine& machine,
                    std::vector<std::string>& notes);
/// What names protocols and algorithms, where an operation is of sends and receives, for which NCCL
/// reads neither.
void add_point_to_point_note(const std::vector<ScenarioSetting>& settings,
                             const std::vector<std::string>& env, std::vector<std::string>& notes);

}  // namespace weft
