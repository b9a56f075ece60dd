#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/explain/explain.hpp"

namespace weft {

/// What an explanation is shown with.
struct ExplainView {
  const Explanation& explanation;
  const Effects& effects;
  const Measurement& measurement;
  const std::vector<CauseEntry>& entries;
  std::string slow;     ///< its file
  std::string healthy;  ///< likewise; "" if there was none
  std::string machine;
  std::string nccl_version;
  std::vector<std::string> notes;
  bool has_failed{false};  ///< the slow run, by its own word: what it is a note says
};

/// GB/s of the slow run at one of its points, as nccl-tests defines it.
double slow_busbw_gb_per_s(const ExplainView& view, const Point& point);

/// Those that are known, after what the run's rate itself is a sign of.
std::vector<std::string> all_notes(const ExplainView& view);

/// "not slower", "explained", "none".
std::string_view explained_name(Explained verdict);

/// Causes that evidence rules out.
std::vector<const Suspect*> ruled_out(const ExplainView& view);
/// Those that change no time by 1 % at the sizes where they were predicted.
std::vector<const Suspect*> without_effect(const ExplainView& view);
/// Entries that cannot be on this machine.
std::vector<const CauseEntry*> not_here(const ExplainView& view);

struct RefusedSuspect {
  const Suspect* suspect;
  std::string why;
};
/// Causes that weft cannot predict here.
std::vector<RefusedSuspect> refused(const ExplainView& view);

}  // namespace weft
