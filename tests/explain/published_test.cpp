// Published regressions (tests/data/regressions.csv): explain gets the numbers before and after,
// the healthy machine and what the source's own output rules out; not the latter with
// WEFT_EXPLAIN_RULED_OUT=0. No source speaks for its own kind of cause. Which cause it names, and
// how large, is on models/explain/README.md, of the entries that were run. Those of two GPUs by
// themselves; WEFT_EXPLAIN_ENTRIES=R04,R16 those, "all" all.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/collective/settings.hpp"
#include "models/explain/catalogue.hpp"
#include "models/explain/prior.hpp"
#include "sim/base/operation.hpp"
#include "sim/io/csv.hpp"
#include "sim/io/file.hpp"
#include "tests/explain/explain_data.hpp"

namespace weft::test::explain_published {
namespace {

/// A row, by column.
using Row = std::map<std::string, std::string>;

std::vector<Row> rows() {
  std::istringstream in(read_text_file(in_project("tests/data/regressions.csv")));
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> names = csv_cells(line);
  std::vector<Row> out;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = csv_cells(line);
    Row row;
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = cells.at(i);
    out.push_back(row);
  }
  return out;
}

std::vector<ScenarioSetting> settings(const std::string& text) {
  std::vector<ScenarioSetting> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ';');) out.push_back(parse_setting(part));
  return out;
}

std::vector<std::string> words(const std::string& text, char by) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) out.push_back(part);
  return out;
}

bool rules_out() {
  const char* const asked = std::getenv("WEFT_EXPLAIN_RULED_OUT");
  return asked == nullptr || std::string(asked) != "0";
}

/// What the entry says besides its numbers, and what published cases are without its source.
Weigh without_itself(const Row& row) {
  return [&row](Suspect& suspect) {
    const std::string_view id = suspect.entry->id;
    const std::vector<std::string> ruled_out = words(rules_out() ? row.at("ruled_out") : "", ';');
    const auto nccl = nccl_causes();
    const bool is_nccl = std::any_of(nccl.begin(), nccl.end(),
                                     [&](const CauseEntry& each) { return each.id == id; });
    const bool is_out = std::find(ruled_out.begin(), ruled_out.end(), id) != ruled_out.end() ||
                        (is_nccl && row.at("run") == "verbs");
    suspect.weight = is_out ? 0 : prior_weight(id, row.at("class")) / prior_weight(id);
  };
}

Case case_of(const Row& row) {
  const ParamCatalog catalog = make_catalog();
  const std::filesystem::path folder = in_project("tests/data");
  TopologySpec spec = read_topology((folder / row.at("machine")).lexically_normal(), catalog);
  const double bytes = std::stod(row.at("bytes"));
  const double factor =
      busbw_factor(parse_op(row.at("op")), static_cast<std::uint32_t>(std::stoul(row.at("ranks"))));
  const auto us = [&](const char* column) {
    return bytes * factor / std::stod(row.at(column)) / 1e3;
  };
  const std::vector<Point> points{
      {row.at("op"), "", static_cast<std::int64_t>(bytes), us("before_GBps"), us("after_GBps")}};
  std::map<std::string, std::string> env;
  for (const ScenarioSetting& each : settings(row.at("env"))) env[each.key] = each.value;
  const auto hosts = static_cast<std::uint32_t>(std::stoul(row.at("hosts")));
  return {std::move(spec), hosts, points, settings(row.at("set")), env, {}, without_itself(row)};
}

bool is_asked(const Row& row) {
  const char* const asked = std::getenv("WEFT_EXPLAIN_ENTRIES");
  if (asked == nullptr) return row.at("ranks") == "2";
  const std::vector<std::string> ids = words(asked, ',');
  return std::string(asked) == "all" ||
         std::find(ids.begin(), ids.end(), row.at("id")) != ids.end();
}

/// Entries of the catalogue in the first so many answers.
std::set<std::string_view> entries_in(const Explanation& made, const Effects& effects,
                                      std::size_t answers) {
  std::set<std::string_view> out;
  for (std::size_t k = 0; k < std::min(answers, made.answers.size()); ++k) {
    for (const Combination& same : made.answers[k].same) {
      for (const std::size_t i : same.suspects) out.insert(effects.suspects()[i].entry->id);
    }
  }
  return out;
}

/// Those that change the time here by 1 % or more.
std::set<std::string_view> entries_with_effect(const Case& on) {
  const Effects& effects = on.effects();
  std::set<std::string_view> out;
  for (std::size_t i = 0; i < effects.suspects().size(); ++i) {
    const std::vector<double> effect = on.effect(i);
    if (!effect.empty() && std::abs(effect[0]) >= 0.01) out.insert(effects.suspects()[i].entry->id);
  }
  return out;
}

