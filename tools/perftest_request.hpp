#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/perftest/perftest.hpp"
#include "sim/input/scenario.hpp"

namespace weft {

/// A perftest as a user asks for it, words and counts not yet checked; named as the options of
/// `weft perftest`.
struct PerftestRequest {
  std::string op{"write"};
  std::string memory{"gpu"};
  std::string post{"cpu"};
  PerftestOptions options;  ///< ends, NICs, both ways; the rest follows from the other members
  bool all{false};
  unsigned iterations{0};
  unsigned tx_depth{128};
  unsigned qps{1};
  unsigned cq_moderation{0};
  unsigned rx_depth{512};
  unsigned post_list{1};
  std::string gpu;
  std::optional<std::uint64_t> seed{};
};

// perftest's own bounds; sizes above its 8 MiB were seen in the wild.
inline constexpr unsigned kMostDepth = 15'000;
inline constexpr unsigned kMostQps = 256;
inline constexpr unsigned kMostModeration = 1024;
inline constexpr unsigned kMostIterations = 100'000'000;

/// Throws InputError unless a message may have this size.
void check_message_size(Bytes size);

/// Of --all: powers of two from 2 B to 8 MiB.
std::vector<Bytes> all_perftest_sizes();

/// Checked. Throws InputError naming the option of `weft perftest` and what is allowed.
PerftestOptions perftest_options(const PerftestRequest& request, const std::vector<Bytes>& sizes);

/// `set` and what else a perftest sets. Throws InputError.
std::vector<ScenarioSetting> perftest_settings(const PerftestRequest& request,
                                               std::vector<ScenarioSetting> set);

/// What was asked for and has no effect where data are staged, or nothing is sent; "" if nothing
/// was.
std::string without_effect(const PerftestRequest& asked, const PerftestOptions& options);
/// What a user set that a perftest does not have; "" if nothing was.
std::string no_effect_on_perftest(const std::vector<ScenarioSetting>& set, const Machine& machine);
/// That the seed has none on what was run; "" if it has, or was not asked for.
std::string seed_note(const PerftestRequest& asked, const std::vector<PerftestRow>& rows);

}  // namespace weft
