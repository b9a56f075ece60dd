#include "models/doctor/finding.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weft {

double most_cost(const std::vector<SizePrice>& sizes) {
  double out = 0;
  for (const SizePrice& size : sizes) out = std::max(out, size.cost());
  return out;
}

double FindingPrice::most() const { return std::max(most_cost(alone), most_cost(last)); }

double FindingPrice::at_most() const { return std::max(most(), most_cost(worst)); }

std::string_view verdict_name(Verdict verdict) {
  constexpr std::array<std::string_view, 4> kNames{"ok", "finding", "unknown", "does not apply"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

Outcome all_well(std::string text, std::vector<Quote> evidence) {
  return {Verdict::kOk, std::move(text), "", std::move(evidence), {}};
}

Outcome not_known(std::string text, std::string command) {
  return {Verdict::kUnknown, std::move(text), std::move(command), {}, {}};
}

Outcome not_here(std::string text) { return {Verdict::kNotHere, std::move(text), "", {}, {}}; }

Outcome found(std::vector<Finding> findings) {
  Outcome out;
  out.verdict = Verdict::kFinding;
  out.findings = std::move(findings);
  return out;
}

}  // namespace weft
