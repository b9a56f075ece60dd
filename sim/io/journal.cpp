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
#include "sim/io/write_all.hpp"

namespace weft {
namespace {

constexpr std::string_view kFirstLine = "weft journal 1\n";
constexpr std::int64_t kMaxBytes = 1LL << 30;
constexpr const char* kNoFile = ": is not a regular file; move it elsewhere";

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
    // A FIFO or device must not make it wait, a link lead it to another file.
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                   0666);
    if (file_ < 0 && errno == ELOOP) throw InputError(path_ + kNoFile);
    if (file_ < 0) throw InputError(path_ + ": cannot be written: " + std::strerror(errno));
    if (::fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(file_);
      throw InputError(path_ + kNoFile);
    }
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
  if (!write_all(file_, text)) {
    throw InputError(path_ + ": cannot be written: " + std::strerror(errno));
  }
}

void Journal::remove() { std::remove(path_.c_str()); }

}  // namespace weft
