#pragma once

#include <string>

#include "sim/result/run_result.hpp"

namespace weft {

/// The timelines of a result's rows, beside each other from the same start, as ui.perfetto.dev
/// reads them: Perfetto's messages Trace, TrackDescriptor and TrackEvent (protos/perfetto/trace) in
/// protobuf's wire format. Times are whole nanoseconds, as Perfetto's are; bytes, and how long in
/// picoseconds, stand with each slice.
std::string perfetto_trace(const RunResult& result);

}  // namespace weft
