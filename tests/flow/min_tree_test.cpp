#include "sim/flow/min_tree.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/random.hpp"

namespace weft::test::flow_min_tree {
namespace {

TEST(MinTree, HasNoMinimumWhenEmpty) {
  MinTree tree;
  EXPECT_EQ(tree.min(), MinTree::kNone);
  std::vector<std::uint32_t> slots;
  tree.collect(100, slots);
  EXPECT_TRUE(slots.empty());
}

TEST(MinTree, FollowsAPlainArrayThroughRandomChanges) {
  std::mt19937_64 stream = random_stream(1, "min tree");
  MinTree tree;
  std::vector<MinTree::Key> plain(5000, MinTree::kNone);
  std::size_t in_use = 1;
  for (int round = 0; round < 3000; ++round) {
    in_use = std::min(plain.size(), in_use + uniform_below(stream, 4));
    const auto slot = static_cast<std::uint32_t>(uniform_below(stream, in_use));
    const auto key = static_cast<MinTree::Key>(uniform_below(stream, 50));
    plain[slot] = key < 5 ? MinTree::kNone : key;
    tree.set(slot, plain[slot]);
    if (uniform_below(stream, 3) != 0) continue;
    const MinTree::Key least = *std::min_element(plain.begin(), plain.end());
    ASSERT_EQ(tree.min(), least);
    if (least == MinTree::kNone) continue;
    std::vector<std::uint32_t> expected;
    for (std::uint32_t s = 0; s < plain.size(); ++s) {
      if (plain[s] <= least + 1) expected.push_back(s);
    }
    std::vector<std::uint32_t> slots;
    tree.collect(least + 1, slots);
    ASSERT_EQ(slots, expected);
  }
}

TEST(MinTree, FindsASlotFarBeyondTheOthers) {
  MinTree tree;
  tree.set(0, 7);
  tree.set(100'000, 3);
  EXPECT_EQ(tree.min(), 3);
  tree.set(100'000, MinTree::kNone);
  EXPECT_EQ(tree.min(), 7);
}

}  // namespace
}  // namespace weft::test::flow_min_tree
