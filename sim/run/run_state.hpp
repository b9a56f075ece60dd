#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/engine/mailbox.hpp"
#include "sim/engine/process.hpp"
#include "sim/run/critical_path.hpp"
#include "sim/run/runner.hpp"
#include "sim/run/trajectory.hpp"

/// What the runner keeps of a plan that runs; nobody else needs it.
namespace weft::run_state {

/// What a flag gets. What led to it is not kept: most tokens are there when they are wanted.
struct Token {
  std::int64_t amount{0};  ///< bytes, or requests that a completion tells of
  std::uint32_t tag{0};
  std::uint32_t program{kNoIndex};  ///< that serves it
  std::uint32_t came{kNoIndex};     ///< among ActorState::arrived
};

/// A token that found its proxy thread at work: what led to it, and when it came.
struct Came {
  PathRef path;
  Time at;
};

/// Suspends an actor until it is woken.
struct Suspended {
  WaitPoint& at;
  bool await_ready() const { return false; }
  void await_suspend(ProcessHandle process) const { at.wait(process); }
  void await_resume() const { at.leave(); }
};

struct FlagState {
  Mailbox<Token> tokens;
  std::uint32_t unused{0};   ///< of those that it began with
  std::uint32_t joining{0};  ///< that wait for the others of its join
  std::uint32_t server{kNoIndex};
  std::uint32_t join{kNoIndex};  ///< that takes its tokens
  bool is_taken{true};           ///< else its tokens are dropped
  ActorIndex waiter{kNoIndex};   ///< who waited last, if no program serves it

  std::uint64_t count() const { return unused + tokens.size(); }
};

struct ActorState {
  PathRef path;  ///< what led to where it is
  WaitPoint sent;
  bool is_moving{false};
  Mailbox<Token> inbox;  ///< tokens of flags that its programs serve
  std::vector<std::uint32_t> programs{};
  std::vector<Token> round{};  ///< taken from there, to be served now, the last one first
  bool serves{false};
  bool works_in_rounds{false};
  std::vector<Came> arrived{};  ///< tokens that found it at work, for the next round
  std::vector<Came> serving{};  ///< those of this round
  // Until when it looks at all its operations for this round, for how long, and until when it did
  // for the one before.
  Time looks_until{};
  Duration looks{};
  Time looked_until{};
  bool is_waiting{false};
  Time waits_since{};
  Time begun{};  ///< what it does
  ActorWork work{};
  // What the last token or move, and the last kWhile, left.
  std::int64_t amount{0};
  std::uint32_t tag{0};
  std::uint32_t count{1};

  /// `time`: for which it looks before it turns to the first token.
  void begin_round(Time now, Duration time) {
    arrived.swap(serving);
    arrived.clear();
    looked_until = std::exchange(looks_until, now + time);
    looks = time;
  }
  /// For how long it has looked since something came, which the last round did not find.
  Duration looked_since(Time came) const {
    return looks + std::max(Duration{}, looked_until - came);
  }

  void take(const Token& token) {
    amount = token.amount;
    tag = token.tag;
  }
};

struct QueuePairState {
  QpHandle id;
  std::uint64_t posted{0};
  std::uint64_t told{0};  ///< of these, by requests that are signalled
  PathRef last_sent{};    ///< what led to the last message's being sent
};

/// One plan and how far it is.
struct Job {
  explicit Job(const Plan& p, RunObserver* o)
      : plan{&p},
        observer{o},
        flags(p.flags.size()),
        actors(p.actors.size()),
        ends(p.programs.size()) {}

  const Plan* plan;
  RunObserver* observer;
  std::vector<Segment> lags{};
  std::vector<FlagState> flags;
  std::vector<std::size_t> missing{};  ///< by join: how many of its flags have no token
  std::vector<ActorState> actors;
  std::vector<QueuePairState> queue_pairs{};
  std::vector<Program> programs{};  ///< the plan's, but each move names the transport's walk
  std::size_t unfinished{0};        ///< programs: those that serve a flag, while they serve a token
  std::uint64_t transfers{0};
  Trajectory trajectory{};
  std::vector<std::optional<Time>> ends;  ///< by program
  Time last_finish{};                     ///< of programs that serve no flag
  Time last_served{};                     ///< when the last token of a flag had been served
  std::optional<Time> lap{};              ///< when the plan's `lap` got its last token
  PathRef last_path{};
};

/// Of a token in a round: by its queue pair's turn (what is to be sent without one, last), then by
/// who serves it.
inline std::array<std::uint32_t, 3> place_of(const Job& job, const Token& token) {
  const std::vector<QueuePair>& all = job.plan->queue_pairs;
  return {token.tag < all.size() ? all[token.tag].turn : token.tag, token.program, token.tag};
}

/// A transfer or message under way, or a token in a lag. Pooled; the index is the transport's
/// tag.
struct Pending {
  PathRef path;
  Job* job{nullptr};
  std::int64_t amount{0};
  const Instruction* move{nullptr};  ///< none: a message or a token
  Time posted{};                     ///< of a message
  std::uint32_t owner{0};            ///< actor of a move, queue pair of a message, flag of a token
  LagIndex lag{kNoIndex};            ///< of a token
  std::uint32_t tag{0};              ///< of a token
  std::uint32_t told{0};             ///< requests that a message's completion tells of
  std::uint32_t copies{1};           ///< of what moves it
  Verb verb{Verb::kWrite};
  std::uint8_t open{1};  ///< of a message: how often it will be heard of, but for on_sent
};

}  // namespace weft::run_state
