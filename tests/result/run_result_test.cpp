#include "sim/result/run_result.hpp"

#include <array>

#include <gtest/gtest.h>

namespace weft::test::result_run_result {
namespace {

TEST(RunResult, JsonHasTheContractsKeys) {
  RunResult result;
  result.rows = {{"allreduce",
                  8,
                  16,
                  2,
                  "gdr",
                  "Ring",
                  "LL",
                  1,
                  "",
                  2.5,
                  0.0032,
                  0.006,
                  {{"wire", "nic0", 0.75}, {"DRAM", "cpu0", 0.25}}}};
  const Json json = to_json(result);
  EXPECT_EQ(json.at("schema").as_string(), "weft.run/1");
  const Json& row = json.at("results").items().at(0);
  for (const char* key : {"op", "bytes", "ranks", "nodes", "memory_path", "algo", "proto",
                          "channels", "time_us", "algbw_GBps", "busbw_GBps", "limited_by"}) {
    EXPECT_NE(row.find(key), nullptr) << key;
  }
  EXPECT_EQ(row.at("limited_by").items().at(0).at("cause").as_string(), "wire");
  EXPECT_EQ(row.at("limited_by").items().at(0).at("share").as_number(), 0.75);
  EXPECT_NE(json.find("provenance"), nullptr);
}

TEST(RunResult, SaysFromWhatARowIsExtended) {
  RunResult result;
  ResultRow row;
  EXPECT_EQ(row.extended_from_nodes(), 0u);
  row.extended = {{"level", {16, 9, 4}, 3, 2.5}, {"byte", {1 << 30, 1 << 28}, 3 << 28, 1}};
  EXPECT_EQ(row.extended_from_nodes(), 16u);
  result.rows = {row};
  const Json json = to_json(result);
  const Json& extended = json.at("results").items().at(0).at("extended");
  ASSERT_EQ(extended.items().size(), 2u);
  EXPECT_EQ(extended.items()[0].at("by").as_string(), "level");
  EXPECT_EQ(extended.items()[0].at("from").items().at(2).as_number(), 4);
  EXPECT_EQ(extended.items()[0].at("steps").as_number(), 3);
  EXPECT_EQ(extended.items()[0].at("each_us").as_number(), 2.5);
  EXPECT_EQ(extended.items()[1].at("from").items().at(0).as_number(), 1 << 30);
}

TEST(RunResult, IsReadBackAsItWasWritten) {
  RunResult result;
  result.rows = {{"allgather", 1 << 20, 8, 1, "gdr", "Ring", "LL", 2, "", 3.25, 0.5, 0.4375, {}},
                 {"allgather",
                  1 << 21,
                  8,
                  1,
                  "gdr",
                  "Ring",
                  "LL",
                  2,
                  "NVLS",
                  4.5,
                  0.75,
                  0.6,
                  {{"wire", "nic0", 0.75}, {"DRAM", "", 0.25}}}};
  result.verdict = {"fine"};
  result.notes = {"a note", ""};
  result.provenance = {"0.1.0",
                       "2f83ba303abc",
                       "s.yaml",
                       "00ff",
                       "t.yaml",
                       "ff00",
                       "a source",
                       7,
                       "fluid",
                       "2.28.9",
                       {"wire.mtu=1024"},
                       {"NCCL_PROTO=LL"},
                       {{"wire.mtu", "", "1024 B", "assumed", "set by the user"}}};
  const std::string text = to_json(result).dump();
  EXPECT_EQ(to_json(run_result_from_json(Json::parse(text, "r.json"))).dump(), text);
}

TEST(Provenance, ListsUsedParametersWithOriginAndSource) {
  constexpr std::array kTable{ParamSpec{"a.rate", Unit::kGigabytesPerS, 50, 1, 100,
                                        Origin::kSpecification, "a standard", "a rate"}};
  const std::array tables{std::span<const ParamSpec>{kTable}};
  const ParamCatalog catalog{tables};
  const Params params(catalog);
  UsedParams values;
  values.add("a.rate", "", params.get("a.rate"));
  const std::vector<ProvenanceParam> used = provenance_of(values, catalog);
  ASSERT_EQ(used.size(), 1u);
  EXPECT_EQ(used[0].value, "50 GB/s");
  EXPECT_EQ(used[0].origin, "specification");
  EXPECT_EQ(used[0].source, "a standard");
}

}  // namespace
}  // namespace weft::test::result_run_result
