#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replay/trace/connect.hpp"
#include "replay/trace/reader.hpp"
#include "replay/trace/record.hpp"

namespace weft::replay {

/// None of a table.
inline constexpr std::uint32_t kNone = trace::kNone;

/// One work request of a trace.
struct Operation {
  std::uint32_t pair{0};  ///< of Recorded::pairs
  trace::Opcode opcode{trace::Opcode::kOther};
  std::uint64_t bytes{0};
  std::uint64_t before_bytes{0};  ///< of unsignaled ones of its queue that its completion tells of
  std::uint64_t posted_ns{0};     ///< from the trace's begin
  std::uint64_t done_ns{0};       ///< its completion was taken; 0: none was
  std::uint32_t list_index{0};
  std::uint64_t number{0};  ///< of a receive, and of what takes one: how many were before it
  trace::MemoryKind memory{trace::MemoryKind::kUnknown};
  bool is_inline{false};
  bool is_shared{false};          ///< a receive of a shared queue; its pair is that of what came
  const char* left_out{nullptr};  ///< why it is not replayed
};

/// What a thread did, in the order of time.
struct Event {
  std::uint64_t time_ns{0};
  std::uint32_t operation{0};
  bool is_completion{false};
};

struct RecordedThread {
  std::string name;
  std::vector<Event> events;
};

/// One end of a queue pair.
struct RecordedPair {
  std::uint32_t name{0};  ///< in the trace
  trace::PairEnd end{};
  std::uint32_t device{kNone};  ///< of Recorded::devices
  std::uint8_t type{0};
  bool is_unseen{false};
  bool is_shared{false};      ///< takes receives of a shared queue
  std::uint32_t peer{kNone};  ///< the other end, if it is in the trace
};

struct RecordedDevice {
  std::string name;       ///< "mlx5_0"
  std::uint32_t host{0};  ///< the trace's hosts, from 0
  std::vector<std::uint16_t> lids{};
};

/// A trace's operations, as replaying needs them. Programs whose hosts have one name ran on one
/// host, and devices of one name there are one.
struct Recorded {
  std::string file;
  std::vector<RecordedDevice> devices;  ///< that carry what is replayed
  std::vector<RecordedPair> pairs;
  std::vector<Operation> operations;  ///< in the order of time
  std::vector<RecordedThread> threads;
  std::uint32_t hosts{0};
  std::uint64_t span_ns{0};
  /// What is not replayed, and how often: "atomic operations", ...
  std::map<std::string, std::uint64_t> left_out;
};

inline constexpr std::size_t kMostOperations = 4'000'000;

/// Reads a trace. Throws InputError as OrderedRecords does, with more than kMostOperations, and
/// where no operation can be replayed, with the reasons.
Recorded read_recorded(const std::string& path);

/// Sends, and writes that tell their target: each takes a receive.
bool takes_receive(const Operation& operation);
bool is_receive(const Operation& operation);

}  // namespace weft::replay
