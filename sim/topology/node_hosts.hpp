#pragma once

#include <cstddef>
#include <map>
#include <string_view>

#include "sim/topology/spec.hpp"

namespace weft {

/// The hosts of a node: one, or its trays, where NVLink joins several (GB200 NVL72). CPUs that no
/// socket link joins are of different hosts. The node must outlive it.
class NodeHosts {
 public:
  explicit NodeHosts(const NodeSpec& node);

  /// One of a CPU's host, the same for all of them.
  std::string_view first_cpu(std::string_view cpu) const;
  std::size_t count() const { return count_; }

 private:
  std::map<std::string_view, std::string_view> joined_to_;  // CPUs, towards their host's first
  std::size_t count_{0};
};

}  // namespace weft
