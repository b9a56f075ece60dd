#pragma once

#include <string>
#include <string_view>

#include "sim/result/measured.hpp"

namespace weft {

/// Whether a text is what nccl-tests prints, or JSON (-J) that is no other tool's.
bool is_nccl_tests(std::string_view text);

/// The rows of such a text: sizes and times out of place, the operation, ranks, hosts,
/// launches and release of NCCL as far as it states them; other columns are as `stated`. Old
/// releases do not state the operation: it is that of the program whose command line stands above,
/// or the one that alone has such columns, which is noted. A row's line is, of JSON, its place in
/// `results` from 1. Sizes of 0 bytes are left out, and a last row that is cut off, which is noted.
/// What went wrong by the program's own word (wrong values, values out of bounds, errors) are
/// failures. Throws InputError with the place: something damaged, an operation or a split into
/// groups that a measured table does not know, a column that is needed and not stated, one that is
/// stated otherwise.
MeasuredTable parse_nccl_tests(std::string_view text, const std::string& file,
                               const StatedColumns& stated);

}  // namespace weft
