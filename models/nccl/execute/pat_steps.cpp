#include "models/nccl/execute/pat_steps.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

namespace weft {
namespace {

std::uint32_t lowest_bit(std::uint32_t piece) { return piece & (~piece + 1); }

/// The bits of `value`, below the power of two `count`, in reverse.
std::uint32_t reversed(std::uint32_t value, std::uint32_t count) {
  std::uint32_t out = 0;
  for (std::uint32_t from = 1, to = count / 2; to > 0; from *= 2, to /= 2) {
    if ((value & from) != 0) out |= to;
  }
  return out;
}

/// Builds the passes: with D = `stride_` ranks a branch, piece k D + i is branch k's i-th.
class Steps {
 public:
  Steps(Op op, std::uint32_t ranks, const PatShape& shape)
      : is_gather_{op == Op::kAllGather},
        ranks_{ranks},
        shape_{shape},
        stride_{std::bit_ceil(ranks) / shape.branches},
        message_of_(ranks) {}

  std::vector<PatPass> take() && {
    for (std::uint32_t i = 1; i < stride_; ++i) number(alike(i));
    for (std::uint32_t b = 1; b < shape_.branches; b *= 2) number(between(b));
    if (is_gather_) {
      gather();
    } else {
      scatter();
    }
    mark_messages();
    return std::move(passes_);
  }

 private:
  using Pieces = std::vector<std::uint32_t>;

  /// The i-th piece of each branch, in the order in which they lie in messages. Where they are
  /// added up the far branches go first, as they have the longest way.
  Pieces alike(std::uint32_t i) const {
    Pieces out;
    for (const std::uint32_t k : order(shape_.branches)) out.push_back(k * stride_ + i);
    return out;
  }
  /// The first pieces of branches that are an odd multiple of `b` branches away.
  Pieces between(std::uint32_t b) const {
    Pieces out;
    for (const std::uint32_t m : order(shape_.branches / (2 * b))) {
      out.push_back((2 * m + 1) * b * stride_);
    }
    return out;
  }
  Pieces order(std::uint32_t count) const {
    Pieces out;
    for (std::uint32_t a = 0; a < count; ++a) {
      out.push_back(is_gather_ ? a : reversed(count - 1 - a, count));
    }
    return out;
  }

  void number(const Pieces& pieces) {
    for (std::size_t place = 0; place < pieces.size(); ++place) {
      if (place % shape_.together == 0) ++messages_;
      if (pieces[place] < ranks_) message_of_[pieces[place]] = messages_;
    }
  }

  /// `copy(piece)`: what is done about it, if anything.
  template <class Copy>
  void pass(const Pieces& pieces, Copy&& copy) {
    for (std::size_t begin = 0; begin < pieces.size(); begin += shape_.together) {
      PatPass pass;
      const std::size_t end = std::min<std::size_t>(begin + shape_.together, pieces.size());
      for (std::size_t place = begin; place < end; ++place) {
        const std::optional<PatCopy> what = copy(pieces[place]);
        if (!what) continue;
        // What an all-gather only takes, beside what it sends on, is in no message of its own.
        const bool counts =
            !is_gather_ || what->give != 0 || pass.copies.empty() || pass.copies.back().give == 0;
        if (counts) pass.places = static_cast<std::uint32_t>(place - begin + 1);
        pass.copies.push_back(*what);
      }
      if (!pass.copies.empty()) passes_.push_back(std::move(pass));
    }
  }

  /// From the far branches to the near ones, then into the depth of all branches at once: the
  /// children with the most behind them first.
  void gather() {
    for (std::uint32_t b = shape_.branches / 2; b > 0; b /= 2) {
      pass(between(b), [&](std::uint32_t piece) { return pass_on(piece); });
    }
    gather_below(0, stride_);
  }
  void gather_below(std::uint32_t root, std::uint32_t most) {
    for (std::uint32_t step = most / 2; step > 0; step /= 2) {
      const std::uint32_t i = root + step;
      pass(alike(i), [&](std::uint32_t piece) { return pass_on(piece); });
      if (i % 2 == 1) {
        pass(alike(i), [&](std::uint32_t piece) -> std::optional<PatCopy> {
          if (piece >= ranks_) return std::nullopt;
          return PatCopy{piece, 0};
        });
      }
      gather_below(i, step);
    }
  }
  /// To the rank that knows it as `piece`. If there is none, the last one that might be is where
  /// the data get to the user's buffer.
  std::optional<PatCopy> pass_on(std::uint32_t piece) const {
    const std::uint32_t mine = piece - lowest_bit(piece);
    if (piece < ranks_) return PatCopy{mine, piece};
    if (piece % 2 == 1 && mine < ranks_) return PatCopy{mine, 0};
    return std::nullopt;
  }

