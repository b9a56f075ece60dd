#pragma once

#include <string>
#include <string_view>

#include "sim/result/measured.hpp"

namespace weft {

/// Whether a text is what nvbandwidth prints, or writes as JSON (-j).
bool is_nvbandwidth_log(std::string_view text);

/// The rows of such a text: a row for each cell of a test's matrix but "N/A", its time that of a
/// copy of nvbandwidth's usual 512 MiB unless `stated` says other bytes (-b); of latencies what is
/// shown. A test that weft has no model of is `other`, its name the row's id. Tests without a
/// matrix (waived, failed) have no rows. A row's line is, of JSON, its test's place from 1. A last
/// row that is cut off is left out and noted. Throws InputError with the place: something damaged,
/// a unit that is neither GB/s nor ns, a column that is stated otherwise.
MeasuredTable parse_nvbandwidth_log(std::string_view text, const std::string& file,
                                    const StatedColumns& stated);

}  // namespace weft
