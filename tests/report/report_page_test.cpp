#include "sim/report/report_page.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/report/report_file.hpp"
#include "sim/report/report_sweep.hpp"

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
    "weft.compare/1, weft.copies/1, weft.expect/1, weft.explain/1, weft.perftest/1, weft.replay/1, "
    "weft.run/1";

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

/// An explanation of two sizes with one answer of these effects.
std::string explanation(const std::string& effects) {
  const std::string cause =
      R"({"id": "few-reads", "what": "few reads", "where": "nic0", "how": "32", "verify": "mlxconfig",
          "said": "as shipped", "evidence": [{"place": "a.txt:3", "text": "LnkSta"}, {"text": "t"}]})";
  return R"({"schema": "weft.explain/1", "verdict": "explained", "machine": "m.yaml",
    "two_at_once": false, "chance_if_healthy": 0.001, "points": [
    {"op": "allreduce", "bytes": 1024, "slow_us": 20, "busbw_GBps": 1, "healthy_us": 10,
     "predicted_us": 5, "gap": 0.7, "sd": 0},
    {"op": "allreduce", "bytes": 2048, "slow_us": 20, "busbw_GBps": 2, "predicted_us": 10,
     "gap": 0.7, "sd": 0}],
    "answers": [{"causes": [)" +
         cause + R"(], "or": [{"causes": [)" + cause +
         R"(]}], "alike": true, "times_less": 1, "explains": 0.9, "low": 0.8, "high": 1.1,
     "chance": 0.4, "effects": )" +
         effects + R"(}], "ruled_out": [)" + cause + R"(], "no_effect": [)" + cause +
         R"(], "refused": [{"id": "acs", "where": "sw0", "how": "on", "why": "no switch"}],
    "not_here": [{"id": "nvls-off", "needs": "NVLS"}],
    "not_looked_at": [{"what": "sockets", "why": "not modelled"}], "notes": ["n"]})";
}

TEST(ReportFile, AnExplanationHasItsAnswersAndCurvesOfSlowHealthyAndExplained) {
  const Json file = file_of(explanation("[0.0, null]"));
  // busbw x slow_us / healthy_us and / predicted_us; the reference is healthy where it is there.
  EXPECT_EQ(script_json(file.at("curves")),
            R"([{"op":"allreduce","label":"slow","points":[[0,1024,null,null,null,1.0],)"
            R"([1,2048,null,null,null,2.0]]},)"
            R"({"op":"allreduce","label":"healthy","points":[[0,1024,null,2.0,2.0,2.0]]},)"
            R"({"op":"allreduce","label":"nothing wrong","points":[[0,1024,4.0,null,null,null],)"
            R"([1,2048,4.0,4.0,4.0,null]]},)"
            R"json({"op":"allreduce","label":"answer 1: few reads: nic0 (32)",)json"
            R"("points":[[0,1024,2.0,null,null,null]]}])");
  const Json& answer = file.at("explained").at("answers").items().front();
  EXPECT_EQ(script_json(answer),
            R"({"causes":[{"what":"few reads","where":"nic0","how":"32","verify":"mlxconfig",)"
            R"("evidence":["as shipped","a.txt:3: LnkSta","t"]}],)"
            R"json("or":["few reads: nic0 (32)"],"alike":true,"times_less":1.0,"chance":0.4,)json"
            R"("explains":0.9,"low":0.8,"high":1.1})");
  EXPECT_TRUE(file.at("explained").at("suffices").as_bool());
  EXPECT_EQ(script_json(file.at("explained").at("set_aside")),
            R"json([["ruled out by evidence","few reads",)json"
            R"json("nic0 (32); as shipped; a.txt:3: LnkSta; t"],)json"
            R"json(["changes no time by 1 %","few reads","nic0 (32)"],)json"
            R"json(["cannot be predicted here","acs","sw0 (on): no switch"],)json"
            R"(["cannot be on this machine","nvls-off","needs NVLS"],)"
            R"(["not looked at","sockets","not modelled"]])");
  EXPECT_EQ(script_json(file.at("verdict")),
            R"(["slower than it should be, explained by one cause",)"
            R"("0.1 of 100 runs where nothing is wrong would be further off"])");
  EXPECT_EQ(script_json(file.at("provenance")),
            R"([["machine","m.yaml"],["two_at_once","no"],["chance_if_healthy","0.001"]])");
  const Json::Array& columns = file.at("columns").items();
  EXPECT_EQ(script_json(columns[6]), R"({"name":"gap","unit":"natural logarithm"})");
  EXPECT_EQ(script_json(columns[7]), R"({"name":"sd","unit":"natural logarithm"})");
  EXPECT_EQ(script_json(file.at("notes")), R"(["n"])");
}

