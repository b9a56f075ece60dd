#include "replay/calibrate/calibrate.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/collective/compare.hpp"
#include "models/collective/parameter_set.hpp"
#include "replay/calibrate/report.hpp"
#include "sim/base/error.hpp"
#include "sim/base/random.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test::calibrate_calibrate {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

const ParamCatalog& catalog() {
  static const ParamCatalog known = make_catalog();
  return known;
}

CalibrationRequest request_of(const std::vector<MeasuredTable>& tables,
                              const std::vector<std::string>& keys) {
  CalibrationRequest request;
  request.tables = tables;
  request.machine = read_topology(shipped("topologies/h200-vm.yaml"), catalog());
  request.keys = keys;
  return request;
}

/// Ring all-reduce and all-gather over NVLink with Simple and LL, some channels and sizes.
MeasuredTable skeleton(const std::vector<int>& channels = {1, 2, 3, 4}) {
  std::string text = "transport,ranks,algo,proto,channels,op,bytes,us,launch\n";
  for (const char* op : {"allreduce", "allgather"}) {
    for (const char* proto : {"Simple", "LL"}) {
      for (const int n : channels) {
        for (const char* bytes : {"1024", "65536", "1048576"}) {
          text += std::string("nvlink,2,Ring,") + proto + ',' + std::to_string(n) + ',' + op + ',' +
                  bytes + ",1,graph\n";
        }
      }
    }
  }
  return parse_measured(text, "made.csv");
}

/// Times that weft predicts with these settings, each off by a factor of exp(noise) and of its own.
MeasuredTable synthetic(const std::vector<std::string>& settings, double noise,
                        std::uint64_t seed = 1, MeasuredTable table = skeleton()) {
  PredictOptions options;
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  const Comparison predicted = compare(
      table, read_topology(shipped("topologies/h200-vm.yaml"), catalog()), options, catalog());
  std::mt19937_64 stream = random_stream(seed, "noise");
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const double off = noise * std::sqrt(12.0) * (uniform01(stream) - 0.5);
    table.rows[i].us = predicted.rows[i].predicted->time_us * std::exp(off);
  }
  return table;
}

const FittedParam& param(const Calibration& calibration, std::string_view key) {
  for (const FittedParam& p : calibration.params) {
    if (p.spec.key == key) return p;
  }
  throw std::logic_error("not fitted: " + std::string(key));
}

const std::vector<std::string> kTruth{"nccl.launch_simple=6.5 us", "nccl.launch_ll=5.5 us",
                                      "gpu.sm_peer_store_rate=40 GB/s"};
const std::vector<std::string> kKeys{"nccl.launch_simple", "nccl.launch_ll",
                                     "gpu.sm_peer_store_rate"};

TEST(Calibrate, FindsWhatATableWasMadeWith) {
  const Calibration got = calibrate(request_of({synthetic(kTruth, 0)}, kKeys), catalog());
  EXPECT_EQ(got.refusal, "");
  EXPECT_NEAR(param(got, "nccl.launch_simple").value, 6500, 5);
  EXPECT_NEAR(param(got, "nccl.launch_ll").value, 5500, 5);
  EXPECT_NEAR(param(got, "gpu.sm_peer_store_rate").value, 40, 0.1);
  EXPECT_EQ(param(got, "nccl.launch_simple").start, 8700);
  EXPECT_LT(summary_of(counted_rows(joined(got.held_out.after), {got.by, false})).median_abs, 1e-3);
}

TEST(Calibrate, MissesByNoMoreThanItSays) {
  // Ten draws of the noise: of these 30 errors about 3 % may lie beyond 2.5 standard errors by
  // chance and few groups; none beyond 5, and on average they are as large as they are said to be.
  double sum = 0;
  int beyond = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Calibration got =
        calibrate(request_of({synthetic(kTruth, 0.03, seed)}, kKeys), catalog());
    ASSERT_EQ(got.refusal, "");
    for (const auto& [key, truth] :
         std::vector<std::pair<std::string, double>>{{"nccl.launch_simple", 6500},
                                                     {"nccl.launch_ll", 5500},
                                                     {"gpu.sm_peer_store_rate", 40}}) {
      const FittedParam& p = param(got, key);
      const double missed = (p.value - truth) / p.standard_error.value();
      EXPECT_LT(std::abs(missed), 5) << key << ", seed " << seed;
      beyond += std::abs(missed) > 2.5 ? 1 : 0;
      sum += missed * missed;
    }
  }
  EXPECT_LE(beyond, 4);
  EXPECT_THAT(std::sqrt(sum / 30), AllOf(Ge(0.5), Le(2)));
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
  EXPECT_EQ(got.held_out.after[0].rows.size(), 12U);
  EXPECT_TRUE(got.notes.empty());
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
  EXPECT_THAT(got.refusal, HasSubstr("median error of the rows held out does not fall"));
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

TEST(Calibrate, RefusesAsManyParametersAsConfigurations) {
  MeasuredTable table = synthetic(kTruth, 0.02, 1, skeleton({1, 2}));
  std::erase_if(table.rows, [](const MeasuredRow& row) { return row.proto != "Simple"; });
  const Calibration got =
      calibrate(request_of({table}, {"nccl.launch_simple", "nccl.work_simple", "nccl.sync_simple"}),
                catalog());
  EXPECT_EQ(got.refusal,
            "3 parameters, and 3 fitted configurations that depend on them: at least one more is "
            "needed");
  EXPECT_TRUE(got.params.empty());
}

TEST(Calibrate, WithoutKeysFitsWhatIsAFitAlreadyAndCounts) {
  const Calibration got = calibrate(
      request_of({synthetic({"nccl.launch_ll=5.5 us", "nccl.launch_simple=7 us"}, 0.005)}, {}),
      catalog());
  EXPECT_NO_THROW(param(got, "nccl.launch_ll"));
  EXPECT_NO_THROW(param(got, "gpu.sm_peer_store_rate"));
  EXPECT_THROW(param(got, "nccl.launch_ll128"), std::logic_error);
  EXPECT_THAT(got.notes.at(0), HasSubstr("not fitted: no fitted row depends on "));
  EXPECT_THAT(got.notes.at(0), HasSubstr("nccl.launch_ll128"));
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

TEST(ParameterFile, IsReadAsItWasWritten) {
  CalibrationRequest request = request_of({synthetic(kTruth, 0.02)}, kKeys);
  request.by = "proto";
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
  EXPECT_EQ(read.intervals.by, std::vector<std::string>{"proto"});
  ASSERT_FALSE(read.intervals.classes.empty());
  for (const ClassInterval& c : read.intervals.classes) {
    EXPECT_THAT(c.interval.low, AllOf(Ge(0.9), Le(1)));
    EXPECT_THAT(c.interval.high, AllOf(Ge(1), Le(1.1)));
  }
}

}  // namespace
}  // namespace weft::test::calibrate_calibrate