  /// All branches at once from their ends to their first pieces; those then from the near branches
  /// to the far ones.
  void scatter() {
    for (std::uint32_t i = stride_ - 1; i > 0; --i) {
      if (i % 2 == 1) {
        pass(alike(i), [&](std::uint32_t piece) -> std::optional<PatCopy> {
          if (piece >= ranks_) return std::nullopt;
          return PatCopy{0, piece};
        });
      }
      if (i > 1) pass(alike(i), [&](std::uint32_t piece) { return add(piece); });
    }
    for (std::uint32_t b = 1; b < shape_.branches; b *= 2) {
      pass(between(b), [&](std::uint32_t piece) { return add(piece + 1); });
      pass(between(b), [&](std::uint32_t piece) { return add(piece); });
    }
    pass({1}, [&](std::uint32_t piece) { return add(piece); });
  }
  /// To what is on its way the same way, or is this rank's own. If the rank that would have sent
  /// it is none, the sum begins all the same.
  std::optional<PatCopy> add(std::uint32_t piece) const {
    const std::uint32_t to = piece - lowest_bit(piece);
    if (to >= ranks_) return std::nullopt;
    return PatCopy{piece < ranks_ ? piece : 0, to};
  }

  /// The first and last pass that each message takes part in, on either side.
  void mark_messages() {
    constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    struct Use {
      std::size_t first{kNone};
      std::size_t last{kNone};
      std::uint32_t dimension{0};
    };
    std::vector<Use> in(messages_ + 1);
    std::vector<Use> out(messages_ + 1);
    std::vector<bool> seen(ranks_, false);
    for (std::size_t p = 0; p < passes_.size(); ++p) {
      const auto use = [&](std::vector<Use>& side, std::uint32_t piece) {
        if (piece == 0) return;
        Use& message = side[message_of_[piece]];
        if (message.first == kNone) message.first = p;
        message.last = p;
        message.dimension = static_cast<std::uint32_t>(std::countr_zero(piece));
      };
      for (const PatCopy& copy : passes_[p].copies) {
        use(in, copy.take);
        use(out, copy.give);
        const std::uint32_t piece = is_gather_ ? copy.take : copy.give;
        passes_[p].is_first = passes_[p].is_first || !seen[piece];
        seen[piece] = true;
      }
    }
    for (std::uint32_t m = 1; m <= messages_; ++m) {
      if (in[m].first != kNone) {
        passes_[in[m].first].begun_in.push_back(in[m].dimension);
        passes_[in[m].last].ended_in.push_back(in[m].dimension);
      }
      if (out[m].first != kNone) {
        passes_[out[m].first].begun_out.push_back(out[m].dimension);
        passes_[out[m].last].ended_out.push_back(out[m].dimension);
      }
    }
  }

  bool is_gather_;
  std::uint32_t ranks_;
  PatShape shape_;
  std::uint32_t stride_;
  std::vector<std::uint32_t> message_of_;  // by piece, from 1 on
  std::uint32_t messages_{0};
  std::vector<PatPass> passes_;
};

}  // namespace

PatShape pat_shape(std::uint32_t ranks, Bytes of_rank, Bytes chunk, std::uint32_t slots) {
  PatShape shape;
  const std::int64_t piece = std::max<std::int64_t>(of_rank.count(), 1);
  while (chunk.count() / (piece * shape.branches) >= 2 && shape.branches < ranks / 2) {
    shape.branches *= 2;
  }
  shape.together = shape.branches;
  for (; slots > 1 && shape.branches < ranks / 2; slots /= 2) shape.branches *= 2;
  return shape;
}

std::uint32_t pat_dimensions(std::uint32_t ranks) {
  return static_cast<std::uint32_t>(std::bit_width(ranks - 1));
}

std::vector<PatPass> pat_passes(Op op, std::uint32_t ranks, const PatShape& shape) {
  return Steps(op, ranks, shape).take();
}

}  // namespace weft