TEST(ReportFile, AnswersThatAreAlikeAreCounted) {
  std::string text = explanation("[0.0, null]");
  const std::size_t at = text.find("{\"causes\"");
  const std::string answer = text.substr(at, text.find("]}], \"alike\"") - at) +
                             R"(]}], "alike": true, "times_less": 1, "chance": 0.4,
                                "effects": [0, 0]}, )";
  EXPECT_EQ(
      file_of(text.insert(at, answer)).at("verdict").items()[0].as_string(),
      "slower than it should be, explained by one cause: the first 2 of 2 cannot be told apart");
}

TEST(ReportFile, AnswersThatDoNotSufficeAreTheNearest) {
  std::string text = explanation("[0.0, null]");
  const Json file = file_of(text.replace(text.find("explained"), 9, "none"));
  EXPECT_FALSE(file.at("explained").at("suffices").as_bool());
  EXPECT_EQ(file.at("curves").items().back().at("label").as_string(),
            "nearest 1: few reads: nic0 (32)");
  EXPECT_EQ(file.at("verdict").items()[0].as_string(),
            "slower than it should be, and no cause of the catalogue explains it");
}

TEST(ReportFile, AnExplanationWithoutBandwidthsSaysWhyItHasNoCurves) {
  std::string text = explanation("[0.0, null]");
  for (const char* key : {R"("busbw_GBps": 1,)", R"("busbw_GBps": 2,)"}) {
    text.replace(text.find(key), std::string_view(key).size(), "");
  }
  const Json file = file_of(text);
  EXPECT_EQ(script_json(file.at("curves")), "[]");
  EXPECT_EQ(script_json(file.at("notes")),
            R"(["n","no point has busbw_GBps, as an older weft wrote it: no curve is drawn until )"
            R"(the run is explained again"])");
}

TEST(ReportFile, AnExplanationOfAnEndlessErrorHasNoInterval) {
  std::string text = explanation("[0.0, null]");
  text.replace(text.find(R"("sd": 0)"), 7, R"("sd": 1e6)");
  EXPECT_EQ(script_json(file_of(text).at("curves").items()[1]),
            R"({"op":"allreduce","label":"healthy","points":[[0,1024,null,null,null,2.0]]})");
}

TEST(ReportFile, ARunThatIsNotSlowHasNoAnswers) {
  const Json file = file_of(R"({"schema": "weft.explain/1", "verdict": "not slower",
    "two_at_once": false, "chance_if_healthy": 1, "points": [], "answers": [], "ruled_out": [],
    "no_effect": [], "refused": [], "not_here": [], "not_looked_at": [], "notes": []})");
  EXPECT_EQ(script_json(file.at("verdict")),
            R"(["not slower than it should be, as far as the errors tell",)"
            R"("100 of 100 runs where nothing is wrong would be further off"])");
  EXPECT_EQ(script_json(file.at("explained")), R"({"suffices":false,"answers":[],"set_aside":[]})");
}

