#pragma once

#include <string>
#include <vector>

#include "models/workload/traffic.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// "schema": "weft.traffic/1".
Json to_json(const TrafficResult& result);
/// Every object of that JSON with its keys, but for `provenance`, which is a result's.
std::vector<FormatSection> traffic_result_format();

/// The same as tables for people: the ranks that receive most, the most loaded links.
std::string traffic_text(const TrafficResult& result);

}  // namespace weft
