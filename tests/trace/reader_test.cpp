#include "replay/trace/reader.hpp"

#include <cstring>
#include <random>
#include <thread>

#include "replay/trace/lines.hpp"
#include "replay/trace/summary.hpp"
#include "sim/base/error.hpp"
#include "tests/seeds.hpp"
#include "tests/trace/traces.hpp"

namespace weft::test::trace_reader {
namespace {

using namespace weft::trace;

Mark mark(std::uint32_t thread, std::uint64_t ns) {
  return {TraceMaker::head(RecordType::kMark, ns, thread)};
}

// Blocks of four marks each, of threads in turn, at 10 ns steps.
void write_marks(const std::string& path, std::uint32_t blocks, std::uint32_t threads) {
  TraceWriter writer(path, {.tool = "test", .topology = {}});
  for (std::uint32_t b = 0; b < blocks; ++b) {
    std::vector<std::byte> records;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const auto record = record_of(mark(b % threads, 10 * (4 * b + i)));
      records.insert(records.end(), record.begin(), record.end());
    }
    writer.block(b % threads, records);
  }
  writer.end();
  writer.commit();
}

struct Read {
  std::uint64_t records{0};
  Losses losses;
  bool is_ended{false};
};

Read read_all(const std::string& path) {
  TraceReader reader(path);
  Read out;
  while (const auto block = reader.next()) {
    for_each_record(block->records, [&](RecordView) { ++out.records; });
  }
  out.losses = reader.losses();
  out.is_ended = reader.is_ended();
  return out;
}

class Reader : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.file(name); }
  TraceFolder folder_;
};

TEST_F(Reader, ReadsWhatWasWritten) {
  write_marks(file("a"), 12, 3);
  const Read read = read_all(file("a"));
  EXPECT_EQ(read.records, 48U);
  EXPECT_EQ(read.losses.places, 0U);
  EXPECT_TRUE(read.is_ended);
}

// Whatever is cut off, what was written before can be read, and nothing is missing in silence.
TEST_F(Reader, ReadsEveryBeginOfAFile) {
  write_marks(file("whole"), 6, 2);
  const std::string whole = read_file(file("whole"));
  const std::size_t head = read_file(file("whole")).find("\xb1weftblk");
  std::uint64_t least = 0;
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    write_file(file("part"), whole.substr(0, bytes));
    if (bytes < head) {
      EXPECT_THROW(read_all(file("part")), InputError) << bytes;
      continue;
    }
    const Read read = read_all(file("part"));
    EXPECT_FALSE(read.is_ended) << bytes;
    EXPECT_GE(read.records, least) << bytes;
    least = read.records;
    const bool is_between = whole.compare(bytes, 8, "\xb1weftblk") == 0;
    EXPECT_EQ(read.losses.places, is_between ? 0U : 1U) << bytes;
  }
  EXPECT_EQ(least, 24U);
}

// One byte is another: at most the block that it is in is lost, with its four records, and that is
// said; only in the file's head it may be that the file is refused.
TEST_F(Reader, LosesNoMoreThanTheDamagedBlock) {
  write_marks(file("whole"), 6, 2);
  const std::string whole = read_file(file("whole"));
  const std::size_t head = whole.find("\xb1weftblk");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    write_file(file("damaged"), damaged);
    try {
      const Read read = read_all(file("damaged"));
      EXPECT_GE(read.records, 20U) << at;
      EXPECT_TRUE(read.records == 24 || read.losses.places == 1) << at;
      EXPECT_EQ(read.losses.blocks, read.records < 24 ? 1U : 0U) << at;
    } catch (const InputError&) {
      EXPECT_LT(at, head);
    }
  }
}

TEST_F(Reader, SaysWhichBlocksAreMissing) {
  write_marks(file("whole"), 6, 2);
  std::string bytes = read_file(file("whole"));
  const std::size_t first = bytes.find("\xb1weftblk");
  const std::size_t second = bytes.find("\xb1weftblk", first + 1);
  const std::size_t fourth = bytes.find("\xb1weftblk", bytes.find("\xb1weftblk", second + 1) + 1);
  const std::string block = bytes.substr(first, second - first);
  bytes.erase(second, fourth - second);
  write_file(file("without"), bytes);
  const Read without = read_all(file("without"));
  EXPECT_EQ(without.losses.blocks, 2U);
  EXPECT_EQ(without.records, 16U);
  bytes.insert(second, block);  // the first one twice
  write_file(file("twice"), bytes);
  const Read twice = read_all(file("twice"));
  EXPECT_EQ(twice.records, 16U) << "a block that was read is not read again";
  EXPECT_EQ(twice.losses.bytes, block.size());
}

