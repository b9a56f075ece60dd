#include "tools/stopping.hpp"

#include <atomic>
#include <csignal>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

/// What the signals ask; a handler has no other way to know.
std::atomic<Stop*> asked_by_signals{nullptr};

void on_signal(int /*signal*/) {
  if (Stop* const stop = asked_by_signals.load()) stop->request();
}

void handle(int signal) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  // The second one ends the process.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  struct sigaction before {};
  sigaction(signal, &action, &before);
  // Whoever began us may want it ignored, as nohup does.
  if (before.sa_handler == SIG_IGN) sigaction(signal, &before, nullptr);
}

std::chrono::nanoseconds time_of(const std::string& text) {
  constexpr double kMostNs = 1e18;  // 30 years
  try {
    const double ns = parse_quantity(text, Unit::kNanoseconds);
    if (ns > 0 && ns <= kMostNs) return std::chrono::nanoseconds(static_cast<std::int64_t>(ns));
  } catch (const InputError& e) {
    throw InputError("--time-limit: " + std::string(e.what()));
  }
  throw InputError("--time-limit '" + text + "': write a time above 0, such as 30s");
}

}  // namespace

Stopping::Stopping(const std::string& time_limit) : time_limit_{time_limit} {
  if (!time_limit.empty()) {
    stop_.set_deadline(std::chrono::steady_clock::now() + time_of(time_limit));
  }
  asked_by_signals = &stop_;
  handle(SIGINT);
  handle(SIGTERM);
}

Stopping::~Stopping() { asked_by_signals = nullptr; }

std::string Stopping::by() const {
  return stop_.was_asked() ? "by a signal" : "after --time-limit " + time_limit_;
}

void Stopping::tell_paths(const std::vector<std::string>& not_run) const {
  if (not_run.empty()) return;
  const std::string paths = fmt::format("{}", fmt::join(not_run, ", "));
  throw Stopped(
      fmt::format("{}: memory paths {} are missing; to go on, run a scenario of these "
                  "alone (memory_paths: [{}])",
                  by(), paths, paths));
}

}  // namespace weft