TEST(ReportFile, AnExplanationThatIsDamagedIsRefusedWithThePlace) {
  EXPECT_EQ(refusal(explanation("[1]")), "a.json: answers[0]: 1 effects of 2 points");
  EXPECT_EQ(refusal(explanation("[1, \"2\"]")), "a.json: answers[0]: expected a number");
  const auto changed = [](std::string_view from, std::string_view to) {
    std::string text = explanation("[0, 0]");
    return refusal(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(changed(R"("sd": 0})", R"("sd": true})"), "a.json: points[0]: expected a number");
  EXPECT_EQ(changed(R"("sd": 0})", R"("sd": -1})"), "a.json: points[0]: sd: expected 0 or more");
  EXPECT_EQ(changed(R"("what": "few reads")", R"("what": 3)"),
            "a.json: answers[0]: causes[0]: expected a text");
  EXPECT_EQ(changed(R"("needs": "NVLS")", R"("need": "NVLS")"),
            "a.json: not_here[0]: missing key 'needs'");
  EXPECT_EQ(changed(R"("verdict": "explained")", R"("verdict": [])"), "a.json: expected a text");
  EXPECT_EQ(changed(R"("points")", R"("point")"), "a.json: has no rows");
}

const std::string kSweepNames =
    "op,bytes,ranks,nodes,memory_path,algo,proto,channels,time_us,algbw_GBps,busbw_GBps,limited_by,"
    "limited_by_where,limited_by_share,extended_from_nodes";

/// A row of a sweep behind its axes.
std::string sweep_row(const std::string& bytes, const std::string& busbw) {
  return "allreduce," + bytes + ",16,2,gdr,Ring,Simple,4,10,1," + busbw + ",wire,nic0,0.5,";
}

TEST(SweepReport, TellsATableFromResults) {
  EXPECT_TRUE(is_sweep_table("op,not_run,point\n"));
  EXPECT_TRUE(is_sweep_table("op,not_run,point\r\nx"));
  EXPECT_FALSE(is_sweep_table(R"({"schema": ",not_run,point"})"));
  EXPECT_FALSE(is_sweep_table("op,bytes\nop,not_run,point\n"));
  EXPECT_FALSE(is_sweep_table(""));
}

TEST(SweepReport, HasAxesThatDifferAndTheTablesFront) {
  const std::string text =
      "nic.count,wire.mtu,seed," + kSweepNames + ",cost,power_kW,pareto,not_run,point\n" +
      "1,1 KiB,7," + sweep_row("1024", "2") + ",10,1,yes,,a\n" + "2,4 KiB,7," +
      sweep_row("1024", "4") + ",20,1,yes,,b\n" + "4,4 KiB,7," + sweep_row("1024", "4") +
      ",30,1,no,,c\n" + "9,4 KiB,7,,,,,,,,,,,,,,,,,,,\"only 8, not 9\",d\n";
  const Json file = sweep_report_file(text, "s.csv");
  EXPECT_EQ(script_json(file.at("sweep")),
            R"({"axes":[0,1],"op":3,"bytes":4,"job":null,"path":7,"ranks":5,"value":13,"cost":15,)"
            R"("power":16,"front":17})");
  const Json::Array& rows = file.at("rows").items();
  EXPECT_EQ(
      script_json(rows[0]),
      R"([1,"1 KiB",7,"allreduce",1024,16,2,"gdr","Ring","Simple",4,10,1,2,null,10,1,"yes",null])");
  EXPECT_EQ(rows[1].items()[17].as_string(), "yes");
  EXPECT_EQ(rows[2].items()[17].as_string(), "no");
  EXPECT_TRUE(rows[3].items()[17].is_null());
  EXPECT_EQ(script_json(file.at("causes").items()[0]),
            R"([["wire",0.5,"nic0"],["others",0.5,""]])");
  EXPECT_EQ(script_json(file.at("causes").items()[3]), "[]");
  EXPECT_EQ(script_json(file.at("columns").items()[15]),
            R"({"name":"cost","unit":"in the price list's currency"})");
  EXPECT_EQ(script_json(file.at("columns").items()[16]), R"({"name":"power","unit":"kW"})");
  EXPECT_EQ(script_json(file.at("notes")), R"(["not run: 1 row: only 8, not 9"])");
  EXPECT_EQ(script_json(file.at("curves")), "[]");  // of one size
}

TEST(SweepReport, OfAStepTimesStandForBandwidths) {
  const auto row = [](const std::string& time) {
    return "step,,16,2,gdr,,,," + time + ",,,compute: forward,,0.5,,5,4";
  };
  const std::string text = "n," + kSweepNames + ",computing_us,exposed_us,not_run,point\n1," +
                           row("20") + ",,a\n2," + row("10") + ",,b\n";
  const Json file = sweep_report_file(text, "s.csv");
  EXPECT_EQ(script_json(file.at("sweep")),
            R"({"axes":[0],"op":1,"bytes":2,"job":null,"path":5,"ranks":3,"value":9,"cost":null,)"
            R"("power":null,"front":null})");
  EXPECT_EQ(script_json(file.at("rows").items()[0]),
            R"([1,"step",null,16,2,"gdr",null,null,null,20,null,null,null,5,4,null])");
  EXPECT_EQ(script_json(file.at("curves")), "[]");
}

TEST(SweepReport, JobsHaveNoCurves) {  // each has one size
  const auto row = [](const std::string& bytes, const std::string& job) {
    return "1," + sweep_row(bytes, "1") + "," + job + ",5,,a\n";
  };
  const std::string text =
      "n," + kSweepNames + ",job,alone_us,not_run,point\n" + row("8", "one") + row("16", "two");
  const Json file = sweep_report_file(text, "s.csv");
  EXPECT_EQ(file.at("sweep").at("job").as_number(), 13);
  EXPECT_EQ(script_json(file.at("curves")), "[]");
}

TEST(SweepReport, AllThatIsNotTheFirstCauseIsOthers) {
  const auto causes = [](const std::string& share) {
    std::string row = sweep_row("8", "1");
    row.replace(row.find("0.5"), 3, share);
    const std::string text = "n," + kSweepNames + ",not_run,point\n1," + row + ",,a\n";
    return script_json(sweep_report_file(text, "s.csv").at("causes").items()[0]);
  };
  EXPECT_EQ(causes("0.75"), R"([["wire",0.75,"nic0"],["others",0.25,""]])");
  EXPECT_EQ(causes("1"), R"([["wire",1.0,"nic0"]])");
  EXPECT_EQ(causes("7"), R"([["wire",1.0,"nic0"]])");
  EXPECT_EQ(causes("-7"), R"([["wire",0.0,"nic0"],["others",1.0,""]])");
}

TEST(SweepReport, AnAxisIsOfNumbersOnlyWhereTheyReadAsTheyStand) {
  const auto first = [](const std::string& a, const std::string& b) {
    const std::string text = "n," + kSweepNames + ",not_run,point\n" + a + "," +
                             sweep_row("8", "1.0") + ",,a\n" + b + "," + sweep_row("8", "2") +
                             ",,b\n";
    const Json file = sweep_report_file(text, "s.csv");
    EXPECT_EQ(file.at("rows").items()[0].items()[11].as_number(), 1);  // results are numbers
    return script_json(file.at("rows").items()[0].items()[0]);
  };
  EXPECT_EQ(first("1", "0.125"), "1");
  EXPECT_EQ(first("0.125", "1"), "0.125");
  EXPECT_EQ(first("1.0", "1"), R"("1.0")");
  EXPECT_EQ(first("1", "007"), R"("1")");
  EXPECT_EQ(first("1e3", "1"), R"("1e3")");
  EXPECT_EQ(first("3.14159", "3.14158"), R"("3.14159")");
  EXPECT_EQ(first("0.0005", "1"), R"("0.0005")");
}

// Which points a table lacks, as that of `--shard 1/2` does, it does not say.
TEST(SweepReport, HasNoFrontWhereNoRowIsMarked) {
  const std::string names = "n," + kSweepNames + ",cost,power_kW";
  const std::string row = "1," + sweep_row("8", "1");
  const std::string no_front =
      R"(["no row is marked as on the Pareto front: weft sweep --pareto marks them in the table of )"
      R"(all points, which --merge makes of shards"])";
  const Json marked =
      sweep_report_file(names + ",pareto,not_run,point\n" + row + ",1,1,no,,a\n", "s.csv");
  EXPECT_EQ(marked.at("sweep").at("front").as_integer(), 15);
  EXPECT_EQ(script_json(marked.at("notes")), "[]");
  for (const char* file : {",not_run,point\n|,1,1,,a\n", ",pareto,not_run,point\n|,1,1,,,a\n"}) {
    const std::string_view text = file;
    const std::size_t at = text.find('|');
    const Json unmarked = sweep_report_file(
        names + std::string(text.substr(0, at)) + row + std::string(text.substr(at + 1)), "s.csv");
    EXPECT_TRUE(unmarked.at("sweep").at("front").is_null()) << file;
    EXPECT_EQ(script_json(unmarked.at("notes")), no_front) << file;
  }
  const Json unpriced =
      sweep_report_file("n," + kSweepNames + ",not_run,point\n" + row + ",,a\n", "s.csv");
  EXPECT_EQ(script_json(unpriced.at("notes")), "[]");
}

