#pragma once

#include <string>
#include <string_view>

#include "sim/result/measured.hpp"

namespace weft {

/// Whether a text is what linux-rdma/perftest prints, or writes as JSON (--out_json).
bool is_perftest_log(std::string_view text);

/// The rows of such a text: a message's time at the average rate, or the typical latency (the
/// average of -D); of several runs one after another each by its own head. Queue pairs, depth,
/// moderation, requests a doorbell, outstanding reads, MTU and the kind of link are as printed,
/// relaxed ordering where it is OFF (ON: as the machine has it); the memory is the GPUs' where
/// perftest says that it allocated there, else the hosts' unless `stated`. A test, connection or
/// posting that weft has no model of is `other`, its name the row's id. JSON has no unit: it is the
/// one with which rate and messages agree. Throws InputError with the place: something damaged, a
/// row before any head, a column that is stated otherwise. A last row that is cut off is left out
/// and noted.
MeasuredTable parse_perftest_log(std::string_view text, const std::string& file,
                                 const StatedColumns& stated);

}  // namespace weft
