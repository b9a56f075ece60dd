#include "models/expect/coverage.hpp"

#include <map>

#include "models/expect/error_band.hpp"

namespace weft {

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

}  // namespace

std::vector<Coverage> leave_one_site_out(std::span<const KnownError> known) {
  std::map<std::string, std::vector<const KnownError*>> by_site;
  for (const KnownError& e : known) by_site[e.site].push_back(&e);
  std::map<std::string, Coverage> classes;
  for (const auto& [site, points] : by_site) {
    std::vector<KnownError> others;
    for (const KnownError& e : known) {
      if (e.site != site) others.push_back(e);
    }
    if (others.empty()) continue;
    for (const auto& [name, coverage] : of_site(points, others)) classes[name].add(coverage);
  }
  std::vector<Coverage> out;
  for (auto& [name, coverage] : classes) {
    coverage.of = name;
    out.push_back(coverage);
  }
  return out;
}

}  // namespace weft
