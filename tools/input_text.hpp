#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

#include "sim/base/error.hpp"
#include "sim/io/file.hpp"

namespace weft {

/// An input file, or a text that stands for one.
struct InputText {
  std::string file;  ///< the name that messages use
  std::optional<std::string> text{};

  /// Throws InputError as read_text_file() does, and if the text has more bytes.
  std::string read(std::int64_t max_bytes = kMaxInputBytes) const {
    if (!text) return read_text_file(file, max_bytes);
    if (std::ssize(*text) > max_bytes) {
      throw InputError(file + ": larger than " + std::to_string(max_bytes >> 20) +
                       " MiB, the most that is read");
    }
    return *text;
  }
};

}  // namespace weft
