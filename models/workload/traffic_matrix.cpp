#include "models/workload/traffic_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "models/collective/predict.hpp"
#include "models/workload/traffic_file.hpp"
#include "sim/base/error.hpp"
#include "sim/base/random.hpp"
#include "sim/io/file.hpp"

namespace weft {
namespace {

using Kind = TrafficSpec::Kind;

[[noreturn]] void fail(const TrafficSpec& spec, const std::string& why) {
  throw InputError(spec.place, std::string(traffic_name(spec.kind)) + ": " + why);
}

[[noreturn]] void fail_large(const TrafficSpec& spec, const std::string& why) {
  throw TooLarge(spec.place, std::string(traffic_name(spec.kind)) + ": " + why);
}

TrafficMatrix permutation(const TrafficSpec& spec, std::uint32_t ranks) {
  TrafficMatrix out;
  if (spec.shift) {
    if (*spec.shift % ranks == 0) fail(spec, "shift is a multiple of the ranks: all would keep it");
    for (std::uint32_t r = 0; r < ranks; ++r) {
      out.push_back({r, (r + *spec.shift) % ranks, spec.bytes});
    }
    return out;
  }
  // One cycle, each as likely as any other: Sattolo, Inf. Process. Lett. 22(6), 1986.
  std::vector<std::uint32_t> to(ranks);
  std::iota(to.begin(), to.end(), 0U);
  std::mt19937_64 random = random_stream(spec.seed, "permutation");
  for (std::uint32_t i = ranks - 1; i > 0; --i) std::swap(to[i], to[uniform_below(random, i)]);
  for (std::uint32_t r = 0; r < ranks; ++r) out.push_back({r, to[r], spec.bytes});
  return out;
}

TrafficMatrix incast(const TrafficSpec& spec, std::uint32_t ranks) {
  const std::uint32_t count = spec.senders.value_or(ranks - 1);
  if (spec.to >= ranks) fail(spec, fmt::format("there is no rank {}", spec.to));
  TrafficMatrix out;
  for (std::uint32_t i = 1; i <= count; ++i) {
    const auto from =
        static_cast<std::uint32_t>((spec.to + std::uint64_t{i} * spec.stride) % ranks);
    if (from == spec.to) {
      fail(spec,
           fmt::format("{} senders, {} apart, come round to the receiver", count, spec.stride));
    }
    out.push_back({from, spec.to, spec.bytes});
  }
  std::sort(out.begin(), out.end(),
            [](const TaskSend& a, const TaskSend& b) { return a.from < b.from; });
  const auto twice =
      std::adjacent_find(out.begin(), out.end(),
                         [](const TaskSend& a, const TaskSend& b) { return a.from == b.from; });
  if (twice != out.end()) fail(spec, fmt::format("rank {} would send twice", twice->from));
  return out;
}

/// Draws the experts of tokens.
class Router {
 public:
  Router(const TrafficSpec& spec, std::uint32_t ranks)
      : top_k_{spec.top_k}, of_rank_{spec.experts / ranks}, expert_(spec.experts) {
    double all = 0;
    for (std::uint32_t i = 0; i < spec.experts; ++i) {
      weight_.push_back(std::pow(i + 1.0, -spec.skew));
      all += weight_.back();
      upto_.push_back(all);
    }
    for (std::uint32_t i = 0; i < spec.experts; ++i) {
      const auto at = std::upper_bound(upto_.begin(), upto_.end() - 1, all * i / spec.experts);
      first_.push_back(static_cast<std::size_t>(at - upto_.begin()));
    }
    std::iota(expert_.begin(), expert_.end(), 0U);
    std::mt19937_64 random = random_stream(spec.seed, "experts");
    for (std::uint32_t i = spec.experts - 1; i > 0; --i) {
      std::swap(expert_[i], expert_[uniform_below(random, i + 1)]);
    }
  }
  /// Calls to(rank) for each expert of one token: one after another, each by the weights of those
  /// that it does not have yet. O(k^2).
  template <class To>
  void token(std::mt19937_64& random, To&& to) {
    chosen_.clear();
    double left = upto_.back();
    while (chosen_.size() < top_k_) {
      double at = uniform01(random) * left;
      for (const std::size_t had : chosen_) {
        if (at >= upto_[had] - weight_[had]) at += weight_[had];
      }
      std::size_t i = at_weight(at);
      // Rounding may end on one that it has: the next that it has not.
      while (std::find(chosen_.begin(), chosen_.end(), i) != chosen_.end()) {
        i = (i + 1) % upto_.size();
      }
      chosen_.insert(std::lower_bound(chosen_.begin(), chosen_.end(), i), i);
      left -= weight_[i];
      to(expert_[i] / of_rank_);
    }
  }

 private:
  /// The first whose weight and all before it come to more, or the last. By an index of equal parts
  /// of all weights, one for each expert, it is some two steps away on average (Chen and Asau, AIIE
  /// Transactions 6(2), 1974).
  std::size_t at_weight(double at) const {
    const auto parts = static_cast<double>(first_.size());
    const auto part = static_cast<std::size_t>(at / upto_.back() * parts);
    std::size_t i = first_[std::min(part, first_.size() - 1)];
    while (i > 0 && upto_[i - 1] > at) --i;  // rounding
    while (i + 1 < upto_.size() && upto_[i] <= at) ++i;
    return i;
  }

