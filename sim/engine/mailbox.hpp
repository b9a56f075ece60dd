#pragma once

#include <stdexcept>
#include <utility>

#include "sim/engine/fifo.hpp"
#include "sim/engine/process.hpp"

namespace weft {

/// How processes and event handlers talk: anyone pushes, one process at a time pops, first in first
/// out, without bound. It also serves as a counting semaphore: push n tokens, pop one to acquire,
/// push it back to release.
///
/// A process that waits for an item when the box ends waits until its host ends.
template <class T>
class Mailbox {
 public:
  class Pop {
   public:
    explicit Pop(Mailbox& box) : box_{&box} {}
    bool await_ready() const noexcept { return !box_->items_.empty(); }
    void await_suspend(ProcessHandle process) const { box_->consumer_.wait(process); }
    T await_resume() const {
      if (box_->consumer_.taken()) box_->consumer_.leave();
      return box_->items_.pop();
    }

   private:
    Mailbox* box_;
  };

  /// Never waits. A waiting consumer goes on at the current instant, in Phase::kCompute, through
  /// the queue: not inside this call.
  void push(T item) {
    items_.push(std::move(item));
    consumer_.wake();
  }

  /// `co_await box.pop()` is the oldest item: at once if there is one, else when one is pushed.
  /// Throws std::logic_error if another process waits for one.
  Pop pop() {
    if (consumer_.taken()) throw std::logic_error("Mailbox: a second consumer");
    return Pop{*this};
  }

  /// The oldest item, which is there. Throws std::logic_error if none is, or a process waits.
  T take() {
    if (items_.empty() || consumer_.taken()) throw std::logic_error("Mailbox: nothing to take");
    return items_.pop();
  }

  bool empty() const { return items_.empty(); }
  /// A process waits, and what is pushed next is what it gets.
  bool is_awaited() const { return consumer_.taken() && items_.empty(); }
  std::size_t size() const { return items_.size(); }

 private:
  Fifo<T> items_;
  WaitPoint consumer_;
};

}  // namespace weft
