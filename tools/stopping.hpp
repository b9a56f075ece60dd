#pragma once

#include <string>
#include <vector>

#include "sim/base/stop.hpp"

namespace weft {

/// While it lives, Ctrl-C and SIGTERM ask work to end early, once (a second one ends the process),
/// and so does a time limit. One at a time.
class Stopping {
 public:
  /// `time_limit`: a time with its unit, "30s"; "": none. Throws InputError.
  explicit Stopping(const std::string& time_limit);
  Stopping(const Stopping&) = delete;
  Stopping& operator=(const Stopping&) = delete;
  ~Stopping();

  const Stop* stop() const { return &stop_; }
  /// Who stopped it, for messages: "after --time-limit 30s", "by a signal".
  std::string by() const;

  /// Does work that throws Stopped where nothing of it was finished, which then says who did and
  /// what to ask for instead: "fewer nodes".
  template <typename Work>
  auto run(const std::string& smaller, Work work) const {
    try {
      return work();
    } catch (const Stopped&) {
      throw Stopped(by() + " before any memory path was finished; nothing is written. Ask for " +
                    smaller);
    }
  }
  /// Throws Stopped where there are memory paths that were not come to.
  void tell_paths(const std::vector<std::string>& not_run) const;

 private:
  Stop stop_;
  std::string time_limit_;
};

inline constexpr const char* kTimeLimitHelp =
    "end after this time, such as 30s, and keep what is done (exit 130)";

}  // namespace weft
