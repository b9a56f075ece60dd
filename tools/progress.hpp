#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace weft {

/// "2 s", "40 s", "12 min", "3.5 h": times for people, about.
std::string about_seconds(double seconds);

/// How far work has come and how long the rest will take: from how long what is done took, and, as
/// long as that is little, from what is known beforehand. Any thread may say and ask.
class Pace {
 public:
  /// `at_most`: it may end long before all is done.
  explicit Pace(std::string unit, bool at_most = false);

  /// So many of `all` are done, a share of the work. `beforehand`: how long all of it will take, s;
  /// 0: not known.
  void is_at(std::size_t done, std::size_t all, double share, double beforehand = 0);
  /// "3 of 62 rows, 12 s, about 40 s left", `elapsed` s after the beginning.
  std::string text(double elapsed) const;
  /// The same, now.
  std::string text() const;

 private:
  using Clock = std::chrono::steady_clock;
  double elapsed() const;

  std::string unit_;
  bool at_most_;
  Clock::time_point begin_{Clock::now()};
  mutable std::mutex mutex_;
  std::size_t done_{0};
  std::size_t all_{0};
  double share_{0};
  double in_all_{0};  ///< s, estimated
};

/// On a terminal a line of standard error that is written over twice a second, and gone at the end;
/// elsewhere nothing.
class Progress {
 public:
  /// `line` is asked on a thread of its own.
  explicit Progress(std::function<std::string()> line);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { end(); }

  /// A line of its own on standard error, on a terminal or not.
  void say(const std::string& line);
  /// Before anything else is written.
  void end();

 private:
  std::function<std::string()> line_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool is_over_{false};
  std::thread writer_;
};

}  // namespace weft
