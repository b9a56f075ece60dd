#include "tools/progress.hpp"

#include <algorithm>
#include <iostream>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace weft {

std::string about_seconds(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  if (seconds < 1) return "1 s";
  if (seconds < 2 * kMinute) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min", seconds / kMinute);
  return fmt::format("{:.1f} h", seconds / kHour);
}

Pace::Pace(std::string unit, bool at_most) : unit_{std::move(unit)}, at_most_{at_most} {}

void Pace::is_at(std::size_t done, std::size_t all, double share, double beforehand) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  all_ = all;
  share_ = share;
  constexpr double kTrusted = 0.1;  // of the estimate: counts as if so much had gone as estimated
  if (beforehand > 0) {
    const double slower =
        (elapsed() + kTrusted * beforehand) / (share * beforehand + kTrusted * beforehand);
    in_all_ = share > 0 ? elapsed() + (1 - share) * beforehand * slower : beforehand;
  } else if (share > 0) {
    in_all_ = elapsed() / share;
  }
}

double Pace::elapsed() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

std::string Pace::text() const { return text(elapsed()); }

std::string Pace::text(double elapsed) const {
  const std::lock_guard lock(mutex_);
  std::string out = all_ == 0 ? "preparing" : fmt::format("{} of {} {}", done_, all_, unit_);
  out += ", " + about_seconds(elapsed);
  if (in_all_ > elapsed) {
    out += (at_most_ ? ", at most " : ", about ") + about_seconds(in_all_ - elapsed) + " left";
  }
  if (in_all_ > 0 && in_all_ <= elapsed) out += ", longer than estimated";
  return out;
}

Progress::Progress(std::function<std::string()> line) : line_{std::move(line)} {
  if (isatty(STDERR_FILENO) == 0) return;
  writer_ = std::thread([this] {
    constexpr std::chrono::milliseconds kBetween{500};
    std::unique_lock lock(mutex_);
    while (!ends_.wait_for(lock, kBetween, [this] { return is_over_; })) {
      std::cerr << '\r' << line_() << "\x1b[K" << std::flush;
    }
    std::cerr << "\r\x1b[K" << std::flush;
  });
}

void Progress::say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  std::cerr << (writer_.joinable() ? "\r\x1b[K" : "") << line << '\n';
}

void Progress::end() {
  if (!writer_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ends_.notify_all();
  writer_.join();
}

}  // namespace weft
