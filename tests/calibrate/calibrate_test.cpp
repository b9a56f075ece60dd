#include "replay/calibrate/calibrate.hpp"

#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/collective/parameter_set.hpp"
#include "replay/calibrate/report.hpp"
#include "sim/base/error.hpp"
#include "tests/calibrate/synthetic.hpp"

namespace weft::test::calibrate_calibrate {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::StartsWith;

TEST(Calibrate, FindsWhatATableWasMadeWith) {
  const Calibration got = calibrate(request_of({synthetic(kTruth, 0)}, kKeys), catalog());
  EXPECT_EQ(got.refusal, "");
  EXPECT_NEAR(param(got, "nccl.launch_simple").value, 6500, 5);
  EXPECT_NEAR(param(got, "nccl.launch_ll").value, 5500, 5);
  EXPECT_NEAR(param(got, "gpu.sm_peer_store_rate").value, 40, 0.1);
  EXPECT_EQ(param(got, "nccl.launch_simple").start, 8700);
  EXPECT_LT(summary_of(counted_rows(joined(got.held_out.after), {got.by, false})).median_abs, 1e-3);
}

TEST(Calibrate, NeverLooksAtTheRowsHeldOut) {
  const MeasuredTable good = synthetic(kTruth, 0.03);
  const Calibration first = calibrate(request_of({good}, kKeys), catalog());
  MeasuredTable spoilt = good;
  std::set<std::string> held_out;
  for (const ComparedRow& row : first.held_out.after[0].rows) {
    held_out.insert(configuration_of(row.measured));
  }
  for (MeasuredRow& row : spoilt.rows) {
    if (held_out.contains(configuration_of(row))) row.us *= 3;
  }
  const Calibration second = calibrate(request_of({spoilt}, kKeys), catalog());
  for (std::size_t k = 0; k < kKeys.size(); ++k) {
    EXPECT_EQ(first.params.at(k).value, second.params.at(k).value);
    EXPECT_EQ(first.params.at(k).standard_error, second.params.at(k).standard_error);
  }
  EXPECT_EQ(first.refusal, "");
  EXPECT_NE(second.refusal, "") << "they are what it is judged by";
}

TEST(Calibrate, AnotherTableIsHeldOutWhole) {
  const MeasuredTable table = synthetic(kTruth, 0.02);
  CalibrationRequest request = request_of({table}, kKeys);
  request.holdout = synthetic(kTruth, 0.02, 2, skeleton({8}));
  request.holdout->file = "other.csv";
  request.holdout->digest = 5;
  const Calibration got = calibrate(request, catalog());
  EXPECT_EQ(got.refusal, "");
  EXPECT_EQ(got.fitted.after[0].rows.size(), table.rows.size());
  EXPECT_EQ(got.held_out.after[0].rows.size(), 8U);
  EXPECT_THAT(got.notes, ElementsAre(HasSubstr("4 of 4 classes have no interval")));
  request.holdout = synthetic(kTruth, 0.02, 2);
  request.holdout->digest = 5;
  EXPECT_THAT(calibrate(request, catalog()).notes.at(0), HasSubstr("16 configurations"));
  request.holdout = table;
  EXPECT_THROW(calibrate(request, catalog()), InputError);
}

TEST(Calibrate, RefusesAFitThatOnlyMemorises) {
  // The parameter makes up for something that the rows held out do not have: a launch of 20 us
  // where there are one and two channels.
  MeasuredTable table = synthetic({}, 0);
  CalibrationRequest request = request_of({}, {"nccl.launch_simple"});
  request.holdout = MeasuredTable{"other.csv", 5, {}};
  for (const MeasuredRow& row : table.rows) {
    if (row.proto != "Simple") continue;
    if (row.channels <= 2) {
      request.tables.resize(1);
      request.tables[0].rows.push_back(row);
      request.tables[0].rows.back().us += 11;
    } else {
      request.holdout->rows.push_back(row);
      request.holdout->rows.back().us *= 0.9;
    }
  }
  const Calibration got = calibrate(request, catalog());
  EXPECT_GT(param(got, "nccl.launch_simple").value, 15'000);
  EXPECT_THAT(got.refusal, HasSubstr("that the fitted values move does not fall"));
}

TEST(Calibrate, RefusesWhatIsFarWorseOnRowsThatItHasNotSeen) {
  // The rows held out gain, but by far less than the fitted ones.
  CalibrationRequest request =
      request_of({synthetic({"nccl.launch_simple=6.5 us"}, 0)}, {"nccl.launch_simple"});
  request.holdout = synthetic({"nccl.launch_simple=4 us"}, 0, 1, skeleton({8}));
  request.holdout->digest = 5;
  for (MeasuredTable* table : {&request.tables[0], &*request.holdout}) {
    std::erase_if(table->rows, [](const MeasuredRow& row) { return row.proto != "Simple"; });
  }
  EXPECT_THAT(calibrate(request, catalog()).refusal,
              HasSubstr("is over 2 times that of the fitted"));
}

TEST(Calibrate, RefusesAParameterOnWhichNoRowDepends) {
  const MeasuredTable table = synthetic(kTruth, 0.02);
  const auto refusal = [&](const std::string& key) {
    return calibrate(request_of({table}, {"nccl.launch_simple", key}), catalog()).refusal;
  };
  EXPECT_EQ(refusal("nccl.proxy_poll"), "no fitted row depends on nccl.proxy_poll");
  EXPECT_EQ(refusal("nccl.launch_ll128"), "no fitted row depends on nccl.launch_ll128");
}

// NVLink limits nothing from some 12 GB/s on. From 20 a wide step down finds an effect, and from 2
// the fit comes to where there is none.
TEST(Calibrate, WritesNoParameterOnWhichNoRowDependsAfterTheFit) {
  const std::string why = "no fitted row depends on gpu.nvlink_rate at the values that fit";
  const std::vector<std::string> keys{"nccl.launch_simple", "gpu.nvlink_rate"};
  CalibrationRequest request = request_of({synthetic({"nccl.launch_simple=6.5 us"}, 0.02)}, keys);
  request.options.set = {parse_setting("gpu.nvlink_rate=20 GB/s")};
  const Calibration named = calibrate(request, catalog());
  EXPECT_EQ(named.refusal, why);
  EXPECT_TRUE(named.params.empty());
  request.options.set = {parse_setting("gpu.nvlink_rate=2 GB/s")};
  request.keys.clear();
  request.candidates = keys;
  const Calibration unnamed = calibrate(request, catalog());
  EXPECT_THAT(unnamed.notes, Contains("not fitted: " + why));
  ASSERT_EQ(unnamed.params.size(), 1U);
  EXPECT_EQ(unnamed.params[0].spec.key, "nccl.launch_simple");
}

TEST(Calibrate, RefusesWhatNoValuesMakeUpFor) {
  MeasuredTable table = synthetic({}, 0.02);
  for (MeasuredRow& row : table.rows) row.us *= 0.05;  // the launch can be left out, no more
  EXPECT_THAT(calibrate(request_of({table}, {"nccl.launch_simple"}), catalog()).refusal,
              HasSubstr("is over 50 %: no values make up for that"));
}

TEST(Calibrate, CopiesOfRowsCountOnce) {
  const MeasuredTable table = synthetic(kTruth, 0.02);
  MeasuredTable copied = table;
  for (int i = 0; i < 9; ++i) {
    for (MeasuredRow row : table.rows) {
      row.run = "run" + std::to_string(i);  // else they would be on their configuration's side
      copied.rows.push_back(row);
    }
  }
  const Calibration once = calibrate(request_of({table}, kKeys), catalog());
  const Calibration often = calibrate(request_of({copied}, kKeys), catalog());
  EXPECT_THAT(often.notes.at(0), HasSubstr("288 rows are copies of others"));
  EXPECT_EQ(often.held_out.after[0].rows.size(), once.held_out.after[0].rows.size());
  EXPECT_EQ(often.configurations, once.configurations);
  for (std::size_t k = 0; k < kKeys.size(); ++k) {
    EXPECT_EQ(often.params.at(k).value, once.params.at(k).value);
    EXPECT_EQ(often.params.at(k).standard_error, once.params.at(k).standard_error);
  }
  CalibrationRequest request = request_of({table}, kKeys);
  request.holdout = copied;
  request.holdout->digest = 5;
  EXPECT_THROW(calibrate(request, catalog()), InputError) << "all were fitted";
}

TEST(Calibrate, RefusesAsManyParametersAsConfigurations) {
  MeasuredTable table = synthetic(kTruth, 0.02, 1, skeleton({1, 2}));
  std::erase_if(table.rows, [](const MeasuredRow& row) { return row.proto != "Simple"; });
  const Calibration got =
      calibrate(request_of({table}, {"nccl.launch_simple", "nccl.work_simple", "nccl.sync_simple"}),
                catalog());
  EXPECT_EQ(got.refusal,
            "3 parameters (nccl.launch_simple, nccl.work_simple, nccl.sync_simple), and 3 fitted "
            "configurations that depend on them: at least one more is needed");
  EXPECT_TRUE(got.params.empty());
}

TEST(Calibrate, StopsAtAParametersRange) {
  // Rows that are faster than any launch: the time cannot be less than none.
  MeasuredTable table = synthetic({"nccl.launch_simple=0 us"}, 0);
  for (MeasuredRow& row : table.rows) row.us *= 0.9;
  const FittedParam p = param(calibrate(request_of({table}, {"nccl.launch_simple"}), catalog()),
                              "nccl.launch_simple");
  EXPECT_EQ(p.value, 0);
  EXPECT_TRUE(p.at_bound);
  EXPECT_FALSE(p.standard_error.has_value());
}

TEST(Calibrate, RefusesKeysThatCannotBeFitted) {
  const MeasuredTable table = synthetic({}, 0, 1, skeleton({1, 2}));
  for (const char* key : {"nccl.algo", "nccl.channels", "nccl.lunch", "nic3.pcie_width"}) {
    EXPECT_THROW(calibrate(request_of({table}, {key}), catalog()), InputError) << key;
  }
}

// Latencies of perftest with another time between polls: that time again.
TEST(Calibrate, FitsRowsOfPerftest) {
  std::string text = "transport,memory_path,hosts,ranks,op,bytes,us\n";
  for (const char* memory : {"gdr", "host"}) {
    for (const char* op : {"write_lat", "read_lat", "send_lat"}) {
      text += std::string("net,") + memory + ",2,2," + op + ",64,1\n";
    }
  }
  MeasuredTable table = parse_measured(text, "made.csv");
  CalibrationRequest request = request_of({}, {"nic.poll_time"});
  request.machine = read_topology(shipped("topologies/hgx-h100-8nic.yaml"), catalog());
  PredictOptions slower;
  slower.set = {parse_setting("nic.poll_time=200 ns")};
  const Comparison predicted = compare(table, request.machine, slower, catalog());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    table.rows[i].us = predicted.rows[i].predicted->time_us;
  }
  request.tables = {table};
  const Calibration got = calibrate(request, catalog());
  EXPECT_EQ(got.refusal, "");
  EXPECT_NEAR(param(got, "nic.poll_time").value, 200, 1);
}

std::string complaint(const CalibrationRequest& request) {
  try {
    calibrate(request, catalog());
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

// One table of two, fitted or held out.
TEST(Calibrate, RefusesTablesInOtherUnits) {
  for (const double factor : {1e-3, 1e3}) {
    MeasuredTable other = synthetic({}, 0.02, 2, skeleton({8}));
    other.file = "other.csv";
    other.digest = 5;
    for (MeasuredRow& row : other.rows) row.us *= factor;
    const MeasuredTable good = synthetic({}, 0.02);
    CalibrationRequest request = request_of({good, other}, {"nccl.launch_simple"});
    EXPECT_THAT(complaint(request), StartsWith("other.csv: its times are ")) << factor;
    request.tables.pop_back();
    request.holdout = other;
    EXPECT_THAT(complaint(request), StartsWith("other.csv: its times are ")) << factor;
  }
}

TEST(Calibrate, RefusesAStartThatSaysNothing) {
  const MeasuredTable table = synthetic({}, 0, 1, skeleton({1, 2}));
  CalibrationRequest request = request_of({table}, {"nccl.launch_simple"});
  request.options.set = {parse_setting("nccl.launch_simple=0 ns")};
  EXPECT_THAT(complaint(request), HasSubstr("--fit: 'nccl.launch_simple' starts at 0"));
}

// Rows that are held out start elsewhere: they would be judged by other values.
TEST(Calibrate, RefusesSeveralStartsOfRowsHeldOutToo) {
  CalibrationRequest request = request_of({synthetic({}, 0)}, {"nccl.launch_simple"});
  request.holdout = synthetic({}, 0, 2, skeleton({8}));
  request.holdout->file = "other.csv";
  request.holdout->digest = 5;
  for (MeasuredRow& row : request.holdout->rows) row.set = "nccl.launch_simple=7 us";
  EXPECT_THAT(complaint(request), HasSubstr("'nccl.launch_simple' is "));
}

// Two rates in series, of which rows only know the sum of the times: neither has an error, and the
// JSON says null.
TEST(Calibrate, SaysWhatRowsDoNotTellApart) {
  const std::vector<std::string> keys{"nccl.launch_simple", "nccl.host_wait"};
  MeasuredTable table = synthetic({"nccl.launch_simple=8 us"}, 0.01);
  std::erase_if(table.rows, [](const MeasuredRow& row) { return row.proto != "Simple"; });
  for (MeasuredRow& row : table.rows) row.launch = "single";
  table = synthetic({"nccl.launch_simple=8 us"}, 0.01, 1, table);
  const Calibration got = calibrate(request_of({table}, keys), catalog());
  for (const FittedParam& p : got.params) {
    EXPECT_FALSE(p.told_apart) << p.spec.key;
    EXPECT_FALSE(p.standard_error.has_value()) << p.spec.key;
  }
  ASSERT_EQ(got.params.size(), 2U);
  const Json json = calibration_json(got, {});
  for (const Json& p : json.at("parameters").items()) {
    EXPECT_TRUE(p.at("standard_error").is_null());
    EXPECT_FALSE(p.at("told_apart").as_bool());
  }
  EXPECT_THAT(calibration_text(got, {}), HasSubstr("not told apart from others by these rows"));
}

// Rows of one configuration err together: however many they are, they are one sample.
TEST(Calibrate, HasNoIntervalOfFewConfigurationsWithManyRows) {
  std::string text = "transport,ranks,algo,proto,channels,op,bytes,us,launch\n";
  for (int bytes = 1 << 10; bytes <= 1 << 20; bytes += 1 << 16) {
    text += fmt::format("nvlink,2,Ring,LL,8,allreduce,{},1,graph\n", bytes);
  }
  CalibrationRequest request = request_of({synthetic(kTruth, 0.02)}, kKeys);
  request.holdout = synthetic(kTruth, 0.02, 2, parse_measured(text, "other.csv"));
  request.holdout->digest = 5;
  const Calibration got = calibrate(request, catalog());
  ASSERT_GE(got.held_out.after.at(0).rows.size(), 10U);
  EXPECT_TRUE(got.intervals.classes.empty());
  EXPECT_THAT(got.notes, Contains(HasSubstr("have no interval: 1 configurations are held out in "
                                            "all, and an interval needs 9")));
}

TEST(Calibrate, AClassOfFewConfigurationsHasTheIntervalOfAWiderOne) {
  CalibrationRequest request = request_of({synthetic(kTruth, 0.02)}, kKeys);
  request.holdout_share = 0.6;
  request.by = "transport";
  const ErrorIntervals wide = calibrate(request, catalog()).intervals;
  ASSERT_EQ(wide.classes.size(), 1U);
  request.by = "transport,channels";
  const Calibration got = calibrate(request, catalog());
  const ErrorIntervals read = parse_parameter_set(parameter_file(got, {}), "p.yaml").intervals;
  ASSERT_GT(read.classes.size(), 2U);
  for (const ClassInterval& c : read.classes) {
    EXPECT_EQ(c.values.size(), 2U);
    EXPECT_EQ(c.interval.wider, "transport");
  }
  EXPECT_THAT(got.notes, Contains(HasSubstr("classes are of a wider class: transport; of their own "
                                            "fewer than 9 configurations are held out")));
  request.by = "transport,op,channels";  // never of several operations
  EXPECT_TRUE(calibrate(request, catalog()).intervals.classes.empty());
}

TEST(ParameterFile, IsReadAsItWasWritten) {
  CalibrationRequest request = request_of({synthetic(kTruth, 0.02)}, kKeys);
  request.by = "transport";
  request.holdout_share = 0.6;
  const Calibration got = calibrate(request, catalog());
  const CalibrationFacts facts{"it's a machine.yaml", "0123", "2026-11-22", "0.3", {}, {"A=b"}};
  const ParameterSet read = parse_parameter_set(parameter_file(got, facts), "p.yaml");
  ASSERT_EQ(read.set.size(), 3U);
  PredictOptions options;
  options.set = read.set;
  const Comparison again =
      compare(got.held_out.after[0].rows.empty()
                  ? MeasuredTable{}
                  : MeasuredTable{"h", 1, {got.held_out.after[0].rows[0].measured}},
              request.machine, options, catalog());
  EXPECT_EQ(again.rows[0].predicted->time_us, got.held_out.after[0].rows[0].predicted->time_us);
  const auto used =
      std::find_if(again.provenance.params.begin(), again.provenance.params.end(),
                   [](const ProvenanceParam& p) { return p.key == "nccl.launch_simple"; });
  EXPECT_EQ(used->origin, "measured");
  EXPECT_EQ(used->source, "weft calibrate, 2026-11-22: made.csv");
  EXPECT_EQ(read.intervals.by, std::vector<std::string>{"transport"});
  ASSERT_FALSE(read.intervals.classes.empty());
  for (const ClassInterval& c : read.intervals.classes) {
    EXPECT_EQ(c.configurations, 10);  // 0.6 of 16
    EXPECT_EQ(c.rows, 20);
    EXPECT_THAT(c.interval.low, AllOf(Ge(0.9), Le(1)));
    EXPECT_THAT(c.interval.high, AllOf(Ge(1), Le(1.1)));
  }
}

}  // namespace
}  // namespace weft::test::calibrate_calibrate
