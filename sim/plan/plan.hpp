#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/plan/communicator.hpp"
#include "sim/plan/program.hpp"
#include "sim/plan/queue_pair.hpp"
#include "sim/plan/walk_table.hpp"
#include "sim/topology/fabric.hpp"

namespace weft {

/// A named time: "proxy posts the send". Of an actor that works, or of something on its way.
struct Lag {
  std::string cause;
  Duration time;
  friend auto operator<=>(const Lag&, const Lag&) = default;
};

/// Who runs programs: one thing after another, so it is occupied while it works or moves data.
struct Actor {
  enum class Kind : std::uint8_t {
    kThreadBlock,  ///< of a kernel, or a group of its warps or a thread that works by itself
    /// NCCL's, which serves all connections of a GPU, in rounds: it takes all tokens that are
    /// there, and serves them by their tags and programs, as its list has the connections.
    kProxyThread,
    kHostThread,
    kCopyEngine,  ///< of a GPU, one direction: moves along walks that say so (Leg::by_copy_engine)
    kPort,   ///< of a NIC that does one thing after another: an emulated one's, one that flushes
    kStream  ///< of a GPU: kernels one after another, as they were put in
  };
  Kind kind{Kind::kThreadBlock};
  DeviceId device;          ///< that it belongs to
  std::uint32_t number{0};  ///< among the device's of this kind
  /// Of a proxy thread: what a round takes beside its work, as it looks at all its operations. What
  /// comes while it has nothing to do waits for half of that, on average.
  LagIndex round{kNoIndex};
  friend bool operator==(const Actor&, const Actor&) = default;
};
/// The copy engine that moves a leg of copy_leg(): of its GPU number 0 writes, number 1 reads.
inline Actor copy_engine(const Leg& leg) {
  return {Actor::Kind::kCopyEngine, leg.initiator, leg.kind == Leg::Kind::kRead ? 1U : 0U};
}
/// "thread block 3", "proxy thread".
std::string actor_name(const Actor& actor);
/// "thread block 3 of gpu0@1", "proxy thread of gpu0@1".
std::string actor_name(const Actor& actor, const Fabric& fabric);

/// A counting semaphore. Tokens are taken in the order in which they came; each carries bytes (as
/// NCCL's sizesFifo does) and a tag. The tokens that it begins with carry none.
struct Flag {
  std::uint32_t tokens{0};  ///< at the start
  friend bool operator==(const Flag&, const Flag&) = default;
};

/// Whenever each of the flags `from` has a token, one of each is taken, and each of `to` gets one
/// after its lag: what all of some have done, all of others are told. Tokens that it gives carry
/// neither bytes nor a tag. A flag is in `from` of one join at most and begins with no tokens, and
/// nobody else takes its tokens; one in `to` is there once, and not served.
struct Join {
  struct To {
    FlagIndex flag;
    LagIndex lag{kNoIndex};
    friend auto operator<=>(const To&, const To&) = default;
  };
  std::vector<FlagIndex> from;
  std::vector<To> to;
  friend bool operator==(const Join&, const Join&) = default;
};

/// A flag that says something to those who look on (RunObserver::on_signalled): of "gpu0@0 ->
/// gpu0@1, channel 0" what was "sent".
struct NamedFlag {
  std::string of;
  std::string what;
  FlagIndex flag;
  friend bool operator==(const NamedFlag&, const NamedFlag&) = default;
};

/// What happens: actors, what each of them does, and over which paths. Immutable once made;
/// comparable. Memory: linear in connections and programs, whatever the bytes.
///
/// An actor's programs that serve no flag run one after another, in their order here; then it takes
/// the tokens of all flags that its programs serve, in the order in which they come.
struct Plan {
  std::string op;             ///< "allreduce"
  std::string algo;           ///< "Ring"
  std::string proto;          ///< "Simple"
  std::uint32_t channels{0};  ///< of sends: that what goes to one peer is split over
  Bytes bytes;                ///< of the collective, as nccl-tests counts
  std::vector<Communicator> communicators;
  WalkTable walks;
  std::vector<Lag> lags;
  std::vector<Flag> flags;
  std::vector<Join> joins;
  std::vector<NamedFlag> names;  ///< of some flags
  /// A flag that nobody takes: when it got its last token is told (RunOutcome::lap).
  FlagIndex lap{kNoIndex};
  std::vector<QueuePair> queue_pairs;
  std::vector<Actor> actors;
  std::vector<Program> programs;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Of every flag the program that serves it; kNoIndex: none does. Throws std::logic_error if two
/// do, or one serves the lap.
std::vector<std::uint32_t> servers_of_flags(const Plan& plan);

/// Of every flag the join that takes its tokens; kNoIndex: none does. Throws std::logic_error if
/// two do, or if a join's flags are not as Join says.
std::vector<std::uint32_t> joins_of_flags(const Plan& plan);

/// Whether any join or program waits for a flag or asks for its tokens. Those that serve it are
/// left out. Throws std::logic_error if it is the lap.
std::vector<bool> taken_flags(const Plan& plan);

/// The programs of each thread block, in the order of the blocks' first: actors of one device and
/// number are groups of warps of one block. Programs that serve flags, and those of other actors,
/// are left out.
std::vector<std::vector<std::uint32_t>> programs_by_block(const Plan& plan);

/// How often each program runs: once, or, if it serves a flag, for each token that others' moves,
/// signals and messages give it. Loops that end by flags count once, what leads to itself again no
/// further; what a token leads to that its server has waited for within is left out.
std::vector<std::uint64_t> program_runs(const Plan& plan);

/// How many transfers (moves, and messages) running the plan takes, by program_runs().
std::uint64_t transfer_count(const Plan& plan);

/// Where a flag's tokens go on to, and with which tag.
struct HandedOn {
  FlagIndex flag;
  std::uint32_t tag;
};
/// Of every flag, if a program that serves another one waits for its tokens one by one and hands
/// each on at once; else its flag is kNoIndex.
std::vector<HandedOn> handed_on(const Plan& plan);

/// Calls visit(queue pair, bytes, times) for each message that programs post, be it for a token
/// that another program's move raises, handed on or not. Loops that end by flags count once; bytes
/// of tokens that the program itself waits for are not known here and count as 0.
template <class Visit>
void for_each_message(const Plan& plan, Visit&& visit);

/// The plan as text, a line a table's entry and a line an instruction, for people and for tests.
std::string dump(const Plan& plan, const Fabric& fabric);

template <class Visit>
void for_each_message(const Plan& plan, Visit&& visit) {
  using Kind = Instruction::Kind;
  const std::vector<std::uint32_t> servers = servers_of_flags(plan);
  const std::vector<HandedOn> goes_on = handed_on(plan);
  for (const Program& program : plan.programs) {
    if (program.serves != kNoIndex) continue;
    std::int64_t moved = 0;
    for_each_instruction(program, [&](const Instruction& i, std::uint64_t times) {
      if (i.kind == Kind::kMove) moved = i.amount;
      if (i.kind == Kind::kPost) visit(i.index, Bytes{i.amount}, times);
      if (i.kind != Kind::kRaise) return;
      HandedOn to{i.index, static_cast<std::uint32_t>(i.amount)};
      if (goes_on[to.flag].flag != kNoIndex) to = goes_on[to.flag];
      if (servers[to.flag] == kNoIndex) return;
      for (const Instruction& served : plan.programs[servers[to.flag]].code) {
        if (served.kind != Kind::kPost) continue;
        const bool of_token = (served.mode & Instruction::kOfToken) != 0;
        const bool its_bytes = (served.mode & Instruction::kBytesOfToken) != 0;
        visit(of_token ? QueuePairIndex{to.tag} : served.index,
              Bytes{its_bytes ? moved : served.amount}, times);
      }
    });
  }
}

}  // namespace weft
