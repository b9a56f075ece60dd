#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "replay/simulate/simulate.hpp"

namespace weft::replay {
namespace {

constexpr std::size_t kGoodputSteps = 20;

Duration recorded_at(std::uint64_t ns) { return Duration::ns(static_cast<std::int64_t>(ns)); }

/// What of an operation is compared: from when it was posted until its completion was taken. Of a
/// receive, which waits for its message, the time is when it was taken.
struct Compared {
  std::uint32_t operation;
  Duration recorded;
  Duration predicted;
};

std::vector<Compared> compared(const Recorded& recorded, const Replay& replay) {
  std::vector<Compared> out;
  for (std::uint32_t i = 0; i < recorded.operations.size(); ++i) {
    const Operation& o = recorded.operations[i];
    const Predicted& p = replay.operations[i];
    if (o.done_ns == 0 || !p.done || (!p.posted && !is_receive(o))) continue;
    const std::uint64_t from_ns = is_receive(o) ? 0 : o.posted_ns;
    const Duration from = is_receive(o) ? Duration{} : *p.posted;
    out.push_back({i, recorded_at(o.done_ns - std::min(from_ns, o.done_ns)), *p.done - from});
  }
  return out;
}

double ratio(const Compared& c) {
  return c.predicted.as_s() / std::max(c.recorded.as_s(), 1e-9);  // the recorder's clock: 1 ns
}

/// Of sorted values, by the nearest rank.
double quantile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

std::vector<ErrorClass> classes_of(const Recorded& recorded, const std::vector<Compared>& all) {
  std::map<std::pair<trace::Opcode, std::uint64_t>, std::vector<double>> errors;
  for (const Compared& c : all) {
    const Operation& o = recorded.operations[c.operation];
    if (is_receive(o)) continue;
    constexpr std::uint64_t kLargest = std::uint64_t{1} << 62U;
    errors[{o.opcode, std::bit_ceil(std::min(o.bytes, kLargest))}].push_back(ratio(c) - 1);
  }
  std::vector<ErrorClass> out;
  for (auto& [key, values] : errors) {
    std::sort(values.begin(), values.end());
    out.push_back({.opcode = key.first,
                   .up_to_bytes = key.second,
                   .n = values.size(),
                   .p10 = quantile(values, 0.1),
                   .median = quantile(values, 0.5),
                   .p90 = quantile(values, 0.9)});
  }
  return out;
}

/// First post to last completion; receives are posted ahead of what they wait for. What is posted
/// first may ask for no completion of its own.
struct Span {
  Duration from;
  Duration to;
};

template <typename Posted, typename Done>
Span span_of(const Recorded& recorded, const Replay& replay, const std::vector<Compared>& all,
             Posted posted, Done done) {
  std::optional<Span> span;
  for (std::uint32_t i = 0; i < recorded.operations.size(); ++i) {
    if (is_receive(recorded.operations[i]) || !replay.operations[i].posted) continue;
    const Duration from = posted(i);
    if (!span) span = {from, from};
    span->from = std::min(span->from, from);
  }
  if (!span) return {};
  for (const Compared& c : all) {
    if (!is_receive(recorded.operations[c.operation])) {
      span->to = std::max(span->to, done(c.operation));
    }
  }
  return *span;
}

/// Goodput of both in equal parts of the longer span, each from its own begin.
std::vector<GoodputStep> goodput_of(const Recorded& recorded, const Replay& replay,
                                    const std::vector<Compared>& all, const Span& was,
                                    const Span& is) {
  const Duration longer = std::max(was.to - was.from, is.to - is.from);
  const double step_s = std::max(longer.as_s(), 1e-12) / kGoodputSteps;
  std::vector<GoodputStep> steps(kGoodputSteps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].from = Duration::ps(longer.count_ps() / static_cast<std::int64_t>(kGoodputSteps) *
                                 static_cast<std::int64_t>(i));
  }
  const auto step_at = [&](Duration since) -> GoodputStep& {
    const auto at = static_cast<std::size_t>(std::max(since.as_s(), 0.0) / step_s);
    return steps[std::min(at, steps.size() - 1)];
  };
  for (const Compared& c : all) {
    const Operation& o = recorded.operations[c.operation];
    if (is_receive(o)) continue;  // its bytes are the send's
    const double rate = static_cast<double>(o.bytes + o.before_bytes) / step_s / 1e9;
    step_at(recorded_at(o.done_ns) - was.from).recorded_gigabytes_per_s += rate;
    step_at(*replay.operations[c.operation].done - is.from).predicted_gigabytes_per_s += rate;
  }
  return steps;
}

std::optional<Divergence> first_divergence(const Recorded& recorded,
                                           const std::vector<Compared>& all, double factor) {
  std::optional<Divergence> first;
  for (const Compared& c : all) {
    if (is_receive(recorded.operations[c.operation])) continue;
    const double off = ratio(c);
    if (off <= factor && off >= 1 / factor) continue;
    const bool is_first = !first || recorded.operations[c.operation].done_ns <
                                        recorded.operations[first->operation].done_ns;
    if (is_first) first = {c.operation, off};
  }
  return first;
}

}  // namespace

Comparison compare(const Recorded& recorded, const Replay& replay, double factor) {
  Comparison out;
  const std::vector<Compared> all = compared(recorded, replay);
  out.compared =
      static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const Compared& c) {
        return !is_receive(recorded.operations[c.operation]);
      }));
  if (all.empty()) return out;
  out.classes = classes_of(recorded, all);
  const Span was = span_of(
      recorded, replay, all,
      [&](std::uint32_t i) { return recorded_at(recorded.operations[i].posted_ns); },
      [&](std::uint32_t i) { return recorded_at(recorded.operations[i].done_ns); });
  const Span is = span_of(
      recorded, replay, all, [&](std::uint32_t i) { return *replay.operations[i].posted; },
      [&](std::uint32_t i) { return *replay.operations[i].done; });
  out.recorded_span = was.to - was.from;
  out.predicted_span = is.to - is.from;
  out.goodput = goodput_of(recorded, replay, all, was, is);
  out.first = first_divergence(recorded, all, factor);
  return out;
}

}  // namespace weft::replay
