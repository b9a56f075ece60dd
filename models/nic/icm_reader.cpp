#include "models/nic/icm_reader.hpp"

namespace weft {
namespace {

// Translations are 8 B each; a line of 64 B has those of neighbouring pages.
constexpr std::int64_t kTranslationLine = 64;
constexpr std::int64_t kTranslationsInLine = 8;
/// Of the cache's keys, those of contexts; the others are addresses.
constexpr std::uint64_t kIsContext = std::uint64_t{1} << 63;

}  // namespace

bool IcmReader::has_context(RdmaQpId qp, IcmWaiter& waiter) {
  return has({kIsContext | qp.value, settings_.qp_context.count()}, waiter);
}

/// Translations are read a line at a time.
bool IcmReader::has_page(const RdmaBuffer& buffer, IcmWaiter& waiter) {
  const auto line = static_cast<std::uint64_t>(buffer.page.count() * kTranslationsInLine);
  return has({buffer.address / line * line, kTranslationLine}, waiter);
}

bool IcmReader::has(const Read& what, IcmWaiter& waiter) {
  if (cache_.holds(what.key, what.bytes)) return true;
  if (missing_.empty()) waits_since_ = events_.now();
  std::vector<IcmWaiter*>& waiters = missing_[what.key];
  waiters.push_back(&waiter);
  if (waiters.size() > 1) return false;
  ++misses_;
  if (under_way_ == settings_.icm_fetches) {
    waiting_.push(what);
  } else {
    ++under_way_;
    begin(what);
  }
  return false;
}

void IcmReader::begin(const Read& read) {
  submit(*host_.queues, true, host_.wqes, read.bytes, reads_.add(read));
}

void IcmReader::on_dma_done(std::uint64_t slot) {
  const Read read = reads_[static_cast<std::uint32_t>(slot)];
  reads_.free(static_cast<std::uint32_t>(slot));
  cache_.insert(read.key, read.bytes);
  if (waiting_.empty()) {
    --under_way_;
  } else {
    begin(waiting_.pop());
  }
  const auto waiters = missing_.extract(read.key);
  if (missing_.empty()) waited_ += events_.now() - waits_since_;
  for (IcmWaiter* waiter : waiters.mapped()) waiter->on_icm();
}

Duration IcmReader::waited() const {
  return waited_ + (missing_.empty() ? Duration{} : events_.now() - waits_since_);
}

}  // namespace weft
