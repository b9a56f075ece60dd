#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/machine/machine.hpp"
#include "replay/simulate/ends.hpp"
#include "replay/simulate/recorded.hpp"
#include "replay/simulate/replay_plan.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft::replay {

enum class ReplayFidelity : std::uint8_t { kFluid, kPackets };

/// When something happened to an operation, from the begin of the trace. None: it did not.
struct Predicted {
  std::optional<Duration> posted{};
  std::optional<Duration> done{};  ///< its completion was taken
};

struct Replay {
  std::vector<Predicted> operations;  ///< as Recorded::operations
  Duration time;                      ///< until all had ended
  std::map<std::string, std::uint64_t> notes;
};

/// Runs a trace on a transport of its own. Throws InputError as replay_plan() and the transport do,
/// and where operations wait for ever for what is not in the trace.
Replay simulate(const Machine& machine, const Recorded& recorded, const Ends& ends, Loop loop,
                ReplayFidelity fidelity);

/// Operations of one kind and about one size: how their times, from post to completion, are off.
struct ErrorClass {
  trace::Opcode opcode{trace::Opcode::kOther};
  std::uint64_t up_to_bytes{0};  ///< a power of two; the class below ends at half of it
  std::uint64_t n{0};
  double p10{0};  ///< of predicted / recorded - 1
  double median{0};
  double p90{0};
};

/// Bytes whose completion was taken, in one part of the span.
struct GoodputStep {
  Duration from;
  double recorded_gigabytes_per_s{0};
  double predicted_gigabytes_per_s{0};
};

struct Divergence {
  std::uint32_t operation{0};
  double ratio{1};  ///< predicted / recorded
};

struct Comparison {
  std::vector<ErrorClass> classes;
  std::uint64_t compared{0};
  Duration recorded_span;  ///< from the first post to the last completion of what is compared
  Duration predicted_span;
  std::vector<GoodputStep> goodput;
  std::optional<Divergence> first;  ///< in the order of recorded completions
};

/// `factor`: an operation diverges whose time is off by more, up or down; above 1.
Comparison compare(const Recorded& recorded, const Replay& replay, double factor);

/// What reports say beside.
struct ReplayFacts {
  std::string trace;
  std::string topology;
  std::string fidelity;
  std::string loop;
  double factor{2};
};

/// "write of 64 KiB on queue pair 7, posted at 12.3 us".
std::string operation_text(const Recorded& recorded, std::uint32_t operation);

std::string replay_text(const Recorded& recorded, const Replay& replay,
                        const Comparison& comparison, const ReplayFacts& facts);
/// {"schema": "weft.replay/1", ...}
Json replay_json(const Recorded& recorded, const Replay& replay, const Comparison& comparison,
                 const ReplayFacts& facts);
/// Every object of that JSON with its keys.
std::vector<FormatSection> replay_format();
/// An operation a row.
std::string replay_csv(const Recorded& recorded, const Replay& replay);
/// Its columns.
FormatSection replay_csv_format();

}  // namespace weft::replay
