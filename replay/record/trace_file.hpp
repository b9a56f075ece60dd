#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <sys/types.h>

#include "replay/trace/block.hpp"

namespace weft::record {

/// The file of a recording inside of a program that is not ours. It is valid at any time: blocks
/// are only ever added, a block that did not fit is taken back. Nothing throws.
class TraceFile {
 public:
  TraceFile() = default;
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  /// Makes the file, under `name` or, where that exists, with the process's number before its
  /// ending.
  void open(const std::string& name, const trace::FileFacts& facts);
  void add(std::uint32_t thread, std::span<const std::byte> records);
  /// The last block.
  void end();
  /// Ends it before its time: says why on standard error, and in the file where that still works.
  void give_up(const char* why);
  /// In the child of a fork: the file is its parent's.
  void leave();

  bool is_open() const { return descriptor_ >= 0; }
  std::uint64_t written_bytes() const { return written_bytes_; }

 private:
  bool write(std::span<const std::byte> bytes);
  bool is_ours() const;

  int descriptor_{-1};
  dev_t device_{};
  ino_t inode_{};
  std::uint64_t written_bytes_{0};
  std::string name_;
  trace::BlockEncoder encoder_;
};

/// "run.weft" and 17: "run.17.weft".
std::string with_process(const std::string& name, std::uint64_t process);

}  // namespace weft::record
