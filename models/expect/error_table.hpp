#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/io/embedded_file.hpp"

namespace weft {

/// A measured point that no parameter was made from, beside what weft predicts of it.
struct KnownError {
  std::string site;         ///< who measured where: points of one site err together
  std::string run;          ///< of tests/data/public-logs.csv or perftest-published.csv
  std::string transport;    ///< "nvlink" or "net"
  std::string memory_path;  ///< of net, as a measured table has it; else ""
  std::int64_t nodes{1};
  std::int64_t ranks{1};
  std::string op;
  std::int64_t bytes{0};
  std::int64_t qps{1};  ///< of perftest, as the next
  std::int64_t tx_depth{128};
  double measured_us{0};
  double predicted_us{0};

  /// ln(measured / predicted time): positive where weft is too fast.
  double log_ratio() const;
  std::int64_t gpus_per_node() const { return ranks / nodes; }
};

/// Reads a table of errors. Throws InputError with its place: a column missing or unknown, a cell
/// that is none of its column, no row.
std::vector<KnownError> parse_errors(std::string_view text, const std::string& file);

/// errors.csv, as built into the program.
std::vector<EmbeddedFile> embedded_errors();
/// Its rows.
std::vector<KnownError> known_errors();

}  // namespace weft
