#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "replay/trace/block.hpp"
#include "replay/trace/record.hpp"
#include "sim/io/file.hpp"

namespace weft::trace {

/// Writes a trace that takes its place once it is whole. Each throws InputError if it cannot be
/// written.
class TraceWriter {
 public:
  TraceWriter(const std::string& path, const FileFacts& facts);

  /// A block of its own; nothing where there are no records. They must be whole and at most
  /// kMaxBlockBytes.
  void block(std::uint32_t thread, std::span<const std::byte> records);
  /// Adds a record to its thread's block, which is written once it is full.
  void add(std::span<const std::byte> record);
  /// So many blocks would stand here but were lost before: whoever reads the file is told.
  void lose(std::uint64_t blocks);
  /// Writes what was added and the file's last block; a trace whose writer was stopped has none.
  void end();
  /// Puts the file in its place. Not called: there is none.
  void commit();

 private:
  void flush();
  void write(std::span<const std::byte> bytes);

  OutputFile out_;
  BlockEncoder encoder_;
  std::map<std::uint32_t, std::vector<std::byte>> pending_;  ///< by thread
};

/// A record's bytes, with its tail filled up to a multiple of 8 and its length set. Throws
/// InputError where it is longer than a record may be.
template <FixedRecord T>
std::vector<std::byte> record_of(T fixed, std::span<const std::byte> tail = {});

/// What record_of() does, for a fixed part that is bytes.
std::vector<std::byte> whole_record(std::span<const std::byte> fixed,
                                    std::span<const std::byte> tail);

template <FixedRecord T>
std::vector<std::byte> record_of(T fixed, std::span<const std::byte> tail) {
  return whole_record(std::as_bytes(std::span(&fixed, 1)), tail);
}

}  // namespace weft::trace
