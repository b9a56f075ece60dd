#include "replay/trace/transform.hpp"

#include <functional>

#include "replay/trace/pseudonym.hpp"
#include "replay/trace/summary.hpp"
#include "sim/base/error.hpp"
#include "tests/trace/traces.hpp"

namespace weft::test::trace_transform {
namespace {

using namespace weft::trace;

std::vector<std::string> texts_of(const std::string& path) {
  std::vector<std::string> out;
  TraceReader reader(path);
  while (const auto block = reader.next()) {
    for_each_record(block->records, [&](RecordView r) {
      if (r.type() == RecordType::kHost) out.emplace_back(r.text<Host>());
      if (r.type() == RecordType::kDevice) out.emplace_back(r.text<Device>());
      if (r.type() == RecordType::kMark) out.emplace_back(r.text<Mark>());
    });
  }
  return out;
}

template <FixedRecord T>
std::vector<T> all_of(const std::string& path, RecordType type) {
  std::vector<T> out;
  OrderedRecords records(path);
  while (const auto record = records.next()) {
    if (record->type() == type) out.push_back(record->as<T>());
  }
  return out;
}

// The paper's test vector: key and text are the bytes 00, 01, ... (appendix A of SipHash).
TEST(Pseudonym, HashIsSipHash) {
  const Salt key{0x0706050403020100U, 0x0f0e0d0c0b0a0908U};
  std::string text;
  for (char c = 0; c < 15; ++c) text += c;
  EXPECT_EQ(siphash(key, text), 0xa129ca6149be45e5U);
}

TEST(Pseudonym, IsAPermutationThatKeepsNothingButZero) {
  const Salt salt = salt_of("salt");
  std::vector<bool> seen(1U << 16U);
  for (std::uint64_t i = 0; i < seen.size(); ++i) {
    const std::uint64_t p = pseudonym_of(salt, i, 16);
    ASSERT_LT(p, seen.size());
    EXPECT_FALSE(seen[p]);
    seen[p] = true;
    EXPECT_EQ(p == 0, i == 0);
  }
  const std::uint64_t address = address_pseudonym(salt, 0x7f0012345678);
  EXPECT_EQ(address & 0xfffU, 0x678U);
  EXPECT_NE(address >> 12U, 0x7f0012345U);
  EXPECT_EQ(address_pseudonym(salt, 0x7f0012345700) - address, 0x700U - 0x678U);
}

class Transform : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.file(name); }
  TraceFolder folder_;
};

TEST_F(Transform, CutsByTimeAndByPair) {
  {
    TraceMaker maker(file("a"), "h");
    maker.pair(7, 100, 200);
    maker.pair(8, 101, 201);
    for (std::uint64_t i = 0; i < 10; ++i) {
      maker.post(i % 2 == 0 ? 7 : 8, Opcode::kWrite, 1000 * i, {.id = i, .bytes = 8});
      maker.completion(i % 2 == 0 ? 7 : 8, Opcode::kWrite, 1000 * i + 500, {.id = i});
    }
    maker.finish();
  }
  const CutResult by_time = cut_trace(file("a"), {.from_ns = 2000, .to_ns = 5000}, file("b"));
  EXPECT_EQ(by_time.kept, 6U);
  EXPECT_EQ(by_time.left_out, 14U);
  const TraceSummary b = summarize(file("b"));
  EXPECT_EQ(b.operations.at(Opcode::kWrite).posts, 3U);
  EXPECT_EQ(b.pairs.size(), 2U) << "objects are kept";
  EXPECT_TRUE(TraceReader(file("b")).facts().is_cut);
  cut_trace(file("a"), {.pairs = {8}}, file("c"));
  EXPECT_EQ(summarize(file("c")).operations.at(Opcode::kWrite).posts, 5U);
  EXPECT_FALSE(TraceReader(file("c")).facts().is_cut);
  cut_trace(file("a"), {.devices = {"mlx5_0"}}, file("d"));
  EXPECT_EQ(summarize(file("d")).operations.at(Opcode::kWrite).posts, 10U);
  EXPECT_EQ(error_of([&] { cut_trace(file("a"), {.pairs = {9}}, file("e")); }),
            "no queue pair 9 in the trace; there are: 7, 8");
  EXPECT_EQ(error_of([&] { cut_trace(file("a"), {.devices = {"mlx5_1"}}, file("e")); }),
            "no device 'mlx5_1' in the trace; there are: mlx5_0@0");
  EXPECT_FALSE(std::filesystem::exists(file("e")));
}

