#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/machine/machine.hpp"
#include "models/nccl/decide/env.hpp"
#include "models/nccl/schedule.hpp"
#include "sim/base/operation.hpp"

namespace weft {

/// Whether only packets see a parameter: `key` is that of a setting, of a kind or of one device.
bool only_packets_see(std::string_view key);
/// Adds which of the settings have no effect, as only packets see them; `where` there are none.
void add_packets_note(const std::vector<ScenarioSetting>& settings, std::string_view where,
                      std::vector<std::string>& notes);
/// In commands that have packets as well.
inline constexpr std::string_view kWithoutPackets = "without --fidelity packet";
/// What NCCL is told of losses, where nothing is lost; `why` ends the sentence.
void add_losses_note(const NcclEnv& env, std::string_view why, std::vector<std::string>& notes);
/// Why, in commands that have packets as well.
inline constexpr std::string_view kLossesNeedPackets = ": losses need --fidelity packet";
/// Whether a parameter says how the host launches kernels.
bool is_of_launches(std::string_view key);
/// That one of the few nodes that stand for all has the place of the one that is not like the
/// others. `runs_few`: some task's.
void add_unlike_note(const Machine& machine, bool runs_few, std::vector<std::string>& notes);
/// Which rows are extended, and from what. `seed`: by which a hash draws the connections' ways.
void add_extended_notes(RunResult& result, std::optional<std::uint64_t> seed);
/// What the simple rules leave unread: lists and exclusions of algorithms and protocols, and what
/// NCCL is told of NICs.
void add_unread_notes(const NcclEnv& env, const std::vector<ScenarioSetting>& settings,
                      const Params& params, std::vector<std::string>& notes);
/// What the user decides in NCCL's place; of sends and receives alone no algorithm and protocol.
void add_forced_note(const Params& params, bool only_sends, std::vector<std::string>& notes);
/// NVLS's channels are what NCCL_NVLS_NCHANNELS says, whatever the number of rings.
void add_nvls_channels_note(const Params& params, const std::vector<ResultRow>& rows,
                            std::vector<std::string>& notes);
/// A seed that the user gave to a run in which nothing was drawn.
void add_seed_note(const std::vector<ScenarioSetting>& settings, bool has_drawn,
                   std::vector<std::string>& notes);
/// What the user set of NICs that are emulated and move nothing themselves.
void add_emulated_note(const std::vector<ScenarioSetting>& settings, const Machine& machine,
                       std::vector<std::string>& notes);
/// That an all-to-all of peers through a root complex may be far slower than here.
void add_root_complex_note(const Machine& machine, const Schedule& schedule, Op op,
                           std::vector<std::string>& notes);
/// Launches that the user set and that are not those of this run.
void add_launch_notes(const std::vector<ScenarioSetting>& settings, std::string_view launch,
                      std::vector<std::string>& notes);
/// Variables ("NAME=VALUE") of what sends and receives are run without.
void add_pxn_note(const std::vector<std::string>& env, std::vector<std::string>& notes);
/// What one of many launches of a chain of ranks leaves out.
void add_chain_note(Op op, const Fabric& fabric, std::string_view launch,
                    std::vector<std::string>& notes);
/// Which sizes NCCL would run by an algorithm that weft does not execute, or packets do not.
void add_choice_notes(RunResult& result, Fidelity fidelity);

}  // namespace weft
