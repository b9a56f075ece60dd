#include "replay/record/settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace weft::record {

Settings settings_of_environment() {
  Settings out;
  if (const char* file = std::getenv(kFileVariable)) out.file = file;
  if (const char* buffer = std::getenv(kBufferVariable)) {
    out.buffer_bytes =
        std::clamp<std::size_t>(std::strtoull(buffer, nullptr, 10), kLeastBuffer, kMostBuffer);
  }
  if (const char* salt = std::getenv(kSaltVariable)) out.salt = salt;
  if (const char* keep = std::getenv(kKeepVariable)) out.keep_names = std::string(keep) == "1";
  if (const char* topology = std::getenv(kTopologyVariable)) {
    std::ifstream in(topology, std::ios::binary);
    out.topology.assign(std::istreambuf_iterator<char>(in), {});
  }
  return out;
}

}  // namespace weft::record
