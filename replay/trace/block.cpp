#include "replay/trace/block.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <zstd.h>

namespace weft::trace {
namespace {

// Half of the time that zstd's default takes, for a tenth more bytes of such records.
constexpr int kLevel = 1;
constexpr std::size_t kMaxToolBytes = 255;

static_assert(kMaxCompressedBytes >= ZSTD_COMPRESSBOUND(kMaxBlockBytes));

// CRC-32 as Ethernet and zlib have it (IEEE 802.3, clause 3.2.9), reflected.
constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
    table[i] = crc;
  }
  return table;
}();

std::uint32_t crc32(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const std::byte b : bytes) {
    crc = kCrcTable[(crc ^ static_cast<std::uint32_t>(b)) & 0xffU] ^ (crc >> 8U);
  }
  return ~crc;
}

template <FixedRecord T>
std::uint32_t checksum_of(T head) {
  head.checksum = 0;
  return crc32(std::as_bytes(std::span(&head, 1)));
}

// Of a file's whole head, with its texts.
std::uint32_t checksum_of_file_head(std::span<const std::byte> bytes) {
  FileHead head{};
  std::memcpy(&head, bytes.data(), sizeof head);
  return checksum_of(head) ^ crc32(bytes.subspan(sizeof head));
}

std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

BlockHead head_of(BlockKind kind, std::uint32_t thread, std::uint64_t sequence) {
  BlockHead head{};
  head.magic = kBlockMagic;
  head.kind = kind;
  head.thread = thread;
  head.sequence = sequence;
  return head;
}

// Counts whole records and their times; false where what is there is not whole records.
bool survey(std::span<const std::byte> records, BlockHead& head) {
  head.records = 0;
  head.first_ns = std::numeric_limits<std::uint64_t>::max();
  head.last_ns = 0;
  while (!records.empty()) {
    const std::size_t bytes = record_bytes(records);
    if (bytes == 0) return false;
    RecordHead record{};
    std::memcpy(&record, records.data(), sizeof record);
    ++head.records;
    head.first_ns = std::min(head.first_ns, record.time_ns);
    head.last_ns = std::max(head.last_ns, record.time_ns);
    records = records.subspan(bytes);
  }
  return true;
}

// zstd's frames say in their fifth byte whether a checksum follows them (RFC 8878, 3.1.1.1.1).
bool has_checksum(std::span<const std::byte> frame) {
  return frame.size() > 4 && (frame[4] & std::byte{4}) != std::byte{0};
}

bool has_known_form(const BlockHead& head) {
  if (head.kind == BlockKind::kEnd) return head.compressed_bytes == 0 && head.raw_bytes == 0;
  return head.compressed_bytes > 0 && head.compressed_bytes <= kMaxCompressedBytes &&
         head.raw_bytes <= kMaxBlockBytes;
}

}  // namespace

void FreeCompressor::operator()(void* context) const noexcept {
  ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(context));
}

void FreeDecompressor::operator()(void* context) const noexcept {
  ZSTD_freeDCtx(static_cast<ZSTD_DCtx*>(context));
}

std::size_t file_head_bytes(const FileFacts& facts) noexcept {
  if (facts.tool.size() > kMaxToolBytes || facts.topology.size() > kMaxTopologyBytes) return 0;
  return padded(sizeof(FileHead) + facts.tool.size() + facts.topology.size());
}

bool write_file_head(const FileFacts& facts, std::span<std::byte> out) noexcept {
  const std::size_t bytes = file_head_bytes(facts);
  if (bytes == 0 || out.size() < bytes) return false;
  FileHead head{};
  head.magic = kFileMagic;
  head.major = kMajorVersion;
  head.minor = kMinorVersion;
  head.byte_order = kByteOrder;
  head.head_bytes = static_cast<std::uint32_t>(bytes);
  head.tool_bytes = static_cast<std::uint32_t>(facts.tool.size());
  head.topology_bytes = static_cast<std::uint32_t>(facts.topology.size());
  head.post_ns = facts.post_ns;
  head.poll_ns = facts.poll_ns;
  head.clock = facts.clock;
  head.is_salted = facts.is_salted ? 1 : 0;
  head.is_cut = facts.is_cut ? 1 : 0;
  std::byte* const begin = out.data();
  std::memset(begin, 0, bytes);
  std::copy_n(std::as_bytes(std::span(facts.tool)).data(), facts.tool.size(), begin + sizeof head);
  std::copy_n(std::as_bytes(std::span(facts.topology)).data(), facts.topology.size(),
              begin + sizeof head + facts.tool.size());
  std::memcpy(begin, &head, sizeof head);
  head.checksum = checksum_of_file_head(out.first(bytes));
  std::memcpy(begin, &head, sizeof head);
  return true;
}

