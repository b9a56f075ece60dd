#include "models/expect/expect.hpp"

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/collective/settings.hpp"
#include "sim/base/error.hpp"
#include "tests/expect/subjects.hpp"

namespace weft::test::expect_expect {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(RoundedDown, HasThreeDigitsAndNeverMore) {
  EXPECT_EQ(rounded_down(123.456), 123);
  EXPECT_EQ(rounded_down(99.99), 99.9);
  EXPECT_EQ(rounded_down(1234), 1230);
  EXPECT_EQ(rounded_down(0), 0);
  EXPECT_EQ(rounded_down(1.9029), 1.9);
  EXPECT_EQ(rounded_down(0.000293), 0.000293);
  for (double value = 1e-4; value < 1e4; value *= 1.0137) {
    const double down = rounded_down(value);
    EXPECT_LE(down, value);
    EXPECT_GT(down, 0.99 * value);
  }
}

TEST(Expect, TheValueIsThatOfAPredictionAndTheIntervalHoldsIt) {
  const ParamCatalog catalog = make_catalog();
  const Subject subject = subject_with("hgx-h100-8nic.yaml", catalog);
  const Expected expected =
      expect(subject, request_for(2, {Bytes::mib(1), Bytes::gib(1)}), catalog);
  Scenario scenario;
  scenario.op = "allreduce";
  scenario.sizes = {Bytes::mib(1), Bytes::gib(1)};
  scenario.nodes = 2;
  scenario.memory_paths = {"gdr"};
  const RunResult run = predict(scenario, subject.found.spec, {}, catalog);
  ASSERT_EQ(expected.healthy.rows.size(), 2U);
  EXPECT_FALSE(expected.found);
  for (std::size_t i = 0; i < 2; ++i) {
    const ExpectedRow& row = expected.healthy.rows[i];
    EXPECT_EQ(row.row.time_us, run.rows[i].time_us);
    EXPECT_LE(row.low(), row.row.busbw_gb_per_s);
    EXPECT_GE(row.high(), row.row.busbw_gb_per_s);
    ASSERT_TRUE(row.floor());
    EXPECT_LE(*row.floor(), row.low());
    EXPECT_FALSE(row.row.limited_by.empty());
  }
}

TEST(Expect, WhatIsWrongMovesTheMachineAsFoundAndNotTheHealthyOne) {
  const ParamCatalog catalog = make_catalog();
  const ExpectRequest request = request_for(2, {Bytes::gib(1)});
  const Subject ill = subject_with("hgx-h100-8nic.yaml", catalog, {{"nic.trained_width", "4"}});
  const Expected expected = expect(ill, request, catalog);
  const Expected well = expect(subject_with("hgx-h100-8nic.yaml", catalog), request, catalog);
  ASSERT_TRUE(expected.found);
  EXPECT_EQ(expected.healthy.rows[0].row.time_us, well.healthy.rows[0].row.time_us);
  EXPECT_GT(expected.found->rows[0].row.time_us, 1.5 * well.healthy.rows[0].row.time_us);
}

TEST(Expect, FittedValuesAreNotValidatedByPredictionsWithoutThem) {
  const ParamCatalog catalog = make_catalog();
  const auto row_of = [&](std::uint32_t nodes, bool is_fitted) {
    Subject subject = subject_with("hgx-h100-8nic.yaml", catalog);
    subject.is_fitted = is_fitted;
    return expect(subject, request_for(nodes, {Bytes::gib(1)}), catalog).healthy.rows.at(0);
  };
  const ExpectedRow without = row_of(1, false);
  EXPECT_THAT(without.basis(), StartsWith("validated: "));
  const ExpectedRow fitted = row_of(1, true);
  EXPECT_THAT(fitted.basis(), StartsWith("wider: all operations, 1 node, 64 MiB and more: "));
  EXPECT_THAT(fitted.basis(), HasSubstr("(published runs were predicted without fitted values)"));
  EXPECT_LE(fitted.band.time.low, without.band.time.low);
  EXPECT_GE(fitted.band.time.high, without.band.time.high);
  EXPECT_FALSE(row_of(16, true).floor());
  EXPECT_EQ(row_of(16, true).basis(), row_of(16, false).basis());
}

TEST(Expect, WhatIsWrongAndOfNoEffectMakesNoSecondColumn) {
  const ParamCatalog catalog = make_catalog();
  const Expected expected =
      expect(subject_with("hgx-h100-8nic.yaml", catalog, {{"nic.trained_width", "4"}}),
             request_for(1, {Bytes::mib(64)}), catalog);
  EXPECT_FALSE(expected.found);
  EXPECT_FALSE(expected.mended.empty());
}

TEST(Expect, WhereNothingValidatesThereIsAnIntervalAndNoFloor) {
  const ParamCatalog catalog = make_catalog();
  const Expected expected = expect(subject_with("hgx-h100-8nic.yaml", catalog),
                                   request_for(1, {Bytes::mib(64)}, {"alltoall"}), catalog);
  const ExpectedRow& row = expected.healthy.rows[0];
  EXPECT_FALSE(row.floor());
  EXPECT_THAT(row.band.basis, StartsWith("not validated: "));
  EXPECT_LT(row.low(), 0.7 * row.row.busbw_gb_per_s);
  EXPECT_GT(row.high(), 1.3 * row.row.busbw_gb_per_s);
}

TEST(Expect, NoIntervalGoesBeyondWhatTheWireCarries) {
  const ParamCatalog catalog = make_catalog();
  const Subject subject = subject_with("hgx-h100-8nic.yaml", catalog);  // NICs of 50 GB/s
  const Expected reads = expect(
      subject, request_for(2, {Bytes::kib(64)}, {"read_bw", "read_bw_bidirectional"}), catalog);
  EXPECT_LE(reads.healthy.rows[0].high(), 50);
  EXPECT_LE(reads.healthy.rows[1].high(), 100);
  for (const ExpectedRow& row : reads.healthy.rows) {
    EXPECT_GE(row.high(), row.row.busbw_gb_per_s);
    EXPECT_THAT(row.basis(), HasSubstr("; the upper end is what a link carries: "));
  }
  const ExpectedRow all_to_all =
      expect(subject, request_for(2, {Bytes::gib(1)}, {"alltoall"}), catalog).healthy.rows[0];
  // Each of 16 ranks sends 8 of its 15 parts for others to the other node, over a NIC of its own.
  EXPECT_LE(all_to_all.high(), 50 * 15.0 / 8);
  EXPECT_GE(all_to_all.high(), all_to_all.row.busbw_gb_per_s);
  EXPECT_THAT(all_to_all.basis(), HasSubstr("what a link carries: the busiest NIC's wire"));
}

TEST(Expect, ASlowMachinesIntervalIsBoundedByItsPcieLink) {
  const ParamCatalog catalog = make_catalog();
  const Subject subject =
      subject_with("hgx-h100-8nic.yaml", catalog, {{"nic.pcie_gen", "3"}, {"nic.pcie_width", "8"}});
  const ExpectedRow row =
      expect(subject, request_for(2, {Bytes::mib(1)}, {"read_bw"}), catalog).healthy.rows[0];
  EXPECT_LE(row.high(), 7.88);  // 8 GT/s x 8, 128b/130b
  EXPECT_THAT(row.basis(), HasSubstr("what a link carries: PCIe"));
}

TEST(Expect, WhatNcclRunsAndWeftDoesNotHasNoFloor) {
  const ParamCatalog catalog = make_catalog();
  ExpectRequest request = request_for(1, {Bytes::mib(64)}, {"allgather"});
  const Subject subject = subject_with("hgx-h100-8nic.yaml", catalog);
  EXPECT_TRUE(expect(subject, request, catalog).healthy.rows[0].floor());
  request.nodes = 2;
  request.options.env = {
      {"NCCL_PAT_ENABLE", "1"}, {"NCCL_PROTO", "Simple"}, {"NCCL_NVLS_ENABLE", "0"}};
  request.sizes = {Bytes::kib(512)};
  const Expected expected = expect(subject, request, catalog);
  EXPECT_FALSE(expected.healthy.rows[0].floor());
  EXPECT_EQ(expected.healthy.rows[0].band.basis,
            "not validated: NCCL runs PAT, which weft does not execute");
}

TEST(Expect, WhatNetworkSwitchesReduceHasNoFloor) {
  const ParamCatalog catalog = make_catalog();
  ExpectRequest request = request_for(4, {Bytes::gib(1)}, {"allreduce"});
  const Subject subject = subject_with("hgx-h100-8nic.yaml", catalog, {{"nic.collnet", "on"}});
  EXPECT_TRUE(expect(subject, request, catalog).healthy.rows[0].floor());
  request.options.env = {{"NCCL_COLLNET_ENABLE", "1"}};
  const ExpectedRow row = expect(subject, request, catalog).healthy.rows[0];
  EXPECT_FALSE(row.floor());
  EXPECT_EQ(row.row.algo, "NVLSTree");
  EXPECT_EQ(row.band.basis, "not validated: NCCL runs NVLS, which weft does not execute");
}

TEST(Expect, TheMemoryPathIsNcclsUnlessItIsSaid) {
  const ParamCatalog catalog = make_catalog();
  const Subject subject = subject_with("hgx-h100-8nic.yaml", catalog);
  ExpectRequest request = request_for(2, {Bytes::mib(64)});
  EXPECT_EQ(expect(subject, request, catalog).healthy.rows[0].row.memory_path, "gdr");
  request.options.env["NCCL_NET_GDR_LEVEL"] = "LOC";
  const Expected declined = expect(subject, request, catalog);
  EXPECT_EQ(declined.healthy.rows[0].row.memory_path, "host-staged");
  EXPECT_THAT(declined.healthy.rows[0].band.basis, HasSubstr("staged in host memory"));
  request.memory_path = "gdr";
  EXPECT_EQ(expect(subject, request, catalog).healthy.rows[0].row.memory_path, "gdr");
}

TEST(Expect, WhatJoinsGpusInANodeFollowsFromTheMachine) {
  const ParamCatalog catalog = make_catalog();
  const Subject subject = subject_with("hgx-h100-8nic.yaml", catalog);
  PredictOptions options;
  EXPECT_EQ(transport_inside(subject.healthy, {}, options, catalog), "nvlink");
  options.env["NCCL_P2P_DISABLE"] = "1";
  EXPECT_EQ(transport_inside(subject.healthy, {}, options, catalog), "shm");
  const Subject plain = subject_with("genoa-2p.yaml", catalog);
  EXPECT_EQ(transport_inside(plain.healthy, {}, {}, catalog), "pcie");
}

/// Why weft has no floor for a machine like this; "" if it has one. Nothing is predicted for it.
std::string why_no_floor(const Subject& subject, Where where,
                         const std::map<std::string, std::string>& env = {}) {
  PredictOptions options;
  options.env = env;
  return unlike_measured(subject.healthy, subject.healthy_set, where, options, make_catalog());
}

TEST(Expect, MachinesThatNobodyMeasuredHaveNoFloor) {
  const ParamCatalog catalog = make_catalog();
  const auto with = [&](const std::string& topology,
                        const std::vector<std::pair<std::string, std::string>>& set) {
    return subject_with(topology, catalog, set);
  };
  const std::string plain = "hgx-h100-8nic.yaml";
  EXPECT_EQ(why_no_floor(with(plain, {}), Where::kInNode), "");
  EXPECT_EQ(why_no_floor(with(plain, {}), Where::kBetweenNodes), "");
  EXPECT_EQ(why_no_floor(with("genoa-2p.yaml", {}), Where::kBetweenNodes),
            "no published run of GPUs like h100-pcie");
  EXPECT_EQ(
      why_no_floor(with(plain, {{"gpu.count", "1"}, {"nic.count", "1"}}), Where::kBetweenNodes),
      "no published run of one GPU a node");
  EXPECT_EQ(why_no_floor(with(plain, {{"nic.part", "efa"}}), Where::kBetweenNodes),
            "no published run over NICs like efa");
  EXPECT_EQ(why_no_floor(with(plain, {{"nic.part", "efa"}}), Where::kPerftest),
            "no published run over NICs like efa");
  EXPECT_EQ(why_no_floor(with(plain, {{"nic.part", "efa"}}), Where::kInNode), "");
  EXPECT_EQ(why_no_floor(with(plain, {{"gpu.part", "v100-sxm"}}), Where::kInNode),
            "no published run of GPUs like v100-sxm");
}

TEST(Expect, NicsOfWhichNothingIsSaidHaveNoFloor) {
  const ParamCatalog catalog = make_catalog();
  TopologySpec spec = read_topology(shipped_topology("hgx-h100-8nic.yaml"), catalog);
  for (DeviceSpec& device : spec.node.devices) {
    if (device.kind == DeviceKind::kNic) device.part.clear();
  }
  const MachineCase machine = subject_of(spec, {}, catalog).healthy;
  for (const Where where : {Where::kBetweenNodes, Where::kPerftest}) {
    EXPECT_EQ(unlike_measured(machine, {}, where, {}, catalog),
              "nothing says the rate of nic0: nic.rate, 50 GB/s, is the declared default");
    EXPECT_EQ(unlike_measured(machine, {parse_setting("nic.rate=400 Gb/s")}, where, {}, catalog),
              "");
  }
  EXPECT_EQ(unlike_measured(machine, {}, Where::kInNode, {}, catalog), "");
}

TEST(Expect, BondsHaveNoFloor) {
  const ParamCatalog catalog = make_catalog();
  TopologySpec spec = read_topology(shipped_topology("hgx-h100-8nic.yaml"), catalog);
  for (DeviceSpec& device : spec.node.devices) {
    if (device.name == "nic0") device.name = "mlx5_bond_0";
  }
  EXPECT_EQ(
      unlike_measured(subject_of(spec, {}, catalog).healthy, {}, Where::kBetweenNodes, {}, catalog),
      "mlx5_bond_0 is a bond of ports, which is not modelled");
}

TEST(Expect, GpusMustBeJoinedEachWithEach) {
  const ParamCatalog catalog = make_catalog();
  TopologySpec spec = read_topology(shipped_topology("merlin-a100.yaml"), catalog);
  EXPECT_EQ(unlike_measured(subject_of(spec, {}, catalog).healthy, {}, Where::kInNode, {}, catalog),
            "");
  std::erase_if(spec.node.links, [](const PeerLinkSpec& link) {
    return link.a == "gpu0" && link.b == "gpu3" && link.kind == LinkKind::kNvlink;
  });
  const MachineCase mesh = subject_of(spec, {}, catalog).healthy;
  for (const Where where : {Where::kInNode, Where::kBetweenNodes}) {
    EXPECT_EQ(unlike_measured(mesh, {}, where, {}, catalog),
              "no published run of GPUs that NVLink does not join each with each");
  }
}

TEST(Expect, AForcedProtocolOrAlgorithmThatNobodyMeasuredHasNoFloor) {
  const ParamCatalog catalog = make_catalog();
  const std::string plain = "hgx-h100-8nic.yaml";
  EXPECT_EQ(
      why_no_floor(subject_with(plain, catalog, {{"nccl.proto", "LL"}}), Where::kBetweenNodes),
      "no published run that NCCL_PROTO=ll forces");
  const Subject subject = subject_with(plain, catalog);
  EXPECT_EQ(why_no_floor(subject, Where::kBetweenNodes, {{"NCCL_PROTO", "LL128"}}),
            "no published run that NCCL_PROTO=ll128 forces");
  EXPECT_EQ(why_no_floor(subject, Where::kInNode, {{"NCCL_ALGO", "Tree"}}),
            "no published run that NCCL_ALGO=tree forces");
  EXPECT_EQ(why_no_floor(subject, Where::kBetweenNodes, {{"NCCL_ALGO", "Ring"}}), "");
}

TEST(Expect, GpuDirectRdmaInPartHasNoFloor) {
  const Subject subject = subject_with("hgx-h100-8nic.yaml", make_catalog());
  EXPECT_EQ(why_no_floor(subject, Where::kBetweenNodes, {{"NCCL_NET_GDR_READ", "0"}}),
            "no published run with GPUDirect RDMA at some ends of NCCL's rings only "
            "(NCCL_NET_GDR_READ=0: the NIC does not read GPU memory)");
  EXPECT_EQ(why_no_floor(subject, Where::kInNode, {{"NCCL_NET_GDR_READ", "0"}}), "");
}

TEST(Expect, AMachineThatCannotRunAsFoundIsExpectedAsHealthy) {
  const ParamCatalog catalog = make_catalog();
  const Expected expected =
      expect(subject_with("hgx-h100-8nic.yaml", catalog, {{"nic.gdr", "off"}}),
             request_for(2, {Bytes::kib(64)}, {"write_bw"}), catalog);
  EXPECT_EQ(expected.healthy.rows.size(), 1U);
  EXPECT_FALSE(expected.found);
  EXPECT_THAT(expected.why_not_found, HasSubstr("nic.gdr=off"));
  EXPECT_THAT(expected.notes.back(), StartsWith("as found it cannot be predicted: "));
}

TEST(Expect, Perftest) {
  const ParamCatalog catalog = make_catalog();
  const Subject subject = subject_with("hgx-h100-8nic.yaml", catalog);
  const Expected expected =
      expect(subject, request_for(2, {Bytes::kib(64)}, {"write_bw", "read_bw"}), catalog);
  ASSERT_EQ(expected.healthy.rows.size(), 2U);
  const ExpectedRow& write = expected.healthy.rows[0];
  EXPECT_NEAR(write.row.busbw_gb_per_s, 49, 1);  // 400 Gb/s InfiniBand less headers
  ASSERT_TRUE(write.floor());
  EXPECT_GT(*write.floor(), 40);
  EXPECT_FALSE(expected.healthy.rows[1].floor());
}

TEST(Expect, OneToolAtATime) {
  EXPECT_TRUE(are_perftest({"write_bw"}));
  EXPECT_FALSE(are_perftest({"allreduce", "allgather"}));
  EXPECT_THROW(are_perftest({"allreduce", "write_bw"}), InputError);
}

}  // namespace
}  // namespace weft::test::expect_expect
