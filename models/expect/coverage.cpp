#include "models/expect/coverage.hpp"

#include <map>
#include <set>

#include "models/expect/error_band.hpp"

namespace weft {

void Coverage::add(const Coverage& other) {
  points += other.points;
  covered += other.covered;
  inside += other.inside;
  slower += other.slower;
  faster += other.faster;
}

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
    std::set<std::string> seen;
    for (const KnownError* const point : points) {
      const ErrorBand band = error_band(query_of(*point), others);
      const double ratio = point->measured_us / point->predicted_us;
      Coverage& of_class = classes[class_name(*point)];
      if (seen.insert(class_name(*point)).second) ++of_class.sites;
      Coverage one;
      one.points = 1;
      one.covered = band.is_covered ? 1 : 0;
      one.slower = band.is_covered && ratio > band.time.high ? 1 : 0;
      one.faster = band.is_covered && ratio < band.time.low ? 1 : 0;
      one.inside = one.covered - one.slower - one.faster;
      of_class.add(one);
    }
  }
  std::vector<Coverage> out;
  for (auto& [name, coverage] : classes) {
    coverage.of = name;
    out.push_back(coverage);
  }
  return out;
}

}  // namespace weft
