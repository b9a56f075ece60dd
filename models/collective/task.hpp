#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "models/collective/predict.hpp"
#include "models/collective/sample.hpp"
#include "models/transport/link_times.hpp"
#include "models/transport/run_key.hpp"
#include "sim/run/cause.hpp"
#include "sim/run/runner.hpp"

namespace weft {

/// One size over one memory path.
struct RowTask {
  Op op;
  Bytes bytes;
  MemoryPath path;
  StandIn stand_in{};
};

/// What running one plan came to.
struct PlanRun {
  std::string op;
  std::string algo;
  std::string proto;
  std::uint32_t channels{0};
  Bytes by_a_nic;  ///< most_sent_by_a_nic()
  RunOutcome outcome{};
  CauseTable causes{};
  double alike{1};         ///< transfers of the plan that each simulated one stands for, on average
  LinkTimes link_times{};  ///< of one launch, in seconds; none unless PredictOptions::link_use
  std::optional<Probes> probes{};
  std::shared_ptr<Timeline> timeline{};
};

/// What was run so far, each once; any number of threads may ask.
template <class Key>
class RunsByKey {
 public:
  /// Runs it unless that was done. Throws what `run` throws, and runs it again then.
  const PlanRun& of(const Key& key, const std::function<PlanRun()>& run) {
    Entry* entry = nullptr;
    {
      const std::lock_guard lock(mutex_);
      entry = &entries_[key];
    }
    std::call_once(entry->once, [&] { entry->run = run(); });
    return *entry->run;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    std::once_flag once;
    std::optional<PlanRun> run;
  };
  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

/// Of samples: several rows may be extended from the same.
using SampleRunKey = std::tuple<const Sample*, MemoryPath, Op, Bytes, Algorithm, std::string_view,
                                std::uint32_t, std::uint32_t, bool>;
using SampleRuns = RunsByKey<SampleRunKey>;
/// `choice`: for the task's own bytes.
SampleRunKey key_of(const SampleRun& run, const RowTask& task, const Choice& choice);

/// Runs that several predictions share, by all that decides them.
class SharedRuns : public RunsByKey<std::pair<RunKey, bool>> {};

/// What all threads share.
struct Ready {
  const Machine& machine;
  const Schedules& schedules;
  const PredictOptions& options;
  SampleRuns& runs;
};

/// How many launches are run for a task at most: some alone, some behind each other, of a chain
/// `most` at once.
double launches_of(const Ready& ready, const RowTask& task, std::uint32_t most);
/// The same of any operation, without the one that a timeline is of.
double launches_of(const Machine& machine, Op op, Algorithm algorithm, std::uint32_t most,
                   bool is_fluid);

/// A row, and how many transfers of what ran each simulated one stands for, on average.
struct TaskRun {
  ResultRow row;
  double alike;
};
/// Runs a task; `has_drawn` becomes true if that depended on the seed. Throws Stopped.
TaskRun run_task(const Ready& ready, const RowTask& task, std::atomic<bool>& has_drawn);

}  // namespace weft
