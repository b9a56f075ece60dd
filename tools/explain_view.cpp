#include "tools/explain_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "sim/base/operation.hpp"
#include "sim/base/quantity.hpp"

namespace weft {

double slow_busbw_gb_per_s(const ExplainView& view, const Point& point) {
  const auto ranks = static_cast<std::uint32_t>(view.measurement.ranks);
  constexpr double kBytesPerUsInGigabytes = 1e3;
  return static_cast<double>(point.bytes) / point.slow_us / kBytesPerUsInGigabytes *
         busbw_factor(parse_op(point.op), ranks);
}

std::vector<std::string> all_notes(const ExplainView& view) {
  std::vector<std::string> out;
  const std::vector<Point>& points = view.effects.points();
  const auto largest = std::ranges::max_element(points, {}, &Point::bytes);
  constexpr double kMostOfTcp = 10;  // GB/s: no more than a 100 Gb/s card's wire
  const double far_behind = std::log(4);
  if (view.measurement.hosts > 1 && largest != points.end()) {
    const double gap = view.explanation.gaps[static_cast<std::size_t>(largest - points.begin())];
    const double busbw = slow_busbw_gb_per_s(view, *largest);
    if (gap > far_behind && busbw < kMostOfTcp) {
      out.push_back(fmt::format(
          "{:.3g} GB/s at {} is what TCP sockets give, which are not modelled and so none of the "
          "causes: see first that NCCL_DEBUG=INFO says `Using network IB`, not Socket; over RoCE, "
          "loss without flow control leaves as little: that PFC is on at every port and switch, "
          "and what `ethtool -S` counts (out_of_sequence, packet_seq_err, rx_prio3_pause)",
          busbw, format_size(Bytes{largest->bytes})));
    }
  }
  for (const std::string& note : view.notes) {
    if (std::ranges::find(out, note) == out.end()) out.push_back(note);
  }
  return out;
}

std::string_view explained_name(Explained verdict) {
  constexpr std::array<std::string_view, 3> kWords{"not slower", "explained", "none"};
  return kWords.at(static_cast<std::size_t>(verdict));
}

std::vector<const Suspect*> ruled_out(const ExplainView& view) {
  std::vector<const Suspect*> out;
  for (const Suspect& suspect : view.effects.suspects()) {
    if (suspect.weight == 0) out.push_back(&suspect);
  }
  return out;
}

std::vector<const Suspect*> without_effect(const ExplainView& view) {
  const std::vector<std::size_t>& all = view.explanation.no_effect;
  std::vector<const Suspect*> out;
  for (std::size_t i = 0; i < view.effects.suspects().size(); ++i) {
    if (std::find(all.begin(), all.end(), i) != all.end()) {
      out.push_back(&view.effects.suspects()[i]);
    }
  }
  return out;
}

std::vector<const CauseEntry*> not_here(const ExplainView& view) {
  std::vector<const CauseEntry*> out;
  for (const CauseEntry& entry : view.entries) {
    const auto& suspects = view.effects.suspects();
    const bool is_here = std::any_of(suspects.begin(), suspects.end(),
                                     [&](const Suspect& s) { return s.entry->id == entry.id; });
    if (!is_here) out.push_back(&entry);
  }
  return out;
}

std::vector<RefusedSuspect> refused(const ExplainView& view) {
  std::vector<RefusedSuspect> out;
  if (view.explanation.verdict == Explained::kNotSlower) return out;  // nothing was predicted
  for (std::size_t i = 0; i < view.effects.suspects().size(); ++i) {
    if (!view.effects.why_not(i).empty()) {
      out.push_back({&view.effects.suspects()[i], view.effects.why_not(i)});
    }
  }
  return out;
}

}  // namespace weft
