#include "replay/calibrate/holdout.hpp"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace weft::test::calibrate_holdout {
namespace {

const std::vector<std::string> kBy{"algo", "proto"};

/// Ring and Tree, Simple and LL, 1 to 5 channels, three sizes each: 20 configurations, 4 classes.
MeasuredTable grid(const std::string& file, std::int64_t ranks = 4) {
  MeasuredTable table{file, 1, {}};
  for (const char* algo : {"Ring", "Tree"}) {
    for (const char* proto : {"Simple", "LL"}) {
      for (std::int64_t channels = 1; channels <= 5; ++channels) {
        for (const std::int64_t bytes : {1024, 4096, 65536}) {
          MeasuredRow row;
          row.ranks = ranks;
          row.algo = algo;
          row.proto = proto;
          row.channels = channels;
          row.bytes = bytes;
          table.rows.push_back(row);
        }
      }
    }
  }
  return table;
}

std::set<std::string> configurations(const std::vector<MeasuredTable>& tables) {
  std::set<std::string> out;
  for (const MeasuredTable& table : tables) {
    for (const MeasuredRow& row : table.rows) out.insert(configuration_of(row));
  }
  return out;
}

TEST(HoldOut, TakesWholeConfigurations) {
  const SplitTables split = hold_out({grid("a.csv")}, 0.3, kBy, 1);
  const std::set<std::string> fitted = configurations(split.fitted);
  const std::set<std::string> held_out = configurations(split.held_out);
  EXPECT_EQ(fitted.size(), 14U);
  EXPECT_EQ(held_out.size(), 6U);
  for (const std::string& configuration : held_out) {
    EXPECT_FALSE(fitted.contains(configuration));
  }
  EXPECT_EQ(split.fitted[0].rows.size(), 42U);
  EXPECT_EQ(split.held_out[0].rows.size(), 18U);
}

TEST(HoldOut, IsSpreadOverTheClasses) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SplitTables split = hold_out({grid("a.csv")}, 0.4, kBy, seed);
    std::map<std::string, std::set<std::string>> classes;
    for (const MeasuredRow& row : split.held_out[0].rows) {
      classes[row.algo + row.proto].insert(configuration_of(row));
    }
    EXPECT_EQ(classes.size(), 4U);
    for (const auto& [name, members] : classes) EXPECT_EQ(members.size(), 2U) << name;
  }
}

TEST(HoldOut, ConfigurationsOfTwoTablesGoTogether) {
  const SplitTables split = hold_out({grid("a.csv"), grid("b.csv")}, 0.3, kBy, 3);
  ASSERT_EQ(split.fitted.size(), 2U);
  EXPECT_EQ(split.fitted[1].file, "b.csv");
  EXPECT_EQ(configurations({split.fitted[0]}), configurations({split.fitted[1]}));
  EXPECT_EQ(configurations({split.held_out[0]}), configurations({split.held_out[1]}));
}

TEST(HoldOut, IsTheSeeds) {
  const auto drawn = [](std::uint64_t seed) {
    return configurations(hold_out({grid("a.csv")}, 0.3, kBy, seed).held_out);
  };
  EXPECT_EQ(drawn(7), drawn(7));
  std::set<std::set<std::string>> different;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) different.insert(drawn(seed));
  EXPECT_GE(different.size(), 8U);
}

/// 15 configurations: 13 of Simple, one of LL and one of LL128, on two transports.
MeasuredTable lopsided() {
  MeasuredTable table{"a.csv", 1, {}};
  for (std::int64_t channels = 1; channels <= 15; ++channels) {
    MeasuredRow row;
    row.transport = channels <= 9 ? "nvlink" : "net";
    row.algo = "Ring";
    row.proto = channels == 1 ? "LL" : channels == 15 ? "LL128" : "Simple";
    row.ranks = channels % 3;  // a class of --by each, which no parameter belongs to
    row.channels = channels;
    table.rows.push_back(row);
  }
  return table;
}

TEST(HoldOut, LeavesOneOfEachClassToFit) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    for (const double share : {0.3, 0.9}) {
      const SplitTables split = hold_out({lopsided()}, share, {"ranks", "proto"}, seed);
      std::map<std::string, std::size_t> fitted;
      for (const MeasuredRow& row : split.fitted[0].rows) ++fitted[row.transport + row.proto];
      EXPECT_EQ(fitted.size(), 4U) << seed;
      EXPECT_EQ(split.held_out[0].rows.size(), share == 0.3 ? 5U : 11U) << seed;
      ASSERT_EQ(split.classes.size(), 4U);
      EXPECT_EQ(split.classes[3].name, "nvlink Ring Simple");
      EXPECT_EQ(split.classes[3].configurations, 8U);
      EXPECT_EQ(split.classes[3].held_out, 8 - fitted["nvlinkSimple"]);
      EXPECT_EQ(split.classes[2].held_out, 0U) << "nvlink Ring LL";
    }
  }
}

TEST(HoldOut, IsRefusedWhereEachClassHasOne) {
  MeasuredTable two = lopsided();
  two.rows = {two.rows.front(), two.rows.back()};
  EXPECT_THROW(hold_out({two}, 0.5, kBy, 1), InputError);
}

TEST(DropCopies, LeavesRepeatsAndTheFirstOfCopies) {
  std::vector<MeasuredTable> tables{grid("a.csv"), grid("b.csv"), grid("c.csv", 8)};
  for (MeasuredRow& row : tables[1].rows) row.run = "second";
  tables[1].rows[4].us = 2;
  EXPECT_EQ(drop_copies(tables), 59U);
  EXPECT_EQ(tables[0].rows.size(), 60U);
  ASSERT_EQ(tables[1].rows.size(), 1U);
  EXPECT_EQ(tables[1].rows[0].us, 2);
  EXPECT_EQ(tables[2].rows.size(), 60U) << "of other ranks";
}

TEST(HoldOut, LeavesSomethingOnEitherSide) {
  for (const double share : {0.001, 0.999}) {
    const SplitTables split = hold_out({grid("a.csv")}, share, kBy, 1);
    EXPECT_FALSE(split.fitted[0].rows.empty()) << share;
    EXPECT_FALSE(split.held_out[0].rows.empty()) << share;
  }
  for (const double share : {0.0, 1.0, -0.5, 2.0}) {
    EXPECT_THROW(hold_out({grid("a.csv")}, share, kBy, 1), InputError) << share;
  }
  MeasuredTable one = grid("a.csv");
  one.rows.resize(3);
  EXPECT_THROW(hold_out({one}, 0.5, kBy, 1), InputError);
}

}  // namespace
}  // namespace weft::test::calibrate_holdout