TEST_F(Reader, RefusesANewerVersionAndOtherFiles) {
  write_marks(file("a"), 1, 1);
  std::string bytes = read_file(file("a"));
  bytes[8] = 2;
  write_file(file("newer"), bytes);
  const auto message = [&](const std::string& name) {
    try {
      read_all(file(name));
    } catch (const InputError& e) {
      return std::string(e.what()).substr(file(name).size());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message("newer"), ": version 2.0 of the format; this weft reads version 1");
  write_file(file("text"), "node:\n");
  EXPECT_EQ(message("text"), ": is no verbs trace");
  write_file(file("empty"), "");
  EXPECT_EQ(message("empty"), ": ends within its head, after 0 bytes: nothing was recorded");
  EXPECT_EQ(message("missing"), ": no such file");
  std::filesystem::create_directory(file("folder"));
  EXPECT_EQ(message("folder"), ": a trace is read from a file, not from a folder, pipe or device");
}

TEST_F(Reader, NoDamageCrashesIt) {
  TraceMaker maker(file("whole"), "h");
  maker.pair(7, 100, 200);
  for (std::uint64_t i = 0; i < 50; ++i) {
    maker.post(7, Opcode::kSend, 100 * i, {.id = i, .bytes = 64});
    maker.completion(7, Opcode::kSend, 100 * i + 50, {.id = i});
  }
  maker.finish();
  const std::string whole = read_file(file("whole"));
  for (std::uint64_t seed = 0; seed < seeds(300); ++seed) {
    std::mt19937_64 random(seed);
    std::string damaged = whole;
    for (std::uint64_t n = 1 + random() % 8; n > 0 && !damaged.empty(); --n) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, random() % 64);
          break;
        case 2:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 64));
          break;
        default:
          damaged.resize(at + 1);
      }
    }
    write_file(file("damaged"), damaged);
    try {
      const TraceSummary sum = summarize(file("damaged"));
      EXPECT_FALSE(summary_text(sum).empty());
    } catch (const InputError&) {  // a head that cannot be read
    }
  }
}

// Blocks are sound and their records are anything: hostile lengths, types and numbers.
TEST_F(Reader, NoHostileRecordCrashesIt) {
  for (std::uint64_t seed = 0; seed < seeds(100); ++seed) {
    std::mt19937_64 random(seed);
    TraceWriter writer(file("hostile"), {.tool = "test", .topology = {}});
    std::vector<std::byte> records;
    for (int i = 0; i < 40; ++i) {
      RecordHead head{};
      head.type = static_cast<RecordType>(random() % 18);
      head.thread = static_cast<std::uint32_t>(random() % 3);
      head.time_ns = random();
      std::string tail(random() % 200, '\0');
      for (char& c : tail) c = static_cast<char>(random() % 3 == 0 ? random() : 0);
      const auto record = record_of(head, bytes_of(tail));
      records.insert(records.end(), record.begin(), record.end());
    }
    writer.block(static_cast<std::uint32_t>(random() % 3), records);
    writer.end();
    writer.commit();
    const TraceSummary sum = summarize(file("hostile"));
    EXPECT_FALSE(summary_text(sum).empty());
    EXPECT_FALSE(summary_json(sum).dump().empty());
    std::string text;
    TraceReader reader(file("hostile"));
    while (const auto block = reader.next()) {
      for (auto left = block->records; !left.empty(); left = left.subspan(record_bytes(left))) {
        append_record_text(text, left.first(record_bytes(left)));
      }
    }
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 40);
  }
}

// 64 threads, whose blocks come in turns: in the order of time their records take turns too.
TEST_F(Reader, OrdersRecordsOfManyThreads) {
  TraceWriter writer(file("a"), {.tool = "test", .topology = {}});
  for (std::uint32_t b = 0; b < 64; ++b) {
    std::vector<std::byte> records;
    for (std::uint64_t i = 0; i < 64; ++i) {
      const auto record = record_of(mark(b, 64 * i + b));
      records.insert(records.end(), record.begin(), record.end());
    }
    writer.block(b, records);
  }
  writer.end();
  writer.commit();
  OrderedRecords ordered(file("a"));
  std::uint64_t expected = 0;
  while (const auto record = ordered.next()) {
    ASSERT_EQ(record->head().time_ns, expected);
    ASSERT_EQ(record->head().thread, expected % 64);
    ++expected;
  }
  EXPECT_EQ(expected, 64U * 64);
}

TEST_F(Reader, CountsWhatATraceHolds) {
  TraceMaker maker(file("a"), "h");
  maker.pair(7, 100, 200);
  // Two unsignaled writes that the third one's completion tells of too.
  maker.post(7, Opcode::kWrite, 100, {.id = 1, .bytes = 8, .flags = 0});
  maker.post(7, Opcode::kWrite, 110, {.id = 2, .bytes = 8, .flags = 0});
  maker.post(7, Opcode::kWrite, 120, {.id = 3, .bytes = 8});
  maker.completion(7, Opcode::kWrite, 500, {.id = 3});
  maker.post(7, Opcode::kReceive, 600, {.id = 4, .bytes = 64});  // nothing comes
  maker.post(7, Opcode::kRead, 700, {.id = 5, .bytes = 32, .flags = kSignaled | kRefused});
  maker.post(7, Opcode::kRead, 800, {.id = 6, .bytes = 32});
  maker.completion(7, Opcode::kOther, 900, {.id = 6}, 12);
  maker.completion(7, Opcode::kSend, 950, {.id = 77});  // of no post
  maker.finish();
  const TraceSummary sum = summarize(file("a"));
  EXPECT_EQ(sum.operations.at(Opcode::kWrite).posts, 3U);
  EXPECT_EQ(sum.operations.at(Opcode::kWrite).bytes, 24U);
  EXPECT_EQ(sum.operations.at(Opcode::kWrite).completions, 1U);
  EXPECT_EQ(sum.operations.at(Opcode::kRead).posts, 1U);
  EXPECT_EQ(sum.errors.at(12), 1U);
  EXPECT_EQ(sum.refused, 1U);
  EXPECT_EQ(sum.waiting, 1U);
  EXPECT_EQ(sum.unsignaled, 0U);
  EXPECT_EQ(sum.unmatched, 1U);
  EXPECT_EQ(sum.last_ns - sum.first_ns, 850U);
  EXPECT_EQ(sum.pairs.at(7).peer_number, 200U);
}

}  // namespace
}  // namespace weft::test::trace_reader
