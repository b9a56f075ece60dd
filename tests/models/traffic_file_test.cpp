#include "models/workload/traffic_file.hpp"

#include <array>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/workload/traffic_matrix.hpp"
#include "sim/base/error.hpp"
#include "sim/base/random.hpp"
#include "sim/base/stop.hpp"
#include "sim/io/file.hpp"
#include "tests/complaint.hpp"
#include "tests/seeds.hpp"

namespace weft::test::models_traffic_file {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TrafficMatrix matrix(const std::string& text, std::uint32_t ranks = 2) {
  return parse_traffic_matrix(text, "m.csv", ranks);
}

/// Four ranks with two experts each, tokens of 10 B.
TrafficMatrix routing(const std::string& text) {
  return parse_traffic_routing("rank,expert,tokens\n" + text, "r.csv", 4, 8, Bytes{10});
}

std::string refused_matrix(const std::string& text, std::uint32_t ranks = 2) {
  return complaint([&] { matrix(text, ranks); });
}

std::string refused_routing(const std::string& text) {
  return complaint([&] { routing(text); });
}

TEST(TrafficFile, AListIsTheSquareThatItStandsFor) {
  const TrafficMatrix square = matrix("0,1K,0\n0,0,7\n3,0,5\n", 3);
  EXPECT_THAT(square, ElementsAre(TaskSend{0, 1, Bytes::kib(1)}, TaskSend{1, 2, Bytes{7}},
                                  TaskSend{2, 0, Bytes{3}}, TaskSend{2, 2, Bytes{5}}));
  EXPECT_EQ(matrix("from,to,bytes\n2,2,5\n0,1,1 KiB\n2,0,3\n1,2,7\n1,0,0\n", 3), square);
}

TEST(TrafficFile, SpreadsheetsLineEndsAndMarksAreTaken) {
  EXPECT_EQ(matrix("\xEF\xBB\xBF"
                   "from, to, bytes\r\n0, 1, 8\r\n\r\n"),
            matrix("0,8\n0,0\n\n"));
}

TEST(TrafficFile, RefusesASquareThatIsNone) {
  EXPECT_EQ(refused_matrix("0,1\n2,0"), "");
  EXPECT_EQ(refused_matrix(""), "m.csv: is empty");
  EXPECT_THAT(refused_matrix("0,1\n"), HasSubstr("m.csv: 1 lines; expected 2 lines of 2 sizes"));
  EXPECT_THAT(refused_matrix("0,1\n2\n"), HasSubstr("m.csv:2:1: expected 2 lines of 2 sizes"));
  EXPECT_THAT(refused_matrix("0,1\n2,0\n1,1\n"), HasSubstr("m.csv:3:1: expected 2 lines"));
  EXPECT_THAT(refused_matrix("src,dst,bytes\n"), HasSubstr("a list of pairs under from,to,bytes"));
  for (const char* head : {"From,To,Bytes\n0,1,5\n", "src,dst,bytes\n"}) {
    EXPECT_EQ(refused_matrix(head, 3),
              "m.csv:1:1: expected sizes, or a list of pairs under from,to,bytes");
  }
  EXPECT_THAT(refused_matrix("0,x\n2,0\n"), HasSubstr("m.csv:1:3: 'x' is not a size"));
  EXPECT_THAT(refused_matrix("0,-1\n2,0\n"), HasSubstr("m.csv:1:3: '-1' is not a size"));
  EXPECT_THAT(refused_matrix("0,8T\n2,0\n"), HasSubstr("above 4 TiB"));
  EXPECT_THAT(refused_matrix("0,1\n", 8192),
              HasSubstr("a square of 8192 ranks has more than 16000000 cells; write a list"));
}

TEST(TrafficFile, RefusesAListThatIsNone) {
  const std::string head = "from,to,bytes\n";
  EXPECT_THAT(matrix(head), IsEmpty());
  EXPECT_EQ(refused_matrix(head + "0,1\n"), "m.csv:2:1: 2 cells; expected from,to,bytes");
  EXPECT_EQ(refused_matrix(head + "0,1,5\n0,2,5\n"), "m.csv:3:3: '2' is no rank; allowed: 0 to 1");
  EXPECT_EQ(refused_matrix(head + "-1,1,5\n"), "m.csv:2:1: '-1' is no rank; allowed: 0 to 1");
  EXPECT_EQ(refused_matrix(head + "0,-0,5\n"), "m.csv:2:3: '-0' is no rank; allowed: 0 to 1");
  EXPECT_EQ(refused_matrix(head + "0.0,1,5\n"), "m.csv:2:1: '0.0' is no rank; allowed: 0 to 1");
  EXPECT_THAT(refused_matrix(head + "0,1,five\n"), HasSubstr("m.csv:2:5: 'five' is not a size"));
  EXPECT_THAT(refused_matrix(head + "0,1,5T\n"), HasSubstr("m.csv:2:5: '5T' is above 4 TiB"));
  EXPECT_EQ(refused_matrix(head + "0,1," + std::string(1000, '5') + "\n"),
            "m.csv:2:5: a cell of 1000 bytes; allowed: 64");
  EXPECT_EQ(refused_matrix(head + "0,1,1" + std::string(1, '\0') + "M\n"),
            "m.csv:2:6: a NUL byte; expected text");
  EXPECT_EQ(refused_matrix(head + "0,1,5\n1,0,5\n\n0,1,0\n"),
            "m.csv:5:1: rank 0 and rank 1 stand on line 2 already");
  EXPECT_THAT(refused_matrix(head + "\"0,1,5\n"), HasSubstr("m.csv:2:1: a quote is not closed"));
}

// A line is refused by its commas, without being split: an open quote at its end is not seen.
TEST(TrafficFile, CellsAreCountedBeforeTheyAreSplit) {
  const std::string many = std::string(100, ',') + "\"\n";
  EXPECT_THAT(refused_matrix(many), HasSubstr("m.csv:1:1: expected 2 lines of 2 sizes"));
  EXPECT_EQ(refused_matrix("from,to,bytes\n" + many),
            "m.csv:2:1: 101 cells; expected from,to,bytes");
  EXPECT_EQ(refused_routing(many), "r.csv:2:1: 101 cells; expected rank,expert,tokens");
  EXPECT_EQ(refused_matrix("from,to,bytes\n\"0,1\",5\n"), "m.csv:2:1: a comma in a cell");
  EXPECT_EQ(refused_matrix("from,to,bytes\n0,1,\"1,0\"\n"), "m.csv:2:1: a comma in a cell");
  EXPECT_EQ(refused_matrix("0,1\n\"2,3\",0\n"), "m.csv:2:1: a comma in a cell");
  EXPECT_EQ(refused_matrix("0,1,2\n3,\"4,5\"\n6,7,8\n", 3), "m.csv:2:1: a comma in a cell");
}

TEST(TrafficFile, ReadingStops) {
  std::string rows;
  for (int row = 0; row < 300; ++row) {
    rows += "1";
    for (int column = 1; column < 300; ++column) rows += ",1";
    rows += '\n';
  }
  std::string list = "from,to,bytes\n";
  for (int line = 0; line < 20'000; ++line) list += "0,1,0\n";
  Stop stop;
  EXPECT_EQ(parse_traffic_matrix(rows, "m.csv", 300, &stop).size(), 90'000U);
  stop.request();
  EXPECT_THROW(parse_traffic_matrix(rows, "m.csv", 300, &stop), Stopped);
  EXPECT_THROW(parse_traffic_matrix(list, "m.csv", 2, &stop), Stopped);
  EXPECT_THROW(parse_traffic_routing("rank,expert,tokens\n" + list.substr(list.find('\n') + 1),
                                     "r.csv", 4, 8, Bytes{1}, &stop),
               Stopped);
}

TEST(TrafficFile, TokensGoToTheRanksOfTheirExperts) {
  EXPECT_THAT(
      routing("3,1,4\n0,7,1\n3,0,2\n0,2,0\n1,4,9\n"),
      ElementsAre(TaskSend{0, 3, Bytes{10}}, TaskSend{1, 2, Bytes{90}}, TaskSend{3, 0, Bytes{60}}));
}

TEST(TrafficFile, RefusesARoutingThatIsNone) {
  const auto whole = [](const std::string& text, Bytes token) {
    return complaint([&] { parse_traffic_routing(text, "r.csv", 4, 8, token); });
  };
  EXPECT_EQ(whole("", Bytes{1}), "r.csv: is empty");
  EXPECT_EQ(whole("0,1,5\n", Bytes{1}), "r.csv:1:1: expected the head rank,expert,tokens");
  EXPECT_EQ(refused_routing("4,0,1\n"), "r.csv:2:1: '4' is no rank; allowed: 0 to 3");
  EXPECT_EQ(refused_routing("0,8,1\n"), "r.csv:2:3: '8' is no expert; allowed: 0 to 7");
  EXPECT_EQ(refused_routing("0,0,1.5\n"),
            "r.csv:2:5: '1.5' is no number of tokens; allowed: 0 to 16777216");
  EXPECT_EQ(refused_routing("0,0,1\n0,0,1\n"),
            "r.csv:3:1: rank 0 and expert 0 stand on line 2 already");
  EXPECT_EQ(whole("rank,expert,tokens\n0,2,4\n0,3,1\n", Bytes::gib(1024)),
            "r.csv:3:1: rank 0 would send rank 1 more than 4 TiB");
}

// What a user's layer routes as the skewed router does is the same traffic; back it is turned.
TEST(TrafficFile, ARoutingStandsInForTheSkew) {
  const std::string file = ::testing::TempDir() + "/routing.csv";
  write_text_file(file, "rank,expert,tokens\n1,0,3\n0,3,5\n");
  TrafficSpec spec;
  spec.kind = TrafficSpec::Kind::kDispatch;
  spec.routing = file;
  spec.experts = 4;
  spec.token_bytes = Bytes::kib(1);
  EXPECT_THAT(traffic_matrix(spec, 4),
              ElementsAre(TaskSend{0, 3, Bytes::kib(5)}, TaskSend{1, 0, Bytes::kib(3)}));
  spec.kind = TrafficSpec::Kind::kCombine;
  EXPECT_THAT(traffic_matrix(spec, 4),
              ElementsAre(TaskSend{0, 1, Bytes::kib(3)}, TaskSend{3, 0, Bytes::kib(5)}));
  EXPECT_THAT(complaint([&] { traffic_matrix(spec, 3); }), HasSubstr("no multiple of 3 ranks"));
}

TEST(TrafficFile, DamageIsRefusedOrRead) {
  constexpr std::string_view kBytes = ",\"\r\n -0194KT.e\x1b\xff";
  const std::array<std::string, 3> texts{"0,1K,0\n7,0,0\n3,0,5\n",
                                         "from,to,bytes\n0,1,1K\n2,0,64\n",
                                         "rank,expert,tokens\n0,3,17\n2,5,1\n1,0,4\n"};
  for (std::uint64_t seed = 1; seed <= seeds(5000); ++seed) {
    std::mt19937_64 dice = random_stream(seed, "damage");
    const std::size_t which = seed % texts.size();
    std::string text = texts[which];
    for (std::uint64_t i = 0; i <= uniform_below(dice, 3); ++i) {
      const std::size_t at = uniform_below(dice, text.size());
      text.replace(at, uniform_below(dice, 8),
                   std::string(uniform_below(dice, 4), kBytes[uniform_below(dice, kBytes.size())]));
      text += '\n';
    }
    try {
      const TrafficMatrix read = which == 2
                                     ? parse_traffic_routing(text, "file", 3, 6, Bytes::gib(1))
                                     : parse_traffic_matrix(text, "file", 3);
      for (const TaskSend& send : read) {
        EXPECT_LT(send.from, 3U);
        EXPECT_LT(send.to, 3U);
        EXPECT_GT(send.bytes, Bytes{0});
        EXPECT_LE(send.bytes, kMostSend);
      }
    } catch (const InputError& e) {
      EXPECT_THAT(e.what(), ::testing::StartsWith("file:")) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace weft::test::models_traffic_file
