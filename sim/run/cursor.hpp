#pragma once

#include <array>
#include <cstdint>

#include "sim/plan/program.hpp"

namespace weft {

/// Where an actor is in a program: an instruction and the loops around it. Loops are counted as
/// they run, so a program of any length takes this much memory.
class Cursor {
 public:
  /// At its first instruction. The program must outlive the cursor.
  void begin(const Program& program) {
    code_ = program.code.data();
    end_ = static_cast<std::uint32_t>(program.code.size());
    at_ = 0;
    depth_ = 0;
  }
  bool is_done() const { return at_ == end_; }
  std::uint32_t place() const { return at_; }
  const Instruction& instruction() const { return code_[at_]; }

  /// Behind the instruction, and behind `more` that belong to it.
  void pass(std::uint32_t more = 0) {
    at_ += 1 + more;
    leave_loops();
  }
  /// Into a kRepeat; behind it, if it is for tokens with bytes and the last one had none.
  void enter_repeat(std::int64_t of_token) {
    if (instruction().bytes(of_token) == 0) return skip_loop();
    enter(at_ + 1, static_cast<std::uint64_t>(instruction().amount));
  }
  /// Into a kWhile, which comes to itself again.
  void enter_while() { enter(at_, kWhile); }
  /// Behind a loop.
  void skip_loop() { pass(instruction().length); }

 private:
  static constexpr std::uint64_t kWhile = 0;
  struct Loop {
    std::uint32_t begin;
    std::uint32_t end;
    std::uint64_t left;  ///< turns, with this one
  };

  void enter(std::uint32_t begin, std::uint64_t turns) {
    loops_[depth_++] = {begin, at_ + 1 + instruction().length, turns};
    ++at_;
  }
  void leave_loops() {
    while (depth_ > 0 && loops_[depth_ - 1].end == at_) {
      Loop& loop = loops_[depth_ - 1];
      if (loop.left == kWhile) {  // what stands there asks anew
        at_ = loop.begin;
        --depth_;
        return;
      }
      if (--loop.left > 0) {
        at_ = loop.begin;
        return;
      }
      --depth_;
    }
  }

  const Instruction* code_{nullptr};
  std::uint32_t at_{0};
  std::uint32_t end_{0};
  std::uint32_t depth_{0};
  std::array<Loop, Program::kMostLoops> loops_;
};

}  // namespace weft
