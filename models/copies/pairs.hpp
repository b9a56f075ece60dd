#pragma once

#include <string>
#include <vector>

#include "models/copies/plan.hpp"

namespace weft {

/// What a user copies between, in the words of `weft copies --from A --to B`: names of GPUs and
/// CPUs between commas, "all" for all GPUs but the other end, "cpu" for the memory of the other
/// end's socket. An end that is empty is "cpu". One name stands for as many as the other end has;
/// else the ends are paired in order. Between GPUs the source copies. Throws InputError: unknown
/// or wrong devices, other counts, nothing to copy, or more than kMostPairs.
std::vector<CopyPair> copy_pairs(const Fabric& fabric, const std::string& from,
                                 const std::string& to);

inline constexpr std::size_t kMostPairs = 1024;

}  // namespace weft
