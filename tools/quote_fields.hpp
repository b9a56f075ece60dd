#pragma once

#include <array>

#include "models/doctor/finding.hpp"
#include "sim/result/fields.hpp"

namespace weft {

/// What evidence says, as doctor and explain write it.
inline constexpr std::array kQuoteFields{
    JsonField<Quote>{{"place", "text", "where one place says it", "file and line"},
                     [](const Quote& q) { return if_any(q.place); }},
    JsonField<Quote>{{"text", "text", "", "what it says"},
                     [](const Quote& q) -> Json { return q.text; }}};

}  // namespace weft
