#include "replay/trace/match.hpp"

#include <gtest/gtest.h>

#include "replay/trace/summary.hpp"
#include "tests/trace/traces.hpp"

namespace weft::test::trace_match {
namespace {

using namespace weft::trace;

constexpr std::uint8_t kFlushed = 5;  // IBV_WC_WR_FLUSH_ERR

class Match : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.file(name); }

  /// The opcodes of the requests whose completions are found, in their order.
  std::vector<Opcode> matched(const std::string& path) const {
    Matcher matcher;
    std::vector<Opcode> out;
    OrderedRecords records(path);
    while (const auto record = records.next()) {
      if (record->type() == RecordType::kQueuePair) matcher.object(*record);
      if (record->type() == RecordType::kPost) matcher.post(*record);
      if (record->type() != RecordType::kCompletion) continue;
      const auto match = matcher.completion(*record);
      out.push_back(match ? match->request.opcode : Opcode::kBind);
    }
    return out;
  }

  TraceFolder folder_;
};

// Programs often number both sides alike. A queue pair's end flushes the receives of an idle sender
// first: the receive with id 2 is next in its queue, the write with id 2 stands behind another one.
TEST_F(Match, AnErrorIsOfTheSideWhereItIsNext) {
  TraceMaker maker(file("a"), "h");
  maker.pair(7, 100, 200);
  maker.post(7, Opcode::kReceive, 10, {.id = 2});
  maker.post(7, Opcode::kWrite, 20, {.id = 1, .bytes = 8});
  maker.post(7, Opcode::kWrite, 30, {.id = 2, .bytes = 8});
  std::uint64_t ns = 40;
  for (const std::uint64_t id : {2U, 1U, 2U}) {
    maker.completion(7, Opcode::kOther, ns++, {.id = id}, kFlushed);
  }
  maker.finish();
  EXPECT_EQ(matched(file("a")),
            (std::vector<Opcode>{Opcode::kReceive, Opcode::kWrite, Opcode::kWrite}));
}

// With completion queues of their own there is nothing to guess.
TEST_F(Match, AnErrorIsOfTheSideWhoseQueueTellsIt) {
  TraceMaker maker(file("a"), "h");
  QueuePair q{};
  q.head = TraceMaker::head(RecordType::kQueuePair, 0);
  q.pair = 7;
  q.domain = 4;
  q.send_queue = 8;
  q.receive_queue = 5;  // whose completions are made here
  q.shared_receives = kNone;
  q.type = 2;
  maker.add(q);
  maker.post(7, Opcode::kWrite, 10, {.id = 1, .bytes = 8});
  maker.post(7, Opcode::kReceive, 20, {.id = 3});
  maker.post(7, Opcode::kReceive, 30, {.id = 1});
  maker.completion(7, Opcode::kOther, 40, {.id = 3}, kFlushed);
  maker.completion(7, Opcode::kOther, 41, {.id = 1}, kFlushed);
  maker.finish();
  EXPECT_EQ(matched(file("a")), (std::vector<Opcode>{Opcode::kReceive, Opcode::kReceive}));
}

// More than any queue holds: the oldest are let go, and counted.
TEST_F(Match, WhatIsLetGoIsCounted) {
  TraceMaker maker(file("a"), "h");
  maker.pair(7, 100, 200);
  constexpr std::uint64_t kMost = 1U << 16;
  for (std::uint64_t i = 0; i < kMost + 3; ++i) maker.post(7, Opcode::kWrite, i, {.id = i});
  maker.finish();
  EXPECT_EQ(summarize(file("a")).forgotten, 3U);
  EXPECT_NE(summary_text(summarize(file("a"))).find("3 posts ahead of more than any queue holds"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::test::trace_match
