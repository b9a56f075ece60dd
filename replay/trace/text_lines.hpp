#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weft::trace {

/// The lines of a text file, plain or gzip'd, one at a time.
class TextLines {
 public:
  /// Throws InputError if it cannot be opened.
  explicit TextLines(const std::string& path);
  TextLines(const TextLines&) = delete;
  TextLines& operator=(const TextLines&) = delete;
  ~TextLines();

  /// The next line without its end, valid until the next call; nothing at the end. Throws
  /// InputError: cannot be read, damaged, a line of over kMaxLine bytes.
  std::optional<std::string_view> next();
  /// The number of the line that next() gave last, from 1.
  int line() const { return line_; }
  const std::string& path() const { return path_; }

  static constexpr std::size_t kMaxLine = 128U << 20;  ///< a topology, each byte of it escaped

 private:
  bool fill();

  std::string path_;
  void* file_{nullptr};  ///< zlib's
  std::string buffer_;
  std::size_t at_{0};
  int line_{0};
  bool is_at_end_{false};
};

}  // namespace weft::trace
