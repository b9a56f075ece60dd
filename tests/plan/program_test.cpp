#include "sim/plan/program.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace weft::test::plan_program {
namespace {

using Kind = Instruction::Kind;

TEST(Program, LoopsThatRunOnceOrNeverAreNone) {
  Program plain;
  plain.wait(3);
  Program looped;
  looped.repeat(1, [&] { looped.wait(3); });
  looped.repeat(0, [&] { looped.wait(4); });
  looped.repeat(7, [] {});
  looped.while_has(0, 1, kNoIndex, [] {});
  EXPECT_EQ(plain, looped);
}

TEST(Program, IsComparableData) {
  const auto make = [](std::uint64_t times, std::int64_t bytes) {
    Program p;
    p.repeat(times, [&] {
      p.wait(0);
      p.move(1, Bytes{bytes});
      p.raise(2);
    });
    return p;
  };
  EXPECT_EQ(make(5, 8), make(5, 8));
  EXPECT_FALSE(make(5, 8) == make(6, 8));
  EXPECT_FALSE(make(5, 8) == make(5, 16));
}

TEST(Program, CountsWhatItsLoopsDoWithoutRunningThem) {
  Program p;
  p.wait(0);
  p.repeat(1'000'000, [&] {
    p.move(1, Bytes{1});
    p.repeat(1'000, [&] { p.signal(2); });
  });
  p.compute(0);
  std::uint64_t moves = 0;
  std::uint64_t signals = 0;
  std::uint64_t once = 0;
  for_each_instruction(p, [&](const Instruction& i, std::uint64_t times) {
    if (i.kind == Kind::kMove) moves += times;
    if (i.kind == Kind::kSignal) signals += times;
    if (i.kind == Kind::kWait || i.kind == Kind::kCompute) once += times;
  });
  EXPECT_EQ(moves, 1'000'000u);
  EXPECT_EQ(signals, 1'000'000'000u);
  EXPECT_EQ(once, 2u);
}

TEST(Program, ARaiseBelongsToAMove) {
  Program p;
  EXPECT_THROW(p.raise(0), std::logic_error);
  p.move(0, Bytes{1});
  p.raise(0);
  p.raise(1);
  EXPECT_EQ(p.code[0].length, 2u);
  p.wait(0);
  EXPECT_THROW(p.raise(2), std::logic_error);
}

}  // namespace
}  // namespace weft::test::plan_program
