#pragma once

#include <array>
#include <cstddef>
#include <deque>

namespace weft {

/// A list of items in chunks that many lists borrow from one ChunkPool: any list may become long
/// without memory of its own. A plain handle; push and consume go through its pool.
template <class T>
class ChunkList;

/// The chunks of many lists. A chunk once made is reused for ever. Give back or forget the lists
/// before the pool ends.
template <class T>
class ChunkPool {
 public:
  /// With 16-byte items a chunk is 256 bytes: four cache lines.
  static constexpr std::size_t kItemsAChunk = 15;

  ChunkPool() = default;
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  /// Makes chunks until there are `count`, so that the lists can hold this many without allocating.
  void provide(std::size_t count) {
    while (chunks_.size() < count) give_back(&chunks_.emplace_back());
  }

 private:
  friend class ChunkList<T>;

  struct Chunk {
    Chunk* next{nullptr};
    std::size_t size{0};
    std::array<T, kItemsAChunk> items;
  };

  Chunk* take() {
    if (free_ == nullptr) provide(chunks_.size() + 1);
    Chunk* chunk = free_;
    free_ = chunk->next;
    chunk->next = nullptr;
    chunk->size = 0;
    return chunk;
  }
  void give_back(Chunk* chunk) {
    chunk->next = free_;
    free_ = chunk;
  }

  std::deque<Chunk> chunks_;  ///< a deque, as chunks must not move
  Chunk* free_{nullptr};
};

template <class T>
class ChunkList {
 public:
  bool empty() const { return first_ == nullptr; }
  /// Looks no further than it must.
  bool has_at_most(std::size_t count) const {
    std::size_t size = 0;
    for (const Chunk* chunk = first_; chunk != nullptr && size <= count; chunk = chunk->next) {
      size += chunk->size;
    }
    return size <= count;
  }
  /// Precondition: not empty.
  const T& front() const { return first_->items[0]; }

  void push(ChunkPool<T>& pool, T item) {
    if (last_ == nullptr || last_->size == ChunkPool<T>::kItemsAChunk) {
      push_to_new_chunk(pool, item);
    } else {
      last_->items[last_->size++] = item;
    }
  }

  /// Calls visit(item) for every item, oldest first.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Chunk* chunk = first_; chunk != nullptr; chunk = chunk->next) {
      for (std::size_t i = 0; i < chunk->size; ++i) visit(chunk->items[i]);
    }
  }

  /// Empties the list, then calls visit(item) for every item that it had, oldest first; visit may
  /// push to any list, this one too.
  template <class Visit>
  void consume(ChunkPool<T>& pool, Visit visit) {
    Chunk* chunk = first_;
    first_ = nullptr;
    last_ = nullptr;
    while (chunk != nullptr) {
      for (std::size_t i = 0; i < chunk->size; ++i) visit(chunk->items[i]);
      Chunk* const next = chunk->next;
      pool.give_back(chunk);
      chunk = next;
    }
  }

 private:
  using Chunk = typename ChunkPool<T>::Chunk;

  /// Apart, so that push needs few registers.
  [[gnu::noinline]] void push_to_new_chunk(ChunkPool<T>& pool, T item) {
    Chunk* chunk = pool.take();
    (last_ == nullptr ? first_ : last_->next) = chunk;
    last_ = chunk;
    chunk->items[chunk->size++] = item;
  }

  Chunk* first_{nullptr};
  Chunk* last_{nullptr};
};

}  // namespace weft
