#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "replay/trace/reader.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft::trace {

struct OperationCount {
  std::uint64_t posts{0};  ///< without refused ones
  std::uint64_t bytes{0};  ///< of those posts
  std::uint64_t completions{0};
};

struct PairSummary {
  std::uint32_t device{kNone};
  std::uint32_t number{0};
  std::uint32_t peer_number{0};
  std::uint8_t type{0};
  bool is_unseen{false};
  std::map<Opcode, OperationCount> operations{};
};

/// What a trace holds, counted.
struct TraceSummary {
  std::string file;
  std::uint64_t file_bytes{0};
  std::string tool;
  ClockKind clock{ClockKind::kUnknown};
  bool is_salted{false};
  bool has_topology{false};
  std::uint32_t post_ns{0};
  std::uint32_t poll_ns{0};

  std::map<std::uint32_t, Host> hosts{};
  std::map<std::uint32_t, std::string> host_names{};
  std::map<std::uint32_t, std::uint32_t> host_numbers{};  ///< of devices, as `--device` takes them
  std::map<std::uint32_t, Device> devices{};
  std::map<std::uint32_t, std::string> device_names{};
  std::uint64_t threads{0};
  std::map<std::uint32_t, PairSummary> pairs{};
  std::map<Opcode, OperationCount> operations{};
  std::map<std::uint8_t, std::uint64_t> errors{};    ///< completions by status, without success
  std::uint64_t refused{0};                          ///< posts whose call failed
  std::uint64_t shared_posts{0};                     ///< receives posted to shared queues
  std::uint64_t waiting{0};                          ///< signaled posts without a completion
  std::uint64_t unsignaled{0};                       ///< ... that asked for none
  std::uint64_t unmatched{0};                        ///< completions without a post
  std::uint64_t forgotten{0};                        ///< posts that Matcher::forgotten() counts
  Drop dropped{};                                    ///< sums; its head is not used
  std::map<std::uint16_t, std::uint64_t> unknown{};  ///< records of types that are not known

  std::uint64_t records{0};
  std::uint64_t first_ns{0};  ///< of the first and last post or completion
  std::uint64_t last_ns{0};
  Losses losses{};
  bool is_ended{false};
};

/// Reads a trace as OrderedRecords does, and throws as it does.
TraceSummary summarize(const std::string& path);

/// "write", "success"; "opcode 99", "status 99" where the format has no word.
std::string opcode_text(Opcode opcode);
std::string status_text(std::uint8_t status);
/// A host's or device's name in one line; "#3" of one that the trace does not tell.
std::string named(const std::map<std::uint32_t, std::string>& names, std::uint32_t name);

std::string summary_text(const TraceSummary& summary);
/// {"schema": "weft.trace-info/1", ...}
Json summary_json(const TraceSummary& summary);
/// Every object of that JSON with its keys.
std::vector<FormatSection> summary_format();

}  // namespace weft::trace