TEST(SweepReport, HasACurveAPointOfTheGridWhereThereAreSizes) {
  std::string text = "n," + kSweepNames + ",not_run,point\n";
  for (int i = 0; i < 70; ++i) {
    for (const char* bytes : {"2048", "1024"}) {
      text += std::to_string(i) + "," + sweep_row(bytes, "1.5") + ",,p\n";
    }
  }
  const Json file = sweep_report_file(text, "s.csv");
  const Json::Array& curves = file.at("curves").items();
  ASSERT_EQ(curves.size(), 64u);
  EXPECT_EQ(script_json(curves[1]),
            R"({"op":"allreduce","label":"gdr, n=1","points":)"
            R"([[3,1024,1.5,null,null,null],[2,2048,1.5,null,null,null]]})");
  EXPECT_EQ(script_json(file.at("notes")),
            R"(["of 70 curves by size the first 64 are listed; the rows have all"])");
}

// Repeated rows, as a table put together by hand has them, are curves of their own.
TEST(SweepReport, DrawsNoMoreCurvesWhereRowsAreRepeated) {
  std::string text = kSweepNames + ",not_run,point\n";
  for (int i = 0; i < 70; ++i) {
    for (const char* bytes : {"2048", "1024"}) text += sweep_row(bytes, "1.5") + ",,p\n";
  }
  const Json file = sweep_report_file(text, "s.csv");
  const Json::Array& curves = file.at("curves").items();
  ASSERT_EQ(curves.size(), 64u);
  EXPECT_EQ(script_json(curves[63]),
            R"json({"op":"allreduce","label":"gdr (64)","points":)json"
            R"json([[127,1024,1.5,null,null,null],[126,2048,1.5,null,null,null]]})json");
  EXPECT_EQ(script_json(file.at("notes")),
            R"(["of 70 curves by size the first 64 are listed; the rows have all"])");
}

