#include "sim/io/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

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

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

OutputFile::OutputFile(std::string path) : path_{std::move(path)} {
  if (path_ == "-") return;
  const Target target = target_of(path_);
  if (target.is_written_to) {
    file_ = ::open(path_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (file_ < 0) fail("cannot be written");
    return;
  }
  if (std::filesystem::is_directory(target.path)) throw_cannot(path_, "cannot be replaced", EISDIR);
  const Fresh fresh = create_beside(path_, target.path);
  target_ = target.path;
  fresh_ = fresh.path;
  file_ = fresh.file;
}

OutputFile::~OutputFile() {
  if (file_ >= 0) ::close(file_);
  if (!fresh_.empty()) std::remove(fresh_.c_str());
}

void OutputFile::fail(const char* what) { throw_cannot(path_, what, errno); }

void OutputFile::write(std::string_view text) {
  if (path_ == "-") {
    if (!(std::cout << text)) throw InputError("standard output: cannot be written");
  } else if (!write_all(file_, text)) {
    fail("cannot be written");
  }
}

void OutputFile::commit() {
  if (path_ == "-") {
    if (!std::cout.flush()) throw InputError("standard output: cannot be written");
    return;
  }
  if (::close(std::exchange(file_, -1)) != 0) fail("cannot be written");
  if (target_.empty()) return;
  if (std::rename(fresh_.c_str(), target_.c_str()) != 0) fail("cannot be replaced");
  fresh_.clear();
}

void write_text_files(std::span<const TextFile> files) {
  std::deque<OutputFile> out;
  for (const TextFile& file : files) out.emplace_back(file.path);
  for (const bool is_replaced : {true, false}) {  // to a stream or device when the rest is there
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (out[i].replaces() == is_replaced) out[i].write(files[i].text);
    }
  }
  for (const bool is_replaced : {false, true}) {
    for (OutputFile& each : out) {
      if (each.replaces() == is_replaced) each.commit();
    }
  }
}

void write_text_file(const std::string& path, std::string_view text) {
  const TextFile file{path, text};
  write_text_files({&file, 1});
}

}  // namespace weft
