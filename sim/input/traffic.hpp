#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/io/keys.hpp"
#include "sim/io/yaml.hpp"

namespace weft {

/// Irregular traffic between all GPUs, as a scenario states it: one group of sends and receives.
struct TrafficSpec {
  enum class Kind : std::uint8_t {
    kAllToAllV,    ///< a matrix of bytes
    kPermutation,  ///< each rank sends to one and receives from one
    kIncast,       ///< many send to one
    kDispatch,     ///< tokens go to their experts
    kCombine       ///< and back
  };
  Place place;
  Kind kind{Kind::kAllToAllV};
  std::string matrix;                    ///< a file, resolved from the scenario's folder
  std::string routing;                   ///< dispatch, combine: likewise; empty: drawn
  Bytes bytes;                           ///< permutation, incast: of each sender
  std::optional<std::uint32_t> shift;    ///< permutation: rank r sends to rank r + shift
  std::uint64_t seed{1};                 ///< permutation without a shift, dispatch, combine
  std::optional<std::uint32_t> senders;  ///< incast: how many; absent: all others
  std::uint32_t to{0};                   ///< incast: who receives
  std::uint32_t stride{1};               ///< incast: ranks from one sender to the next
  std::uint32_t tokens{0};               ///< of each rank
  std::uint32_t experts{0};              ///< of all ranks, as many on each
  std::uint32_t top_k{1};                ///< experts of a token
  Bytes token_bytes;
  double skew{0};  ///< Zipf: the i-th expert is chosen with a weight of i^-skew
};
/// "alltoallv", "permutation", "incast", "dispatch", "combine".
std::string_view traffic_name(TrafficSpec::Kind kind);
/// nullopt: no word for traffic.
std::optional<TrafficSpec::Kind> traffic_kind(std::string_view name);

/// Reads a scenario's `workload` whose op is one of these; `folder` is the scenario's. Throws
/// InputError with the place: keys that do not go with the op, or are missing.
TrafficSpec read_traffic(const Yaml& yaml, const std::string& folder);

/// Its map with its keys.
FormatSection traffic_format();

}  // namespace weft
