#include "sim/engine/chunk_list.hpp"

#include <array>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/allocation_count.hpp"

namespace weft::test::engine_chunk_list {
namespace {

std::vector<int> take_all(ChunkPool<int>& pool, ChunkList<int>& list) {
  std::vector<int> items;
  list.consume(pool, [&](int item) { items.push_back(item); });
  return items;
}

TEST(ChunkList, GivesBackInTheOrderGivenBesideOtherLists) {
  ChunkPool<int> pool;
  std::array<ChunkList<int>, 3> lists;
  std::array<std::vector<int>, 3> expected;
  for (int item = 0; item < 200; ++item) {
    const auto which = static_cast<std::size_t>(item * item % 3);
    lists[which].push(pool, item);
    expected[which].push_back(item);
  }
  for (std::size_t which = 0; which < 3; ++which) {
    EXPECT_EQ(take_all(pool, lists[which]), expected[which]);
    EXPECT_TRUE(lists[which].empty());
  }
}

TEST(ChunkList, MayBePushedToWhileItIsConsumed) {
  ChunkPool<int> pool;
  ChunkList<int> list;
  std::vector<int> odd;
  for (int item = 0; item < 100; ++item) {
    list.push(pool, item);
    if (item % 2 == 1) odd.push_back(item);
  }
  list.consume(pool, [&](int item) {
    if (item % 2 == 1) list.push(pool, item);
  });
  EXPECT_EQ(list.front(), 1);
  std::vector<int> seen;
  list.for_each([&](int item) { seen.push_back(item); });
  EXPECT_EQ(seen, odd);
  EXPECT_EQ(take_all(pool, list), odd);
}

TEST(ChunkPool, LetsListsGrowWithoutAllocatingIntoWhatWasProvided) {
  ChunkPool<int> pool;
  ChunkList<int> list;
  pool.provide(4);
  const std::size_t before = allocation_count();
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < 4 * ChunkPool<int>::kItemsAChunk; ++i) list.push(pool, 1);
    list.consume(pool, [](int) {});
  }
  EXPECT_EQ(allocation_count(), before);
}

}  // namespace
}  // namespace weft::test::engine_chunk_list
