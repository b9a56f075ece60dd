#include "models/perftest/meter.hpp"

#include <algorithm>

namespace weft {

PerftestMeter::PerftestMeter(PacketCluster& cluster, Runner& runner, const PerftestTask& task,
                             MeteredPlan plan)
    : cluster_{cluster},
      runner_{runner},
      task_{task},
      plan_{std::move(plan)},
      job_{runner.add(plan_.plan, this)},
      done_of_(task.qps) {}

bool PerftestMeter::has_settled() const {
  return 4 * known() >= messages() &&
         std::all_of(done_of_.begin(), done_of_.end(), [](std::uint64_t done) { return done > 0; });
}

Duration PerftestMeter::posting() const {
  Duration sum;
  for (ActorIndex a = 0; a < plan_.posters; ++a) sum += runner_.work(job_, a).worked;
  return Duration::ps(sum.count_ps() / std::int64_t{plan_.posters});
}

Duration PerftestMeter::receiving() const {
  return plan_.receiver == kNoIndex ? Duration{} : runner_.work(job_, plan_.receiver).worked;
}

Time PerftestMeter::ended() const {
  const bool is_known = task_.is_staged || task_.op == RdmaOp::kRead;
  return is_known ? steps_.back().at : arrived_ + plan_.target_poll;
}

Bytes PerftestMeter::delivered() const {
  if (task_.is_staged) return task_.size * static_cast<std::int64_t>(done_ / plan_.parts);
  const bool is_read = task_.op == RdmaOp::kRead;
  return cluster_.nics().landed(cluster_.nic(is_read ? task_.ends.from_nic : task_.ends.to_nic));
}

/// The largest of (m - i) / (known(m) - posted(i)), m > i. Dinkelbach: with the best ratio so far,
/// is there a pair above it? O(n) each time, and a few times.
double PerftestMeter::peak() const {
  double best = 0;
  for (bool grows = true; grows;) {
    grows = false;
    double ratio = best;
    double least = 0;  // of number - best x time, over the posts so far
    std::size_t first = 0;
    std::size_t seen = 0;
    double most = 0;
    for (const Step& step : steps_) {
      for (; seen < std::min<std::size_t>(step.messages, posted_at_.size()); ++seen) {
        const double value = static_cast<double>(seen) - best * (posted_at_[seen] - Time{}).as_s();
        if (seen > 0 && value >= least) continue;
        least = value;
        first = seen;
      }
      const auto done = static_cast<double>(step.messages);
      const double above = done - best * (step.at - Time{}).as_s() - least;
      if (seen == 0 || above <= most * (1 + 1e-9)) continue;
      most = above;
      ratio = (done - static_cast<double>(first)) / (step.at - posted_at_[first]).as_s();
    }
    grows = ratio > best * (1 + 1e-9);
    best = std::max(best, ratio);
  }
  return best;
}

void PerftestMeter::add_to(Trajectory& trajectory) const {
  for (const Time at : posted_at_) trajectory.add(Trajectory::What::kSubmitted, at, task_.size);
  for (const Step& s : steps_) {
    trajectory.add(Trajectory::What::kFinished, s.at,
                   task_.size * static_cast<std::int64_t>(s.messages));
    trajectory.add(Trajectory::What::kDelivered, s.at, s.delivered);
  }
}

void PerftestMeter::begun(std::uint64_t parts) {
  begun_ += parts;
  posted_at_.resize((begun_ + plan_.parts - 1) / plan_.parts, now());
  if (has_posted_all()) changed();
}

/// A queue pair's last completion may tell of fewer messages than the others.
void PerftestMeter::done(std::uint32_t queue_pair, std::uint64_t parts) {
  std::uint64_t& of = done_of_[queue_pair];
  parts = std::min(parts, task_.iterations * plan_.parts - of);
  of += parts;
  done_ += parts;
  if (done_ / plan_.parts == known()) return;
  steps_.push_back({now(), done_ / plan_.parts, delivered()});
  changed();
}

void PerftestMeter::on_posted(QueuePairIndex /*queue_pair*/, std::uint64_t requests) {
  if (plan_.begun == kNoIndex) begun(requests);
}

void PerftestMeter::on_delivered(QueuePairIndex /*queue_pair*/, Bytes /*bytes*/, Time /*posted*/) {
  if (task_.op != RdmaOp::kSend) arrived_ = now();
}

/// It may be before the data are, in another memory.
void PerftestMeter::on_received(QueuePairIndex /*queue_pair*/, Bytes /*bytes*/) {
  arrived_ = now();
}

void PerftestMeter::on_signalled(FlagIndex flag, std::uint64_t tokens) {
  if (flag == plan_.begun) begun(tokens);
  if (flag < task_.qps) done(flag, tokens);
}

}  // namespace weft
