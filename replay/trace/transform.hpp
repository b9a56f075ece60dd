#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replay/trace/reader.hpp"

// Traces made from traces. Each reads block by block, writes a file that takes its place once it is
// whole, and throws InputError: files as TraceReader has it, and what is said below.
namespace weft::trace {

/// What was read of one file, and how whole it was.
struct Source {
  std::string file;
  Losses losses;
  bool is_ended{false};
  std::uint64_t left_out{0};  ///< records of types that are not known, where they cannot be kept
};

struct CutRequest {
  std::uint64_t from_ns{0};  ///< from the first record of the trace
  std::optional<std::uint64_t> to_ns{};
  std::vector<std::uint32_t> pairs{};  ///< empty: all
  std::vector<std::string> devices{};  ///< "mlx5_0" or "mlx5_0@HOST"; empty: all
};

struct CutResult {
  Source source;
  std::uint64_t kept{0};  ///< posts and completions
  std::uint64_t left_out{0};
};

/// Keeps the posts, completions, drops and marks of a span of time, and those of some queue pairs,
/// with all objects that were made until its end. Throws InputError where no queue pair is meant.
CutResult cut_trace(const std::string& path, const CutRequest& request, const std::string& output);

struct HostClock {
  std::string file;
  std::string host;
  std::int64_t shift_ns{0};
  std::uint64_t error_ns{0};
  std::uint64_t matched{0};  ///< operations between this file's queue pairs and others'
};

/// One trace of several: their objects are numbered anew, their clocks brought to that of the
/// first.
///
/// What one host sends and another one receives bounds the difference of their clocks: a receive is
/// not complete before its send is posted, and a send is not complete before its receive is posted
/// (IBTA vol. 1, 9.7.5.2.8: without a receive the responder answers "not ready"). Bounds of several
/// pairs of hosts are closed over (shortest paths in the graph of differences); a clock's shift is
/// the middle of its tightest bounds, its error half their distance. Files of one host have one
/// clock. Throws InputError where a file's clock is not bounded both ways, or where bounds
/// contradict each other.
std::vector<HostClock> merge_traces(const std::vector<std::string>& paths,
                                    const std::string& output, std::vector<Source>& sources);

struct ScrubResult {
  Source source;
  std::map<std::string, std::uint64_t> replaced;  ///< by field, such as "host.text"
  bool had_topology{false};
};

/// Puts pseudonyms in place of names, addresses, keys, GUIDs, LIDs, work requests' ids and process
/// numbers; leaves out the topology's text. The same salt gives the same pseudonyms, in other files
/// too.
ScrubResult scrub_trace(const std::string& path, const std::string& salt,
                        const std::string& output);

struct ImportResult {
  std::uint64_t operations{0};
  std::uint64_t pairs{0};
};

/// Network operations as a network plugin saw them, one file a host: CSV, plain or gzip'd, with the
/// columns dir (send, recv), dev, link, seq, bytes, post_s, done_s, gpu_mem. A link joins the sends
/// of one file to the receives of another. Throws InputError with file, line and column.
ImportResult import_net_operations(const std::vector<std::string>& files,
                                   const std::string& output);

}  // namespace weft::trace
