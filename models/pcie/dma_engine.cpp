#include "models/pcie/dma_engine.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace weft {

DmaEngine::DmaEngine(PcieDomain& domain, Settings settings)
    : domain_{domain},
      events_{domain.network().events()},
      settings_{std::move(settings)},
      own_tags_{events_, settings_.tags},
      tags_{settings_.shared_tags != nullptr ? settings_.shared_tags : &own_tags_} {}

void DmaEngine::submit(const DmaJob& job) {
  assert(job.bytes > Bytes{0} && job.client != nullptr);
  std::uint32_t slot = 0;
  if (free_jobs_.empty()) {
    slot = static_cast<std::uint32_t>(jobs_.size());
    jobs_.emplace_back();
  } else {
    slot = free_jobs_.back();
    free_jobs_.pop_back();
  }
  jobs_[slot] = {
      .job = job, .next = job.address, .unsent = job.bytes.count(), .awaited = job.bytes.count()};
  if (job.is_read) {
    reads_.push(slot);
    offer_reads();
    return;
  }
  jobs_[slot].transaction =
      domain_.begin({.engine = this, .routes = job.routes, .job = slot, .left = job.bytes.count()});
  writes_.push(slot);
  offer_writes();
}

bool DmaEngine::must_wait(Pace& pace, Event event) {
  if (pace.next <= events_.now()) return false;
  if (!pace.is_waiting) events_.schedule_at(pace.next, Phase::kCompute, *this, event);
  pace.is_waiting = true;
  return true;
}

void DmaEngine::count(Pace& pace, std::int64_t bytes) {
  if (!settings_.rate) return;
  pace.next =
      std::max(pace.next, events_.now()) + serialization_time(Bytes{bytes}, *settings_.rate);
}

/// Without a window, keeps one TLP in the link's queue: enough for a link that never idles.
void DmaEngine::offer_writes() {
  while (!write_waits_ && !writes_.empty() && !must_wait(write_pace_, kWritePace)) {
    if (has_window() && unacknowledged_ >= settings_.write_window) return;
    offer_write();
  }
}

void DmaEngine::offer_write() {
  Job& job = jobs_[writes_.front()];
  const PcieRoutes& routes = domain_.routes(job.job.routes);
  const std::int64_t bytes =
      next_request(job.next, job.unsent, std::min(routes.write_payload, settings_.write_payload));
  Packet& tlp = domain_.make({.kind = TlpKind::kWrite,
                              .transaction = job.transaction,
                              .address = job.next,
                              .bytes = bytes,
                              .route = routes.request});
  job.next += static_cast<std::uint64_t>(bytes);
  job.unsent -= bytes;
  if (job.unsent == 0) writes_.pop();
  tlp.attributes = pcie_attribute::kOfEngine;
  write_waits_ = !has_window();
  if (has_window()) unacknowledged_ += Bytes{bytes};
  count(write_pace_, bytes);
  domain_.network().send(tlp, routes.request.first);
}

void DmaEngine::offer_reads() {
  while (!read_waits_ && !reads_.empty() && !must_wait(read_pace_, kReadPace)) {
    if (!tags_->take(*this)) return;
    offer_read();
  }
}

void DmaEngine::offer_read() {
  const std::uint32_t slot = reads_.front();
  Job& job = jobs_[slot];
  const PcieRoutes& routes = domain_.routes(job.job.routes);
  const std::int64_t bytes = next_request(job.next, job.unsent, settings_.read_request);
  const std::uint32_t transaction = domain_.begin(
      {.engine = this, .routes = job.job.routes, .job = slot, .left = bytes, .at_root = bytes});
  Packet& tlp = domain_.make({.kind = TlpKind::kRead,
                              .transaction = transaction,
                              .address = job.next,
                              .bytes = bytes,
                              .route = routes.request});
  job.next += static_cast<std::uint64_t>(bytes);
  job.unsent -= bytes;
  if (job.unsent == 0) reads_.pop();
  tlp.attributes = pcie_attribute::kOfEngine;
  read_waits_ = !has_window();
  count(read_pace_, bytes);
  if (number_of_.size() <= transaction) number_of_.resize(transaction + 1);
  number_of_[transaction] = ++reads_sent_;
  outstanding_.push({events_.now(), transaction, reads_sent_});
  if (!timer_) {
    timer_ = events_.schedule_after(settings_.completion_timeout, Phase::kCompute, *this, kTimeout);
  }
  domain_.network().send(tlp, routes.request.first);
}

