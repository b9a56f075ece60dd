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

/// Whether there is a folder; false of what cannot be looked at.
bool is_folder(const std::string& path);

/// A file that is written piece by piece. It is written to a fresh name in the same folder and
/// renamed by commit(), so a reader never sees half a file, with the owner and mode of the file
/// that is replaced; behind a link, which may lead to nothing yet, its target. Without commit()
/// nothing is left of it. "-" is standard output; a device, a pipe or what a process has open
/// (/dev/stdout) is written to as it is. Each throws InputError if the place cannot be written.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::string_view text);
  void commit();
  /// Whether commit() replaces a file; else what is written is there at once.
  bool replaces() const { return !target_.empty(); }

 private:
  [[noreturn]] void fail(const char* what);

  std::string path_;
  std::string target_;  ///< what is replaced in the end; empty: nothing is
  std::string fresh_;
  int file_{-1};
};

/// The whole text as an OutputFile.
void write_text_file(const std::string& path, std::string_view text);

struct TextFile {
  std::string path;
  std::string_view text;  ///< must outlive it
};
/// The same of several: none is replaced before all have been written under their fresh names.
void write_text_files(std::span<const TextFile> files);

}  // namespace weft
