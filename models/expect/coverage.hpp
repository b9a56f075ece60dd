#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/expect/error_table.hpp"

namespace weft {

/// How intervals do on points of sites that they were not made from.
struct Coverage {
  std::string of;  ///< a class of points, by class_name()
  std::size_t sites{0};
  std::size_t points{0};
  std::size_t covered{0};  ///< that have a class without their site
  std::size_t inside{0};   ///< of these, as the next two
  std::size_t slower{0};   ///< than the interval: below the floor
  std::size_t faster{0};
  double inside_by_site{0};  ///< the sums of the sites' shares of covered points, as the next
  double slower_by_site{0};
  std::size_t covered_sites{0};

  void add(const Coverage& other);
};

/// How many runs would miss a floor at any point, each held against intervals without its site.
struct RunCoverage {
  std::size_t runs{0};  ///< of any covered point
  std::size_t below{0};
  std::size_t long_runs{0};  ///< of three covered points and more
  std::size_t long_below{0};
  std::size_t sites{0};
  std::size_t sites_below{0};
};
RunCoverage runs_below(std::span<const KnownError> known);

/// Takes out each site in turn and asks for the interval of each of its points: by class, in the
/// order of their names.
std::vector<Coverage> leave_one_site_out(std::span<const KnownError> known);

}  // namespace weft
