#include "models/nccl/memory_path.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "sim/base/error.hpp"

namespace weft {
namespace {

constexpr std::array<std::string_view, 3> kMemoryPathNames{"gdr", "host-staged", "nccl"};

}  // namespace

std::string_view memory_path_name(MemoryPath path) {
  return kMemoryPathNames.at(static_cast<std::size_t>(path));
}

MemoryPath parse_memory_path(std::string_view text) {
  const auto* const at = std::find(kMemoryPathNames.begin(), kMemoryPathNames.end(), text);
  if (at != kMemoryPathNames.end()) {
    return static_cast<MemoryPath>(at - kMemoryPathNames.begin());
  }
  throw InputError("no memory path '" + std::string(text) +
                   "'; known: " + known_names({kMemoryPathNames.begin(), kMemoryPathNames.end()}));
}

}  // namespace weft
