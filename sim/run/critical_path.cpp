#include "sim/run/critical_path.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace weft {

PathRef PathStore::extend(PathRef path, CauseId cause, Duration time) {
  if (time == Duration{}) return path;
  if (path.store_ != nullptr) {
    Node& last = nodes_[path.node_];
    if (last.references == 1) {
      for (std::uint32_t i = 0; i < last.count; ++i) {
        if (last.causes[i] != cause) continue;
        last.times[i] += time;
        return path;
      }
      if (last.count < kCauses) {
        last.causes[last.count] = cause;
        last.times[last.count++] = time;
        return path;
      }
    }
  }
  // The new node takes over the reference that `path` holds.
  const std::uint32_t parent = path.store_ == nullptr ? kNone : path.node_;
  path.store_ = nullptr;
  return {this, take({parent, 1, {cause}, {time}, 1})};
}

std::uint32_t PathStore::take(const Node& node) {
  if (free_.empty() && nodes_.size() >= joins_at_) {
    join_nodes();
    if (2 * live_nodes() > nodes_.size()) joins_at_ = 2 * nodes_.size();
  }
  if (free_.empty()) {
    nodes_.push_back(node);
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  nodes_[index] = node;
  return index;
}

void PathStore::join_nodes() {
  has_child_.assign(nodes_.size(), false);
  for (const Node& node : nodes_) {
    if (node.references > 0 && node.parent != kNone) has_child_[node.parent] = true;
  }
  is_between_.resize(nodes_.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    is_between_[n] = has_child_[n] && nodes_[n].references == 1;
  }
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].references > 0 && !is_between_[n]) join_above(n);
  }
}

/// A node, which is none between others, and those before it that are.
void PathStore::join_above(std::uint32_t node) {
  const std::uint32_t parent = nodes_[node].parent;
  if (parent == kNone || !is_between_[parent]) return;
  chain_.clear();
  causes_.clear();
  std::uint32_t above = node;
  do {
    const Node& of = nodes_[above];
    for (std::uint32_t i = 0; i < of.count; ++i) {
      const CauseId cause = of.causes[i];
      if (times_.size() <= cause.index()) times_.resize(cause.index() + 1);
      if (times_[cause.index()] == Duration{}) causes_.push_back(cause);
      times_[cause.index()] += of.times[i];
    }
    chain_.push_back(above);
    above = of.parent;
  } while (above != kNone && is_between_[above]);
  const std::size_t needed = (causes_.size() + kCauses - 1) / kCauses;
  auto cause = causes_.begin();
  for (std::size_t i = 0; i < chain_.size(); ++i) {
    Node& of = nodes_[chain_[i]];
    if (i >= needed) {
      of.references = 0;
      free_.push_back(chain_[i]);
      continue;
    }
    of.parent = i + 1 < needed ? chain_[i + 1] : above;
    for (of.count = 0; of.count < kCauses && cause != causes_.end(); ++of.count, ++cause) {
      of.causes[of.count] = *cause;
      of.times[of.count] = std::exchange(times_[cause->index()], Duration{});
    }
  }
}

void PathStore::release(std::uint32_t node) {
  while (node != kNone && --nodes_[node].references == 0) {  // a loop: histories are long
    free_.push_back(node);
    node = nodes_[node].parent;
  }
}

std::vector<std::pair<CauseId, Duration>> PathStore::total(const PathRef& path) const {
  std::map<CauseId, Duration> by_cause;
  std::uint32_t node = path.store_ == nullptr ? kNone : path.node_;
  for (; node != kNone; node = nodes_[node].parent) {
    for (std::uint32_t i = 0; i < nodes_[node].count; ++i) {
      by_cause[nodes_[node].causes[i]] += nodes_[node].times[i];
    }
  }
  std::vector<std::pair<CauseId, Duration>> out(by_cause.begin(), by_cause.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

}  // namespace weft
