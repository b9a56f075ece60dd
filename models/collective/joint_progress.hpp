#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "models/collective/predict.hpp"

namespace weft {

/// The share of its work that a prediction has done; 0 of one without work.
inline double share_done(const RunProgress& p) { return p.work > 0 ? p.work_done / p.work : 0; }

/// How far several predictions that run at once are, as one. Each weighs as much as it has rows.
class JointProgress {
 public:
  /// `rows`: of each prediction. `hears`: what PredictOptions::on_progress would; may be none;
  /// without rows it hears nothing.
  JointProgress(const std::vector<std::size_t>& rows,
                std::function<void(const RunProgress&)> hears);

  /// A prediction has so many rows, and that share of its work. Any thread may say so.
  void is_at(std::size_t prediction, std::size_t rows_done, double share);
  void is_at(std::size_t prediction, const RunProgress& p) {
    is_at(prediction, p.rows_done, share_done(p));
  }

 private:
  struct Of {
    std::size_t rows;
    std::size_t done{0};
    double share{0};
  };

  std::function<void(const RunProgress&)> hears_;
  std::mutex mutex_;
  std::vector<Of> predictions_;
  RunProgress all_{};
};

}  // namespace weft