TEST(Published, CausesAndSizes) {
  constexpr double kWithin = 1.3;
  std::map<std::string, std::size_t> places;
  double by_chance = 0;
  double by_chance_of_three = 0;
  std::size_t counted = 0;
  std::size_t first = 0;
  std::size_t leads = 0;
  std::size_t first_group = 0;
  std::size_t among_three = 0;
  std::vector<double> factors;
  for (const Row& row : rows()) {
    if (row.at("use") == "no" || !is_asked(row)) continue;
    const Case on(case_of(row));
    const Effects& effects = on.effects();
    const std::vector<double> gaps = gaps_of(effects);
    const Explanation made = on.of(gaps);
    const std::vector<std::string> causes = words(row.at("cause"), '|');
    std::size_t place = 0;
    double share = 0;
    for (std::size_t k = 0; k < made.answers.size() && place == 0; ++k) {
      for (const std::string& cause : causes) {
        if (place != 0 || !has_cause(made.answers[k], effects, cause)) continue;
        place = k + 1;
        share = std::exp(made.answers[k].best().effect[0] - gaps[0]);
      }
    }
    double largest = 0;
    for (std::size_t i = 0; i < effects.suspects().size(); ++i) {
      for (const std::string& cause : causes) {
        if (effects.suspects()[i].entry->id != cause) continue;
        const std::vector<double> effect = on.effect(i);
        if (!effect.empty()) largest = std::max(largest, effect[0]);
      }
    }
    std::string leader = "-";
    std::string_view leader_id;
    std::size_t members = 0;
    if (!made.answers.empty()) {
      const Combination& best = made.answers.front().best();
      const Suspect& suspect = effects.suspects()[best.suspects.front()];
      leader_id = suspect.entry->id;
      leader = std::string(leader_id) + " (" + suspect.variant.how + ")";
      members = made.answers.front().same.size();
    }
    std::printf(
        "%s %-5s gap %.2f cause %-18s place %zu of %zu alike, %zu answers; factor %.2f; "
        "largest effect of the cause %.2f; first: %s and %zu alike in it; verdict %d\n",
        row.at("id").c_str(), row.at("use").c_str(), gaps[0], row.at("cause").c_str(), place,
        made.alike, made.answers.size(), share, largest, leader.c_str(), members,
        static_cast<int>(made.verdict));
    std::fflush(stdout);
    places[row.at("id")] = place;
    EXPECT_EQ(made.verdict, row.at("id") == "N33" ? Explained::kNone : Explained::kExplained)
        << row.at("id");
    if (row.at("use") != "yes") continue;
    ++counted;
    const auto all = static_cast<double>(entries_with_effect(on).size());
    const auto share_of = [&](std::size_t answers) {
      return static_cast<double>(entries_in(made, effects, answers).size()) / all;
    };
    by_chance += share_of(1);
    by_chance_of_three += share_of(3);
    first += place == 1 ? 1U : 0U;
    leads += std::find(causes.begin(), causes.end(), leader_id) != causes.end() ? 1U : 0U;
    first_group += place >= 1 && place <= made.alike ? 1U : 0U;
    among_three += place >= 1 && place <= 3 ? 1U : 0U;
    if (place > 0) factors.push_back(std::abs(std::log(share)));
  }
  const auto within = static_cast<std::size_t>(std::count_if(
      factors.begin(), factors.end(), [](double each) { return each <= std::log(kWithin); }));
  std::printf(
      "%zu entries: first answer %zu (a cause drawn at random: %.1f), its first cause %zu, alike "
      "answers %zu, among "
      "three answers %zu (at random: %.1f); within a factor %.1f, of an amount that was chosen to "
      "fit: %zu\n",
      counted, first, by_chance, leads, first_group, among_three, by_chance_of_three, kWithin,
      within);
  ASSERT_FALSE(places.empty());
  if (!rules_out()) return;
  // As the page has them. At their amounts R07's and R16's do half of their gaps.
  const std::map<std::string, std::size_t> page{
      {"R01", 1}, {"R02", 3}, {"R04", 1}, {"R07", 2},  {"R09", 1},  {"R16", 5},
      {"R21", 1}, {"R32", 1}, {"R36", 1}, {"R101", 1}, {"R103", 6}, {"N01", 0},
      {"N06", 4}, {"N20", 1}, {"N21", 1}, {"N23", 1},  {"N33", 0}};
  for (const auto& [id, place] : places) {
    ASSERT_TRUE(page.contains(id)) << id;
    EXPECT_EQ(place, page.at(id)) << id;
  }
}

TEST(Published, TheListNamesCausesOfTheCatalogue) {
  std::set<std::string> ids;
  for (const CauseEntry& entry : catalogue()) ids.insert(std::string(entry.id));
  for (const Row& row : rows()) {
    for (const std::string& id : words(row.at("cause"), '|')) {
      EXPECT_TRUE(ids.contains(id)) << row.at("id") << " " << id;
    }
    for (const std::string& id : words(row.at("ruled_out"), ';')) {
      EXPECT_TRUE(ids.contains(id)) << row.at("id") << " " << id;
    }
  }
}

TEST(Published, TheListHasAReasonForEachThatIsLeftOut) {
  std::size_t all = 0;
  std::size_t counted = 0;
  for (const Row& row : rows()) {
    ++all;
    counted += row.at("use") == "yes" ? 1U : 0U;
    if (row.at("use") != "yes") {
      EXPECT_FALSE(row.at("note").empty()) << row.at("id");
    }
  }
  EXPECT_EQ(all, 82U);
  EXPECT_EQ(counted, 13U);  // others are run and taught
}

}  // namespace
}  // namespace weft::test::explain_published
