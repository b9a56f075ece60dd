#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "models/expect/expect.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// One floor of a gate.
struct GateFloor {
  std::string op;
  std::int64_t bytes{0};
  std::int64_t ranks{0};
  std::int64_t nodes{0};
  std::int64_t qps{1};
  std::int64_t tx_depth{128};
  double floor{0};  ///< GB/s = 1e9 bytes/s, of bus bandwidth
  double expected{0};
  double low{0};
  double high{0};
  std::string basis;
};

/// Operation, bytes, ranks, nodes, queue pairs and depth: what a floor is for.
using GateKey =
    std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

/// Floors as a file has them.
struct Gate {
  std::string file;
  std::string machine;
  std::vector<GateFloor> floors;
  std::map<GateKey, std::size_t> index;  ///< of `floors`

  /// That of a measured row; nullptr if it has none.
  const GateFloor* find(const MeasuredRow& row) const;
};

/// "schema": "weft.gate/1". The rows of the healthy machine.
Json gate_json(const Expected& expected);
/// Its objects with their keys.
std::vector<FormatSection> gate_format();

/// Whether a text is a gate, at sight.
bool is_gate(std::string_view text);
/// Reads what gate_json() wrote. Throws InputError with the file: over 16 MiB, damaged, of another
/// schema, a number that is none of its key, no floor, two floors for the same thing.
Gate parse_gate(std::string_view text, const std::string& file);

}  // namespace weft
