#include "models/expect/coverage.hpp"

#include <map>

#include "models/expect/error_band.hpp"

namespace weft {

namespace {

/// Of the points of one site, by class.
std::map<std::string, Coverage> of_site(const std::vector<const KnownError*>& points,
                                        const std::vector<KnownError>& others) {
  std::map<std::string, Coverage> out;
  for (const KnownError* const point : points) {
    const ErrorBand band = error_band(query_of(*point), others);
    const double ratio = point->measured_us / point->predicted_us;
    Coverage& of_class = out[class_name(*point)];
    ++of_class.points;
    if (!band.is_covered) continue;
    ++of_class.covered;
    if (ratio > band.time.high) {
      ++of_class.slower;
    } else if (ratio < band.time.low) {
      ++of_class.faster;
    } else {
      ++of_class.inside;
    }
  }
  for (auto& [name, of_class] : out) {
    of_class.sites = 1;
    if (of_class.covered == 0) continue;
    of_class.covered_sites = 1;
    const auto all = static_cast<double>(of_class.covered);
    of_class.inside_by_site = static_cast<double>(of_class.inside) / all;
    of_class.slower_by_site = static_cast<double>(of_class.slower) / all;
  }
  return out;
}

using BySite = std::map<std::string, std::vector<const KnownError*>>;

/// `take` gets the points of each site and those of all others.
template <class Take>
void each_site(std::span<const KnownError> known, const Take& take) {
  BySite by_site;
  for (const KnownError& e : known) by_site[e.site].push_back(&e);
  for (const auto& [site, points] : by_site) {
    std::vector<KnownError> others;
    for (const KnownError& e : known) {
      if (e.site != site) others.push_back(e);
    }
    if (!others.empty()) take(points, others);
  }
}

}  // namespace

void Coverage::add(const Coverage& other) {
  sites += other.sites;
  points += other.points;
  covered += other.covered;
  inside += other.inside;
  slower += other.slower;
  faster += other.faster;
  inside_by_site += other.inside_by_site;
  slower_by_site += other.slower_by_site;
  covered_sites += other.covered_sites;
}

RunCoverage runs_below(std::span<const KnownError> known) {
  constexpr std::size_t kLong = 3;
  RunCoverage out;
  each_site(known, [&](const auto& points, const std::vector<KnownError>& others) {
    std::map<std::string, std::pair<std::size_t, std::size_t>> runs;  // covered points, those below
    for (const KnownError* const point : points) {
      const ErrorBand band = error_band(query_of(*point), others);
      if (!band.is_covered) continue;
      auto& [covered, below] = runs[point->run];
      ++covered;
      if (point->measured_us / point->predicted_us > band.time.high) ++below;
    }
    bool any = false;
    for (const auto& [run, count] : runs) {
      const auto& [covered, below] = count;
      ++out.runs;
      out.below += below > 0 ? 1 : 0;
      out.long_runs += covered >= kLong ? 1 : 0;
      out.long_below += covered >= kLong && below > 0 ? 1 : 0;
      any = any || below > 0;
    }
    out.sites += runs.empty() ? 0 : 1;
    out.sites_below += any ? 1 : 0;
  });
  return out;
}

std::vector<Coverage> leave_one_site_out(std::span<const KnownError> known) {
  std::map<std::string, Coverage> classes;
  each_site(known, [&](const auto& points, const std::vector<KnownError>& others) {
    for (const auto& [name, coverage] : of_site(points, others)) classes[name].add(coverage);
  });
  std::vector<Coverage> out;
  for (auto& [name, coverage] : classes) {
    coverage.of = name;
    out.push_back(coverage);
  }
  return out;
}

}  // namespace weft
