#include "models/perftest/staged.hpp"

#include <cmath>

namespace weft {
namespace {

// Tags: chunks, and what frees their buffers.
constexpr std::uint64_t kIsFreed = std::uint64_t{1} << 63;
constexpr Bytes kFlag{8};

}  // namespace

StagedSender::Thread::Thread(const Machine& machine, DeviceId nic)
    : post{machine.model(nic).adapter->post_time + machine.model(nic).adapter->doorbell_time},
      poll{machine.model(nic).adapter->poll_time} {}

StagedSender::StagedSender(PacketCluster& cluster, const PerftestPlan& plan)
    : cluster_{cluster},
      plan_{plan},
      from_cpu_{cluster.machine().fabric().root_cpu(plan.ends.from)},
      to_cpu_{cluster.machine().fabric().root_cpu(plan.ends.to)},
      chunk_{std::min(plan.size, cluster.machine().devices().params().bytes("staging.chunk"))},
      chunks_{static_cast<std::uint64_t>(pieces(plan.size, chunk_))},
      buffers_{static_cast<std::uint64_t>(
          std::llround(cluster.machine().devices().params().number("staging.buffers")))},
      sender_{cluster.machine(), plan.ends.from_nic},
      receiver_{cluster.machine(), plan.ends.to_nic},
      out_{cluster.host_of(plan.ends.from), plan.ends.from, *this},
      in_{cluster.host_of(plan.ends.to), plan.ends.to, *this} {
  for (std::uint32_t i = 0; i < plan.qps; ++i) {
    qps_.push_back({cluster.connect(plan.ends.from_nic, plan.ends.to_nic, i),
                    cluster.connect(plan.ends.to_nic, plan.ends.from_nic, i)});
  }
}

Bytes StagedSender::bytes_of(std::uint64_t chunk) const {
  const auto place = static_cast<std::int64_t>(chunk % chunks_);
  return std::min(chunk_, plan_.size - chunk_ * place);
}

std::uint64_t StagedSender::offset_of(std::uint64_t chunk) const {
  return plan_.offset + chunk % buffers_ * static_cast<std::uint64_t>(chunk_.count());
}

/// Copies chunks out as long as there are buffers.
void StagedSender::pump() {
  while (next_ - freed_ < buffers_ && !has_posted_all()) {
    if (waits_) waited_ += cluster_.events().now() - waits_since_;
    waits_ = false;
    if (next_ % chunks_ == 0) posted(cluster_.events().now(), 1);
    out_.copy(false, offset_of(next_), bytes_of(next_), next_);
    ++next_;
    if (has_posted_all()) changed();
  }
  if (waits_) return;
  waits_ = true;
  waits_since_ = cluster_.events().now();
}

void StagedSender::later(Duration delay, Event event, std::uint64_t chunk) {
  cluster_.events().schedule_after(delay, Phase::kCompute, *this,
                                   chunk << 8 | static_cast<std::uint8_t>(event));
}

void StagedSender::on_event(std::uint64_t what) {
  const std::uint64_t chunk = what >> 8;
  switch (static_cast<Event>(what & 0xff)) {
    case Event::kPost:
      post(chunk);
      return;
    case Event::kArrived:
      in_.copy(true, offset_of(chunk), bytes_of(chunk), chunk);
      return;
    case Event::kCopied:
      landed(chunk);
      return;
    case Event::kGiveBack:
      give_back(chunk);
      return;
    case Event::kFreed:
      ++freed_;
      pump();
      return;
  }
}

void StagedSender::on_copied(bool from_host, std::uint64_t chunk) {
  if (!from_host) {
    posting_ += sender_.post;
    later(sender_.poll + sender_.post, Event::kPost, chunk);
  } else {
    later(receiver_.poll, Event::kCopied, chunk);
  }
}

void StagedSender::post(std::uint64_t chunk) {
  const PerftestEnds& ends = plan_.ends;
  cluster_.nics().post(qps_[chunk % plan_.qps].there,
                       {.op = RdmaOp::kWrite,
                        .bytes = bytes_of(chunk),
                        .local = cluster_.buffer(ends.from_nic, from_cpu_, true, offset_of(chunk)),
                        .remote = cluster_.buffer(ends.to_nic, to_cpu_, false, offset_of(chunk)),
                        .is_signalled = false,
                        .tag = chunk,
                        .client = this});
}

/// The chunk is in the other GPU.
void StagedSender::landed(std::uint64_t chunk) {
  ++landed_;
  if (landed_ % chunks_ == 0) step(cluster_.events().now(), landed_ / chunks_);
  receiving_ += receiver_.post;
  later(receiver_.post, Event::kGiveBack, chunk);
}

/// Its buffers may be used again.
void StagedSender::give_back(std::uint64_t chunk) {
  const PerftestEnds& ends = plan_.ends;
  cluster_.nics().post(
      qps_[chunk % plan_.qps].back,
      {.op = RdmaOp::kWrite,
       .bytes = kFlag,
       .local = cluster_.buffer(ends.to_nic, to_cpu_, true, offset_of(chunk)),
       .remote = cluster_.buffer(ends.from_nic, from_cpu_, false, offset_of(chunk)),
       .is_inline = true,
       .is_signalled = false,
       .tag = chunk | kIsFreed,
       .client = this});
}

void StagedSender::on_visible(std::uint64_t tag) {
  const bool is_freed = (tag & kIsFreed) != 0;
  later(is_freed ? sender_.poll : receiver_.poll, is_freed ? Event::kFreed : Event::kArrived,
        tag & ~kIsFreed);
}

}  // namespace weft
