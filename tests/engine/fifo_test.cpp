#include "sim/engine/fifo.hpp"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/allocation_count.hpp"

namespace weft::test::engine_fifo {
namespace {

template <class T>
std::vector<T> drain(Fifo<T>& fifo) {
  std::vector<T> items;
  while (!fifo.empty()) items.push_back(fifo.pop());
  return items;
}

TEST(Fifo, GivesBackInTheOrderGivenWhileBothEndsMove) {
  Fifo<int> fifo;
  int pushed = 0;
  int popped = 0;
  for (int round = 0; round < 300; ++round) {
    for (int i = 0; i < 1 + round % 7; ++i) fifo.push(pushed++);
    for (int i = 0; i < 1 + round % 5 && !fifo.empty(); ++i) EXPECT_EQ(fifo.pop(), popped++);
    EXPECT_EQ(fifo.size(), static_cast<std::size_t>(pushed - popped));
  }
  while (!fifo.empty()) EXPECT_EQ(fifo.pop(), popped++);
  EXPECT_EQ(popped, pushed);
}

TEST(Fifo, CarriesWhatCannotBeCopied) {
  Fifo<std::unique_ptr<int>> fifo;
  fifo.push(std::make_unique<int>(3));
  EXPECT_EQ(*fifo.pop(), 3);
}

TEST(Fifo, AllocatesNothingOnceItHasBeenLongest) {
  Fifo<int> fifo;
  for (int i = 0; i < 1'000; ++i) fifo.push(i);
  const std::size_t before = allocation_count();
  for (int i = 0; i < 900; ++i) fifo.pop();
  for (int i = 0; i < 100'000; ++i) {
    fifo.push(i);
    fifo.pop();
  }
  EXPECT_EQ(allocation_count(), before);
}

TEST(Fifo, BringsAnyItemToTheFront) {
  Fifo<int> fifo;
  for (int i = 0; i < 5; ++i) fifo.push(i);
  fifo.pop();
  fifo.bring_to_front(2);
  EXPECT_THAT(drain(fifo), ::testing::ElementsAre(3, 2, 1, 4));
}

TEST(Fifo, RemovesSomeAndKeepsTheOrderOfTheRest) {
  Fifo<int> fifo;
  for (int i = 0; i < 8; ++i) fifo.push(i);
  fifo.pop();
  fifo.remove_if([](int item) { return item % 2 == 0; });
  EXPECT_THAT(drain(fifo), ::testing::ElementsAre(1, 3, 5, 7));
}

}  // namespace
}  // namespace weft::test::engine_fifo
