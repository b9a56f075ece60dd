// How the intervals do on sites that they were not made from: the table of models/expect/README.md.
#include "models/expect/coverage.hpp"

#include <cstdio>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/io/file.hpp"
#include "tests/expect/known.hpp"

namespace weft::test::expect_coverage {
namespace {

using ::testing::HasSubstr;

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
std::string row_of(const Coverage& c) {
  char text[512];
  std::snprintf(text, sizeof text, "| %s | %zu | %zu | %zu | %s | %s | %s | %s |\n", c.of.c_str(),
                c.sites, c.points, c.covered,
                percent(static_cast<double>(c.inside), c.covered).c_str(),
                percent(static_cast<double>(c.slower), c.covered).c_str(),
                percent(c.inside_by_site, c.covered_sites).c_str(),
                percent(c.slower_by_site, c.covered_sites).c_str());
  return text;
}

std::string page() {
  return read_text_file(std::string(WEFT_SOURCE_DIR) + "/models/expect/README.md");
}

/// The bounds are guards near what was found; the aim is 80 % inside and 10 % below the floor.
TEST(Coverage, OfPublishedPoints) {
  Coverage all{"all"};
  Coverage large{"64 MiB and more"};
  std::string table;
  for (const Coverage& c : leave_one_site_out(known_errors())) {
    table += row_of(c);
    all.add(c);
    if (c.of.ends_with("64 MiB and more")) large.add(c);
  }
  table += row_of(all) + row_of(large);
  EXPECT_GE(static_cast<double>(all.inside), 0.7 * static_cast<double>(all.covered));
  EXPECT_LE(static_cast<double>(all.slower), 0.15 * static_cast<double>(all.covered));
  EXPECT_THAT(page(), HasSubstr(table)) << "the page's table is another; it is now:\n" << table;
}

TEST(Coverage, OfRuns) {
  std::vector<KnownError> known;
  for (const char* const site : {"a", "b", "c", "d"}) {
    for (int i = 0; i < 3; ++i) known.push_back(known_error(site, 0));
  }
  known.push_back(known_error("odd", 0));
  known.push_back(known_error("odd", 0.5));
  const RunCoverage of = runs_below(known);
  EXPECT_EQ(of.runs, 5U);
  EXPECT_EQ(of.below, 1U);
  EXPECT_EQ(of.long_runs, 4U);
  EXPECT_EQ(of.long_below, 0U);
  EXPECT_EQ(of.sites, 5U);
  EXPECT_EQ(of.sites_below, 1U);
}

TEST(Coverage, OfPublishedRuns) {
  const RunCoverage of = runs_below(known_errors());
  char text[256];
  std::snprintf(text, sizeof text,
                "**%zu of %zu runs have a point below, %zu of the %zu with 3 points or more, "
                "at %zu of %zu sites**",
                of.below, of.runs, of.long_below, of.long_runs, of.sites_below, of.sites);
  EXPECT_THAT(page(), HasSubstr(text)) << "it is now: " << text;
}

}  // namespace
}  // namespace weft::test::expect_coverage
