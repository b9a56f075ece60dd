#include "sim/report/perfetto.hpp"

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::test::report_perfetto {
namespace {

using ::testing::ElementsAre;

std::uint64_t varint(std::string_view& bytes) {
  std::uint64_t out = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.at(0));
    bytes.remove_prefix(1);
    out |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return out;
  }
}

/// A message's fields, by number: numbers as text, all else as it is.
std::multimap<std::uint64_t, std::string> fields(std::string_view bytes) {
  std::multimap<std::uint64_t, std::string> out;
  while (!bytes.empty()) {
    const std::uint64_t key = varint(bytes);
    if ((key & 7U) == 1) {
      double value = 0;
      std::memcpy(&value, bytes.data(), sizeof value);
      out.emplace(key >> 3U, fmt::format("{}", value));
      bytes.remove_prefix(sizeof value);
      continue;
    }
    const std::uint64_t value = varint(bytes);
    if ((key & 7U) == 0) {
      out.emplace(key >> 3U, std::to_string(value));
      continue;
    }
    EXPECT_EQ(key & 7U, 2U);
    out.emplace(key >> 3U, bytes.substr(0, value));
    bytes.remove_prefix(value);
  }
  return out;
}

std::string field(const std::string& bytes, std::uint64_t number) {
  const auto all = fields(bytes);
  const auto at = all.find(number);
  return at == all.end() ? "" : at->second;
}

Time at_ps(std::int64_t ps) { return Time{} + Duration::ps(ps); }

ResultRow row_of(Timeline timeline) {
  ResultRow row;
  row.op = "allreduce";
  row.bytes = 1024;
  row.memory_path = "gdr";
  row.algo = "Ring";
  row.proto = "LL";
  row.timeline = std::make_shared<Timeline>(std::move(timeline));
  return row;
}

RunResult sample() {
  Timeline timeline;
  timeline.tracks = {{"gpu0@0", Timeline::kNone}, {"thread block 0", 0}};
  timeline.names = {"launch", "moves"};
  timeline.slices = {{1, 0, at_ps(0), at_ps(1500), 0},
                     {1, 1, at_ps(1500), at_ps(4'000'000'999), 300}};
  RunResult out;
  out.rows = {row_of(std::move(timeline))};
  return out;
}

TEST(Perfetto, IsWhatItsMessagesAsk) {
  std::vector<std::string> tracks;
  std::vector<std::string> events;
  std::vector<std::string> names;
  for (const auto& [number, packet] : fields(perfetto_trace(sample()))) {
    EXPECT_EQ(number, 1U);  // Trace.packet
    EXPECT_EQ(field(packet, 10), "1");
    if (const std::string d = field(packet, 60); !d.empty()) {
      tracks.push_back(field(d, 1) + " of " + field(d, 5) + ": " + field(d, 2));
    }
    for (const auto& [of, name] : fields(field(packet, 12))) {
      EXPECT_EQ(of, 2U);
      names.push_back(field(name, 1) + ": " + field(name, 2));
    }
    if (const std::string e = field(packet, 11); !e.empty()) {
      std::string text = field(packet, 8) + " ns, track " + field(e, 11) + ", type " + field(e, 9);
      if (!field(e, 10).empty()) text += ", name " + field(e, 10);
      for (const auto& [of, note] : fields(e)) {
        if (of == 4) text += ", " + field(note, 10) + " " + field(note, 3);
      }
      events.push_back(text);
    }
  }
  EXPECT_THAT(tracks, ElementsAre("1 of : allreduce, 1 KiB, gdr, Ring LL", "2 of 1: gpu0@0",
                                  "3 of 2: thread block 0"));
  EXPECT_THAT(names, ElementsAre("1: launch", "2: moves"));
  EXPECT_THAT(
      events,
      ElementsAre("0 ns, track 3, type 1, name 1, picoseconds 1500", "1 ns, track 3, type 2",
                  "1 ns, track 3, type 1, name 2, picoseconds 3999999499, bytes 300",
                  "4000000 ns, track 3, type 2"));
}

// A reader passes over what needs state (flag 2 of field 13) before that was cleared (flag 1).
TEST(Perfetto, WhatNeedsStateComesBehindIt) {
  bool is_cleared = false;
  for (const auto& [number, packet] : fields(perfetto_trace(sample()))) {
    if (field(packet, 13) == "1") is_cleared = true;
    const bool needs_state = field(packet, 13) == "2";
    EXPECT_TRUE(is_cleared || !needs_state);
    EXPECT_EQ(needs_state, !field(packet, 11).empty());
  }
  EXPECT_TRUE(is_cleared);
}

TEST(Perfetto, RowsStandBesideEachOtherAndSayWhatTheyLeaveOut) {
  RunResult two = sample();
  Timeline cut = *two.rows[0].timeline;
  cut.left_out = 5;
  two.rows.push_back(row_of(std::move(cut)));
  two.rows.push_back({});                     // without one
  std::map<std::string, std::string> tracks;  // name by uuid
  for (const auto& [number, packet] : fields(perfetto_trace(two))) {
    const std::string d = field(packet, 60);
    if (!d.empty()) tracks[field(d, 1)] = field(d, 2);
  }
  EXPECT_EQ(tracks.size(), 6U);
  EXPECT_EQ(tracks["4"], "allreduce, 1 KiB, gdr, Ring LL (its first 2 slices; 5 are left out)");
}

TEST(Perfetto, TracksOfOneNameBelowOneAreNumbered) {
  Timeline alike;
  alike.tracks = {{"gpu0@0", Timeline::kNone}, {"thread block 0", 0}, {"thread block 0", 0}};
  RunResult result;
  result.rows = {row_of(std::move(alike))};
  std::vector<std::string> names;
  for (const auto& [number, packet] : fields(perfetto_trace(result))) {
    const std::string d = field(packet, 60);
    if (!d.empty()) names.push_back(field(d, 2));
  }
  EXPECT_THAT(names, ElementsAre("allreduce, 1 KiB, gdr, Ring LL", "gpu0@0", "thread block 0",
                                 "thread block 0 (2)"));
}

TEST(Perfetto, WhatIsInUseIsCountedInPercent) {
  RunResult result = sample();
  Timeline timeline = *result.rows[0].timeline;
  timeline.step = Duration::us(2);
  timeline.series = {{"wire: nic0", {0.25, 1}}};
  timeline.series_left_out = 3;
  result.rows = {row_of(std::move(timeline))};
  std::vector<std::string> got;
  for (const auto& [number, packet] : fields(perfetto_trace(result))) {
    const std::string d = field(packet, 60);
    const std::string e = field(packet, 11);
    if (field(d, 1) == "4" || field(d, 1) == "5") {
      got.push_back(field(d, 5) + ": " + field(d, 2) + field(field(d, 8), 6));
    }
    if (field(e, 9) == "4") {
      got.push_back(field(packet, 8) + " ns, track " + field(e, 11) + ": " + field(e, 44));
    }
  }
  EXPECT_THAT(got, ElementsAre("1: in use, means over 2000 ns (the 1 used most; 3 are left out)",
                               "4: wire: nic0%", "0 ns, track 5: 25", "2000 ns, track 5: 100"));
}

TEST(Perfetto, NothingKeptIsAnEmptyTrace) { EXPECT_EQ(perfetto_trace({}), ""); }

}  // namespace
}  // namespace weft::test::report_perfetto
