#pragma once

#include <span>
#include <string_view>

namespace weft {

/// Published cases of slow runs by the kind of their cause, and the catalogue's entries of it,
/// which share them. Counted in tests/data/regressions.csv, a source once for each kind, of all
/// that are listed there, the ones that weft cannot express among them.
struct PublishedKind {
  std::string_view kind;
  int cases;
  std::span<const std::string_view> entries;
};
std::span<const PublishedKind> published_kinds();

/// How likely a cause is before any number is seen, as a weight: 1 + its share of the published
/// cases. `left_out`: a kind of which one source is not counted, so that it does not speak for
/// itself.
double prior_weight(std::string_view entry, std::string_view left_out = "");

}  // namespace weft
