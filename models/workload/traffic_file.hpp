#pragma once

#include <cstdint>
#include <string>

#include "models/workload/traffic_matrix.hpp"
#include "sim/base/stop.hpp"
#include "sim/base/units.hpp"

namespace weft {

/// A larger file of traffic is refused.
inline constexpr std::int64_t kMostTrafficFile = 256LL << 20;
/// The most pairs of ranks that send, and lines of a file that says so.
inline constexpr std::size_t kMostPairs = 16'000'000;
/// The most that a rank sends another.
inline constexpr Bytes kMostSend{1LL << 42};

/// A CSV file's text as a matrix; `file` is the name that messages use. Throws InputError with the
/// place: it is neither a square of sizes, a row for each rank, nor a list of pairs under the head
/// `from,to,bytes`; ranks that are not there; pairs that stand twice; more than kMostPairs.
/// Stopped, once `stop` asks for it.
TrafficMatrix parse_traffic_matrix(const std::string& text, const std::string& file,
                                   std::uint32_t ranks, const Stop* stop = nullptr);

/// Likewise of a list under the head `rank,expert,tokens`: how many of its tokens a rank sends an
/// expert, who stands on rank expert / (experts / ranks). Precondition: experts are a multiple of
/// ranks.
TrafficMatrix parse_traffic_routing(const std::string& text, const std::string& file,
                                    std::uint32_t ranks, std::uint32_t experts, Bytes token_bytes,
                                    const Stop* stop = nullptr);

}  // namespace weft
