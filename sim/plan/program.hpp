#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/plan/walk_table.hpp"

namespace weft {

/// What a Plan's tables number: flags, queue pairs, lags, actors.
using FlagIndex = std::uint32_t;
using QueuePairIndex = std::uint32_t;
using LagIndex = std::uint32_t;
using ActorIndex = std::uint32_t;
/// None of a table.
inline constexpr std::uint32_t kNoIndex = std::numeric_limits<std::uint32_t>::max();

/// The verbs that a queue pair carries. A write tells its target too (RDMA_WRITE_WITH_IMM) if the
/// queue pair has a queue for that.
enum class Verb : std::uint8_t { kWrite, kRead, kSend };

/// One instruction of a Program. Which fields count is said with each kind; the others keep their
/// defaults, so that equal instructions are equal data. Made by Program's members.
struct Instruction {
  enum class Kind : std::uint8_t {
    /// Move `amount` bytes along walk `index`; the actor is occupied until they were sent, a copy
    /// engine until its copy has ended. `length`: how many kRaise follow.
    kMove,
    /// Belongs to the move before it: once the data are delivered, after lag `second`, flag `index`
    /// gets a token of their bytes and of tag `amount`.
    kRaise,
    /// Post `verb` of `amount` bytes on queue pair `index`; all at once that a kWhile took.
    kPost,
    /// Post `amount` receives at the other end of queue pair `index`.
    kPostReceives,
    /// Take `amount` tokens of flag `index`, one after another. The last one's bytes and tag stay
    /// known until another is taken.
    kWait,
    /// After lag `second` flag `index` gets `length` tokens of tag `amount`, with the bytes of the
    /// last token or move.
    kSignal,
    /// The actor works for lag `index`, and, if there is one, lag `second` for each of what a
    /// kWhile took.
    kCompute,
    /// The next `length` instructions `amount` times.
    kRepeat,
    /// The next `length` instructions as long as flag `index` has `amount` tokens, which are taken
    /// then. With another flag `second`: as many of each as that one has left, up to `amount`, and
    /// only as long as it has some.
    kWhile,
  };
  enum Mode : std::uint8_t {
    /// kPost, kPostReceives: the queue pair is the token's tag. kSignal: flag `index` of those that
    /// begin at the context of that queue pair; the new token has the same tag.
    kOfToken = 1,
    /// kMove, kPost: as many bytes as the token's. kRepeat: only if the token has some.
    kBytesOfToken = 2,
    /// kSignal: one token for each request that the last one told of.
    kForEach = 4,
    /// kPost: the payload comes within the work queue element.
    kInline = 8,
  };

  Kind kind{Kind::kMove};
  std::uint8_t mode{0};
  Verb verb{Verb::kWrite};
  std::uint32_t index{kNoIndex};
  std::uint32_t second{kNoIndex};
  std::uint32_t length{0};
  std::int64_t amount{0};
  /// Of a kMove or kPost, when the last token had so many.
  std::int64_t bytes(std::int64_t of_token) const {
    return (mode & kBytesOfToken) != 0 ? of_token : amount;
  }
  friend bool operator==(const Instruction&, const Instruction&) = default;
};
static_assert(sizeof(Instruction) == 24);

/// What an actor does, as flat comparable data: loops over few instructions, never a list of every
/// transfer.
///
/// It runs once, from the start of the plan; or, if it `serves` a flag, once for each token of that
/// flag, which is taken then.
struct Program {
  static constexpr std::size_t kMostLoops = 6;  ///< inside one another

  ActorIndex actor{0};
  FlagIndex serves{kNoIndex};
  std::uint32_t channel{kNoIndex};  ///< of a collective
  std::uint32_t copies{1};          ///< it stands for so many that do the same, see fold()
  std::vector<Instruction> code;
  friend bool operator==(const Program&, const Program&) = default;

  void move(WalkIndex walk, Bytes bytes, std::uint8_t mode = 0);
  void raise(FlagIndex flag, LagIndex lag = kNoIndex, std::uint32_t tag = 0);
  void post(Verb verb, QueuePairIndex queue_pair, Bytes bytes, std::uint8_t mode = 0);
  void post_receives(QueuePairIndex queue_pair, std::uint32_t count, std::uint8_t mode = 0);
  void wait(FlagIndex flag, std::int64_t tokens = 1);
  void signal(FlagIndex flag, LagIndex lag = kNoIndex, std::uint32_t tag = 0,
              std::uint8_t mode = 0);
  void signal_times(FlagIndex flag, std::uint32_t tokens, LagIndex lag = kNoIndex,
                    std::uint32_t tag = 0);
  void compute(LagIndex lag, LagIndex each = kNoIndex);

  /// What `body()` adds, `times` times. Nothing, and one time, are no loop.
  template <class Body>
  void repeat(std::uint64_t times, Body&& body) {
    if (times == 0) return;
    if (times == 1) return body();
    loop({.kind = Instruction::Kind::kRepeat, .amount = static_cast<std::int64_t>(times)},
         std::forward<Body>(body));
  }
  /// What `body()` adds, if the last token or move had bytes.
  template <class Body>
  void if_bytes(Body&& body) {
    loop({.kind = Instruction::Kind::kRepeat, .mode = Instruction::kBytesOfToken, .amount = 1},
         std::forward<Body>(body));
  }
  /// What `body()` adds, as long as `flag` has `tokens` (see Instruction::Kind::kWhile).
  template <class Body>
  void while_has(FlagIndex flag, std::int64_t tokens, FlagIndex left, Body&& body) {
    loop({.kind = Instruction::Kind::kWhile, .index = flag, .second = left, .amount = tokens},
         std::forward<Body>(body));
  }

 private:
  template <class Body>
  void loop(Instruction head, Body&& body) {
    const std::size_t at = code.size();
    code.push_back(head);
    body();
    code[at].length = static_cast<std::uint32_t>(code.size() - at - 1);
    if (code[at].length == 0) code.pop_back();
  }
};

/// Throws std::logic_error if its loops are empty, overlap or stand too deep.
void check_loops(const Program& program);

/// Calls visit(instruction, times) for each instruction but loops, with how often it runs; what
/// stands in a kWhile counts once, as nobody knows. O(instructions).
template <class Visit>
void for_each_instruction(const Program& program, Visit&& visit) {
  struct Loop {
    std::size_t end;
    std::uint64_t times;  ///< before it
  };
  std::vector<Loop> loops;
  std::uint64_t times = 1;
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    for (; !loops.empty() && loops.back().end == i; loops.pop_back()) times = loops.back().times;
    const Instruction& instruction = program.code[i];
    const bool is_repeat = instruction.kind == Instruction::Kind::kRepeat;
    if (!is_repeat && instruction.kind != Instruction::Kind::kWhile) {
      visit(instruction, times);
      continue;
    }
    loops.push_back({i + 1 + instruction.length, times});
    if (is_repeat) times *= static_cast<std::uint64_t>(instruction.amount);
  }
}

}  // namespace weft
