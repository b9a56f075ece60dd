#include "models/expect/judge.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/expect/subjects.hpp"

namespace weft::test::expect_judge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ParamCatalog& catalog() {
  static const ParamCatalog kKnown = make_catalog();
  return kKnown;
}

const Subject& machine() {
  static const Subject kKnown = subject_with("hgx-h100-8nic.yaml", catalog());
  return kKnown;
}

const ExpectedRow& row_of_64_mib() {
  static const Expected kKnown = expect(machine(), request_for(2, {Bytes::mib(64)}), catalog());
  return kKnown.healthy.rows.front();
}

/// Rows of 64 MiB on 2 nodes, of these bus bandwidths.
MeasuredTable measured(const std::vector<double>& busbw, const std::string& op = "allreduce") {
  std::string text = "transport,memory_path,hosts,ranks,op,bytes,busbw_GBps\n";
  for (const double value : busbw) {
    text += "net,gdr,2,16," + op + ",67108864," + std::to_string(value) + "\n";
  }
  return parse_measured(text, "m.csv");
}

std::vector<Judged> verdicts(const Judgement& judgement) {
  std::vector<Judged> out;
  for (const JudgedRow& row : judgement.rows) out.push_back(row.judged);
  return out;
}

TEST(Judge, HoldsRowsAgainstFloorAndInterval) {
  const double floor = *row_of_64_mib().floor();
  const double high = row_of_64_mib().high();
  const Judgement judgement =
      judge(measured({0.99 * floor, floor, high * 0.999, high * 1.01}), machine(), {}, catalog());
  EXPECT_THAT(verdicts(judgement),
              ElementsAre(Judged::kBelow, Judged::kOk, Judged::kOk, Judged::kAbove));
  EXPECT_EQ(judgement.count(Judged::kOk), 2U);
  EXPECT_EQ(judgement.rows[0].floor, floor);
  EXPECT_EQ(judgement.rows[0].expected, row_of_64_mib().row.busbw_gb_per_s);
}

TEST(Judge, KeepsTheNotesOfItsPredictions) {
  PredictOptions options;
  options.env["NCCL_NET_PLUGIN"] = "none";  // which weft does not model
  const auto notes = [&](const Subject& subject) {
    return judge(measured({100}), subject, options, catalog()).notes;
  };
  const auto of_variable = HasSubstr("NCCL_NET_PLUGIN");
  EXPECT_THAT(notes(machine()), ElementsAre(of_variable));
  const Subject ill = subject_with("hgx-h100-8nic.yaml", catalog(), {{"nic.gdr", "off"}});
  ASSERT_FALSE(ill.mended.empty());
  std::vector<std::string> each = notes(ill);
  EXPECT_THAT(each, ::testing::Contains(of_variable).Times(1));
  std::sort(each.begin(), each.end());
  EXPECT_EQ(std::adjacent_find(each.begin(), each.end()), each.end());
}

TEST(Judge, WithoutAFloorNothingFails) {
  const Judgement judgement = judge(measured({0.01}, "alltoall"), machine(), {}, catalog());
  EXPECT_THAT(verdicts(judgement), ElementsAre(Judged::kNoFloor));
  EXPECT_THAT(judgement.rows[0].basis, HasSubstr("not validated: no published alltoall"));
}

TEST(Judge, WhatCannotBePredictedSaysWhy) {
  const MeasuredTable table = parse_measured(
      "transport,memory_path,hosts,ranks,op,bytes,us\nnet,gdr,2,32,allreduce,64,10\n", "m.csv");
  const Judgement judgement = judge(table, machine(), {}, catalog());
  EXPECT_THAT(verdicts(judgement), ElementsAre(Judged::kNotPredicted));
  EXPECT_THAT(judgement.rows[0].basis, HasSubstr("a node has 8 GPUs"));
}

TEST(Judge, FittedValuesAreNotValidated) {
  Subject fitted = machine();
  fitted.is_fitted = true;
  EXPECT_THAT(judge(measured({100}), fitted, {}, catalog()).rows[0].basis,
              HasSubstr("published runs were predicted without fitted values"));
}

TEST(Judge, WhatTheMachineGivesAsFoundStandsBeside) {
  const Subject ill = subject_with("hgx-h100-8nic.yaml", catalog(), {{"nic.trained_width", "4"}});
  const Judgement judgement = judge(measured({100}), ill, {}, catalog());
  ASSERT_TRUE(judgement.rows[0].found);
  EXPECT_LT(judgement.rows[0].found->high(), judgement.rows[0].low);
  EXPECT_EQ(judgement.rows[0].judged, Judged::kBelow);
}

TEST(Judge, WhatIsMendedAndOfNoEffectStandsNotBeside) {
  const Subject ill = subject_with("hgx-h100-8nic.yaml", catalog(), {{"nic.trained_width", "4"}});
  const MeasuredTable table = parse_measured(
      "transport,hosts,ranks,op,bytes,busbw_GBps\nnvlink,1,8,allreduce,67108864,300\n", "m.csv");
  EXPECT_FALSE(judge(table, ill, {}, catalog()).rows[0].found);
}

TEST(Judge, OtherToolsStateHowTheirMachinesAreJoined) {
  constexpr const char* kJson =
      R"({"test_info": {"test": "RDMA_Write_BW", "Transport_type": "IB", "Connection_type": "RC"},)"
      R"("results": {"MsgSize": 65536, "BW_average": 391.76, "MsgRate": 0.747224}})";
  const MeasuredTable table =
      parse_measured_on(kJson, "p.json", {}, "nvlink", [](Op) { return "gdr"; });
  EXPECT_EQ(table.rows.at(0).op, "write_bw");
  EXPECT_EQ(table.rows.at(0).memory_path, "host");
}

