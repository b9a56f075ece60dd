#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/copies/plan.hpp"
#include "sim/base/stop.hpp"
#include "sim/result/run_result.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// Copies between host memory and GPUs, and between GPUs, as nvbandwidth measures them, on either
/// transport. The page is models/copies/README.md.

/// Copies of several pairs at once.
struct CopyTask {
  std::vector<CopyPair> pairs{};
  bool bidirectional{false};  ///< each pair also the other way, at the same time
  CopyBy by{CopyBy::kEngine};
  std::uint32_t blocks{0};  ///< thread blocks of a kernel, of 512 threads each; 0: one for each SM
  bool uses_own_memory{true};  ///< see CopyOrder
  bool on_packets{false};      ///< TLP by TLP; else shared rates
  const Stop* stop{nullptr};   ///< asks it to end early
};

/// One pair of a task, with copies of one size.
struct CopyRow {
  std::string test;  ///< nvbandwidth's name of the matrix that it belongs to; "" if to none
  std::string from;
  std::string to;
  std::string kind;  ///< "h2d", "d2h", "d2d" or "bidirectional"
  CopyBy by{CopyBy::kEngine};
  std::string gpu;          ///< whose engine or kernel copies (of both ways: from `from`)
  Bytes bytes;              ///< of one copy, each way
  std::uint64_t copies{1};  ///< one after another, each way
  Duration time;            ///< of one, on average; of both ways the slower
  Bandwidth rate{Bandwidth::bytes_per_s(1)};  ///< of payload; of both ways together
  Bandwidth forth{rate};                      ///< of it, from `from` to `to`
  std::optional<Bandwidth> back{};            ///< of it, the other way, if it runs
  std::vector<CauseShare> limited_by;  ///< of the time (of both ways the slower), largest first
  std::uint64_t trajectory{0};         ///< of both ways
};

/// The topology for copies: their buffers are large, unless it says otherwise itself.
TopologySpec with_large_buffers(TopologySpec spec, const ParamCatalog& catalog);

/// Throws InputError: more bytes than packets may carry.
void check_packets(const CopyTask& task, Bytes size);

/// Copies of the same size of all pairs at once, from one start; a row for each pair. Throws
/// InputError: no way between a pair, more bytes than packets may carry; Stopped some thousand
/// events after `task.stop` asks for it.
std::vector<CopyRow> run_copies(const Machine& machine, const CopyTask& task, Bytes size);

/// What packets may carry in one run of copies.
inline constexpr Bytes kMostOnPackets = Bytes::gib(2);

}  // namespace weft
