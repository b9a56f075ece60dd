#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/base/stop.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/plan/plan.hpp"
#include "sim/result/run_result.hpp"
#include "sim/run/cause.hpp"
#include "sim/run/transport.hpp"

namespace weft {

/// What running a plan came to.
struct RunOutcome {
  Duration time;  ///< from the common start until the last program that serves no flag has finished
  /// Until all of one thread block have, the first to end; `time` if no thread block has.
  Duration first_end;
  /// Until nobody serves a token any more either: at least `time`.
  Duration last_end;
  /// Time by cause along the critical path, most first; sums to `time`.
  std::vector<std::pair<CauseId, Duration>> causes;
  std::uint64_t transfers{0};
  std::uint64_t trajectory{0};  ///< Trajectory::digest of every transfer and program
  Duration lap{};               ///< until the plan's `lap` got its last token; else `time`
};

/// Nothing happens any more, and programs still wait.
class PlanStuck : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Looks on while a plan runs, at the simulated instant at which something happens.
class RunObserver {
 public:
  /// So many requests were posted with one doorbell.
  virtual void on_posted(QueuePairIndex /*queue_pair*/, std::uint64_t /*requests*/) {}
  /// A message's data are in memory.
  virtual void on_delivered(QueuePairIndex /*queue_pair*/, Bytes /*bytes*/, Time /*posted*/) {}
  /// The completion of a send's receive is in memory.
  virtual void on_received(QueuePairIndex /*queue_pair*/, Bytes /*bytes*/) {}
  /// A program has given a flag tokens, without a lag.
  virtual void on_signalled(FlagIndex /*flag*/, std::uint64_t /*tokens*/) {}
  /// An actor has worked on one thing since then, and nothing else.
  virtual void on_worked(ActorIndex /*actor*/, LagIndex /*lag*/, Time /*since*/) {}
  /// It has waited since then: for a token of a flag, or, kNoIndex, of any that it serves.
  virtual void on_waited(ActorIndex /*actor*/, FlagIndex /*flag*/, Time /*since*/) {}
  /// It was occupied with moving bytes since then.
  virtual void on_moved(ActorIndex /*actor*/, WalkIndex /*walk*/, Bytes /*bytes*/, Time /*since*/) {
  }

 protected:
  ~RunObserver() = default;
};

/// What an actor has done so far.
struct ActorWork {
  Duration worked;  ///< on kCompute
  Duration waited;  ///< for tokens
};

/// Executes plans on a transport in the simulated time of a queue, which must stand at its start.
///
/// Each actor is a process that interprets its programs: it waits, works, moves and posts, one
/// thing after another. The critical path follows whichever of two waits ended last: that for a
/// token, or that for the actor itself. Plans that run at once share the transport and nothing
/// else.
class Runner {
 public:
  /// The references must outlive the runner.
  Runner(Transport& transport, EventQueue& events, CauseTable& causes);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// A plan that begins with the others, and its number. It and the observer must outlive the
  /// runner. Throws InputError if the fabric has no way for what it moves, std::logic_error if it
  /// is malformed, Stopped soon after `stop` asks for it.
  std::size_t add(const Plan& plan, RunObserver* observer = nullptr, const Stop* stop = nullptr);
  /// Runs all plans to their ends. Throws PlanStuck if programs wait for each other for ever,
  /// Stopped some thousand events after `stop` asks for it. `on_transfers` hears as often how many
  /// have begun, of all plans.
  void run(const Stop* stop = nullptr,
           const std::function<void(std::uint64_t transfers)>& on_transfers = {});

  RunOutcome outcome(std::size_t plan) const;
  ActorWork work(std::size_t plan, ActorIndex actor) const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

/// Runs plans at once; their outcomes, in their order. Throws as Runner::run.
/// `observer` looks on while the first one runs.
std::vector<RunOutcome> run_plans(std::span<const Plan> plans, Transport& transport,
                                  EventQueue& events, CauseTable& causes,
                                  const Stop* stop = nullptr, RunObserver* observer = nullptr);
/// Runs one plan alone.
RunOutcome run_plan(const Plan& plan, Transport& transport, EventQueue& events, CauseTable& causes);

/// The causes of an outcome by kind, each with the one of its kind that took most, as shares that
/// sum to 1; most first.
std::vector<CauseShare> shares_of(const RunOutcome& outcome, const CauseTable& causes);

}  // namespace weft
