#pragma once

#include <string>
#include <vector>

#include "sim/io/json.hpp"

namespace weft {

/// Schemas that a report can show, such as "weft.run/1".
std::vector<std::string> report_schemas();

/// What the report's page needs of one result, in one form whatever command wrote it:
///   name, schema
///   columns     [{name, unit}]: every key of the rows that holds a number, a text or true/false
///   rows        [[value or null, by column]]
///   causes      of each row [[cause, share, where]]
///   curves      [{op, label, points: [[row, bytes, predicted, low, high, measured]]}]: ascending
///               sizes; bandwidths in GB/s = 1e9 bytes/s, null where there is none; the label may
///               be empty
///   timeline    of a replay [[from, recorded, predicted]], in us and GB/s; else empty
///   links       of runs that say how much of links was in use {names: ["pcisw0 -> cpu0"], rows: of
///               each row [[place in names, share]], ports: whether they are ports of packets
///               while one launch runs, not links over a row's time, left_out: of each row how many
///               ports were in use and are not listed}, else null
///   explained   of an explanation its answers, else null (report_explain.hpp)
///   sweep       of a sweep its axes (report_sweep.hpp), else null
///   verdict, notes   sentences
///   provenance  [[key, text]]
///   parameters  [[key, device, value with its unit, origin, source]]
/// Throws InputError that begins with `name`: another schema, or a value of another kind.
Json report_file(const Json& result, const std::string& name);

}  // namespace weft
