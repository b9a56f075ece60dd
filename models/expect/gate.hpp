#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/expect/expect.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// What a floor is for, or was measured.
struct GateKey {
  std::string op;
  std::int64_t bytes{0};
  std::int64_t ranks{0};
  std::int64_t nodes{0};
  std::string memory_path;  ///< inside a node what joins its GPUs: "nvlink"
  std::int64_t qps{1};      ///< of perftest, as the next two; floors are of one request a doorbell
  std::int64_t tx_depth{128};
  std::int64_t post_list{1};

  auto operator<=>(const GateKey&) const = default;
};
GateKey key_of(const MeasuredRow& row);
/// "write_bw of 64 KiB, 2 GPUs of 2 nodes, memory_path host, qps 4, tx_depth 128".
std::string key_text(const GateKey& key);

/// One floor of a gate.
struct GateFloor {
  GateKey key;
  double floor{0};  ///< GB/s = 1e9 bytes/s, of bus bandwidth
  double expected{0};
  double low{0};
  double high{0};
  std::string basis;
};

/// A key's field of which a floor and a measured row say something else.
struct KeyDifference {
  std::string field;
  std::string floor;
  std::string measured;
};

/// Floors as a file has them.
struct Gate {
  std::string file;
  std::string machine;
  std::set<std::string> gpus{};  ///< the parts of its GPUs; empty where the file has none
  std::vector<GateFloor> floors;
  std::map<GateKey, std::size_t> index;  ///< of `floors`

  /// That of a measured row; nullptr if it has none.
  const GateFloor* find(const MeasuredRow& row) const;
  /// What the floor that is most like a measured row is for and the row is not.
  std::vector<KeyDifference> missing(const MeasuredRow& row) const;
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
