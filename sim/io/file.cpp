#include "sim/io/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <unistd.h>
#include <utility>

#include "sim/base/error.hpp"

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

}  // namespace

std::string read_text_file(const std::string& path, std::int64_t max_bytes) {
  if (path == "-") return read_all(std::cin, "standard input", max_bytes);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw InputError(path + ": no such file");
  if (std::filesystem::is_directory(status))
    throw InputError(path + ": is a directory, not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path + ": cannot be opened: " + std::strerror(errno));
  return read_all(in, path, max_bytes);
}

void write_text_file(const std::string& path, std::string_view text) {
  if (path == "-") {
    std::cout << text << std::flush;
    if (!std::cout) throw InputError("standard output: cannot be written");
    return;
  }
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  const bool exists = std::filesystem::exists(status);
  if (exists && !std::filesystem::is_directory(status) &&
      (!std::filesystem::is_regular_file(status) || path.starts_with("/dev/"))) {
    // A device or pipe is written to; a rename would put a file in its place.
    std::ofstream out(path, std::ios::binary);
    out << text << std::flush;
    if (!out) throw InputError(path + ": cannot be written: " + std::strerror(errno));
    return;
  }
  // The file behind a link is replaced, not the link.
  const std::string target = exists ? std::filesystem::canonical(path, ignored).string() : path;
  const std::string temporary = target + ".tmp" + std::to_string(::getpid());
  const auto fail = [&](const char* what) {
    const int reason = errno;
    std::remove(temporary.c_str());
    throw InputError(path + ": " + what + ": " + std::strerror(reason));
  };
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  if (!out) fail("cannot be written");
  out << text;
  out.close();
  if (!out) fail("cannot be written");
  if (std::rename(temporary.c_str(), target.c_str()) != 0) fail("cannot be replaced");
}

}  // namespace weft
