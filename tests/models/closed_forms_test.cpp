// The quickstart's answer at 8 GiB against closed forms: which server fills first, and what a
// byte costs on it. 0.7 % tolerance: filling and draining the pipeline, launch, loads' round trips.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_closed_forms {
namespace {

constexpr double kTolerance = 0.007;
constexpr double kNics = 8;
constexpr double kGen5x16 = 32.0 * 16 / 8 * 128 / 130;  // 63.015 GB/s

double per_nic(const std::string& path, const std::vector<std::string>& settings = {},
               double nics = kNics) {
  return predict_carried(path, Bytes::gib(8), settings).busbw_gb_per_s / nics;
}

/// What a host-staged byte of one NIC costs on its switch's uplink, upwards: the GPU's stores in
/// lines of 128 B, the NIC's writes, both sides' read requests, DLLPs for the completions that come
/// down.
double staged_up(double mps) {
  const double completion = std::min(mps, 256.0);
  return (128 + 24) / 128.0 + (mps + 24) / mps + 24 / 512.0 + 24 / 128.0 + 4 / completion +
         4 / 128.0;
}

/// k NICs and k GPUs below one uplink, each NIC sending and receiving: B = C / (k x cost).
double staged_by_uplink(double k, double mps = 256, double uplink = kGen5x16) {
  return uplink / (k * staged_up(mps));
}

/// Each byte is written to and read from DRAM at both ends; full duplex: 4 passes a NIC.
double staged_by_dram(double channels, double nics_per_socket) {
  return 0.8 * channels * 4.8 * 8 / (4 * nics_per_socket);
}

TEST(Quickstart, GdrIsTheWiresPayload) {
  // 50 GB/s x 4096 / (4096 + 26) = 49.68 GB/s a NIC (397.5 Gb/s), ACKs of 30 B for 1 MiB beside it.
  const double form = 50.0 * 4096 / 4122;
  EXPECT_NEAR(per_nic("gdr") / form, 1.0, kTolerance);
  EXPECT_LE(per_nic("gdr"), form);
  EXPECT_GE(per_nic("gdr"), 46.0);
}

TEST(Quickstart, HostStagedIsTheUplinkOverTwiceTheCostOfAByte) {
  // 14.2 GB/s would be the bound if every TLP had 256 B and requests were free.
  // SMs store and load in lines of 128 B (measured on H200), so it is 12.3.
  const double form = staged_by_uplink(2);
  EXPECT_LT(form, 14.2);
  EXPECT_LT(form, staged_by_dram(8, 4));
  EXPECT_NEAR(per_nic("host-staged") / form, 1.0, kTolerance);
  const double ratio = per_nic("host-staged") / per_nic("gdr");
  EXPECT_GE(ratio, 0.18);
  EXPECT_LE(ratio, 0.36);
}

TEST(Quickstart, HostStagedComesNearTheBoundOf142WhenEveryTlpIs256BytesAndRequestsAreLarge) {
  // The same form with lines of 256 B and NIC requests of 4 KiB:
  // up = 2 x 280/256 + 24/4096 + 24/256 + 2 x 4/256 = 2.318, so 63.015 / (2 x 2.318) = 13.6 GB/s;
  // what is missing to 14.2 are the read requests of the GPU, one for each line.
  const double up = 2 * 280 / 256.0 + 24 / 4096.0 + 24 / 256.0 + 2 * 4 / 256.0;
  EXPECT_NEAR(
      per_nic("host-staged", {"gpu.sm_line=256 B", "nic.mrrs=4096 B"}) / (kGen5x16 / (2 * up)), 1.0,
      0.01);
}

TEST(Quickstart, TheVerdictNamesTheServer) {
  // A ring fills both directions of a wire alike: either may be named.
  EXPECT_TRUE(predict_carried("gdr", Bytes::gib(8)).limited_by.at(0).cause.starts_with("wire, "));
  EXPECT_EQ(predict_carried("host-staged", Bytes::gib(8)).limited_by.at(0).cause,
            "PCIe uplink, switch to CPU");
}

TEST(Quickstart, HalfTheNicRateHalvesGdrAndLeavesStagedAlone) {
  EXPECT_NEAR(per_nic("gdr", {"nic.rate=200 Gb/s"}) / (25.0 * 4096 / 4122), 1.0, kTolerance);
  EXPECT_NEAR(per_nic("host-staged", {"nic.rate=200 Gb/s"}) / staged_by_uplink(2), 1.0, kTolerance);
}

TEST(Quickstart, HalfTheNicsLinkMakesPcieTheLimitOfGdr) {
  // Gen5 x8: what the NIC writes upwards, (256 + 24)/256, with its read requests, 24/512, and the
  // DLLPs for the completions it takes, 4/256: 31.508 / 1.15625 = 27.25 GB/s.
  const double form = kGen5x16 / 2 / (280 / 256.0 + 24 / 512.0 + 4 / 256.0);
  const ResultRow row = predict_carried("gdr", Bytes::gib(8), {"nic.pcie_width=8"});
  EXPECT_NEAR(row.busbw_gb_per_s / kNics / form, 1.0, kTolerance);
  EXPECT_EQ(row.limited_by.at(0).cause, "PCIe link, NIC to switch");
  // Gen4 x16 is the same link rate.
  EXPECT_NEAR(per_nic("gdr", {"nic.pcie_gen=4"}) / form, 1.0, kTolerance);
}

TEST(Quickstart, HalfTheUplinkHalvesStagedAndLeavesGdrAlone) {
  EXPECT_NEAR(
      per_nic("host-staged", {"switch.pcie_width=8"}) / staged_by_uplink(2, 256, kGen5x16 / 2), 1.0,
      kTolerance);
  EXPECT_NEAR(per_nic("gdr", {"switch.pcie_width=8"}) / per_nic("gdr"), 1.0, 1e-9);
}

TEST(Quickstart, HalfTheMpsCostsStagedItsLargerHeaders) {
  EXPECT_NEAR(per_nic("host-staged", {"nic.mps=128 B"}) / staged_by_uplink(2, 128), 1.0,
              kTolerance);
}

TEST(Quickstart, HalfTheMpsCostsGdrWhereThePcieLinkIsTheLimit) {
  // As HalfTheNicsLink..., with TLPs of 128 B: (128 + 24)/128 + 24/512 + 4/128.
  const double form = kGen5x16 / 2 / (152 / 128.0 + 24 / 512.0 + 4 / 128.0);
  EXPECT_NEAR(per_nic("gdr", {"nic.pcie_width=8", "nic.mps=128 B"}) / form, 1.0, kTolerance);
}

TEST(Quickstart, HalfTheDramChannelsMakeDramTheLimitOfStaged) {
  const ResultRow row = predict_carried("host-staged", Bytes::gib(8), {"cpu.dram_channels=4"});
  EXPECT_LT(staged_by_dram(4, 4), staged_by_uplink(2));  // 7.68 GB/s
  EXPECT_NEAR(row.busbw_gb_per_s / kNics / staged_by_dram(4, 4), 1.0, kTolerance);
  EXPECT_EQ(row.limited_by.at(0).cause, "DRAM of a socket");
}

TEST(Quickstart, HalfTheNicsHalveGdrAndLeaveTheUplinkToOneNicEach) {
  EXPECT_NEAR(per_nic("gdr", {"nic.count=4"}, 4) / (50.0 * 4096 / 4122), 1.0, kTolerance);
  // k = 1: the uplink gives each of 4 NICs twice as much; DRAM could give 30.7 GB/s.
  EXPECT_LT(staged_by_uplink(1), staged_by_dram(8, 2));
  // Twice as fast a pipeline shows its fixed round trips twice as much.
  EXPECT_NEAR(per_nic("host-staged", {"nic.count=4"}, 4) / staged_by_uplink(1), 1.0,
              2 * kTolerance);
}

TEST(Quickstart, RoceCarriesItsHeaders) {
  // MTU over MTU and 82 B of headers: 392.1 Gb/s at MTU 4096 (measured in NVIDIA/nccl#2409), 370 at
  // 1024.
  EXPECT_NEAR(per_nic("gdr", {"wire.kind=roce"}) * 8 / 392.1, 1.0, kTolerance);
  EXPECT_NEAR(per_nic("gdr", {"wire.kind=roce", "wire.mtu=1024 B"}) * 8 / 370.3, 1.0, kTolerance);
}

/// An all-to-all of 4 nodes, one on each leaf of 8 ports down, 256 MiB from each of 32 GPUs.
ResultRow all_to_all_over_leaves(const std::vector<std::string>& settings) {
  Scenario scenario = read_scenario(shipped("scenarios/capacity-alltoall.yaml"));
  scenario.nodes = 4;
  scenario.sizes = {Bytes::mib(256)};
  PredictOptions options;
  options.threads = 1;
  options.set.push_back(parse_setting("network.leaf_down=8"));
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  return predict(scenario, options, make_catalog()).rows.at(0);
}

TEST(Capacity, AnAllToAllTakesWhatLeavesTheLeafOverTheUplinks) {
  // 24 of a rank's 32 blocks leave its leaf, whose 8 NICs share 8 / r uplinks of 49.68 GB/s.
  for (const double ratio : {1.0, 2.0, 4.0}) {
    const double form_us =
        Bytes::mib(256).as_double() * 24 / 32 / (50e9 * 4096 / 4122 / ratio) * 1e6;
    const ResultRow row =
        all_to_all_over_leaves({"network.oversubscription=" + std::to_string(ratio)});
    EXPECT_NEAR(row.time_us / form_us, 1.0, 0.05) << "the launch, and the last messages";
    EXPECT_GT(row.time_us, form_us);
    EXPECT_EQ(row.limited_by.front().cause.substr(0, 5), "wire,") << ratio;
  }
}

TEST(Capacity, AnAllToAllInARackTakesWhatCrossesItsRingOrClique) {
  // Four neighbours on a ring of eight leaves: the link in the middle carries what two leaves have
  // for two others, 16 x 16 blocks; of a clique each link what one has for another, 8 x 8.
  const double block_us = Bytes::mib(256).as_double() / 32 / (50e9 * 4096 / 4122) * 1e6;
  for (const auto& [inside, blocks] : {std::pair{"ring", 16 * 16}, {"clique", 8 * 8}}) {
    const ResultRow row =
        all_to_all_over_leaves({"network.inside=" + std::string(inside), "network.rack_leaves=8"});
    EXPECT_NEAR(row.time_us / (blocks * block_us), 1.0, 0.05) << inside;
    // What a second launch adds may begin while the first one's last messages leave the link idle.
    EXPECT_GT(row.time_us, 0.999 * blocks * block_us) << inside;
    EXPECT_EQ(row.limited_by.front().cause, "wire, leaf to leaf") << inside;
  }
}

TEST(Capacity, RailsAloneCarryWhatStaysOnARail) {
  // Four nodes are on one leaf a rail, so spines bring nothing to what stays on its rail: rings,
  // trees, and with PXN all that is sent. What is to go from rail to rail is refused.
  const auto time_us = [](const std::string& op, const char* rails, const char* no_pxn = "0") {
    Scenario scenario = read_scenario(shipped("scenarios/capacity-alltoall.yaml"));
    scenario.op = op;
    scenario.nodes = 4;
    scenario.sizes = {Bytes::mib(16)};
    scenario.set.clear();
    scenario.env["NCCL_PXN_DISABLE"] = no_pxn;
    PredictOptions options;
    options.threads = 1;
    for (const char* text : {"network.kind=rail-optimised", "network.ports=64", rails}) {
      options.set.push_back(parse_setting(text));
    }
    return predict(scenario, options, make_catalog()).rows.at(0).time_us;
  };
  for (const char* op : {"allreduce", "alltoall"}) {
    const double with_spines = time_us(op, "network.tiers=2");
    EXPECT_DOUBLE_EQ(time_us(op, "network.tiers=1"), with_spines) << op;
    EXPECT_DOUBLE_EQ(time_us(op, "network.planes=8"), with_spines) << op;
  }
  EXPECT_THAT([&] { time_us("alltoall", "network.planes=8", "1"); },
              ::testing::ThrowsMessage<InputError>(
                  ::testing::HasSubstr("NCCL does not go round by another GPU here (PXN)")));
}

TEST(DumpedTopology, EachNicHasAnUplinkOfItsOwn) {
  // The system that NCCL dumped: one GPU and one NIC below each switch, k = 1, so twice the
  // quickstart.
  const ResultRow gdr = predict_carried("gdr", Bytes::gib(8), {}, "topologies/h200-vm-pix.2x2.xml");
  const ResultRow staged =
      predict_carried("host-staged", Bytes::gib(8), {}, "topologies/h200-vm-pix.2x2.xml");
  EXPECT_NEAR(gdr.busbw_gb_per_s / 2 / (50.0 * 4096 / 4122), 1.0, kTolerance);
  // Two of four hops of each ring cross the hosts: the round trips of that pipeline show, 3 %.
  EXPECT_NEAR(staged.busbw_gb_per_s / 2 / staged_by_uplink(1), 1.0, 0.03);
}

// What rings of Simple on four H200s over NVLink were found to cost (13.2 us, 3.65 us a hop, and
// the data at 360 GB/s; measured by us, NCCL 2.28.9). Not fitted to: the law's own points below 64
// KiB lie 18 % below it, as these do.
TEST(Rings, OfFourH200sKeepTheLawOfTheirHops) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.topology = shipped("topologies/h200-vm.yaml");
  scenario.nodes = 1;
  scenario.env = {{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}};
  scenario.memory_paths = {"gdr"};
  scenario.sizes.clear();
  for (std::int64_t kib = 64; kib <= 1 << 20; kib *= 4) scenario.sizes.push_back(Bytes::kib(kib));
  for (const ResultRow& row : predict(scenario, {}, make_catalog()).rows) {
    const double law = 13.2 + 6 * 3.65 + 1.5 * static_cast<double>(row.bytes) / 360e3;
    EXPECT_NEAR(row.time_us / law, 1, 0.1) << row.bytes;
  }
}

}  // namespace
}  // namespace weft::test::models_closed_forms
