#pragma once

#include <array>

#include "sim/base/params.hpp"

namespace weft {

/// Parameters of the error with which causes are matched; page: README.md.
inline constexpr std::array kExplainParams{
    ParamSpec{"explain.error_large", Unit::kFraction, 0.059, 0.001, 1, Origin::kMeasured,
              "models/expect/errors.csv, by tests/explain/errors_test.cpp",
              "standard deviation of ln(measured / predicted), 64 MiB and more"},
    ParamSpec{"explain.error_small", Unit::kFraction, 0.225, 0.001, 1, Origin::kMeasured,
              "models/expect/errors.csv, by tests/explain/errors_test.cpp",
              "standard deviation of ln(measured / predicted) below 64 MiB"},
    ParamSpec{
        "explain.pair_large", Unit::kFraction, 0.03, 0.001, 1, Origin::kAssumed,
        "published runs of one machine and setting by different sites differ by 0.022 from 64 MiB "
        "on and 0.28 below, where launchers differ (tests/explain/errors_test.cpp)",
        "the same of the ratio of two runs of one machine, 64 MiB and more"},
    ParamSpec{
        "explain.pair_small", Unit::kFraction, 0.08, 0.001, 1, Origin::kAssumed,
        "published runs of one machine and setting by different sites differ by 0.022 from 64 MiB "
        "on and 0.28 below, where launchers differ (tests/explain/errors_test.cpp)",
        "the same of the ratio of two runs of one machine below 64 MiB"},
    ParamSpec{"explain.common", Unit::kFraction, 0.05, 0, 0.95, Origin::kMeasured,
              "models/expect/errors.csv, by tests/explain/errors_test.cpp",
              "share of that variance which all sizes of a run have in common"},
    ParamSpec{"explain.slow", Unit::kFraction, 0.85, 0, 0.95, Origin::kMeasured,
              "models/expect/errors.csv, by tests/explain/errors_test.cpp",
              "share of it which varies slowly with the logarithm of size"},
    ParamSpec{"explain.slow_octaves", Unit::kCount, 6, 0.5, 40, Origin::kMeasured,
              "models/expect/errors.csv, by tests/explain/errors_test.cpp",
              "doublings of size over which that part is no longer alike (1/e)"},
    ParamSpec{
        "explain.effect", Unit::kFraction, 0.32, 0, 1, Origin::kMeasured,
        "tests/data/h200, in part fitted to, by tests/explain/changes_test.cpp",
        "standard deviation of ln(measured change / predicted), changes being logarithms of time"},
};
static_assert(every_param_is_sourced(kExplainParams));

}  // namespace weft
