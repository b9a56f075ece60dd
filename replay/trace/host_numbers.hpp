#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace weft::trace {

/// A trace's hosts by number, from 0, in the order in which they come. What comes again by name,
/// under another id, is the same host.
class HostNumbers {
 public:
  /// The number of a host's id; `name` counts where it comes for the first time.
  std::uint32_t of(std::uint32_t host, const std::string& name = {}) {
    const auto [at, is_new] = by_id_.try_emplace(host, 0);
    if (!is_new) return at->second;
    const auto known = by_name_.find(name);
    at->second = !name.empty() && known != by_name_.end() ? known->second : count_++;
    by_name_.emplace(name, at->second);
    return at->second;
  }
  std::uint32_t count() const { return count_; }

 private:
  std::map<std::uint32_t, std::uint32_t> by_id_;
  std::map<std::string, std::uint32_t> by_name_;
  std::uint32_t count_{0};
};

}  // namespace weft::trace
