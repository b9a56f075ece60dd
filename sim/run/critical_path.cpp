#include "sim/run/critical_path.hpp"

#include <algorithm>
#include <map>

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
  const Node node{parent, 1, {cause}, {time}, 1};
  if (free_.empty()) {
    nodes_.push_back(node);
    return {this, static_cast<std::uint32_t>(nodes_.size() - 1)};
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  nodes_[index] = node;
  return {this, index};
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
