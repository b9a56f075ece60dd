// A trace larger than what reading it may take of memory.
#include <fstream>

#include "replay/trace/summary.hpp"
#include "replay/trace/transform.hpp"
#include "tests/trace/traces.hpp"

namespace weft::test::trace_large {
namespace {

using namespace weft::trace;

constexpr std::uint64_t kBlocks = 10 * 1024;  // 10 GiB of records
constexpr std::uint32_t kThreads = 8;
constexpr std::uint64_t kMostKib = 96 * 1024;  // 8 blocks of 1 MiB, and the program

std::uint64_t peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib;
  }
  return 0;
}

// Posts and their completions by turns, each thread on its own queue pair, a MiB a block.
std::uint64_t write_large(const std::string& path) {
  constexpr std::size_t kPost = sizeof(Post) + sizeof(trace::Segment);
  constexpr std::uint64_t kPairs = kMaxBlockBytes / (kPost + sizeof(Completion));
  TraceMaker maker(path, "h");
  for (std::uint32_t t = 0; t < kThreads; ++t) maker.pair(100 + t, 200 + t, 300 + t);
  std::vector<std::byte> records;
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    const auto thread = static_cast<std::uint32_t>(block % kThreads);
    records.clear();
    for (std::uint64_t i = 0; i < kPairs; ++i) {
      const std::uint64_t at = 1000 + 100 * (block / kThreads * kPairs + i);
      const trace::Segment segment{.offset = 0, .length = 4096, .region = 6};
      Post post{};
      post.head = TraceMaker::head(RecordType::kPost, at, thread);
      post.id = i;
      post.bytes = 4096;
      post.queue = 100 + thread;
      post.remote_region = kNone;
      post.segments = 1;
      post.opcode = Opcode::kWrite;
      post.flags = kSignaled;
      const auto posted = record_of(post, std::as_bytes(std::span(&segment, 1)));
      Completion completion{};
      completion.head = TraceMaker::head(RecordType::kCompletion, at + 50, thread);
      completion.id = i;
      completion.pair = 100 + thread;
      completion.opcode = Opcode::kWrite;
      const auto completed = record_of(completion);
      records.insert(records.end(), posted.begin(), posted.end());
      records.insert(records.end(), completed.begin(), completed.end());
    }
    maker.writer().block(thread, records);
  }
  maker.finish();
  return kBlocks * kPairs;
}

TEST(LargeTrace, IsReadAndCutInBoundedMemory) {
  const TraceFolder folder;
  const std::uint64_t operations = write_large(folder.file("large"));
  const TraceSummary sum = summarize(folder.file("large"));
  EXPECT_EQ(sum.operations.at(Opcode::kWrite).posts, operations);
  EXPECT_EQ(sum.operations.at(Opcode::kWrite).completions, operations);
  EXPECT_EQ(sum.unmatched + sum.waiting, 0U);
  EXPECT_TRUE(sum.is_ended);
  const CutResult cut = cut_trace(folder.file("large"), {.pairs = {100}}, folder.file("cut"));
  EXPECT_EQ(cut.kept, 2 * operations / kThreads);
  EXPECT_LT(peak_kib(), kMostKib);
}

}  // namespace
}  // namespace weft::test::trace_large