void DmaEngine::on_departure(const Packet& tlp) {
  if (PcieDomain::kind(tlp) == TlpKind::kRead) {
    read_waits_ = false;
    offer_reads();
    return;
  }
  write_waits_ = false;
  const Job& job = jobs_[domain_.transaction(tlp.flow).job];
  const bool is_last =
      tlp.tag + tlp.sequence == job.job.address + static_cast<std::uint64_t>(job.job.bytes.count());
  DmaClient* client = job.job.client;
  const std::uint64_t tag = job.job.tag;
  if (has_window()) {
    const Time until = events_.now() + settings_.write_ack;
    if (departed_.empty()) events_.schedule_at(until, Phase::kDeliver, *this, kAck);
    departed_.push({until, Bytes{std::int64_t{tlp.sequence}}});
  }
  offer_writes();
  if (is_last) client->on_dma_sent(tag);
}

void DmaEngine::on_completion(Packet& tlp) {
  const std::int64_t bytes = tlp.sequence;
  const std::uint32_t slot = tlp.flow;
  domain_.network().release(tlp);
  if (number_of_[slot] == 0) return;  // after its timeout
  PcieDomain::Transaction& read = domain_.transaction(slot);
  const std::uint32_t job = read.job;
  read.left -= bytes;
  if (read.left > 0) {
    jobs_[job].awaited -= bytes;
    return;
  }
  number_of_[slot] = 0;
  domain_.end(slot);
  drop_answered();
  if (settings_.read_extra == Duration{}) {
    returned(job, bytes);
    return;
  }
  const Time at = events_.now() + settings_.read_extra;
  if (returning_.empty()) events_.schedule_at(at, Phase::kDeliver, *this, kRead);
  returning_.push({at, job, bytes});
}

void DmaEngine::acknowledged() {
  unacknowledged_ -= departed_.pop().bytes;
  if (!departed_.empty()) {
    events_.schedule_at(departed_.front().until, Phase::kDeliver, *this, kAck);
  }
  offer_writes();
}

/// A request's tag is free, and its last `bytes` are here.
void DmaEngine::returned(std::uint32_t slot, std::int64_t bytes) {
  Job& job = jobs_[slot];
  job.awaited -= bytes;
  if (job.awaited == 0) {
    DmaClient* client = job.job.client;
    const std::uint64_t tag = job.job.tag;
    const bool failed = job.failed;
    free_jobs_.push_back(slot);
    if (failed) {
      client->on_dma_timeout(tag);
    } else {
      client->on_dma_done(tag);
    }
  }
  tags_->give();
  offer_reads();
}

void DmaEngine::written(std::uint32_t transaction, Duration visible_in) {
  events_.schedule_after(visible_in + settings_.write_extra, Phase::kDeliver, *this,
                         std::uint64_t{transaction} << 8 | kWritten);
}

void DmaEngine::on_event(std::uint64_t what) {
  switch (static_cast<Event>(what & 0xff)) {
    case kWritten: {
      const auto transaction = static_cast<std::uint32_t>(what >> 8);
      const std::uint32_t slot = domain_.transaction(transaction).job;
      domain_.end(transaction);
      DmaClient* client = jobs_[slot].job.client;
      const std::uint64_t tag = jobs_[slot].job.tag;
      free_jobs_.push_back(slot);
      client->on_dma_done(tag);
      return;
    }
    case kRead: {
      const Returning read = returning_.pop();
      if (!returning_.empty()) {
        events_.schedule_at(returning_.front().at, Phase::kDeliver, *this, kRead);
      }
      returned(read.job, read.bytes);
      return;
    }
    case kTimeout:
      check_timeouts();
      return;
    case kWritePace:
      write_pace_.is_waiting = false;
      offer_writes();
      return;
    case kReadPace:
      read_pace_.is_waiting = false;
      offer_reads();
      return;
    case kAck:
      acknowledged();
      return;
  }
}

/// Forgets the oldest reads as far as they were answered; none is left: no timer either.
void DmaEngine::drop_answered() {
  while (!outstanding_.empty() &&
         number_of_[outstanding_.front().transaction] != outstanding_.front().number) {
    outstanding_.pop();
  }
  if (!outstanding_.empty() || !timer_) return;
  events_.cancel(*timer_);
  timer_.reset();
}

/// One timer for all reads.
void DmaEngine::check_timeouts() {
  timer_.reset();
  for (drop_answered(); !outstanding_.empty(); drop_answered()) {
    const Outstanding oldest = outstanding_.front();
    const Time end = oldest.since + settings_.completion_timeout;
    if (events_.now() < end) {
      timer_ = events_.schedule_at(end, Phase::kCompute, *this, kTimeout);
      return;
    }
    // Its slot is never used again: something may still come.
    number_of_[oldest.transaction] = 0;
    const PcieDomain::Transaction& read = domain_.transaction(oldest.transaction);
    jobs_[read.job].failed = true;
    returned(read.job, read.left);
  }
}

}  // namespace weft
