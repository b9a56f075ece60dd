// How the intervals do on sites that they were not made from: the table of models/expect/README.md.
#include "models/expect/coverage.hpp"

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "tests/expect/known.hpp"

namespace weft::test::expect_coverage {
namespace {

TEST(Coverage, OfSitesThatAreAlikeIsWhole) {
  std::vector<KnownError> known;
  for (const char* const site : {"a", "b", "c", "d"}) {
    known.push_back(known_error(site, 0.1));
    known.push_back(known_error(site, -0.1));
  }
  const std::vector<Coverage> classes = leave_one_site_out(known);
  ASSERT_EQ(classes.size(), 1U);
  EXPECT_EQ(classes[0].of, "allreduce, 2 and 3 nodes, 64 MiB and more");
  EXPECT_EQ(classes[0].sites, 4U);
  EXPECT_EQ(classes[0].covered, 8U);
  EXPECT_EQ(classes[0].inside, 8U);
}

TEST(Coverage, AnOddSiteFallsOutOfTheIntervalOfTheOthers) {
  std::vector<KnownError> known;
  for (const char* const site : {"a", "b", "c", "d"}) known.push_back(known_error(site, 0));
  known.push_back(known_error("odd", 0.5));
  const Coverage all = leave_one_site_out(known)[0];
  EXPECT_EQ(all.slower, 1U);
  EXPECT_EQ(all.faster, 0U);
  EXPECT_EQ(all.inside, 4U);
}

TEST(Coverage, WithoutEnoughOtherSitesNothingIsCovered) {
  const std::vector<KnownError> known{known_error("a", 0), known_error("b", 0),
                                      known_error("c", 0)};
  EXPECT_EQ(leave_one_site_out(known)[0].covered, 0U);
}

std::string percent(double share, std::size_t of) {
  if (of == 0) return "-";
  char text[16];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share / static_cast<double>(of));
  return text;
}

/// A row of the page's table.
void print(const Coverage& c) {
  std::printf("| %s | %zu | %zu | %zu | %s | %s | %s | %s |\n", c.of.c_str(), c.sites, c.points,
              c.covered, percent(static_cast<double>(c.inside), c.covered).c_str(),
              percent(static_cast<double>(c.slower), c.covered).c_str(),
              percent(c.inside_by_site, c.covered_sites).c_str(),
              percent(c.slower_by_site, c.covered_sites).c_str());
}

/// The bounds are guards near what was found; the aim is 80 % inside and 10 % below the floor.
TEST(Coverage, OfPublishedPoints) {
  Coverage all{"all"};
  Coverage large{"64 MiB and more"};
  for (const Coverage& c : leave_one_site_out(known_errors())) {
    print(c);
    all.add(c);
    if (c.of.ends_with("64 MiB and more")) large.add(c);
  }
  print(all);
  print(large);
  EXPECT_GE(static_cast<double>(all.inside), 0.7 * static_cast<double>(all.covered));
  EXPECT_LE(static_cast<double>(all.slower), 0.15 * static_cast<double>(all.covered));
}

}  // namespace
}  // namespace weft::test::expect_coverage