// One way takes 1000 ns, the other 400; host b's clock is `behind_ns` behind a's. Each sends two
// messages; receives are posted before all that.
void write_pair(const std::string& a, const std::string& b, std::uint64_t behind_ns) {
  constexpr std::uint64_t kBegin = 1'000'000;
  const std::uint64_t ahead_ns = kBegin - behind_ns;
  constexpr std::uint64_t kThere = 1000;
  constexpr std::uint64_t kBack = 400;
  TraceMaker one(a, "a");
  TraceMaker other(b, "b");
  one.pair(7, 100, 200);
  other.pair(7, 200, 100);
  for (std::uint64_t i = 0; i < 2; ++i) {
    one.post(7, Opcode::kReceive, kBegin + 10, {.id = i, .bytes = 8});
    other.post(7, Opcode::kReceive, ahead_ns + 10, {.id = i, .bytes = 8});
  }
  for (std::uint64_t i = 0; i < 2; ++i) {
    const std::uint64_t at = 10'000 + 5000 * i;
    one.post(7, Opcode::kSend, kBegin + at, {.id = 50 + i, .bytes = 8});
    other.completion(7, Opcode::kReceive, ahead_ns + at + kThere, {.id = i, .bytes = 8});
    other.post(7, Opcode::kSend, ahead_ns + at + 2000, {.id = 50 + i, .bytes = 8});
    one.completion(7, Opcode::kReceive, kBegin + at + 2000 + kBack, {.id = i, .bytes = 8});
    one.completion(7, Opcode::kSend, kBegin + at + 4000, {.id = 50 + i});
    other.completion(7, Opcode::kSend, ahead_ns + at + 4000, {.id = 50 + i});
  }
  one.finish();
  other.finish();
}

