#include "replay/trace/block.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace weft::test::trace_block {
namespace {

using namespace weft::trace;

using Bytes = std::vector<std::byte>;

template <typename T>
void append(Bytes& out, const T& record) {
  const auto bytes = std::as_bytes(std::span(&record, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Bytes marks(std::uint64_t from_ns, std::size_t n) {
  Bytes out;
  for (std::size_t i = 0; i < n; ++i) {
    append(out, Mark{{RecordType::kMark, sizeof(Mark), 7, from_ns + i}});
  }
  return out;
}

Bytes copy(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

// Empty where the block is found damaged.
Bytes read(BlockDecoder& decoder, std::span<const std::byte> block) {
  BlockHead head{};
  if (!read_block_head(block, head)) return {};
  return copy(decoder.records(head, block.subspan(sizeof head)));
}

TEST(BlockEncoder, WhatItMakesIsReadBack) {
  BlockEncoder encoder;
  BlockDecoder decoder;
  for (std::uint64_t sequence = 0; sequence < 3; ++sequence) {
    const Bytes records = marks(100 + sequence, 5);
    const Bytes block = copy(encoder.block(7, records));
    BlockHead head{};
    ASSERT_TRUE(read_block_head(block, head));
    EXPECT_EQ(head.sequence, sequence);
    EXPECT_EQ(head.thread, 7U);
    EXPECT_EQ(head.records, 5U);
    EXPECT_EQ(head.first_ns, 100 + sequence);
    EXPECT_EQ(head.last_ns, 104 + sequence);
    const auto read = decoder.records(head, std::span(block).subspan(sizeof head));
    EXPECT_EQ(copy(read), records);
  }
  BlockHead head{};
  ASSERT_TRUE(read_block_head(copy(encoder.end()), head));
  EXPECT_EQ(head.kind, BlockKind::kEnd);
  EXPECT_EQ(head.sequence, 3U);
}

TEST(BlockEncoder, TakesABlockOfTheLargestSize) {
  BlockEncoder encoder;
  BlockDecoder decoder;
  Bytes records = marks(0, kMaxBlockBytes / sizeof(Mark));
  // Times that hold no pattern: what cannot be compressed fits too.
  std::uint64_t state = 1;
  for (std::size_t at = 8; at < records.size(); at += sizeof(Mark)) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(&records[at], &state, sizeof state);
  }
  const Bytes block = copy(encoder.block(7, records));
  BlockHead head{};
  ASSERT_TRUE(read_block_head(block, head));
  EXPECT_EQ(copy(decoder.records(head, std::span(block).subspan(sizeof head))), records);
  append(records, Mark{{RecordType::kMark, sizeof(Mark), 7, 0}});
  EXPECT_TRUE(encoder.block(7, records).empty()) << "one too many";
}

TEST(BlockEncoder, RefusesWhatIsNotWholeRecords) {
  BlockEncoder encoder;
  EXPECT_TRUE(encoder.block(7, {}).empty());
  Bytes records = marks(0, 2);
  EXPECT_TRUE(encoder.block(7, std::span(records).first(20)).empty());
  const std::uint16_t no_multiple = 17;
  std::memcpy(&records[2], &no_multiple, sizeof no_multiple);
  EXPECT_TRUE(encoder.block(7, records).empty());
  BlockHead head{};
  ASSERT_TRUE(read_block_head(copy(encoder.end()), head));
  EXPECT_EQ(head.sequence, 0U) << "what is refused is not numbered";
}

// Damage is found, or does none: zstd looks neither at its frames' unused bit nor at padding.
TEST(BlockDecoder, NoChangedBitOrMissingByteChangesWhatIsRead) {
  BlockEncoder encoder;
  BlockDecoder decoder;
  const Bytes records = marks(1000, 9);
  const Bytes block = copy(encoder.block(7, records));
  ASSERT_EQ(read(decoder, block), records);
  std::size_t harmless = 0;
  for (std::size_t at = 0; at < block.size(); ++at) {
    EXPECT_EQ(read(decoder, std::span(block).first(at)), Bytes{}) << at;
    for (unsigned bit = 0; bit < 8; ++bit) {
      Bytes damaged = block;
      damaged[at] ^= static_cast<std::byte>(1U << bit);
      const Bytes found = read(decoder, damaged);
      EXPECT_TRUE(found.empty() || found == records) << at << " bit " << bit;
      harmless += found.empty() ? 0U : 1U;
    }
  }
  EXPECT_LE(harmless, 8U);
}

TEST(FileHead, WhatIsWrittenIsReadBack) {
  const FileFacts facts{.tool = "weft 0.1.0",
                        .topology = "node: {}\n",
                        .clock = ClockKind::kMonotonic,
                        .is_salted = false,
                        .is_cut = true,
                        .post_ns = 61,
                        .poll_ns = 74};
  Bytes file(file_head_bytes(facts));
  ASSERT_EQ(file.size(), 72U) << "48 + 10 + 9, up to a multiple of 8";
  ASSERT_TRUE(write_file_head(facts, file));
  FileHead head{};
  FileFacts read;
  ASSERT_EQ(read_file_head(file, head), HeadFault::kSound);
  ASSERT_EQ(read_file_facts(head, file, read), HeadFault::kSound);
  EXPECT_EQ(read.tool, facts.tool);
  EXPECT_EQ(read.topology, facts.topology);
  EXPECT_EQ(read.clock, facts.clock);
  EXPECT_EQ(read.is_salted, facts.is_salted);
  EXPECT_EQ(read.is_cut, facts.is_cut);
  EXPECT_EQ(read.post_ns, facts.post_ns);
  EXPECT_EQ(read.poll_ns, facts.poll_ns);
}

HeadFault fault_of(std::span<const std::byte> file) {
  FileHead head{};
  FileFacts facts;
  const HeadFault fault = read_file_head(file, head);
  return fault == HeadFault::kSound ? read_file_facts(head, file, facts) : fault;
}

TEST(FileHead, FaultsAreToldApart) {
  const FileFacts facts{.tool = "weft", .topology = {}};
  Bytes file(file_head_bytes(facts));
  ASSERT_TRUE(write_file_head(facts, file));
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
    EXPECT_EQ(fault_of(std::span(file).first(bytes)), HeadFault::kTooShort) << bytes;
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    Bytes damaged = file;
    damaged[at] ^= std::byte{1};
    const HeadFault expected = at < 8                ? HeadFault::kNoTrace
                               : at < 10             ? HeadFault::kVersion
                               : at >= 12 && at < 16 ? HeadFault::kForeignByteOrder
                                                     : HeadFault::kDamaged;
    EXPECT_EQ(fault_of(damaged), expected) << at;
  }
  const std::string text = "node:\n";
  EXPECT_EQ(fault_of(std::as_bytes(std::span(text))), HeadFault::kNoTrace);
  const std::string long_tool(256, 'w');
  EXPECT_EQ(file_head_bytes({.tool = long_tool, .topology = {}}), 0U);
}

}  // namespace
}  // namespace weft::test::trace_block
