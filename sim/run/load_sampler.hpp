#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/event_queue.hpp"
#include "sim/result/timeline.hpp"

namespace weft {

/// A transport's servers, as those see them who look on while a plan runs.
class ServerLoads {
 public:
  /// Their full names; the same from the first event on.
  virtual std::vector<std::string> servers() const = 0;
  /// How long each would have worked until now at its capacity, in seconds: in use for half of its
  /// rate counts half. What it has begun may count whole.
  virtual std::vector<double> busy_s() const = 0;

 protected:
  ~ServerLoads() = default;
};

/// Looks at a transport's servers at equal steps of simulated time.
class LoadSampler final : private EventTarget {
 public:
  static constexpr std::int64_t kSteps = 256;
  static constexpr std::size_t kMostSeries = 96;

  /// From the start to `until`. The references must outlive it, and the queue run until then.
  LoadSampler(EventQueue& events, const ServerLoads& loads, Duration until);

  /// Gives a timeline the series of those that were used most, each server's mean use by step. What
  /// was begun and takes longer than its step is spread over the next ones.
  void add_to(Timeline& timeline) const;

 private:
  void on_event(std::uint64_t what) override;

  const ServerLoads* loads_;
  Duration step_;
  std::vector<std::vector<double>> busy_s_;  // by look
};

}  // namespace weft
