#include "replay/trace/text_lines.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <zlib.h>

#include "sim/base/error.hpp"

namespace weft::trace {
namespace {

constexpr std::size_t kPiece = 1U << 18;

gzFile handle(void* file) { return static_cast<gzFile>(file); }

}  // namespace

TextLines::TextLines(const std::string& path) : path_{path} {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw InputError(path + ": is a directory, not a file");
  }
  file_ = ::gzopen(path.c_str(), "rb");
  if (file_ == nullptr) throw InputError(path + ": cannot be opened: " + std::strerror(errno));
}

TextLines::~TextLines() { ::gzclose(handle(file_)); }

// More text behind what is there; false at the end.
bool TextLines::fill() {
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t before = buffer_.size();
  if (before > kMaxLine) {
    throw InputError(Place{path_, line_ + 1}, "a line of more than 128 MiB");
  }
  buffer_.resize(before + kPiece);
  const int got = ::gzread(handle(file_), buffer_.data() + before, static_cast<unsigned>(kPiece));
  int error = Z_OK;
  const char* const what = ::gzerror(handle(file_), &error);
  if (got < 0 || error == Z_BUF_ERROR) {
    throw InputError(path_ + ": cannot be read: " +
                     (error == Z_ERRNO       ? std::strerror(errno)
                      : error == Z_BUF_ERROR ? "its gzip data end too early"
                                             : what));
  }
  buffer_.resize(before + static_cast<std::size_t>(got));
  return got > 0;
}

std::optional<std::string_view> TextLines::next() {
  std::size_t searched = at_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      const std::string_view line(buffer_.data() + at_, end - at_);
      at_ = end + 1;
      ++line_;
      return line;
    }
    searched = buffer_.size() - at_;
    if (fill()) continue;
    if (buffer_.empty()) return std::nullopt;
    ++line_;
    at_ = buffer_.size();
    return buffer_;
  }
}

}  // namespace weft::trace
