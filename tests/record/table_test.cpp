#include "replay/record/table.hpp"

#include <atomic>
#include <thread>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

namespace weft::test::record_table {
namespace {

using weft::record::Table;

// Against the standard library's, with keys that collide, over growth and erasure.
TEST(RecordTable, HoldsWhatWasPutAndNotErased) {
  Table table;
  std::unordered_map<std::uint64_t, std::uint64_t> expected;
  std::uint64_t state = 1;
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::uint64_t key = 16 + (state >> 40) % 4096 * 16;
    if ((state >> 33) % 3 == 0) {
      table.erase(key);
      expected.erase(key);
    } else {
      table.put(key, {i, ~i});
      expected[key] = i;
    }
  }
  EXPECT_EQ(table.size(), expected.size());
  for (std::uint64_t key = 16; key < 16 + 4096 * 16; key += 16) {
    Table::Value found;
    const auto want = expected.find(key);
    ASSERT_EQ(table.find(key, found), want != expected.end()) << key;
    if (want == expected.end()) continue;
    EXPECT_EQ(found.first, want->second);
    EXPECT_EQ(found.second, ~want->second);
  }
}

// What stays is found at any time, whole, while others come and go and the table grows.
TEST(RecordTable, ReadersSeeWholeValuesWhileItChanges) {
  Table table;
  constexpr std::uint64_t kStaying = 64;
  for (std::uint64_t i = 1; i <= kStaying; ++i) table.put(i * 64, {i, ~i});
  std::atomic<bool> is_done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&] {
      while (!is_done.load()) {
        for (std::uint64_t i = 1; i <= kStaying; ++i) {
          Table::Value found;
          if (!table.find(i * 64, found) || found.first != i || found.second != ~i) ++wrong;
        }
      }
    });
  }
  for (std::uint64_t i = 1; i < 20'000; ++i) {
    table.put(i * 64 + 8, {i, i});
    if (i > 3000) table.erase((i - 3000) * 64 + 8);
  }
  is_done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace weft::test::record_table
