#include "models/collective/joint_progress.hpp"

#include <utility>

namespace weft {

JointProgress::JointProgress(const std::vector<std::size_t>& rows,
                             std::function<void(const RunProgress&)> hears)
    : hears_{std::move(hears)} {
  for (const std::size_t of_one : rows) {
    predictions_.push_back({of_one});
    all_.rows += of_one;
  }
  all_.work = static_cast<double>(all_.rows);
}

void JointProgress::is_at(std::size_t prediction, std::size_t rows_done, double share) {
  if (!hears_ || all_.rows == 0) return;
  const std::lock_guard lock(mutex_);
  Of& of = predictions_[prediction];
  all_.rows_done += rows_done - std::exchange(of.done, rows_done);
  all_.work_done += (share - std::exchange(of.share, share)) * static_cast<double>(of.rows);
  hears_(all_);
}

}  // namespace weft
