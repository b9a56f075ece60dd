#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/nccl/decide/decide.hpp"
#include "models/nccl/decide/tuning.hpp"
#include "sim/base/units.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// Sizes for which the choice is shown: 1 KiB to 1 GiB by factors of 4.
std::vector<Bytes> nccl_choice_sizes();

/// The decisions in the lines of NCCL_DEBUG=INFO, without their prefix.
std::string nccl_text(const NcclDecisions& decisions, const Tuning& tuning,
                      std::span<const Bytes> sizes);

/// The contract of design.md section 5: the keys of data/h200/nccl-2.28.9-decisions.json's cases.
Json nccl_json(const NcclDecisions& decisions, const Tuning& tuning, std::span<const Bytes> sizes);
/// Every object of that JSON with its keys.
std::vector<FormatSection> nccl_format();

}  // namespace weft
