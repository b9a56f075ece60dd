#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft {

/// The largest input file weft reads unless a reader says otherwise: bounds memory on hostile
/// input.
inline constexpr std::int64_t kMaxInputBytes = 64LL << 20;

/// The whole file; "-" is standard input; a pipe is read to its end. Throws InputError: missing,
/// unreadable, a directory, larger than `max_bytes`.
std::string read_text_file(const std::string& path, std::int64_t max_bytes = kMaxInputBytes);

/// Writes to a fresh name in the same folder and renames, so a reader never sees half a file, with
/// the owner and mode of the file that is replaced; behind a link, which may lead to nothing yet,
/// its target. "-" is standard output; a device, a pipe or what a process has open (/dev/stdout) is
/// written to as it is. Throws InputError if the place cannot be written.
void write_text_file(const std::string& path, std::string_view text);

struct TextFile {
  std::string path;
  std::string_view text;  ///< must outlive it
};
/// The same of several: none is replaced before all have been written under their fresh names.
void write_text_files(std::span<const TextFile> files);

}  // namespace weft
