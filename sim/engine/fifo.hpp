#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace weft {

/// First in, first out, in one vector that keeps its memory: once it has been as long as it gets,
/// it allocates nothing (std::deque would, every few hundred bytes). push and pop are O(1)
/// amortised.
template <class T>
class Fifo {
 public:
  bool empty() const { return head_ == items_.size(); }
  std::size_t size() const { return items_.size() - head_; }

  /// The oldest. Precondition: not empty.
  const T& front() const { return items_[head_]; }
  /// The i-th oldest. Precondition: i < size().
  const T& at(std::size_t i) const { return items_[head_ + i]; }
  T& at(std::size_t i) { return items_[head_ + i]; }

  /// So many at once without allocating.
  void reserve(std::size_t count) { items_.reserve(count + kSpareBeforeMove); }

  void push(T item) { items_.push_back(std::move(item)); }

  /// Removes and returns the oldest. Precondition: not empty.
  T pop() {
    assert(!empty());
    T item = std::move(items_[head_]);
    ++head_;
    if (head_ == items_.size()) {
      items_.clear();
      head_ = 0;
    } else if (head_ >= kSpareBeforeMove && head_ * 2 >= items_.size()) {
      drop_spare();
    }
    return item;
  }

  /// The i-th oldest becomes the oldest, and the oldest takes its place. Precondition: i < size().
  void bring_to_front(std::size_t i) {
    assert(i < size());
    std::swap(items_[head_], items_[head_ + i]);
  }

  /// Removes every item for which `gone(item)` holds; the others keep their order.
  template <class Predicate>
  void remove_if(Predicate gone) {
    drop_spare();
    std::erase_if(items_, gone);
  }

 private:
  static constexpr std::size_t kSpareBeforeMove = 32;

  void drop_spare() {
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }

  std::vector<T> items_;
  std::size_t head_{0};  ///< items before it are gone
};

}  // namespace weft
