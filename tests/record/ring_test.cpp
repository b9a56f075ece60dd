#include "replay/record/ring.hpp"

#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft::test::record_ring {
namespace {

using namespace weft::record;
using trace::RecordType;

constexpr std::size_t kRing = Ring::kLeastBytes;

/// A record of `bytes` whose time is `number`; false where there is no room.
bool write(Ring& ring, std::uint64_t number, std::size_t bytes) {
  std::byte* const place = ring.take(bytes);
  if (place == nullptr) return false;
  const trace::RecordHead head{RecordType::kPost, static_cast<std::uint16_t>(bytes), 0, number};
  std::memcpy(place, &head, sizeof head);
  return true;
}

/// Reads what is there; the numbers and types in order.
std::vector<trace::RecordHead> read(Ring& ring) {
  std::vector<trace::RecordHead> out;
  const std::uint64_t head = ring.head();
  while (ring.tail() != head) {
    std::span<const std::byte> records = ring.readable(head, 1U << 20);
    const std::size_t bytes = records.size();
    while (!records.empty()) {
      trace::RecordHead one{};
      std::memcpy(&one, records.data(), sizeof one);
      out.push_back(one);
      records = records.subspan(one.bytes);
    }
    ring.release(bytes);
  }
  return out;
}

TEST(RecordRing, SizeIsAPowerOfTwoThatHoldsARecord) {
  EXPECT_EQ(Ring(1).bytes(), Ring(kRing).bytes());
  EXPECT_EQ(Ring(3U << 20).bytes(), 4U << 20);
}

TEST(RecordRing, WhatIsTakenIsReadOncePublished) {
  Ring ring(kRing);
  ASSERT_TRUE(write(ring, 1, 64));
  EXPECT_TRUE(read(ring).empty());
  ring.publish();
  ASSERT_EQ(read(ring).size(), 1U);
  EXPECT_TRUE(read(ring).empty());
}

TEST(RecordRing, WhatIsGivenBackWasNeverThere) {
  Ring ring(kRing);
  ASSERT_TRUE(write(ring, 1, 64));
  ring.give_back();
  ASSERT_TRUE(write(ring, 2, 72));
  ring.publish();
  const std::vector<trace::RecordHead> found = read(ring);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].time_ns, 2U);
}

// Lengths that never divide the ring, over several laps: records lie whole, in order.
TEST(RecordRing, LapsEndBetweenRecords) {
  Ring ring(kRing);
  std::uint64_t written = 0;
  std::uint64_t read_so_far = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 40; ++i) {
      const std::size_t bytes = 24 + 8 * ((written * 7919) % 500);
      if (!write(ring, written, bytes)) break;
      ring.publish();
      ++written;
    }
    for (const trace::RecordHead& one : read(ring)) EXPECT_EQ(one.time_ns, read_so_far++);
  }
  EXPECT_EQ(read_so_far, written);
  EXPECT_GT(written * 1000, 4 * kRing);
}

TEST(RecordRing, VisitsWhatIsTakenAlsoPastTheEndOfALap) {
  Ring ring(kRing);
  while (write(ring, 0, 1000)) ring.publish();
  EXPECT_FALSE(read(ring).empty());
  std::uint64_t number = 0;
  while (number < 5) ASSERT_TRUE(write(ring, number++, 1000));
  std::uint64_t seen = 0;
  ring.for_each_taken([&](const std::byte* record) {
    trace::RecordHead head{};
    std::memcpy(&head, record, sizeof head);
    EXPECT_EQ(head.time_ns, seen++);
  });
  EXPECT_EQ(seen, number);
}

TEST(RecordRing, ADropSaysWhatLacksOnceAQuarterIsFree) {
  Ring ring(kRing);
  std::uint64_t kept = 0;
  while (write(ring, kept, 1024)) {
    ring.publish();
    ++kept;
  }
  ring.give_back();
  ring.drop(100, {.records = 3, .posts = 2, .completions = 1, .posted_bytes = 50});
  ring.drop(200, {.records = 1, .posts = 1, .completions = 0, .posted_bytes = 7});
  EXPECT_FALSE(ring.is_open(9));
  const std::span<const std::byte> first = ring.readable(ring.head(), 1024);
  ring.release(first.size());
  EXPECT_FALSE(ring.is_open(9)) << "one record's room is not a quarter";
  EXPECT_EQ(read(ring).size(), kept - 1);
  EXPECT_TRUE(ring.is_open(9));

  const std::uint64_t head = ring.head();
  std::span<const std::byte> rest = ring.readable(head, 1U << 20);
  if (rest.empty()) rest = ring.readable(head, 1U << 20);
  trace::Drop drop{};
  ASSERT_EQ(rest.size(), sizeof drop);
  std::memcpy(&drop, rest.data(), sizeof drop);
  EXPECT_EQ(drop.head.type, RecordType::kDrop);
  EXPECT_EQ(drop.head.thread, 9U);
  EXPECT_EQ(drop.first_ns, 100U);
  EXPECT_EQ(drop.head.time_ns, 200U);
  EXPECT_EQ(drop.records, 4U);
  EXPECT_EQ(drop.posts, 3U);
  EXPECT_EQ(drop.completions, 1U);
  EXPECT_EQ(drop.posted_bytes, 57U);
  EXPECT_EQ(ring.open_drop(9).head.bytes, 0U);
}

TEST(RecordRing, AnOpenDropCanBeReadWhereNobodyPostsAgain) {
  Ring ring(kRing);
  EXPECT_EQ(ring.open_drop(1).head.bytes, 0U);
  ring.drop(5, {.records = 2, .posts = 2, .completions = 0, .posted_bytes = 8});
  const trace::Drop drop = ring.open_drop(1);
  EXPECT_EQ(drop.head.bytes, sizeof drop);
  EXPECT_EQ(drop.records, 2U);
}

// One thread writes, one reads: every record arrives in order or is counted.
TEST(RecordRing, NothingIsLostBetweenTwoThreads) {
  Ring ring(kRing);
  constexpr std::uint64_t kCount = 300'000;
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      if (ring.is_open(0) && write(ring, i, 24 + 8 * (i % 30))) {
        ring.publish();
      } else {
        ring.give_back();
        ring.drop(i, {.records = 1, .posts = 0, .completions = 0, .posted_bytes = 0});
      }
    }
  });
  std::uint64_t kept = 0;
  std::uint64_t dropped = 0;
  std::uint64_t last = 0;
  const auto take = [&] {
    const std::uint64_t head = ring.head();
    while (ring.tail() != head) {
      std::span<const std::byte> records = ring.readable(head, 1U << 16);
      const std::size_t bytes = records.size();
      while (!records.empty()) {
        trace::Drop one{};
        std::memcpy(&one.head, records.data(), sizeof one.head);
        if (one.head.type == RecordType::kDrop) {
          std::memcpy(&one, records.data(), sizeof one);
          dropped += one.records;
        } else {
          EXPECT_TRUE(kept == 0 || one.head.time_ns > last);
          last = one.head.time_ns;
          ++kept;
        }
        records = records.subspan(one.head.bytes);
      }
      ring.release(bytes);
    }
  };
  while (kept + dropped + ring.open_drop(0).records < kCount) take();
  producer.join();
  take();
  EXPECT_EQ(kept + dropped + ring.open_drop(0).records, kCount);
}

}  // namespace
}  // namespace weft::test::record_ring
