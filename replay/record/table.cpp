#include "replay/record/table.hpp"

namespace weft::record {

class Table::Change {
 public:
  explicit Change(Table& table) : lock_{table.mutex_}, changes_{&table.changes_} {
    changes_->fetch_add(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Change() { changes_->fetch_add(1, std::memory_order_release); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  std::lock_guard<std::mutex> lock_;
  std::atomic<std::uint64_t>* changes_;
};

void Table::place(Slots& in, std::uint64_t key, Value value) {
  std::size_t at = home(key, in);
  std::uint64_t have = in.slot[at].key.load(std::memory_order_relaxed);
  while (have != 0 && have != key) {
    at = (at + 1) & in.mask;
    have = in.slot[at].key.load(std::memory_order_relaxed);
  }
  if (have == 0) ++size_;
  in.slot[at].first.store(value.first, std::memory_order_relaxed);
  in.slot[at].second.store(value.second, std::memory_order_relaxed);
  in.slot[at].key.store(key, std::memory_order_relaxed);
}

void Table::put(std::uint64_t key, Value value) {
  const Change change(*this);
  Slots* in = slots_.load(std::memory_order_relaxed);
  if (2 * (size_ + 1) > in->mask) {
    Slots& larger = grown(2 * (in->mask + 1));
    size_ = 0;
    for (std::size_t i = 0; i <= in->mask; ++i) {
      const Slot& old = in->slot[i];
      const std::uint64_t have = old.key.load(std::memory_order_relaxed);
      if (have == 0) continue;
      place(
          larger, have,
          {old.first.load(std::memory_order_relaxed), old.second.load(std::memory_order_relaxed)});
    }
    in = &larger;
    slots_.store(in, std::memory_order_release);
  }
  place(*in, key, value);
}

void Table::erase(std::uint64_t key) {
  const Change change(*this);
  const Slots& in = *slots_.load(std::memory_order_relaxed);
  std::size_t hole = home(key, in);
  for (;; hole = (hole + 1) & in.mask) {
    const std::uint64_t have = in.slot[hole].key.load(std::memory_order_relaxed);
    if (have == 0) return;
    if (have == key) break;
  }
  // Those behind move up into the hole where their own chain passes it, so that no chain is cut
  // (Knuth, The Art of Computer Programming 3, 6.4, algorithm R).
  for (std::size_t at = (hole + 1) & in.mask;; at = (at + 1) & in.mask) {
    const std::uint64_t have = in.slot[at].key.load(std::memory_order_relaxed);
    if (have == 0) break;
    if (((at - home(have, in)) & in.mask) < ((at - hole) & in.mask)) continue;
    in.slot[hole].first.store(in.slot[at].first.load(std::memory_order_relaxed),
                              std::memory_order_relaxed);
    in.slot[hole].second.store(in.slot[at].second.load(std::memory_order_relaxed),
                               std::memory_order_relaxed);
    in.slot[hole].key.store(have, std::memory_order_relaxed);
    hole = at;
  }
  in.slot[hole].key.store(0, std::memory_order_relaxed);
  --size_;
}

}  // namespace weft::record
