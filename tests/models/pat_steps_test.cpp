// PAT's passes: who ends with what, in how many steps, over how many messages. Derived by hand from
// the trees; all ranks run at once on FIFOs of a few slots, in whatever order they can.
#include "models/nccl/execute/pat_steps.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace weft::test::models_pat_steps {
namespace {

constexpr std::uint32_t kSlots = 8;
constexpr Bytes kChunk = Bytes::kib(512);

/// How often each rank's data are in a piece, or in a result.
using Parts = std::map<std::uint32_t, int>;

/// All ranks, each with its passes, some chunks one after another.
class Ranks {
 public:
  Ranks(Op op, std::uint32_t ranks, const PatShape& shape, int chunks)
      : is_gather_{op == Op::kAllGather},
        n_{ranks},
        passes_{pat_passes(op, ranks, shape)},
        all_{passes_.size() * static_cast<std::size_t>(chunks)},
        ranks_(ranks) {}

  /// Whether all came to an end.
  bool run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::uint32_t r = 0; r < n_; ++r) {
        while (ranks_[r].done < all_ && can_run(r)) {
          run_pass(r);
          moved = true;
        }
      }
    }
    return std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& r) { return r.done == all_; });
  }
  const std::vector<Parts>& results(std::uint32_t rank) const { return ranks_[rank].results; }
  /// Over the network one after another, the block's own work taking no time.
  int steps() const {
    int most = 0;
    for (const Rank& rank : ranks_) most = std::max(most, rank.step);
    return most;
  }

 private:
  /// One direction between two ranks.
  struct Connection {
    std::vector<int> sent_at;  ///< the step of each message that was handed over
    std::uint32_t taken{0};    ///< messages that the receiver began
    std::uint32_t begun{0};    ///< slots that the sender began
    std::uint32_t freed{0};
  };
  struct Rank {
    std::size_t done{0};
    int step{0};
    std::map<std::uint32_t, Connection> in;    ///< by dimension
    std::map<std::uint32_t, Parts> taken_of;   ///< by piece: what lies in its slot here
    std::map<std::uint32_t, Parts> filled_of;  ///< by piece: what this one puts together
    std::vector<Parts> results;                ///< of each chunk; all-gather: of each piece
    Parts sum;
  };

  std::uint32_t next(std::uint32_t rank, std::uint32_t dimension) const {
    const std::uint32_t far = 1U << dimension;
    return (rank + (is_gather_ ? n_ - far : far)) % n_;
  }
  Connection& out(std::uint32_t rank, std::uint32_t dimension) {
    return ranks_[next(rank, dimension)].in[dimension];
  }

  bool can_run(std::uint32_t r) {
    const PatPass& pass = passes_[ranks_[r].done % passes_.size()];
    std::map<std::uint32_t, std::uint32_t> wanted;
    for (const std::uint32_t d : pass.begun_in) ++wanted[d];
    for (const auto& [d, count] : wanted) {
      const Connection& in = ranks_[r].in[d];
      if (in.sent_at.size() < in.taken + count) return false;
    }
    wanted.clear();
    for (const std::uint32_t d : pass.begun_out) ++wanted[d];
    for (const auto& [d, count] : wanted) {
      const Connection& to = out(r, d);
      if (to.begun + count > to.freed + kSlots) return false;
    }
    return true;
  }

  void run_pass(std::uint32_t r) {
    Rank& rank = ranks_[r];
    const PatPass& pass = passes_[rank.done % passes_.size()];
    for (const std::uint32_t d : pass.begun_in) {
      Connection& in = rank.in[d];
      rank.step = std::max(rank.step, in.sent_at[in.taken++] + 1);
    }
    for (const std::uint32_t d : pass.begun_out) ++out(r, d).begun;
    for (const PatCopy& copy : pass.copies) run_copy(r, copy);
    for (const std::uint32_t d : pass.ended_out) out(r, d).sent_at.push_back(rank.step);
    for (const std::uint32_t d : pass.ended_in) ++rank.in[d].freed;
    if (++rank.done % passes_.size() != 0) return;
    if (!is_gather_) rank.results.push_back(std::exchange(rank.sum, {}));
  }

  /// What lies in slots is looked up by chunk, so that a slot that is used again is another one.
  std::uint32_t key(const Rank& rank, std::uint32_t piece) const {
    return static_cast<std::uint32_t>(rank.done / passes_.size()) * n_ + piece;
  }
  void run_copy(std::uint32_t r, const PatCopy& copy) {
    Rank& rank = ranks_[r];
    const auto give_to = [&](std::uint32_t piece) -> Rank& {
      return ranks_[next(r, static_cast<std::uint32_t>(std::countr_zero(piece)))];
    };
    if (is_gather_) {
      const Parts data = copy.take == 0 ? Parts{{r, 1}} : rank.taken_of.at(key(rank, copy.take));
      if (got_.insert({r, key(rank, copy.take)}).second) rank.results.push_back(data);
      if (copy.give != 0) give_to(copy.give).taken_of[key(rank, copy.give)] = data;
      return;
    }
    Parts& sum = copy.give == 0 ? rank.sum : rank.filled_of[key(rank, copy.give)];
    if (sum.empty()) sum[r] = 1;
    if (copy.take != 0) {
      for (const auto& [who, times] : rank.taken_of.at(key(rank, copy.take))) sum[who] += times;
    }
    if (copy.give != 0) give_to(copy.give).taken_of[key(rank, copy.give)] = sum;
  }

  bool is_gather_;
  std::uint32_t n_;
  std::vector<PatPass> passes_;
  std::size_t all_;
  std::vector<Rank> ranks_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> got_;
};

