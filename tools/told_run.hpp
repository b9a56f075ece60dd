#pragma once

#include <string>
#include <utility>

#include "models/collective/predict.hpp"
#include "tools/progress.hpp"

namespace weft {

/// While it lives, what a prediction says of how long it will take and how far it is goes to
/// standard error.
class ToldRun {
 public:
  /// `unit`: what its rows are called. Of `options`, which must outlive it, it is the one who
  /// hears; `threads` share the work.
  ToldRun(std::string unit, PredictOptions& options, unsigned threads = 1)
      : options_{options}, pace_{std::move(unit)}, progress_{[this] { return pace_.text(); }} {
    options.on_estimate = [this](const std::string& text, double) { progress_.say(text); };
    options.on_progress = [this, threads](const RunProgress& p) {
      pace_.is_at(p.rows_done, p.rows, p.work_done / p.work, p.work / threads);
    };
  }
  ~ToldRun() {
    options_.on_estimate = {};
    options_.on_progress = {};
  }
  ToldRun(const ToldRun&) = delete;
  ToldRun& operator=(const ToldRun&) = delete;

 private:
  PredictOptions& options_;
  // Who holds this need not change it; what it hears does.
  mutable Pace pace_;
  mutable Progress progress_;
};

}  // namespace weft
