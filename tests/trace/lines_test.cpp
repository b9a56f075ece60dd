#include "replay/trace/lines.hpp"

#include <random>
#include <set>

#include "replay/trace/fields.hpp"
#include "sim/base/error.hpp"
#include "tests/seeds.hpp"
#include "tests/trace/traces.hpp"

namespace weft::test::trace_lines {
namespace {

using namespace weft::trace;

std::string lines_of(const std::string& path) {
  TraceReader reader(path);
  std::string out;
  append_head_line(out, reader.facts());
  while (const auto block = reader.next()) {
    append_block_line(out, block->head.kind, block->head.thread);
    for (auto left = block->records; !left.empty(); left = left.subspan(record_bytes(left))) {
      append_record_line(out, left.first(record_bytes(left)));
    }
  }
  if (reader.is_ended()) append_block_line(out, BlockKind::kEnd, 0);
  return out;
}

// The tables name each byte of each record once.
TEST(Fields, CoverEachRecordWithoutGapOrOverlap) {
  for (const RecordForm& form : record_forms()) {
    std::size_t at = sizeof(RecordHead);
    std::set<std::string_view> names{"type", "by", "time_ns", "raw", "text"};
    for (const Field& field : form.fields) {
      EXPECT_TRUE(field.form == Form::kZero || names.insert(field.name).second) << field.name;
      EXPECT_EQ(field.offset, at) << form.name << "." << field.name;
      at += field.bytes;
      EXPECT_TRUE(field.form != Form::kName || field.role == Role::kObject) << field.name;
    }
    EXPECT_EQ(at, form.bytes) << form.name;
    EXPECT_EQ(find_form(form.type), &form);
    EXPECT_EQ(find_form(form.name), &form);
  }
}

// A record of each type with fields drawn at random; some with what no field names.
std::vector<std::byte> drawn_record(std::mt19937_64& random, bool is_plain) {
  const RecordForm& form = record_forms()[random() % record_forms().size()];
  std::vector<std::byte> fixed(form.bytes);
  RecordHead head{};
  head.type = is_plain || random() % 4 != 0 ? form.type : static_cast<RecordType>(random() % 99);
  head.thread = random() % 9 == 0 ? kNone : static_cast<std::uint32_t>(random());
  head.time_ns = random() >> (random() % 64);
  std::memcpy(fixed.data(), &head, sizeof head);
  for (const Field& field : form.fields) {
    if (field.form == Form::kZero && (is_plain || random() % 9 != 0)) continue;
    const bool is_none = field.form == Form::kName && random() % 3 == 0;
    set_field(fixed, field, is_none ? kNone : random() >> (random() % 64));
  }
  std::string tail;
  if (form.tail == Tail::kText) {
    for (std::uint64_t i = random() % 20; i > 0; --i) {
      tail += static_cast<char>(is_plain ? 1 + random() % 127 : random());
    }
  }
  if (form.tail == Tail::kSegments) {
    for (const Field& field : form.fields) {
      if (field.name == "segments") set_field(fixed, field, random() % 4);
    }
    const auto segments = RecordView(fixed).as<Post>().segments;
    for (std::size_t i = 0; i < segments * sizeof(Segment); ++i) {
      tail += static_cast<char>(random());
    }
  }
  if (!is_plain && random() % 3 == 0) tail += std::string(random() % 32, '\0');
  return whole_record(fixed, bytes_of(tail));
}

// From a trace to lines and back it is the same file, byte for byte.
TEST(Lines, RoundTripByteForByte) {
  const TraceFolder folder;
  for (std::uint64_t seed = 0; seed < seeds(40); ++seed) {
    std::mt19937_64 random(seed);
    const bool is_plain = seed % 2 == 0;
    {
      TraceWriter writer(folder.file("a"), {.tool = "tool \"1\"\n",
                                            .topology = seed % 3 == 0 ? "node:\n  \xff" : "a: é\n",
                                            .clock = ClockKind::kMonotonic,
                                            .is_salted = seed % 2 == 0,
                                            .is_cut = seed % 3 == 0,
                                            .post_ns = 61,
                                            .poll_ns = 4'000'000'000});
      for (std::uint32_t block = 0; block < 5; ++block) {
        std::vector<std::byte> records;
        for (int i = 0; i < 30; ++i) {
          const auto record = drawn_record(random, is_plain);
          records.insert(records.end(), record.begin(), record.end());
        }
        writer.block(block == 0 ? kNone : block, records);
      }
      if (seed % 5 != 0) writer.end();
      writer.commit();
    }
    const std::string lines = lines_of(folder.file("a"));
    EXPECT_EQ(lines.find("\"raw\"") == std::string::npos, is_plain);
    write_file(folder.file("lines"), lines);
    trace_of_lines(folder.file("lines"), folder.file("b"));
    ASSERT_EQ(read_file(folder.file("a")), read_file(folder.file("b"))) << seed;
    ASSERT_EQ(lines_of(folder.file("b")), lines) << seed;
  }
}

// Blocks that are lost are so in the lines, and in what is made of them.
TEST(Lines, KeepWhatWasLost) {
  const TraceFolder folder;
  write_file(folder.file("lines"),
             R"({"format":"weft.trace/1","clock":"unknown","salted":true,"cut":false,"post_ns":0,)"
             R"("poll_ns":0,"tool":"t","topology":""})"
             "\n"
             R"({"block":"records","by":1})"
             "\n"
             R"({"type":"mark","by":1,"time_ns":5,"text":"x"})"
             "\n"
             R"({"block":"lost","blocks":3})"
             "\n"
             R"({"block":"end"})"
             "\n");
  trace_of_lines(folder.file("lines"), folder.file("a"));
  TraceReader reader(folder.file("a"));
  while (reader.next()) {
  }
  EXPECT_EQ(reader.losses().blocks, 3U);
  EXPECT_TRUE(reader.is_ended());
}

TEST(Lines, FaultsAreToldWithTheirLine) {
  const TraceFolder folder;
  const std::string head =
      R"({"format":"weft.trace/1","clock":"unknown","salted":true,"cut":false,"post_ns":0,)"
      R"("poll_ns":0,"tool":"t","topology":""})"
      "\n";
  const auto message = [&](const std::string& lines) {
    write_file(folder.file("lines"), lines);
    try {
      trace_of_lines(folder.file("lines"), folder.file("b"));
    } catch (const InputError& e) {
      return std::string(e.what()).substr(folder.file("lines").size());
    }
    return std::string("no error");
  };
  const std::string mark = R"({"type":"mark","by":1,"time_ns":5,"text":"x"})";
  EXPECT_EQ(message(head + mark + "\n"), "no error");
  EXPECT_EQ(message(""), ": is empty; the first line is a trace's head");
  EXPECT_EQ(message(mark),
            ":1: the first line is a trace's head: {\"format\":\"weft.trace/1\",...}");
  EXPECT_EQ(message(head + "{\n"), ":2:2: not valid JSON");
  EXPECT_EQ(message(head + R"({"type":"mark","by":1,"time_ns":-5,"text":"x"})"),
            ":2: time_ns: a negative number");
  EXPECT_EQ(message(head + R"({"type":"mark","by":4294967296,"time_ns":5,"text":"x"})"),
            ":2: by: 4294967296: has 32 bits");
  EXPECT_EQ(message(head + R"({"type":"mark","by":1,"time_ns":5})"), ":2: missing key 'text'");
  EXPECT_EQ(message(head + R"({"type":"mark","by":1,"time_ns":5,"text":"x","a":1})"),
            ":2: unknown key 'a'; allowed here: by, text, time_ns, type");
  EXPECT_EQ(message(head + R"({"type":"mark","by":1,"time_ns":5,"raw":"012"})"),
            ":2: raw: hexadecimal digits, two for each byte");
  EXPECT_EQ(message(head + R"({"type":99,"by":1,"time_ns":5,"raw":"01"})"),
            ":2: raw: a multiple of 8 bytes");
  EXPECT_EQ(message(head + "{\"block\":\"end\"}\n" + mark), ":3: a line behind the last block");
  EXPECT_FALSE(std::filesystem::exists(folder.file("c")));
}

}  // namespace
}  // namespace weft::test::trace_lines
