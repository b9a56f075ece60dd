#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft {

/// Items by number. A freed number is given to the next item, so the memory is that of the most
/// items that ever were at one time.
template <class T>
class Slots {
 public:
  std::uint32_t add(T item) {
    if (free_.empty()) {
      items_.push_back(std::move(item));
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    items_[slot] = std::move(item);
    return slot;
  }
  void free(std::uint32_t slot) { free_.push_back(slot); }

  T& operator[](std::uint32_t slot) { return items_[slot]; }
  const T& operator[](std::uint32_t slot) const { return items_[slot]; }
  /// Numbers are below this one.
  std::uint32_t size() const { return static_cast<std::uint32_t>(items_.size()); }

 private:
  std::vector<T> items_;
  std::vector<std::uint32_t> free_;
};

}  // namespace weft