std::vector<PatShape> shapes(std::uint32_t ranks) {
  std::vector<PatShape> out;
  for (const std::int64_t bytes : {1, 5000, 40'000, 200'000, 524'288}) {
    out.push_back(pat_shape(ranks, Bytes{bytes}, kChunk, kSlots));
  }
  return out;
}

TEST(PatSteps, EveryRankEndsWithAllDataOnce) {
  for (std::uint32_t n = 2; n <= 33; ++n) {
    for (const PatShape& shape : shapes(n)) {
      Ranks ranks(Op::kAllGather, n, shape, 3);
      ASSERT_TRUE(ranks.run()) << n << " ranks wait for each other";
      for (std::uint32_t r = 0; r < n; ++r) {
        Parts all;
        for (const Parts& one : ranks.results(r)) {
          for (const auto& [who, times] : one) all[who] += times;
        }
        EXPECT_EQ(ranks.results(r).size(), 3 * n);
        EXPECT_EQ(all.size(), n);
        for (const auto& [who, times] : all) EXPECT_EQ(times, 3) << n << ' ' << r << ' ' << who;
      }
    }
  }
}

TEST(PatSteps, EverySumHasAllRanksOnce) {
  for (std::uint32_t n = 2; n <= 33; ++n) {
    for (const PatShape& shape : shapes(n)) {
      Ranks ranks(Op::kReduceScatter, n, shape, 3);
      ASSERT_TRUE(ranks.run()) << n << " ranks wait for each other";
      for (std::uint32_t r = 0; r < n; ++r) {
        ASSERT_EQ(ranks.results(r).size(), 3U);
        for (const Parts& sum : ranks.results(r)) {
          EXPECT_EQ(sum.size(), n);
          for (const auto& [who, times] : sum) EXPECT_EQ(times, 1) << n << ' ' << r << ' ' << who;
        }
      }
    }
  }
}

// All pieces that go the same way share a message while they fit: the binomial tree's depth. With
// some numbers of ranks no way is that long; where sums are, a last rank alone in its branch waits
// for a step more.
TEST(PatSteps, SmallDataTakeTheLogarithmOfTheRanks) {
  for (std::uint32_t n = 2; n <= 70; ++n) {
    const int log = std::bit_width(n - 1);
    const auto steps = [&](Op op) {
      Ranks ranks(op, n, pat_shape(n, Bytes{1}, kChunk, kSlots), 1);
      EXPECT_TRUE(ranks.run());
      return ranks.steps();
    };
    const int gather = steps(Op::kAllGather);
    EXPECT_LE(gather, log) << n;
    EXPECT_GE(gather, std::bit_width(n) - 1) << n;
    const bool is_alone = n > 8 && std::has_single_bit(n - 1);
    EXPECT_EQ(steps(Op::kReduceScatter), log + (is_alone ? 1 : 0)) << n;
  }
}

struct Sent {
  int messages{0};
  std::uint32_t places{0};
};
Sent sent(Op op, std::uint32_t n, const PatShape& shape) {
  Sent out;
  for (const PatPass& pass : pat_passes(op, n, shape)) {
    EXPECT_LE(pass.ended_out.size(), 1U);
    if (pass.ended_out.empty()) continue;
    ++out.messages;
    out.places += pass.places;
  }
  return out;
}

// n - 1 pieces, each once. Sums of a tree whose size is no power of two leave out the places of
// ranks that there are not, but send them.
TEST(PatSteps, ARankSendsAllPiecesButItsOwn) {
  for (std::uint32_t n = 2; n <= 70; ++n) {
    for (const PatShape& shape : shapes(n)) {
      EXPECT_EQ(sent(Op::kAllGather, n, shape).places, n - 1);
      const std::uint32_t scattered = sent(Op::kReduceScatter, n, shape).places;
      EXPECT_GE(scattered, n - 1);
      EXPECT_LT(scattered, std::bit_ceil(n));
      if (shape.together == 1) {
        EXPECT_EQ(scattered, n - 1);
        EXPECT_EQ(sent(Op::kReduceScatter, n, shape).messages, static_cast<int>(n - 1));
      }
    }
  }
}

// 16 ranks, small: 8 branches of two, so half the pieces go to the next rank in one message, then a
// quarter two ranks away, an eighth, one piece.
TEST(PatSteps, SmallPiecesShareOneMessageADimension) {
  const PatShape shape = pat_shape(16, Bytes{1}, kChunk, kSlots);
  EXPECT_EQ(shape.branches, 8U);
  EXPECT_EQ(shape.together, 8U);
  for (const Op op : {Op::kAllGather, Op::kReduceScatter}) {
    const Sent all = sent(op, 16, shape);
    EXPECT_EQ(all.messages, 4);
    EXPECT_EQ(all.places, 15U);
  }
}

// Half a chunk of each rank: two pieces a message, and eight messages fill a FIFO.
TEST(PatSteps, PiecesOfHalfAChunkGoInPairs) {
  const PatShape shape = pat_shape(64, Bytes::kib(256), kChunk, kSlots);
  EXPECT_EQ(shape.together, 2U);
  EXPECT_EQ(shape.branches, 16U);
  EXPECT_EQ(pat_shape(64, Bytes{262'145}, kChunk, kSlots).together, 1U);
  EXPECT_EQ(pat_shape(3, Bytes{1}, kChunk, kSlots).branches, 1U);
}

}  // namespace
}  // namespace weft::test::models_pat_steps
