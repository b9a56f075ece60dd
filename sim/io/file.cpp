#include "sim/io/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/io/write_all.hpp"

namespace weft {
namespace {

std::string read_all(std::istream& in, const std::string& name, std::int64_t max_bytes) {
  std::string text;
  std::string block(1 << 16, '\0');
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(in.gcount()));
    if (std::cmp_greater(text.size(), max_bytes)) {
      const bool in_mib = max_bytes % (1 << 20) == 0;
      throw InputError(name + ": larger than " +
                       std::to_string(in_mib ? max_bytes >> 20 : max_bytes) +
                       (in_mib ? " MiB" : " bytes") + ", the most that is read");
    }
  }
  if (in.bad()) throw InputError(name + ": cannot be read");
  return text;
}

[[noreturn]] void throw_cannot(const std::string& path, const char* what, int reason) {
  throw InputError(path + ": " + what + ": " + std::strerror(reason));
}

struct Target {
  std::string path;
  bool is_written_to;  ///< as it is; else it is replaced
};

/// What stands behind the links at `path`. A device or pipe is written to, since a rename would put
/// a file in its place; so is what a process has open, to which /dev/stdout leads.
Target target_of(const std::string& path) {
  constexpr int kMostLinks = 40;  // Linux: MAXSYMLINKS
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_directory(status)) {
    return {path, true};
  }
  std::filesystem::path target = path;
  for (int links = 0;; ++links) {
    std::error_code error;
    const auto own = std::filesystem::symlink_status(target, error);
    if (own.type() == std::filesystem::file_type::none) {
      throw_cannot(path, "cannot be written", error.value());
    }
    if (!std::filesystem::is_symlink(own)) break;
    if (links == kMostLinks) throw_cannot(path, "cannot be written", ELOOP);
    const std::filesystem::path folder = target.parent_path();
    if (std::filesystem::weakly_canonical(folder, ignored).string().starts_with("/proc/")) {
      return {path, true};
    }
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error) throw_cannot(path, "cannot be written", error.value());
    target = folder / next;
  }
  return {target.string(), false};
}

struct Fresh {
  std::string path;
  int file;
};

/// A file of a name that nothing had, beside `target`, with its owner and mode if it is there.
Fresh create_beside(const std::string& path, const std::string& target) {
  struct stat old {};
  const bool exists = ::stat(target.c_str(), &old) == 0;
  const mode_t mode = exists ? old.st_mode & 07777U : 0666U;
  Fresh fresh{"", -1};
  for (int number = 0; fresh.file < 0; ++number) {
    fresh.path = target + ".tmp" + std::to_string(::getpid()) + '.' + std::to_string(number);
    fresh.file = ::open(fresh.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                        mode & 0777U);
    if (fresh.file < 0 && errno != EEXIST) throw_cannot(path, "cannot be written", errno);
  }
  // The owner needs privileges: without them the file is whose run it was.
  if (exists) {
    if (::fchown(fresh.file, old.st_uid, old.st_gid) != 0) errno = 0;
    if (::fchmod(fresh.file, mode) != 0) errno = 0;  // not every file system has modes
  }
  return fresh;
}

/// A text under a fresh name, which is taken away again unless it replaces its target.
class Staged {
 public:
  /// Throws InputError if the place cannot be written.
  Staged(const TextFile& file, std::string target)
      : file_{&file}, target_{std::move(target)}, fresh_{create_beside(file.path, target_)} {}
  ~Staged() {
    if (fresh_.file >= 0) ::close(fresh_.file);
    if (!fresh_.path.empty()) std::remove(fresh_.path.c_str());
  }
  Staged(Staged&& other) noexcept
      : file_{other.file_},
        target_{std::move(other.target_)},
        fresh_{std::exchange(other.fresh_, {"", -1})} {}
  Staged& operator=(Staged&&) = delete;
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  void write() {
    if (!write_all(fresh_.file, file_->text) || ::close(std::exchange(fresh_.file, -1)) != 0) {
      throw_cannot(file_->path, "cannot be written", errno);
    }
  }
  void replace() {
    if (std::rename(fresh_.path.c_str(), target_.c_str()) != 0) {
      throw_cannot(file_->path, "cannot be replaced", errno);
    }
    fresh_.path.clear();
  }

 private:
  const TextFile* file_;
  std::string target_;
  Fresh fresh_;
};

/// Standard output, a device or a pipe; others are staged.
void write_as_it_is(const TextFile& file) {
  if (file.path == "-") {
    std::cout << file.text << std::flush;
    if (!std::cout) throw InputError("standard output: cannot be written");
    return;
  }
  if (!target_of(file.path).is_written_to) return;
  std::ofstream out(file.path, std::ios::binary);
  out << file.text << std::flush;
  if (!out) throw InputError(file.path + ": cannot be written: " + std::strerror(errno));
}

}  // namespace

std::string read_text_file(const std::string& path, std::int64_t max_bytes) {
  if (path == "-") return read_all(std::cin, "standard input", max_bytes);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::none) {
    throw_cannot(path, "cannot be opened", error.value());
  }
  if (!std::filesystem::exists(status)) throw InputError(path + ": no such file");
  if (std::filesystem::is_directory(status))
    throw InputError(path + ": is a directory, not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path + ": cannot be opened: " + std::strerror(errno));
  return read_all(in, path, max_bytes);
}

void write_text_files(std::span<const TextFile> files) {
  std::vector<Staged> staged;  // what goes to a stream or device first: that may fail, too
  for (const TextFile& file : files) {
    if (file.path == "-") continue;
    Target target = target_of(file.path);
    if (target.is_written_to) continue;
    if (std::filesystem::is_directory(target.path)) {
      throw_cannot(file.path, "cannot be replaced", EISDIR);
    }
    staged.emplace_back(file, std::move(target.path));
    staged.back().write();
  }
  for (const TextFile& file : files) write_as_it_is(file);
  for (Staged& each : staged) each.replace();
}

void write_text_file(const std::string& path, std::string_view text) {
  const TextFile file{path, text};
  write_text_files({&file, 1});
}

}  // namespace weft
