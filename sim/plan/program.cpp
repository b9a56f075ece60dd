#include "sim/plan/program.hpp"

#include <algorithm>
#include <stdexcept>

namespace weft {

using Kind = Instruction::Kind;

void Program::move(WalkIndex walk, Bytes bytes, std::uint8_t mode) {
  code.push_back({.kind = Kind::kMove, .mode = mode, .index = walk, .amount = bytes.count()});
}

void Program::raise(FlagIndex flag, LagIndex lag, std::uint32_t tag) {
  const auto move = std::find_if(code.rbegin(), code.rend(),
                                 [](const Instruction& i) { return i.kind != Kind::kRaise; });
  if (move == code.rend() || move->kind != Kind::kMove) {
    throw std::logic_error("Program: a raise without a move before it");
  }
  ++move->length;
  code.push_back({.kind = Kind::kRaise, .index = flag, .second = lag, .amount = tag});
}

void Program::post(Verb verb, QueuePairIndex queue_pair, Bytes bytes, std::uint8_t mode) {
  code.push_back({.kind = Kind::kPost,
                  .mode = mode,
                  .verb = verb,
                  .index = queue_pair,
                  .amount = bytes.count()});
}

void Program::post_receives(QueuePairIndex queue_pair, std::uint32_t count, std::uint8_t mode) {
  code.push_back({.kind = Kind::kPostReceives, .mode = mode, .index = queue_pair, .amount = count});
}

void Program::wait(FlagIndex flag, std::int64_t tokens) {
  code.push_back({.kind = Kind::kWait, .index = flag, .amount = tokens});
}

void Program::signal(FlagIndex flag, LagIndex lag, std::uint32_t tag, std::uint8_t mode) {
  signal_times(flag, 1, lag, tag);
  code.back().mode = mode;
}

void Program::signal_times(FlagIndex flag, std::uint32_t tokens, LagIndex lag, std::uint32_t tag) {
  code.push_back(
      {.kind = Kind::kSignal, .index = flag, .second = lag, .length = tokens, .amount = tag});
}

void Program::compute(LagIndex lag, LagIndex each) {
  code.push_back({.kind = Kind::kCompute, .index = lag, .second = each});
}

void check_loops(const Program& program) {
  std::vector<std::size_t> ends;
  for (std::size_t place = 0; place < program.code.size(); ++place) {
    const Instruction& i = program.code[place];
    while (!ends.empty() && ends.back() == place) ends.pop_back();
    if (i.kind == Kind::kMove) {
      const std::size_t end = place + 1 + i.length;
      if (end > program.code.size() || (!ends.empty() && end > ends.back())) {
        throw std::logic_error("plan: a raise outside of its move's loop");
      }
    }
    if (i.kind != Kind::kRepeat && i.kind != Kind::kWhile) continue;
    ends.push_back(place + 1 + i.length);
    const bool is_inside = ends.size() < 2 || ends.back() <= ends[ends.size() - 2];
    if (i.length == 0 || i.amount < 1 || !is_inside || ends.back() > program.code.size() ||
        ends.size() > Program::kMostLoops) {
      throw std::logic_error("plan: loops that are empty, overlap or stand too deep");
    }
  }
}

}  // namespace weft