// b's shift is between behind - 1000 (a's send came before its completion at b) and behind + 400.
TEST_F(Transform, MergesWithTheMiddleOfTheTightestBounds) {
  constexpr std::int64_t kBehind = 123'456;
  write_pair(file("a"), file("b"), kBehind);
  std::vector<Source> sources;
  const auto clocks = merge_traces({file("a"), file("b")}, file("m"), sources);
  ASSERT_EQ(clocks.size(), 2U);
  EXPECT_EQ(clocks[0].shift_ns, 0);
  EXPECT_EQ(clocks[1].shift_ns, kBehind - 300);
  EXPECT_EQ(clocks[1].error_ns, 700U);
  EXPECT_EQ(clocks[1].matched, 4U);
  const TraceSummary m = summarize(file("m"));
  EXPECT_EQ(m.hosts.size(), 2U);
  EXPECT_EQ(m.pairs.size(), 2U);
  EXPECT_EQ(m.operations.at(Opcode::kSend).completions, 4U);
  EXPECT_EQ(m.unmatched + m.waiting, 0U);
  for (const Host& host : all_of<Host>(file("m"), RecordType::kHost)) {
    EXPECT_EQ(host.clock_error_ns, host.clock_shift_ns == 0 ? 0U : 700U);
  }
  // Post and completion stay as far from each other as they were.
  const auto completions = all_of<Completion>(file("m"), RecordType::kCompletion);
  EXPECT_EQ(completions.front().head.time_ns, 1'000'000U + 10'000 + 1000 - 300);
}

TEST_F(Transform, RefusesToMergeWhatNothingJoins) {
  write_pair(file("a"), file("b"), 0);
  {
    TraceMaker lone(file("c"), "c");
    lone.pair(7, 1, 2);
    lone.finish();
  }
  std::vector<Source> sources;
  EXPECT_NE(error_of([&] {
              merge_traces({file("a"), file("c")}, file("m"), sources);
            }).find("no send of one is received in the other"),
            std::string::npos);
  cut_trace(file("b"), {.from_ns = 20}, file("cut"));
  EXPECT_NE(error_of([&] {
              merge_traces({file("a"), file("cut")}, file("m"), sources);
            }).find("merge before cutting"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(file("m")));
}

TEST_F(Transform, TwoProgramsOfAHostHaveOneClock) {
  for (const char* name : {"a", "b"}) TraceMaker(file(name), "same").finish();
  std::vector<Source> sources;
  const auto clocks = merge_traces({file("a"), file("b")}, file("m"), sources);
  EXPECT_EQ(clocks[1].shift_ns, 0);
  EXPECT_EQ(summarize(file("m")).hosts.size(), 2U);
}

/// A trace of three blocks, of which the middle one is damaged.
void write_damaged(const std::string& path) {
  TraceMaker maker(path, "h");
  maker.pair(7, 100, 200);
  std::vector<std::byte> records;
  for (std::uint64_t i = 0; i < 3; ++i) {
    Mark mark{TraceMaker::head(RecordType::kMark, 100 * i)};
    maker.writer().block(2, record_of(mark, bytes_of(std::string(64, static_cast<char>('a' + i)))));
  }
  maker.finish();
  std::string bytes = read_file(path);
  const std::string magic(kBlockMagic.begin(), kBlockMagic.end());
  const std::size_t second = bytes.find(magic, bytes.find(magic) + 1);
  bytes[second + sizeof(BlockHead) + 4] ^= 0x55;
  write_file(path, bytes);
}

// Who reads what was made of a damaged trace is told, too.
TEST_F(Transform, LossesStayKnownInWhatIsMadeOfIt) {
  write_damaged(file("a"));
  ASSERT_EQ(summarize(file("a")).losses.blocks, 1U);
  cut_trace(file("a"), {}, file("cut"));
  scrub_trace(file("a"), "salt", file("scrubbed"));
  scrub_trace(file("cut"), "salt", file("twice"));
  for (const char* made : {"cut", "scrubbed", "twice"}) {
    const TraceSummary summary = summarize(file(made));
    EXPECT_EQ(summary.losses.blocks, 1U) << made;
    EXPECT_TRUE(summary.is_ended) << made;
  }
  // Bytes behind the end are a loss of no block that could be counted.
  TraceMaker(file("b"), "h").finish();
  write_file(file("c"), read_file(file("b")) + "more");
  std::vector<Source> sources;
  merge_traces({file("c"), file("b")}, file("m"), sources);
  EXPECT_EQ(summarize(file("m")).losses.places, 1U);
}

// Which of its numbers name objects is not known: a record of a later version is left out.
TEST_F(Transform, MergingLeavesOutRecordsOfUnknownTypes) {
  for (const char* name : {"a", "b"}) {
    TraceMaker maker(file(name), "same");
    Mark mark{TraceMaker::head(RecordType::kMark, 5)};
    mark.head.type = static_cast<RecordType>(4000);
    maker.add(mark, "later");
    maker.finish();
  }
  ASSERT_EQ(summarize(file("a")).unknown.size(), 1U);
  std::vector<Source> sources;
  merge_traces({file("a"), file("b")}, file("m"), sources);
  EXPECT_EQ(summarize(file("m")).unknown.size(), 0U);
  EXPECT_EQ(sources[0].left_out + sources[1].left_out, 2U);
}

// A link whose sends go by two NICs is no queue pair.
TEST_F(Transform, ImportRefusesALinkOfSeveralNics) {
  write_file(file("a.csv"),
             "dir,dev,link,seq,bytes,post_s,done_s,gpu_mem\n"
             "send,0,r0-r1,0,100,1.0,2.0,0\n"
             "send,1,r0-r1,1,100,1.5,2.5,0\n");
  EXPECT_EQ(error_of([&] { import_net_operations({file("a.csv")}, file("t")); }),
            "link 'r0-r1': sends of NICs 0 and 1; a link has one at each end");
  EXPECT_FALSE(std::filesystem::exists(file("t")));
}

TEST_F(Transform, ScrubsNamesAndAddressesInTheSameWay) {
  {
    TraceMaker maker(file("a"), "secret-host");
    maker.pair(7, 100, 200);
    maker.post(7, Opcode::kSend, 100, {.id = 0x7fdeadbeef, .bytes = 64});
    maker.completion(7, Opcode::kSend, 300, {.id = 0x7fdeadbeef});
    maker.add(Mark{TraceMaker::head(RecordType::kMark, 5)}, "secret note");
    maker.finish();
  }
  const ScrubResult result = scrub_trace(file("a"), "pepper", file("b"));
  scrub_trace(file("a"), "pepper", file("c"));
  scrub_trace(file("a"), "another", file("d"));
  EXPECT_EQ(read_file(file("b")), read_file(file("c")));
  EXPECT_NE(texts_of(file("b")), texts_of(file("d")));
  for (const std::string& text : texts_of(file("b"))) {
    EXPECT_EQ(text.find("secret"), std::string::npos);
    EXPECT_EQ(text.find("mlx5"), std::string::npos);
  }
  const auto region = all_of<Region>(file("b"), RecordType::kRegion).at(0);
  EXPECT_NE(region.address, 0x7f0012345678U);
  EXPECT_EQ(region.address % 4096, 0x678U);
  const auto post = all_of<Post>(file("b"), RecordType::kPost).at(0);
  EXPECT_NE(post.id, 0x7fdeadbeefU);
  EXPECT_NE(post.remote_offset, 0x5500deadb123U);
  EXPECT_EQ(post.bytes, 64U);
  EXPECT_NE(all_of<Device>(file("b"), RecordType::kDevice).at(0).guid, 0x1234567890abcdefU);
  EXPECT_EQ(summarize(file("b")).unmatched, 0U) << "ids still match";
  EXPECT_EQ(result.replaced.at("post.id"), 1U);
  EXPECT_EQ(result.replaced.at("host.text"), 1U);
}

TEST_F(Transform, ImportsNetworkOperations) {
  const std::string columns = "dir,dev,link,seq,bytes,post_s,done_s,gpu_mem\n";
  write_file(file("0"), columns + "send,0,/l-0,0,4096,10.5,10.500002001,1\n");
  write_file(file("1"), columns + "recv,0,/l-0,0,4096,10.499999999,10.500001,1\n");
  const ImportResult result = import_net_operations({file("0"), file("1")}, file("t"));
  EXPECT_EQ(result.operations, 2U);
  EXPECT_EQ(result.pairs, 2U);
  const TraceSummary sum = summarize(file("t"));
  EXPECT_EQ(sum.first_ns, 10'499'999'999U);
  EXPECT_EQ(sum.last_ns, 10'500'002'001U);
  EXPECT_EQ(sum.operations.at(Opcode::kSend).completions, 1U);
  for (const auto& [name, pair] : sum.pairs) {
    EXPECT_EQ(sum.pairs.at(pair.peer_number).peer_number, pair.number);
  }
  const auto message = [&](const std::string& text) {
    write_file(file("bad"), text);
    const std::string error = error_of([&] { import_net_operations({file("bad")}, file("u")); });
    return error.substr(std::min(error.size(), file("bad").size()));
  };
  EXPECT_EQ(message(columns + "sent,0,/l,0,1,1,2,1\n"), ":2:1: dir 'sent': is send or recv");
  EXPECT_EQ(message(columns + "send,0,/l,0,1,2,1,1\n"), ":2:17: done_s '1': is before post_s");
  EXPECT_EQ(message(columns + "send,0,/l,0,1,1.0000000001,2,1\n"),
            ":2:15: post_s '1.0000000001': is in seconds with at most nine decimals");
  EXPECT_EQ(message(columns + "send,0\n"), ":2: 2 cells; there are 8");
  EXPECT_EQ(message("a,b\n"),
            ":1: the columns of network operations are "
            "dir,dev,link,seq,bytes,post_s,done_s,gpu_mem");
}

}  // namespace
}  // namespace weft::test::trace_transform
