#include "sim/report/report_page.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/report/report_file.hpp"

namespace weft::test::report_report_page {
namespace {

const std::string kPage =
    "<title>weft report</title>"
    R"(<script id="data" type="application/json">null</script>)"
    "<script>run()</script>";

Json file_of(const std::string& text) { return report_file(Json::parse(text, "a.json"), "a.json"); }

/// The message with which a result is refused; "" if it is not.
std::string refusal(const std::string& text) {
  try {
    file_of(text);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

constexpr const char* kKnown =
    "weft.compare/1, weft.copies/1, weft.expect/1, weft.perftest/1, weft.replay/1, weft.run/1";

TEST(ReportPage, NoTextOfTheDataEndsTheScriptOrBeginsMarkup) {
  const std::string hostile = "</script><script>alert(1)</script><!--&\u2028\u2029";
  const std::string text = script_json(Json::object({{hostile, hostile}}));
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(text.find("\u2028"), std::string::npos);
  EXPECT_EQ(text.find("\u2029"), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(Json::parse(text, "back").at(hostile).as_string(), hostile);
}

TEST(ReportPage, MarkupInTheTitleIsText) {
  EXPECT_EQ(html_text("</title><b a=\"1\" b='2'>&amp;"),
            "&lt;/title&gt;&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;amp;");
  const std::string page =
      report_html(kPage, Json::object({{"title", "</title><script>alert(1)</script>"}}));
  EXPECT_EQ(page,
            "<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;</title>"
            R"(<script id="data" type="application/json">{"title":)"
            R"("\u003c/title\u003e\u003cscript\u003ealert(1)\u003c/script\u003e"})"
            "</script><script>run()</script>");
}

TEST(ReportPage, HasOnePlaceForTitleAndData) {
  const Json data = Json::object({{"title", "t"}});
  EXPECT_THROW(report_html("<title>weft report</title>", data), std::logic_error);
  EXPECT_THROW(report_html(kPage + kPage, data), std::logic_error);
}

TEST(ReportPage, ThatIsTooLargeIsRefused) {
  const Json data = Json::object({{"title", std::string(kMaxReportBytes, 'a')}});
  EXPECT_THROW(report_html(kPage, data), InputError);
}

TEST(ReportFile, OtherFilesAreRefusedByName) {
  const std::string known = std::string("weft report shows ") + kKnown;
  EXPECT_EQ(refusal("[]"), "a.json: has no \"schema\": not what weft writes with --json; " + known);
  EXPECT_EQ(refusal(R"({"schema": 3})"),
            "a.json: has no \"schema\": not what weft writes with --json; " + known);
  EXPECT_EQ(refusal(R"({"schema": "weft.gate/1"})"), "a.json: is weft.gate/1; " + known);
  EXPECT_EQ(refusal(R"({"schema": "weft.run/1"})"), "a.json: has no rows");
}

TEST(ReportFile, ValuesOfAnotherKindAreRefused) {
  EXPECT_EQ(refusal(R"({"schema": "weft.run/1", "results": 3})"), "a.json: expected a list");
  const std::string row = R"({"schema": "weft.run/1", "results": [{"op": "x", "bytes": )";
  EXPECT_EQ(refusal(row + R"("8"}]})"), "a.json: expected a whole number");
  EXPECT_EQ(refusal(row + R"(8, "busbw_GBps": "1"}]})"), "a.json: expected a number");
  EXPECT_EQ(refusal(row + R"(8, "limited_by": [{"cause": "x", "share": "y"}]}]})"),
            "a.json: expected a number");
  EXPECT_EQ(refusal(row + R"(8}], "notes": [1]})"), "a.json: expected a text");
}

TEST(ReportFile, ARunHasACurveAMemoryPathWithItsInterval) {
  const Json file = file_of(R"({"schema": "weft.run/1", "results": [
    {"op": "allreduce", "bytes": 2048, "memory_path": "gdr", "time_us": 10, "low_us": 8,
     "high_us": 20, "busbw_GBps": 4, "limited_by": [{"cause": "wire", "share": 1, "where": "nic0"}]},
    {"op": "allreduce", "bytes": 1024, "memory_path": "gdr", "time_us": 10, "busbw_GBps": 2,
     "limited_by": []},
    {"op": "allreduce", "bytes": 1024, "memory_path": "host-staged", "time_us": 10,
     "busbw_GBps": 1, "limited_by": []}],
    "verdict": ["v"], "notes": ["n"], "incomplete": [{}],
    "provenance": {"seed": 1, "set": ["a=1", "b=2"], "parameters": [{"key": "wire.rate",
      "device": "", "value": "50 GB/s", "origin": "specification", "source": "NDR"}]}})");
  // busbw x time / high_us and / low_us: 4 x 10 / 20 and 4 x 10 / 8.
  EXPECT_EQ(script_json(file.at("curves")),
            R"([{"op":"allreduce","label":"gdr",)"
            R"("points":[[1,1024,2.0,null,null,null],[0,2048,4.0,2.0,5.0,null]]},)"
            R"({"op":"allreduce","label":"host-staged",)"
            R"("points":[[2,1024,1.0,null,null,null]]}])");
  EXPECT_EQ(script_json(file.at("causes")), R"([[["wire",1.0,"nic0"]],[],[]])");
  EXPECT_EQ(script_json(file.at("notes")),
            R"(["n","the run was stopped early: 1 rows are missing"])");
  EXPECT_EQ(script_json(file.at("provenance")), R"([["seed","1"],["set","a=1, b=2"]])");
  EXPECT_EQ(script_json(file.at("parameters")),
            R"([["wire.rate","","50 GB/s","specification","NDR"]])");
  EXPECT_EQ(script_json(file.at("rows").items().front()), R"(["allreduce",2048,"gdr",10,8,20,4])");
  EXPECT_EQ(script_json(file.at("columns").items()[3]), R"({"name":"time","unit":"us"})");
}

TEST(ReportFile, MeasuredRowsAreToldApartByWhatDiffers) {
  const Json file = file_of(R"({"schema": "weft.compare/1", "rows": [
    {"op": "allreduce", "bytes": 1024, "memory_path": "gdr", "algo": "Ring", "ranks": 4,
     "us": 10, "busbw_GBps": 2, "predicted_us": 20, "limited_by": "wire"},
    {"op": "allreduce", "bytes": 1024, "memory_path": "gdr", "algo": "Tree", "ranks": 4,
     "us": 10, "busbw_GBps": 2},
    {"op": "allreduce", "bytes": 1024, "memory_path": "gdr", "algo": "Tree", "ranks": 4,
     "us": 5, "busbw_GBps": 4}],
    "summary": {"n": 1, "not_predicted": 2, "bias": 1, "median_abs": 1, "p90_abs": 1}})");
  EXPECT_EQ(script_json(file.at("curves")),
            R"([{"op":"allreduce","label":"gdr, Ring","points":[[0,1024,1.0,null,null,2.0]]},)"
            R"({"op":"allreduce","label":"gdr, Tree","points":[[1,1024,null,null,null,2.0]]},)"
            R"json({"op":"allreduce","label":"gdr, Tree (2)",)json"
            R"("points":[[2,1024,null,null,null,4.0]]}])");
  EXPECT_EQ(script_json(file.at("verdict")),
            R"(["1 rows with a prediction, 2 without; predicted / measured time - 1: bias )"
            R"(+100.0 %, median of the sizes 100.0 %, nine tenths of them within 100.0 %"])");
}

TEST(ReportFile, AReplayHasGoodputOverTime) {
  const Json file = file_of(R"({"schema": "weft.replay/1", "trace": "t.weft", "compared": 7,
    "goodput": [{"from_us": 0, "recorded_GBps": 1, "predicted_GBps": 2.5}],
    "errors": [{"opcode": "write", "up_to_bytes": 65536, "n": 7, "p10": -0.1, "median": 0.02,
                "p90": 0.3}],
    "not_replayed": [{"what": "atomics", "n": 2}], "replayed_otherwise": []})");
  EXPECT_EQ(script_json(file.at("timeline")), "[[0.0,1.0,2.5]]");
  EXPECT_EQ(script_json(file.at("curves")), "[]");
  EXPECT_EQ(script_json(file.at("notes")), R"(["not replayed: 2 atomics"])");
  EXPECT_EQ(script_json(file.at("verdict")),
            R"(["write up to 64 KiB: 7 operations; predicted / recorded time from post to )"
            R"(completion - 1: median +2.0 %, a tenth below -10.0 %, a tenth above +30.0 %"])");
  EXPECT_EQ(script_json(file.at("provenance")), R"([["trace","t.weft"],["compared","7"]])");
}

}  // namespace
}  // namespace weft::test::report_report_page