TEST(SweepReport, ThatIsDamagedIsRefusedWithThePlace) {
  const auto refused = [](const std::string& text) -> std::string {
    try {
      sweep_report_file(text, "s.csv");
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  const std::string names = kSweepNames + ",not_run,point\n";
  EXPECT_EQ(refused("op,not_run,point\n"),
            "s.csv:1: no column 'bytes': not a table that weft sweep wrote");
  EXPECT_EQ(refused(names + "a,b\n"), "s.csv:2: 2 cells, not 17 as the first line has");
  EXPECT_EQ(refused(names + sweep_row("8", "fast") + ",,a\n"),
            "s.csv:2:41: 'fast' is not a number");
  EXPECT_EQ(refused(names + "\"" + sweep_row("8", "1") + ",,a\n"),
            "s.csv:2:1: a quote is not closed");
  EXPECT_EQ(refused(names), "");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "a" + std::to_string(i) + ",";
  EXPECT_EQ(refused(many + names), "s.csv:1: 1017 columns; a report shows at most 1000");
  std::string rows;  // damaged, which is not looked at any more
  for (int i = 0; i < 100'000; ++i) rows += "a\n";
  EXPECT_EQ(refused(names + rows),
            "s.csv:1: 100000 rows of 17 columns do not go into a report, which has at most 2 MB: "
            "keep fewer rows, such as those of one size");
}

TEST(ReportFile, ARunHasTheLoadOnItsLinks) {
  const std::string rows =
      R"json({"schema": "weft.run/1", "results": [{"op": "x", "bytes": 1, "link_use":
         [{"link": "sw0 -> cpu0", "use": 0.5}, {"link": "nic0 -> fabric", "use": 0.25}]}, {"op": "x", "bytes": 2}, {"op": "x",
         "bytes": 3, "probes": {"ports": [
           {"link": "sw0@3 -> cpu0@3", "utilisation": 0.125},
           {"link": "sw0@1 -> cpu0@1", "utilisation": 0.75},
           {"link": "nic12@0->leaf17", "utilisation": 1},
           {"link": "nic12@0->ib0", "utilisation": 0.5},
           {"link": "gpu0@12 -> cpu0@12 (c2c)", "utilisation": 0.25},
           {"link": "a bundle", "utilisation": 1}], "ports_left_out": 7}}]})json";
  EXPECT_EQ(
      file_of(rows).at("links").dump_line(),
      R"({"names":["sw0 -> cpu0","nic0 -> fabric","nic12 -> leaf","nic12 -> ib0",)"
      R"json("gpu0 -> cpu0 (c2c)"],"rows":[[[0,0.5],[1,0.25]],[],[[0,0.75],[2,1.0],[3,0.5],)json"
      R"([4,0.25]]],"left_out":[0,0,7],"ports":true})");
  EXPECT_TRUE(file_of(R"({"schema": "weft.run/1", "results": []})").at("links").is_null());
  const std::string row = R"({"schema": "weft.run/1", "results": [{"op": "x", "bytes": 1, )";
  EXPECT_EQ(refusal(row + R"("link_use": [1]}]})"), "a.json: expected an object");
  EXPECT_EQ(refusal(row + R"("link_use": [{"link": "a", "use": "1"}]}]})"),
            "a.json: expected a number");
  EXPECT_EQ(refusal(row + R"("probes": {"ports": 1}}]})"), "a.json: expected a list");
}

