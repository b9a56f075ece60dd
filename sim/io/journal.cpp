#include "sim/io/journal.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/error.hpp"
#include "sim/base/random.hpp"
#include "sim/io/file.hpp"

namespace weft {
namespace {

constexpr std::string_view kFirstLine = "weft journal 1\n";
constexpr std::int64_t kMaxBytes = 1LL << 30;

// A record is a line with its length and digest, then its bytes and a newline.
std::string heading(std::string_view record) {
  return std::to_string(record.size()) + ' ' + std::to_string(fnv1a(record)) + '\n';
}

/// Takes the next record off `text`; none if there is no whole one.
std::optional<std::string_view> take_record(std::string_view& text) {
  std::size_t size{};
  if (std::from_chars(text.data(), text.data() + text.size(), size).ec != std::errc{}) return {};
  const std::size_t begin = text.find('\n') + 1;
  if (begin == 0 || size >= text.size() - begin) return {};
  const std::string_view record = text.substr(begin, size);
  if (text.substr(0, begin) != heading(record) || text[begin + size] != '\n') return {};
  text.remove_prefix(begin + size + 1);
  return record;
}

}  // namespace

Journal::Journal(const std::string& path) : path_{path} {
  open();
  try {
    read();
  } catch (...) {
    ::close(file_);
    throw;
  }
}

Journal::~Journal() { ::close(file_); }

void Journal::open() {
  struct stat status {};
  do {
    if (file_ >= 0) ::close(file_);
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file_ < 0) throw InputError(path_ + ": cannot be written: " + std::strerror(errno));
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      ::close(file_);
      throw InputError(path_ + ": another process is writing it");
    }
    // Its last owner may have taken it away between the opening and the locking.
  } while (::fstat(file_, &status) == 0 && status.st_nlink == 0);
}

void Journal::read() {
  const std::string text = read_text_file(path_, kMaxBytes);
  std::string_view rest = text;
  if (rest.starts_with(kFirstLine)) {
    rest.remove_prefix(kFirstLine.size());
  } else if (!kFirstLine.starts_with(rest)) {
    throw InputError(path_ + ": is not a journal of weft; move it elsewhere");
  } else {  // new, or ended within its first line
    if (::ftruncate(file_, 0) != 0) throw InputError(path_ + ": cannot be written");
    write(kFirstLine);
    return;
  }
  while (const auto record = take_record(rest)) records_.emplace_back(*record);
  if (rest.empty()) return;
  if (::ftruncate(file_, static_cast<off_t>(text.size() - rest.size())) != 0) {
    throw InputError(path_ + ": cannot be written: " + std::strerror(errno));
  }
}

void Journal::append(std::string_view record) {
  write(heading(record).append(record).append("\n"));
}

void Journal::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw InputError(path_ + ": cannot be written: " + std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Journal::remove() { std::remove(path_.c_str()); }

}  // namespace weft