TEST(Judge, WhatNobodyMeasuredHasNoFloor) {
  const auto basis = [](const std::string& columns, const std::string& cells,
                        const Subject& subject) {
    const MeasuredTable table = parse_measured(
        "transport,memory_path,hosts,ranks,op,bytes,busbw_GBps" + columns + "\n" + cells + "\n",
        "m.csv");
    const JudgedRow row = judge(table, subject, {}, catalog()).rows.at(0);
    EXPECT_EQ(row.judged, Judged::kNoFloor) << row.basis;
    return row.basis;
  };
  EXPECT_THAT(basis("", "net,gdr,2,16,allreduce,67108864,1",
                    subject_with("hgx-h100-8nic.yaml", catalog(), {{"nic.part", "efa"}})),
              HasSubstr("NICs like efa"));
  EXPECT_THAT(basis(",set", "net,gdr,2,16,allreduce,67108864,1,nic.part=efa", machine()),
              HasSubstr("NICs like efa"));
  EXPECT_THAT(basis(",algo,proto", "net,gdr,2,16,allreduce,67108864,1,Tree,LL", machine()),
              HasSubstr("NCCL_PROTO=ll forces"));
  EXPECT_THAT(basis(",env", "net,gdr,2,16,allreduce,67108864,1,NCCL_PROTO=LL", machine()),
              HasSubstr("NCCL_PROTO=ll forces"));
  EXPECT_THAT(basis("", "net,gdr,2,2,allreduce,67108864,1", machine()),
              HasSubstr("one GPU a node"));
}

TEST(Judge, AGateIsHeldAgainstUntilItIsStopped) {
  const Expected expected = expect(machine(), request_for(2, {Bytes::mib(64)}), catalog());
  const Gate gate = parse_gate(gate_json(expected).dump(), "g.json");
  Stop stop;
  stop.request();
  EXPECT_THROW(judge(measured({100}), gate, &stop), Stopped);
}

TEST(Judge, AGateJudgesAsItsMachineDoes) {
  const Expected expected = expect(machine(), request_for(2, {Bytes::mib(64)}), catalog());
  const Gate gate = parse_gate(gate_json(expected).dump(), "g.json");
  const double floor = *row_of_64_mib().floor();
  const MeasuredTable table = measured({0.99 * floor, floor, 1e5});
  EXPECT_EQ(verdicts(judge(table, gate)), verdicts(judge(table, machine(), {}, catalog())));
}

TEST(Judge, WhatFailedIsToldWhateverItsTimes) {
  const Expected expected = expect(machine(), request_for(2, {Bytes::mib(1)}), catalog());
  const Gate gate = parse_gate(gate_json(expected).dump(), "g.json");
  MeasuredTable table = measured({100});
  table.failures = {"it failed"};
  EXPECT_EQ(judge(table, gate).failures, table.failures) << "though no row has a floor";
  EXPECT_EQ(judge(table, machine(), {}, catalog()).failures, table.failures);
}

TEST(Judge, WhatWasRunUnlikeWeftDoesIsNotJudged) {
  const Expected expected = expect(machine(), request_for(2, {Bytes::mib(64)}), catalog());
  const Gate gate = parse_gate(gate_json(expected).dump(), "g.json");
  MeasuredTable table = measured({1e4, 1e4});
  table.rows[0].unlike = "run otherwise";
  for (const Judgement& judgement : {judge(table, gate), judge(table, machine(), {}, catalog())}) {
    EXPECT_THAT(verdicts(judgement), ElementsAre(Judged::kNotPredicted, Judged::kAbove));
    EXPECT_EQ(judgement.rows[0].basis, "run otherwise");
  }
  table.rows.pop_back();
  try {
    judge(table, gate);
    FAIL();
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("memory_path gdr; run otherwise"));
  }
}

TEST(Judge, FloorsWithoutARowAreTold) {
  const Expected expected =
      expect(machine(), request_for(2, {Bytes::mib(1), Bytes::mib(64)}), catalog());
  const Gate gate = parse_gate(gate_json(expected).dump(), "g.json");
  EXPECT_THAT(notes_of_unmeasured(measured({100}), gate, [](const GateKey&) { return true; }),
              ElementsAre("m.csv: no row for 1 of 2 floors of g.json; the first: allreduce of "
                          "1 MiB, 16 GPUs of 2 nodes, memory_path gdr"));
  const auto is_large = [](const GateKey& key) { return key.bytes > 1 << 20; };
  EXPECT_THAT(notes_of_unmeasured(measured({100}), gate, is_large), ElementsAre());
}

TEST(Judge, AGateThatHasNoFloorForAnyRowIsRefused) {
  const Expected expected = expect(machine(), request_for(2, {Bytes::mib(1)}), catalog());
  const Gate gate = parse_gate(gate_json(expected).dump(), "g.json");
  try {
    judge(measured({100}), gate);
    FAIL();
  } catch (const InputError& e) {
    EXPECT_THAT(
        e.what(),
        HasSubstr("m.csv: no row has a floor in g.json: the first of 1 is allreduce of 64 MiB, 16 "
                  "GPUs of 2 nodes, memory_path gdr; the nearest floor has bytes 1 MiB, not "
                  "64 MiB"));
  }
}

}  // namespace
}  // namespace weft::test::expect_judge