  std::uint32_t top_k_;
  std::uint32_t of_rank_;
  std::vector<std::uint32_t> expert_;  // by how wanted it is
  std::vector<double> weight_;         // likewise
  std::vector<double> upto_;
  std::vector<std::size_t> first_;   // at the beginning of each part of all weights
  std::vector<std::size_t> chosen_;  // ascending
};

constexpr double kMostChoices = 5e8;               // some 15 s
constexpr double kMostEvenChoices = 1e8;           // of more the mean tells as much
constexpr std::size_t kMostDrawnPairs = 1U << 24;  // all of 4,096 GPUs

double choices(const TrafficSpec& spec, std::uint32_t ranks) {
  return static_cast<double>(spec.tokens) * ranks * spec.top_k;
}

bool routes(const TrafficSpec& spec) {
  return spec.kind == Kind::kDispatch || spec.kind == Kind::kCombine;
}

void check_experts(const TrafficSpec& spec, std::uint32_t ranks) {
  if (spec.experts % ranks == 0) return;
  fail(spec, fmt::format("{} experts are no multiple of {} ranks", spec.experts, ranks));
}

TrafficMatrix drawn(const TrafficSpec& spec, std::uint32_t ranks, const Stop* stop) {
  if (choices(spec, ranks) > kMostChoices) {
    fail_large(spec, "more than 5e8 choices of experts; take fewer tokens or nodes");
  }
  Router router(spec, ranks);
  TrafficMatrix out;
  constexpr std::uint32_t kTelling = 16;  // ranks, by which the number of all pairs is known to 2 %
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (stop != nullptr) stop->check();
    std::mt19937_64 random = random_stream(spec.seed, "tokens of rank " + std::to_string(rank));
    std::vector<std::int64_t> tokens(ranks, 0);
    for (std::uint32_t t = 0; t < spec.tokens; ++t) {
      router.token(random, [&](std::uint32_t to) { ++tokens[to]; });
    }
    for (std::uint32_t to = 0; to < ranks; ++to) {
      if (tokens[to] == 0) continue;
      if (tokens[to] > kMostSend.count() / spec.token_bytes.count()) {
        fail(spec, fmt::format("rank {} would send rank {} more than 4 TiB", rank, to));
      }
      out.push_back({rank, to, spec.token_bytes * tokens[to]});
    }
    const double expected = static_cast<double>(out.size()) / (rank + 1) * ranks;
    if (out.size() > kMostDrawnPairs ||
        (rank + 1 == kTelling && expected > 1.02 * kMostDrawnPairs)) {
      fail_large(spec, "more than 16 million pairs of GPUs; take fewer tokens or nodes");
    }
  }
  return out;
}

TrafficMatrix routed(const TrafficSpec& spec, std::uint32_t ranks, const Stop* stop) {
  check_experts(spec, ranks);
  if (spec.routing.empty()) return drawn(spec, ranks, stop);
  return parse_traffic_routing(read_text_file(spec.routing, kMostTrafficFile), spec.routing, ranks,
                               spec.experts, spec.token_bytes, stop);
}

TrafficMatrix transposed(TrafficMatrix matrix) {
  for (TaskSend& send : matrix) std::swap(send.from, send.to);
  std::sort(matrix.begin(), matrix.end(), [](const TaskSend& a, const TaskSend& b) {
    return std::pair{a.from, a.to} < std::pair{b.from, b.to};
  });
  return matrix;
}

}  // namespace

TrafficMatrix traffic_matrix(const TrafficSpec& spec, std::uint32_t ranks, const Stop* stop) {
  if (ranks < 2) fail(spec, "needs at least 2 GPUs");
  TrafficMatrix out;
  switch (spec.kind) {
    case Kind::kAllToAllV:
      out = parse_traffic_matrix(read_text_file(spec.matrix, kMostTrafficFile), spec.matrix, ranks,
                                 stop);
      break;
    case Kind::kPermutation:
      out = permutation(spec, ranks);
      break;
    case Kind::kIncast:
      out = incast(spec, ranks);
      break;
    case Kind::kDispatch:
      out = routed(spec, ranks, stop);
      break;
    case Kind::kCombine:
      out = transposed(routed(spec, ranks, stop));
      break;
  }
  if (out.empty()) fail(spec, "nobody sends anything");
  return out;
}

std::optional<EvenTraffic> even_traffic(const TrafficSpec& spec, std::uint32_t ranks) {
  if (!routes(spec) || !spec.routing.empty() || spec.skew != 0 || ranks < 2) return std::nullopt;
  check_experts(spec, ranks);
  // That none of a token's experts is on a given rank.
  const std::uint32_t of_rank = spec.experts / ranks;
  double none = 1;
  for (std::uint32_t i = 0; i < spec.top_k; ++i) {
    none *= std::max(0.0, 1.0 - of_rank / static_cast<double>(spec.experts - i));
  }
  const double share = 1 - std::pow(none, spec.tokens);
  const double pairs = share * ranks * ranks;
  if (choices(spec, ranks) <= kMostEvenChoices && pairs <= static_cast<double>(kMostPairs)) {
    return std::nullopt;
  }
  const double received = static_cast<double>(spec.tokens) * spec.top_k;  // tokens, of each rank
  const double each = received / ranks / share * spec.token_bytes.as_double();
  if (each > kMostSend.as_double()) fail(spec, "a rank would send another more than 4 TiB");
  return EvenTraffic{share, Bytes{std::llround(each)},
                     std::sqrt(2 * std::log(static_cast<double>(ranks)) / received)};
}

TaskGraph graph_of(const TrafficMatrix& matrix, std::uint32_t ranks) {
  TaskGraph graph;
  TaskGroup all{"all ranks", {}, {}};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) all.ranks.push_back(rank);
  graph.groups.push_back(std::move(all));
  Exchange exchange{0, Op::kAllToAll, Bytes{}};
  exchange.sends = matrix;
  graph.exchanges.push_back(std::move(exchange));
  graph.ranks.assign(ranks, {Task{.exchange = 0, .time = {}, .after = {}}});
  return graph;
}

}  // namespace weft