// Those of perftest have no launch.
TEST(ReportFile, OnlyARunHasTheLoadOnItsLinks) {
  EXPECT_TRUE(file_of(R"({"schema": "weft.perftest/1", "results": [{"op": "write_bw", "bytes": 8,
    "bw_Gbps": 1, "probes": {"ports": [{"link": "a@0 -> b@0", "utilisation": 1}]}}]})")
                  .at("links")
                  .is_null());
}

TEST(ReportFile, MoreThanAReportHoldsIsRefusedBeforeItIsMade) {
  std::string keys;
  for (int i = 0; i < 999; ++i) keys += ", \"a" + std::to_string(i) + "\": 1";
  const std::string begin = R"({"schema": "weft.run/1", "results": [{"op": "x", "bytes": 1)" + keys;
  EXPECT_EQ(refusal(begin + "}]}"), "a.json: 1001 columns; a report shows at most 1000");
  const std::string row = R"({"op": "x", "bytes": 1)";
  std::string rows = R"({"schema": "weft.run/1", "results": [)" + row + keys.substr(9) + "}";
  EXPECT_EQ(refusal(rows + "]}"), "");
  for (int i = 0; i < 1000; ++i) rows += ", " + row + "}";
  EXPECT_EQ(refusal(rows + "]}"),
            "a.json: 1001 rows of 1000 columns do not go into a report, which has at most 2 MB: "
            "keep fewer rows, such as those of one size");
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
