#pragma once

#include <string>
#include <vector>

#include "models/expect/expect.hpp"
#include "models/expect/judge.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// Notes of both machines, each once; what only the one as found gives says so.
std::vector<std::string> all_notes(const Expected& expected);

/// For people, in the shape of nccl-tests, or of perftest for its operations: a line a size with
/// prediction, interval, floor and limit, beside it what the machine gives as found where that
/// differs; below what the intervals are based on.
std::string expect_text(const Expected& expected);
/// A line for each measured row, the last one counts them.
std::string judgement_text(const Judgement& judgement);
/// What was measured and its floor, as the tool prints them: "allreduce of 1 MiB, 3 GB/s, floor 4".
std::string beside_floor_text(const JudgedRow& row);

/// "schema": "weft.expect/1".
Json expect_json(const Expected& expected);
Json judgement_json(const Judgement& judgement);
/// Every object of that JSON with its keys.
std::vector<FormatSection> expect_format();

}  // namespace weft