HeadFault read_file_head(std::span<const std::byte> file, FileHead& head) noexcept {
  const std::size_t known = std::min(file.size(), kFileMagic.size());
  if (known == 0) return HeadFault::kTooShort;
  if (std::memcmp(file.data(), kFileMagic.data(), known) != 0) return HeadFault::kNoTrace;
  if (file.size() < sizeof head) return HeadFault::kTooShort;
  std::memcpy(&head, file.data(), sizeof head);
  if (head.byte_order != kByteOrder) return HeadFault::kForeignByteOrder;
  if (head.major != kMajorVersion) return HeadFault::kVersion;
  const bool fits = head.tool_bytes <= kMaxToolBytes && head.topology_bytes <= kMaxTopologyBytes &&
                    head.head_bytes == padded(sizeof head + head.tool_bytes + head.topology_bytes);
  return fits ? HeadFault::kSound : HeadFault::kDamaged;
}

HeadFault read_file_facts(const FileHead& head, std::span<const std::byte> bytes,
                          FileFacts& facts) noexcept {
  if (bytes.size() < head.head_bytes) return HeadFault::kTooShort;
  bytes = bytes.first(head.head_bytes);
  if (checksum_of_file_head(bytes) != head.checksum) return HeadFault::kDamaged;
  const void* const texts = bytes.data() + sizeof head;
  const std::string_view text(static_cast<const char*>(texts), bytes.size() - sizeof head);
  facts = {.tool = text.substr(0, head.tool_bytes),
           .topology = text.substr(head.tool_bytes, head.topology_bytes),
           .clock = head.clock,
           .is_salted = head.is_salted != 0,
           .is_cut = head.is_cut != 0,
           .post_ns = head.post_ns,
           .poll_ns = head.poll_ns};
  return HeadFault::kSound;
}

std::size_t record_bytes(std::span<const std::byte> bytes) noexcept {
  RecordHead head{};
  if (bytes.size() < sizeof head) return 0;
  std::memcpy(&head, bytes.data(), sizeof head);
  const bool is_whole =
      head.bytes >= sizeof head && head.bytes % 8 == 0 && head.bytes <= bytes.size();
  return is_whole ? head.bytes : 0;
}

BlockEncoder::BlockEncoder() noexcept
    : context_{ZSTD_createCCtx()},
      out_{new (std::nothrow) std::byte[sizeof(BlockHead) + kMaxCompressedBytes]} {
  if (!is_ready()) return;
  auto* const context = static_cast<ZSTD_CCtx*>(context_.get());
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
}

std::span<const std::byte> BlockEncoder::block(std::uint32_t thread,
                                               std::span<const std::byte> records) noexcept {
  BlockHead head = head_of(BlockKind::kRecords, thread, sequence_);
  const bool is_sound = is_ready() && !records.empty() && records.size() <= kMaxBlockBytes;
  if (!is_sound || !survey(records, head)) return {};
  const std::size_t bytes =
      ZSTD_compress2(static_cast<ZSTD_CCtx*>(context_.get()), out_.get() + sizeof head,
                     kMaxCompressedBytes, records.data(), records.size());
  if (ZSTD_isError(bytes) != 0) return {};
  head.raw_bytes = static_cast<std::uint32_t>(records.size());
  head.compressed_bytes = static_cast<std::uint32_t>(bytes);
  head.checksum = checksum_of(head);
  std::memcpy(out_.get(), &head, sizeof head);
  ++sequence_;
  return {out_.get(), sizeof head + bytes};
}

std::span<const std::byte> BlockEncoder::end() noexcept {
  if (!is_ready()) return {};
  BlockHead head = head_of(BlockKind::kEnd, kNone, sequence_);
  head.checksum = checksum_of(head);
  std::memcpy(out_.get(), &head, sizeof head);
  ++sequence_;
  return {out_.get(), sizeof head};
}

void BlockEncoder::skip(std::uint64_t blocks) noexcept {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62U;  // files that are damaged say anything
  sequence_ = sequence_ + (blocks < kMost - sequence_ ? blocks : kMost - sequence_);
}

bool read_block_head(std::span<const std::byte> bytes, BlockHead& head) noexcept {
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  return head.magic == kBlockMagic && head.checksum == checksum_of(head) && has_known_form(head);
}

BlockDecoder::BlockDecoder() noexcept
    : context_{ZSTD_createDCtx()}, out_{new (std::nothrow) std::byte[kMaxBlockBytes]} {}

std::span<const std::byte> BlockDecoder::records(const BlockHead& head,
                                                 std::span<const std::byte> data) noexcept {
  if (!is_ready() || data.size() != head.compressed_bytes || !has_checksum(data)) return {};
  if (ZSTD_findFrameCompressedSize(data.data(), data.size()) != data.size()) return {};
  const std::size_t bytes = ZSTD_decompressDCtx(static_cast<ZSTD_DCtx*>(context_.get()), out_.get(),
                                                kMaxBlockBytes, data.data(), data.size());
  if (ZSTD_isError(bytes) != 0 || bytes != head.raw_bytes) return {};
  BlockHead found{};
  const std::span<const std::byte> records{out_.get(), bytes};
  return survey(records, found) && found.records == head.records ? records
                                                                 : std::span<const std::byte>{};
}

}  // namespace weft::trace
