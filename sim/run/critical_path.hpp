#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/run/cause.hpp"

namespace weft {

class PathStore;

/// The critical path that led to some moment of a run: which causes took how long, back to the
/// start. A value: copies share their history. Its store must outlive it.
class PathRef {
 public:
  PathRef() = default;  ///< the start of the run
  PathRef(const PathRef& other);
  PathRef(PathRef&& other) noexcept
      : store_{std::exchange(other.store_, nullptr)}, node_{other.node_} {}
  PathRef& operator=(PathRef other) noexcept {
    std::swap(store_, other.store_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~PathRef();

 private:
  friend class PathStore;
  PathRef(PathStore* store, std::uint32_t node) : store_{store}, node_{node} {}

  PathStore* store_{nullptr};  // null: the start
  std::uint32_t node_{0};
};

/// Holds the histories of every moment that something in a run still waits for, as a tree of
/// reference-counted nodes; what no one can reach is reused. A node holds a few causes, a cache
/// line in all, since most histories part only after several. Nodes between which none parts any
/// more are joined now and then, so that what is held grows with the moments that are waited for,
/// not with the length of a run. Time is exact (integer picoseconds), so the causes of a run sum to
/// its length.
class PathStore {
 public:
  PathStore() = default;
  PathStore(const PathStore&) = delete;
  PathStore& operator=(const PathStore&) = delete;

  /// `path`, then `time` more because of `cause`. Constant time; the last node takes it in if
  /// nobody else holds that and it has the same cause or room for another.
  PathRef extend(PathRef path, CauseId cause, Duration time);
  /// Time by cause along a path, most first (ties by cause).
  std::vector<std::pair<CauseId, Duration>> total(const PathRef& path) const;
  std::size_t live_nodes() const { return nodes_.size() - free_.size(); }

 private:
  friend class PathRef;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::size_t kCauses = 4;
  struct Node {
    std::uint32_t parent;
    std::uint32_t references;
    std::array<CauseId, kCauses> causes;
    std::array<Duration, kCauses> times;
    std::uint32_t count;  // of causes
  };
  static_assert(sizeof(Node) == 64);
  void retain(std::uint32_t node) { ++nodes_[node].references; }
  void release(std::uint32_t node);
  std::uint32_t take(const Node& node);
  void join_nodes();
  void join_above(std::uint32_t node);

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> free_;
  std::size_t joins_at_{1U << 14U};  // nodes: a MB
  // While nodes are joined, kept for the next time.
  std::vector<bool> has_child_;       // by node
  std::vector<bool> is_between_;      // whose one reference is that of the node behind it
  std::vector<std::uint32_t> chain_;  // nodes that become fewer
  std::vector<CauseId> causes_;       // theirs
  std::vector<Duration> times_;       // by cause
};

inline PathRef::PathRef(const PathRef& other) : store_{other.store_}, node_{other.node_} {
  if (store_ != nullptr) store_->retain(node_);
}

inline PathRef::~PathRef() {
  if (store_ != nullptr) store_->release(node_);
}

}  // namespace weft
