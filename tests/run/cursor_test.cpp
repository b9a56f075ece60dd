#include "sim/run/cursor.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weft::test::run_cursor {
namespace {

using Kind = Instruction::Kind;

/// The flags that a program waits for, one after another; a kWhile goes `turns` times, and tokens
/// have so many bytes.
std::string waits(const Program& program, int turns = 0, std::int64_t of_token = 1) {
  std::string out;
  Cursor cursor;
  for (cursor.begin(program); !cursor.is_done();) {
    switch (cursor.instruction().kind) {
      case Kind::kRepeat:
        cursor.enter_repeat(of_token);
        break;
      case Kind::kWhile:
        if (turns-- > 0) {
          cursor.enter_while();
        } else {
          cursor.skip_loop();
        }
        break;
      default:
        out += std::to_string(cursor.instruction().index);
        cursor.pass();
    }
  }
  return out;
}

TEST(Cursor, GoesThroughNestedLoops) {
  Program p;
  p.wait(0);
  p.repeat(2, [&] {
    p.wait(1);
    p.repeat(3, [&] { p.wait(2); });
  });
  p.wait(3);
  EXPECT_EQ(waits(p), "0122212223");
}

TEST(Cursor, AWhileComesToItselfAgain) {
  Program p;
  p.repeat(2, [&] { p.while_has(0, 1, kNoIndex, [&] { p.wait(1); }); });
  p.wait(2);
  EXPECT_EQ(waits(p, 0), "2");
  EXPECT_EQ(waits(p, 3), "1112");
}

TEST(Cursor, LoopsMayEndTogetherAndWithTheProgram) {
  Program p;
  p.repeat(2, [&] { p.repeat(2, [&] { p.repeat(2, [&] { p.wait(7); }); }); });
  EXPECT_EQ(waits(p), "77777777");
  EXPECT_EQ(waits(Program{}), "");
}

TEST(Cursor, GoesPastWhatIsForTokensWithBytesOnly) {
  Program p;
  p.repeat(2, [&] {
    p.wait(0);
    p.if_bytes([&] { p.wait(1); });
  });
  p.if_bytes([&] { p.wait(2); });
  EXPECT_EQ(waits(p, 0, 8), "01012");
  EXPECT_EQ(waits(p, 0, 0), "00");
}

TEST(Cursor, PassesWhatBelongsToAnInstruction) {
  Program p;
  p.wait(0);
  p.wait(1);
  p.wait(2);
  Cursor cursor;
  cursor.begin(p);
  cursor.pass(1);
  EXPECT_EQ(cursor.place(), 2u);
}

}  // namespace
}  // namespace weft::test::run_cursor
