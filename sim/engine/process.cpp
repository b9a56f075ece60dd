#include "sim/engine/process.hpp"

#include <bit>
#include <new>
#include <stdexcept>
#include <utility>

namespace weft {

void* FramePool::take(std::size_t size) {
  const std::size_t steps = (size + sizeof(Header) + kStep - 1) / kStep;
  const auto power = static_cast<std::size_t>(std::bit_width(size + sizeof(Header) - 1));
  const std::size_t size_class = steps < kMostSteps ? steps : kMostSteps + power;
  Header* block = free_[size_class];
  if (block == nullptr) {
    const std::size_t block_size = steps < kMostSteps ? steps * kStep : std::size_t{1} << power;
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block_size));
    block = ::new (blocks_.back().get()) Header{this, nullptr, size_class};
  } else {
    free_[size_class] = block->next_free;
  }
  return block + 1;
}

void FramePool::give_back(void* memory) noexcept {
  Header* block = static_cast<Header*>(memory) - 1;
  Header*& free = block->pool->free_[block->size_class];
  block->next_free = free;
  free = block;
}

ProcessHost::~ProcessHost() {
  // One by one from the list, as the end of one may start or wake others.
  while (oldest_ != nullptr) ProcessHandle::from_promise(*oldest_).destroy();
}

void Process::promise_type::start() {
  wake_after({});
  older_ = host_.newest_;
  (older_ == nullptr ? host_.oldest_ : older_->newer_) = this;
  host_.newest_ = this;
  ++host_.live_;
}

Process::promise_type::~promise_type() {
  host_.queue_.cancel(wake_);  // false if it waits for no time
  if (waits_at_ != nullptr) waits_at_->process_ = nullptr;
  (older_ == nullptr ? host_.oldest_ : older_->newer_) = newer_;
  (newer_ == nullptr ? host_.newest_ : newer_->older_) = older_;
  --host_.live_;
}

void Process::promise_type::wake_after(Duration pause, Phase phase) {
  wake_ = host_.queue_.schedule_after(pause, phase, *this);
}

void Process::promise_type::on_event(std::uint64_t) {
  const auto process = ProcessHandle::from_promise(*this);
  process.resume();
  if (!process.done()) return;
  const std::exception_ptr failure = std::move(failure_);
  process.destroy();  // and this promise with it
  if (failure) std::rethrow_exception(failure);
}

void Delay::await_suspend(ProcessHandle process) const {
  if (&process.promise().queue() != queue_) {
    throw std::logic_error("delay: the process lives in another event queue");
  }
  process.promise().wake_after(pause_);
}

Delay delay(EventQueue& queue, Duration pause) {
  if (pause < Duration{}) throw std::logic_error("delay: negative");
  return {queue, pause};
}

void EndOfInstant::await_suspend(ProcessHandle process) const {
  process.promise().wake_after({}, Phase::kObserve);
}

WaitPoint::~WaitPoint() {
  if (process_ == nullptr) return;
  // A woken process would go on to take what is no longer there.
  process_->queue().cancel(process_->wake_);
  process_->waits_at_ = nullptr;
}

void WaitPoint::wait(ProcessHandle process) {
  if (taken()) throw std::logic_error("WaitPoint: a second process waits here");
  process_ = &process.promise();
  process_->waits_at_ = this;
  woken_ = false;
}

void WaitPoint::wake() {
  if (process_ == nullptr || woken_) return;
  process_->wake_after({});
  woken_ = true;
}

void WaitPoint::leave() {
  process_->waits_at_ = nullptr;
  process_ = nullptr;
}

}  // namespace weft
