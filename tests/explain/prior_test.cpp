// What published cases make of causes: counted again in tests/data/regressions.csv.
#include "models/explain/prior.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/explain/catalogue.hpp"
#include "sim/io/csv.hpp"
#include "tests/explain/explain_data.hpp"

namespace weft::test::explain_prior {
namespace {

/// Without what of it: "owner/repo#1 (comment)", "owner/repo@commit file" are owner/repo#1 and
/// owner/repo@commit.
std::string source_of(const std::string& text) {
  const std::size_t mark = text.find_first_of("#@");
  return mark == std::string::npos ? text : text.substr(0, text.find(' ', mark));
}

TEST(Prior, CountsThePublishedCases) {
  std::ifstream in(in_project("tests/data/regressions.csv"));
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> names = csv_cells(line);
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  std::set<std::pair<std::string, std::string>> seen;  // a source counts once for each kind
  std::map<std::string, int> cases;
  std::map<std::string, std::set<std::string>> kinds;
  std::set<std::string> run;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = csv_cells(line);
    const std::string source = source_of(cells.at(column("source")));
    const std::string& kind = cells.at(column("class"));
    if (kind.empty()) continue;  // of the later survey, which nothing is made from
    if (seen.insert({source, kind}).second) ++cases[kind];
    kinds[source].insert(kind);
    if (cells.at(column("use")) != "no") run.insert(source);
  }
  for (const std::string& source : run) EXPECT_EQ(kinds[source].size(), 1U) << source;
  for (const PublishedKind& kind : published_kinds()) {
    EXPECT_EQ(cases[std::string(kind.kind)], kind.cases) << kind.kind;
    cases.erase(std::string(kind.kind));
  }
  // Of these no entry is a cause.
  EXPECT_EQ(cases, (std::map<std::string, int>{{"bad-node-or-device", 2},
                                               {"driver-or-software", 5},
                                               {"functional-topo-file", 1},
                                               {"message-size-or-depth", 3},
                                               {"rail-misalignment", 1},
                                               {"staged-pipeline", 1}}));
}

TEST(Prior, NamesEntriesOfTheCatalogue) {
  std::set<std::string_view> ids;
  for (const CauseEntry& entry : catalogue()) ids.insert(entry.id);
  for (const PublishedKind& kind : published_kinds()) {
    for (const std::string_view entry : kind.entries) EXPECT_TRUE(ids.contains(entry)) << entry;
  }
}

TEST(Prior, IsOneAndAShareOfTheCases) {
  EXPECT_DOUBLE_EQ(prior_weight("acs"), 7);
  EXPECT_DOUBLE_EQ(prior_weight("acs", "acs"), 6);  // without one of them
  EXPECT_DOUBLE_EQ(prior_weight("staged"), 1 + 8.0 / 3);
  EXPECT_DOUBLE_EQ(prior_weight("gpu-clock"), 1);  // in none of them
}

}  // namespace
}  // namespace weft::test::explain_prior
