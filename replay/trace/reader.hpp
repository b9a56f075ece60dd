#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/trace/block.hpp"
#include "replay/trace/record.hpp"

namespace weft::trace {

/// One sound record where it lies in a block: whole, and as long as its type must be.
class RecordView {
 public:
  explicit RecordView(std::span<const std::byte> bytes) : bytes_{bytes} {}

  std::span<const std::byte> bytes() const { return bytes_; }
  RecordHead head() const { return read<RecordHead>(0); }
  RecordType type() const { return head().type; }
  /// The fixed part. `T` must be the record's type.
  template <FixedRecord T>
  T as() const {
    return read<T>(0);
  }
  /// What follows the fixed part, less the zeros that fill it up.
  template <FixedRecord T>
  std::string_view text() const {
    const void* const tail = bytes_.data() + sizeof(T);
    const std::string_view text(static_cast<const char*>(tail), bytes_.size() - sizeof(T));
    return text.substr(0, text.find_last_not_of('\0') + 1);
  }
  /// A segment of a post; `index` below its number of segments.
  Segment segment(std::size_t index) const;

 private:
  template <FixedRecord T>
  T read(std::size_t offset) const;

  std::span<const std::byte> bytes_;
};

/// Whether a whole record is as long as its type must be; of unknown types all are.
bool is_sound(std::span<const std::byte> record);

/// Calls `visit` for each sound record of a block.
template <typename Visit>
void for_each_record(std::span<const std::byte> records, Visit visit) {
  while (!records.empty()) {
    const std::size_t bytes = record_bytes(records);
    if (is_sound(records.first(bytes))) visit(RecordView(records.first(bytes)));
    records = records.subspan(bytes);
  }
}

/// A part of a file that could not be read.
struct Loss {
  std::uint64_t offset{0};
  std::uint64_t bytes{0};
  std::uint64_t blocks{0};   ///< as the numbers of the blocks around it tell; 0: not known
  std::uint64_t records{0};  ///< 0: not known
  std::string what;
};

struct Losses {
  std::uint64_t places{0};
  std::uint64_t blocks{0};
  std::uint64_t records{0};
  std::uint64_t bytes{0};
  std::vector<Loss> first;  ///< the first kMostLosses of them
};
inline constexpr std::size_t kMostLosses = 100;

struct Block {
  BlockHead head{};
  std::uint64_t offset{0};
  std::span<const std::byte> records;  ///< whole ones; valid until the next block is read
};

/// Reads a trace's blocks in the order of the file, one at a time. What is damaged or missing is
/// passed over and noted: reading goes on with the next block that is whole.
class TraceReader {
 public:
  /// Throws InputError: cannot be read, no trace, a newer version, ends within its head.
  explicit TraceReader(const std::string& path);
  ~TraceReader();
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  const std::string& path() const { return path_; }
  /// Empty texts and unknown clock where the head is damaged (that is a loss).
  const FileFacts& facts() const { return facts_; }
  /// The minor version of the file.
  std::uint16_t minor_version() const { return minor_; }
  std::uint64_t file_bytes() const { return file_bytes_; }

  /// The next block; nothing at the file's end. Throws InputError if the file cannot be read.
  std::optional<Block> next();
  /// The block that next() found at this offset. Throws InputError if it isn't there any more.
  Block block_at(std::uint64_t offset);

  /// Of what was read so far.
  const Losses& losses() const { return losses_; }
  /// Whether the file's last block was read: without it its writer was stopped.
  bool is_ended() const { return is_ended_; }

 private:
  std::span<const std::byte> bytes_at(std::uint64_t offset, std::size_t most);
  void read_head();
  void read_end(const BlockHead& head);
  std::optional<Block> block_here(const BlockHead& head);
  void check_records(const Block& block);
  std::uint64_t next_block_head(std::uint64_t from);
  void begin_damage(std::uint64_t blocks, std::uint64_t records, const char* what);
  void close_damage(std::uint64_t blocks);
  void lose(Loss loss);

  std::string path_;
  std::uint64_t file_bytes_{0};
  int file_{-1};
  std::uint64_t at_{0};        ///< of the next block
  std::uint64_t sequence_{0};  ///< its number, if none is missing
  std::vector<std::byte> head_bytes_;
  std::vector<std::byte> window_;  ///< what was read last
  std::uint64_t window_at_{0};
  FileFacts facts_;
  std::uint16_t minor_{0};
  BlockDecoder decoder_;
  Losses losses_;
  std::optional<Loss>
      damage_;  ///< where it began, until the next whole block tells how far it goes
  bool is_ended_{false};
};

/// A trace's records in the order of time: those of one thread in the order in which it wrote them.
/// Memory: a block (at most 1 MiB) of each thread, and 32 bytes for each block of the file.
class OrderedRecords {
 public:
  /// Reads the file once; throws as TraceReader does.
  explicit OrderedRecords(const std::string& path);

  const TraceReader& reader() const { return reader_; }
  /// Valid until the next call; nothing at the end.
  std::optional<RecordView> next();

 private:
  struct Stream {
    std::vector<std::uint64_t> blocks;  ///< offsets, in the order of the file
    std::size_t next_block{0};
    std::vector<std::byte> records;  ///< of the block that is open
    std::size_t at{0};
  };
  struct Turn {
    std::uint64_t time_ns;
    std::size_t stream;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };

  bool find_record(Stream& stream);

  TraceReader reader_;
  std::vector<Stream> streams_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::optional<std::size_t> current_;
};

template <FixedRecord T>
T RecordView::read(std::size_t offset) const {
  T value{};
  std::memcpy(&value, bytes_.data() + offset, sizeof value);
  return value;
}

}  // namespace weft::trace
