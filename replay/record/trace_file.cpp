#include "replay/record/trace_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "replay/record/clock.hpp"

namespace weft::record {
namespace {

int created(const std::string& name) {
  return ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/// One call of write(), so that it stays one line among what the program prints.
void say(const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(2, text.data(), text.size());
}

}  // namespace

std::string with_process(const std::string& name, std::uint64_t process) {
  const std::size_t folder = name.rfind('/');
  const std::size_t dot = name.rfind('.');
  const bool has_ending =
      dot != std::string::npos && dot > 0 && (folder == std::string::npos || dot > folder + 1);
  const std::size_t at = has_ending ? dot : name.size();
  return name.substr(0, at) + '.' + std::to_string(process) + name.substr(at);
}

TraceFile::~TraceFile() { leave(); }

void TraceFile::open(const std::string& name, const trace::FileFacts& facts) {
  name_ = name;
  descriptor_ = created(name_);
  if (descriptor_ < 0 && errno == EEXIST) {
    name_ = with_process(name, static_cast<std::uint64_t>(getpid()));
    descriptor_ = created(name_);
  }
  std::vector<std::byte> head(trace::file_head_bytes(facts));
  struct stat status {};
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) {
    give_up(std::strerror(errno));
    return;
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  if (!encoder_.is_ready() || !trace::write_file_head(facts, head)) {
    give_up("no memory, or a topology of over 16 MiB");
    return;
  }
  if (!write(head)) give_up(std::strerror(errno));
}

// A program that closes all descriptors may by now have given ours to a file of its own.
bool TraceFile::is_ours() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) return false;
  return status.st_dev == device_ && status.st_ino == inode_;
}

bool TraceFile::write(std::span<const std::byte> bytes) {
  if (!is_ours()) {
    descriptor_ = -1;
    errno = EBADF;
    return false;
  }
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t step = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (step < 0 && errno == EINTR) continue;
    if (step <= 0) {
      const int why = step == 0 ? ENOSPC : errno;
      // Blocks are whole or not there.
      [[maybe_unused]] const int cut = ftruncate(descriptor_, static_cast<off_t>(written_bytes_));
      lseek(descriptor_, static_cast<off_t>(written_bytes_), SEEK_SET);
      errno = why;
      return false;
    }
    done += static_cast<std::size_t>(step);
  }
  written_bytes_ += bytes.size();
  return true;
}

void TraceFile::add(std::uint32_t thread, std::span<const std::byte> records) {
  if (!is_open() || records.empty()) return;
  const std::span<const std::byte> block = encoder_.block(thread, records);
  if (block.empty()) {
    give_up("zstd refused a block");
  } else if (!write(block)) {
    give_up(std::strerror(errno));
  }
}

void TraceFile::give_up(const char* why) {
  const std::string text = std::string("recording ends here: ") + why;
  say("weft record: " + name_ + ": " + text + "; the program goes on\n");
  if (is_open()) {
    trace::Mark mark{};
    std::vector<std::byte> record((sizeof mark + text.size() + 7) / 8 * 8);
    mark.head = {.type = trace::RecordType::kMark,
                 .bytes = static_cast<std::uint16_t>(record.size()),
                 .thread = trace::kNone,
                 .time_ns = now_ns()};
    std::memcpy(record.data(), &mark, sizeof mark);
    std::memcpy(record.data() + sizeof mark, text.data(), text.size());
    // Where even this does not fit, the missing end says that the recording was cut.
    if (write(encoder_.block(trace::kNone, record))) write(encoder_.end());
  }
  leave();
}

void TraceFile::end() {
  if (!is_open()) return;
  write(encoder_.end());
  leave();
}

void TraceFile::leave() {
  if (descriptor_ >= 0 && is_ours()) close(descriptor_);
  descriptor_ = -1;
}

}  // namespace weft::record
