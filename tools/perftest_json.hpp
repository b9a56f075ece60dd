#pragma once

#include <string>
#include <vector>

#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"
#include "tools/perftest_request.hpp"

namespace weft {

/// A perftest that was run.
struct PerftestReport {
  PerftestRequest request;
  PerftestOptions options;
  std::string from;  ///< devices with their nodes: "gpu0@0"
  std::string to;
  std::string from_nic;
  std::string to_nic;
  std::vector<PerftestRow> rows;
};

/// "schema": "weft.perftest/1".
Json to_json(const PerftestReport& report);
/// Every object of that JSON with its keys, but for its rows' probes: those are a result's.
std::vector<FormatSection> perftest_format();

}  // namespace weft
