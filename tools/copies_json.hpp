#pragma once

#include <string>
#include <vector>

#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"
#include "tools/copies_report.hpp"

namespace weft {

/// What took most of a row's time, where, and how much of it.
std::string limit_text(const CopyRow& row);

/// "schema": "weft.copies/1".
Json to_json(const CopiesReport& report);
/// Every object of that JSON with its keys, but for its provenance: that is a result's.
std::vector<FormatSection> copies_format();

}  // namespace weft
