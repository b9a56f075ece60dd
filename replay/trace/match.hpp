#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "replay/trace/reader.hpp"
#include "replay/trace/record.hpp"

namespace weft::trace {

/// A work request that waits for its completion.
struct Pending {
  std::uint64_t id{0};
  std::uint64_t index{0};  ///< posts of this trace before it, refused ones left out
  std::uint64_t time_ns{0};
  std::uint64_t bytes{0};
  std::uint32_t thread{0};
  std::uint32_t pair{kNone};  ///< of a shared receive: kNone until it is completed
  /// Of a receive, and of what takes one at the other end: how many were before it, as the other
  /// end counts too. A receive of a shared queue has its number from its completion.
  std::uint64_t number{0};
  Opcode opcode{Opcode::kOther};
  std::uint8_t flags{0};
};

/// Finds each completion's work request. A queue pair's requests complete in order (IBTA vol. 1,
/// 10.8.5): the first that waits with the completion's id is meant, and those before it that were
/// not to be signaled are done too. Records come in the order of time.
class Matcher {
 public:
  /// A post that is not refused is remembered; `index` counts them.
  std::optional<Pending> post(RecordView record);

  struct Match {
    Pending request;
    std::vector<Pending> before;  ///< unsignaled ones that it completes too
    std::vector<Pending> lost;    ///< signaled ones before it: their completions are not there
  };
  /// Nothing: its request is not in the trace.
  std::optional<Match> completion(RecordView record);

  /// Takes records of other types too: which queue pair uses which shared queue.
  void object(RecordView record);

  /// Requests that still wait, less the oldest ones of queues that are longer than any device's.
  std::vector<Pending> waiting() const;
  /// How many of those oldest ones there were: their completions are not found.
  std::uint64_t forgotten() const { return forgotten_; }

 private:
  struct Side {
    std::deque<Pending> waiting;
    std::uint64_t numbered{0};
  };
  struct Pair {
    std::uint32_t shared{kNone};
    std::uint32_t send_queue{kNone};  ///< completion queues
    std::uint32_t receive_queue{kNone};
    bool signals_all{false};
    Side sends;
    Side receives;
    std::uint64_t received{0};
  };

  std::optional<Match> send_completion(Pair& pair, std::uint64_t id);
  std::optional<Match> receive_completion(Pair& pair, std::uint32_t name, std::uint64_t id);

  std::map<std::uint32_t, Pair> pairs_;
  std::map<std::uint32_t, Side> shared_;
  bool is_of_receive(const Pair& pair, const Completion& completion) const;

  std::uint64_t posts_{0};
  std::uint64_t forgotten_{0};
};

bool is_receive(Opcode opcode);
/// Takes a receive at the other end.
bool is_received(Opcode opcode);

}  // namespace weft::trace
