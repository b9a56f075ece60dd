// The pieces of a trace file: its head, and blocks of records. Plain code that needs zstd and
// nothing else of weft, that neither throws nor prints: the recorder runs it inside of programs
// that are not ours.
//
//   file  = FileHead, tool's name, topology's text, zeros up to a multiple of 8; then blocks
//   block = BlockHead, `compressed_bytes` of data: one zstd frame with a content checksum
//
// A block stands for itself: whatever happened to another one, it can be found, checked and read.
// The last one is of kind kEnd; where it is missing, the program that wrote the file was stopped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "replay/trace/record.hpp"

namespace weft::trace {

/// Readers refuse another major version. A new minor version adds types of records, and fields at
/// the end of those that have no tail.
inline constexpr std::uint16_t kMajorVersion = 1;
inline constexpr std::uint16_t kMinorVersion = 0;

/// Not text, so that no tool takes it for one; a line's end, so that one that does is found out.
inline constexpr std::array<std::uint8_t, 8> kFileMagic{0x89, 'w', 'e', 'f', 't', '\r', '\n', 0x1a};
inline constexpr std::array<std::uint8_t, 8> kBlockMagic{0xb1, 'w', 'e', 'f', 't', 'b', 'l', 'k'};
inline constexpr std::uint32_t kByteOrder = 0x01020304;

enum class ClockKind : std::uint8_t {
  kUnknown = 0,
  kMonotonicRaw = 1,  ///< CLOCK_MONOTONIC_RAW
  kMonotonic = 2,     ///< CLOCK_MONOTONIC: disciplined by NTP
};

struct FileHead {
  std::array<std::uint8_t, 8> magic;
  std::uint16_t major;
  std::uint16_t minor;
  std::uint32_t byte_order;
  std::uint32_t head_bytes;  ///< of the whole head, with its texts and zeros
  std::uint32_t tool_bytes;
  std::uint32_t topology_bytes;  ///< 0: none was given
  std::uint32_t post_ns;  ///< what recording adds to a post, measured where it ran; 0: not measured
  std::uint32_t poll_ns;  ///< ... to a poll that returns a completion
  ClockKind clock;
  std::uint8_t is_salted;  ///< addresses, keys, guids and ports are pseudonyms
  std::uint8_t is_cut;  ///< it begins later than its queue pairs: requests are not counted from 0
  std::array<std::uint8_t, 5> padding;
  std::uint32_t checksum;  ///< CRC-32 of this, this field taken as 0, XOR that of what follows
};
static_assert(FixedRecord<FileHead> && sizeof(FileHead) == 48);

inline constexpr std::size_t kMaxTopologyBytes = 16U << 20;

/// What a file's head says.
struct FileFacts {
  std::string_view tool;      ///< who wrote it: "weft 0.1.0"; below 256 bytes
  std::string_view topology;  ///< YAML of where it was recorded; at most kMaxTopologyBytes
  ClockKind clock{ClockKind::kMonotonicRaw};
  bool is_salted{true};
  bool is_cut{false};
  std::uint32_t post_ns{0};
  std::uint32_t poll_ns{0};
};

/// How long the head of these facts is; 0 where a text is too long.
std::size_t file_head_bytes(const FileFacts& facts) noexcept;
/// Writes it to the begin of `out`; false where it does not fit in.
bool write_file_head(const FileFacts& facts, std::span<std::byte> out) noexcept;

enum class HeadFault : std::uint8_t {
  kSound,
  kNoTrace,  ///< another kind of file
  kForeignByteOrder,
  kVersion,   ///< a newer one
  kDamaged,   ///< its checksum or its lengths are wrong
  kTooShort,  ///< it ends within its head
};
/// The fixed part of a head, at the begin of a file; all but its checksum is looked at.
HeadFault read_file_head(std::span<const std::byte> file, FileHead& head) noexcept;
/// The texts of a head that read_file_head() accepted, which point into `bytes`: `head_bytes` of
/// them.
HeadFault read_file_facts(const FileHead& head, std::span<const std::byte> bytes,
                          FileFacts& facts) noexcept;

inline constexpr std::size_t kMaxBlockBytes = 1U << 20;  ///< of records, not compressed
/// The most that zstd makes of them (ZSTD_compressBound).
inline constexpr std::size_t kMaxCompressedBytes = kMaxBlockBytes + (kMaxBlockBytes >> 8);

enum class BlockKind : std::uint32_t {
  kRecords = 1,
  kEnd = 2,  ///< nothing follows; `sequence` is the number of blocks before it
};

struct BlockHead {
  std::array<std::uint8_t, 8> magic;
  BlockKind kind;
  std::uint32_t thread;    ///< whose records these are; kNone: of several
  std::uint64_t sequence;  ///< blocks before it in the file: a gap tells how many are lost
  std::uint64_t first_ns;  ///< earliest and latest time of its records
  std::uint64_t last_ns;
  std::uint32_t records;
  std::uint32_t raw_bytes;
  std::uint32_t compressed_bytes;
  std::uint32_t checksum;  ///< CRC-32 of this head, this field taken as 0
};
static_assert(FixedRecord<BlockHead> && sizeof(BlockHead) == 56);

/// The length of the whole record at the begin of `bytes`; 0 where none stands there: its length is
/// no multiple of 8, is shorter than its head, or goes beyond the end.
std::size_t record_bytes(std::span<const std::byte> bytes) noexcept;

struct FreeCompressor {
  void operator()(void* context) const noexcept;
};
struct FreeDecompressor {
  void operator()(void* context) const noexcept;
};

/// Makes a file's blocks, numbered in the order in which they are asked for. One thread at a time.
class BlockEncoder {
 public:
  BlockEncoder() noexcept;
  /// False where there was no memory: then every block is empty.
  bool is_ready() const noexcept { return context_ != nullptr && out_ != nullptr; }
  /// A block of whole records, at most kMaxBlockBytes; valid until the next call. Empty, and not
  /// numbered, where they are not whole, there are none or too many, or zstd failed.
  std::span<const std::byte> block(std::uint32_t thread,
                                   std::span<const std::byte> records) noexcept;
  /// The file's last block.
  std::span<const std::byte> end() noexcept;
  /// So many numbers are of no block: whoever reads the file takes them for lost.
  void skip(std::uint64_t blocks) noexcept;

 private:
  std::unique_ptr<void, FreeCompressor> context_;
  std::unique_ptr<std::byte[]> out_;
  std::uint64_t sequence_{0};
};

/// The head of a block, where a whole and undamaged one of a known form stands at the begin of
/// `bytes`.
bool read_block_head(std::span<const std::byte> bytes, BlockHead& head) noexcept;

/// Reads blocks. One thread at a time.
class BlockDecoder {
 public:
  BlockDecoder() noexcept;
  bool is_ready() const noexcept { return context_ != nullptr && out_ != nullptr; }
  /// The records of a block whose head was read; valid until the next call. Empty where the data is
  /// damaged: not one frame with a checksum, of that length, of that many whole records.
  std::span<const std::byte> records(const BlockHead& head,
                                     std::span<const std::byte> data) noexcept;

 private:
  std::unique_ptr<void, FreeDecompressor> context_;
  std::unique_ptr<std::byte[]> out_;
};

}  // namespace weft::trace
