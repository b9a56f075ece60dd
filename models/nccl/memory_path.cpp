#include "models/nccl/memory_path.hpp"

#include <string>

#include "sim/base/error.hpp"

namespace weft {

std::string_view memory_path_name(MemoryPath path) {
  return path == MemoryPath::kGdr ? "gdr" : "host-staged";
}

MemoryPath parse_memory_path(std::string_view text) {
  if (text == "gdr") return MemoryPath::kGdr;
  if (text == "host-staged") return MemoryPath::kHostStaged;
  throw InputError("no memory path '" + std::string(text) + "'; known: gdr, host-staged");
}

}  // namespace weft
