#include "models/expect/error_table.hpp"

#include <cmath>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/result/measured.hpp"
#include "tests/seeds.hpp"

namespace weft::test::expect_error_table {
namespace {

using ::testing::HasSubstr;

const std::string kHead =
    "site,run,transport,memory_path,hosts,ranks,op,bytes,qps,tx_depth,measured_us,predicted_us\n";

std::string refusal(const std::string& text) {
  try {
    parse_errors(text, "e.csv");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(ErrorTable, ReadsItsRows) {
  const std::vector<KnownError> rows =
      parse_errors(kHead + "a,b,net,gdr,2,16,allreduce,1024,1,128,110,100\n", "e.csv");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].site, "a");
  EXPECT_EQ(rows[0].gpus_per_node(), 8);
  EXPECT_NEAR(rows[0].log_ratio(), std::log(1.1), 1e-12);
}

TEST(ErrorTable, RefusesWhatIsDamaged) {
  EXPECT_THAT(refusal("x\n"), HasSubstr("e.csv:1: a table of errors begins with site,run"));
  EXPECT_THAT(refusal(kHead), HasSubstr("e.csv: has no rows"));
  EXPECT_THAT(refusal(kHead + "a,b\n"), HasSubstr("e.csv:2: 2 cells, not 12"));
  EXPECT_THAT(refusal(kHead + "a,b,net,gdr,0,16,allreduce,1024,1,128,110,100\n"),
              HasSubstr("hosts: '0'"));
  EXPECT_THAT(refusal(kHead + "a,b,net,gdr,2,16,allreduce,1024,1,128,110,-1\n"),
              HasSubstr("predicted_us: '-1'"));
  EXPECT_THAT(refusal(kHead + "a,b,net,gdr,3,16,allreduce,1024,1,128,110,1\n"),
              HasSubstr("not a multiple of hosts"));
  EXPECT_THAT(refusal(kHead + ",b,net,gdr,2,16,allreduce,1024,1,128,110,1\n"),
              HasSubstr("a row has a site"));
}

TEST(ErrorTable, DamagedBytesAreRefusedOrRead) {
  const std::string whole = kHead + "a,b,net,gdr,2,16,allreduce,1024,1,128,110,100\n";
  for (std::uint64_t seed = 0; seed < seeds(300); ++seed) {
    std::mt19937_64 random(seed);
    std::string text = whole;
    for (int i = 0; i < 3; ++i) text[random() % text.size()] = static_cast<char>(random() % 256);
    try {
      parse_errors(text, "e.csv");
    } catch (const InputError&) {
    }
  }
}

/// Of every published point that taught nothing there is one error, and every run has its site.
TEST(ErrorTable, HasEveryPublishedPoint) {
  const std::string data = std::string(WEFT_SOURCE_DIR) + "/tests/data/";
  std::map<std::string, std::size_t> published;
  for (const MeasuredRow& row : read_measured(data + "public-logs.csv").rows) {
    if (row.use != "taught") ++published[row.id.substr(0, row.id.find('#'))];
  }
  std::map<std::string, std::size_t> known;
  for (const KnownError& e : known_errors()) ++known[e.run];
  for (const auto& [run, points] : published) EXPECT_EQ(known[run], points) << run;
  EXPECT_EQ(known_errors().size(), 549U);  // 501 of nccl-tests, 48 of perftest
}

}  // namespace
}  // namespace weft::test::expect_error_table
