// Links up from leaves and spines that are down.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_failed_uplinks {
namespace {

using ::testing::HasSubstr;

ResultRow alltoall_row(const std::string& topology, std::uint32_t nodes, Bytes bytes,
                       const std::vector<std::string>& settings, Fidelity fidelity,
                       bool folds = true) {
  return decided_row(topology, nodes, "alltoall", bytes, settings, fidelity, folds);
}

/// Its busbw.
double busbw(std::uint32_t nodes, Bytes bytes, std::vector<std::string> settings, bool folds) {
  settings.insert(settings.end(), {"network.kind=leaf-spine", "network.ports=32"});
  return alltoall_row("hgx-h100-8nic.yaml", nodes, bytes, settings, Fidelity::kFluid, folds)
      .busbw_gb_per_s;
}

// Two nodes of four NICs on a leaf of eight uplinks each: on packets, too, one that is down is not
// taken.
TEST(FailedUplinks, PacketsGoAroundThem) {
  for (const char* routing : {"spread", "ecmp"}) {
    const auto time = [&](const char* failed, Fidelity fidelity) {
      return alltoall_row("hgx-h100-4nic.yaml", 2, Bytes::mib(2),
                          {"gpu.count=4", "network.kind=leaf-spine", "network.ports=16",
                           "network.leaf_down=4", "network.leaf_up=8",
                           std::string("wire.routing=") + routing,
                           std::string("network.failed_uplinks=") + failed},
                          fidelity)
          .time_us;
    };
    EXPECT_GT(time("leaf1:7", Fidelity::kPacket), 1.3 * time("none", Fidelity::kPacket)) << routing;
    EXPECT_NEAR(time("leaf1:7", Fidelity::kPacket), time("leaf1:7", Fidelity::kFluid),
                0.2 * time("leaf1:7", Fidelity::kFluid))
        << routing;
  }
}

// Leaves of two nodes, 16 uplinks each: of those of one leaf four are left.
TEST(FailedUplinks, TheLeafSetsThePaceOfAnAllToAll) {
  const double healthy = busbw(6, Bytes::mib(64), {}, true);
  const double none = busbw(6, Bytes::mib(64), {"network.failed_uplinks=leaf1:1"}, true);
  const double most = busbw(6, Bytes::mib(64), {"network.failed_uplinks=leaf1:12"}, true);
  EXPECT_NEAR(none, healthy, 0.01 * healthy);
  EXPECT_LT(most, 0.6 * healthy);
  EXPECT_NEAR(busbw(6, Bytes::mib(64), {"network.failed_uplinks=leaf1:12"}, false), most,
              1e-6 * most);
}

/// Two nodes of four GPUs and NICs, each on a leaf that is a pod of its own, with eight links to
/// two spines, and four links from each of these to two cores.
double time_between_pods(const std::string& failed, Bytes bytes, Fidelity fidelity,
                         const std::string& routing = "spread") {
  return alltoall_row("hgx-h100-8nic.yaml", 2, bytes,
                      {"gpu.count=4", "nic.count=4", "network.kind=fat-tree", "network.ports=16",
                       "network.leaf_down=4", "network.leaf_up=8", "network.spines=2",
                       "network.spine_down=4", "network.spine_up=4", "network.cores=4",
                       "wire.routing=" + routing, "network.failed_uplinks=" + failed},
                      fidelity)
      .time_us;
}

// Half of what each GPU has goes to the other pod, over the n uplinks of 50 GB/s that are left of
// eight; 4 NICs fill no more than four of them.
TEST(FailedUplinks, OfSpinesThoseOfTheirPodTakeTheLoad) {
  const Bytes bytes = Bytes::mib(512);
  const double healthy = time_between_pods("none", bytes, Fidelity::kFluid);
  for (const char* failed : {"spine1:2", "spine0:1+spine1:3", "spine1:3+spine3:3"}) {
    EXPECT_NEAR(time_between_pods(failed, bytes, Fidelity::kFluid), healthy, 1e-6 * healthy);
  }
  const double crosses = 4 * static_cast<double>(bytes.count()) / 2;
  for (const auto& [failed, left] :
       {std::pair{"spine0:2+spine1:3", 3}, {"spine2:2+spine3:3", 3}, {"spine2:3+spine3:3", 2}}) {
    const double expected_us = crosses / left / 50e3;
    EXPECT_NEAR(time_between_pods(failed, bytes, Fidelity::kFluid), expected_us, 0.02 * expected_us)
        << failed;
  }
}

// Adaptive switches leave the spine with one uplink to what it can take; a hash does not.
TEST(FailedUplinks, PacketsGoAroundThoseOfSpines) {
  const Bytes bytes = Bytes::mib(4);
  for (const char* routing : {"spread", "ecmp"}) {
    const double healthy = time_between_pods("none", bytes, Fidelity::kPacket, routing);
    for (const char* failed : {"spine1:3", "spine0:2+spine1:3", "spine2:3+spine3:3"}) {
      const double fluid = time_between_pods(failed, bytes, Fidelity::kFluid, routing);
      const double packets = time_between_pods(failed, bytes, Fidelity::kPacket, routing);
      EXPECT_NEAR(packets, fluid, 0.2 * fluid) << routing << ' ' << failed;
      EXPECT_GT(packets, 1.1 * healthy) << routing << ' ' << failed;
    }
  }
}

/// What it is refused with.
template <class Ask>
std::string refusal(Ask ask) {
  try {
    ask();
  } catch (const InputError& e) {
    return e.what();
  }
  return "answered";
}

// Of two pods' spines the other one has an uplink left: of five uplinks of each pod two meet.
TEST(FailedUplinks, OfUnlikePlacesNeedRoutesOfTheirOwn) {
  const Bytes bytes = Bytes::mib(4);
  const auto asked = [&](const char* failed, Fidelity fidelity, const char* routing) {
    return refusal([&] { time_between_pods(failed, bytes, fidelity, routing); });
  };
  EXPECT_THAT(asked("spine1:3+spine2:3", Fidelity::kFluid, "spread"),
              HasSubstr("failed_uplinks: the pods of spine0 and spine2 send each other at most 100 "
                        "GB/s, as a core joins spines of one place in their pods, where shared "
                        "rates with spread routing have 200; take wire.routing=ecmp or --fidelity "
                        "packet"));
  EXPECT_EQ(asked("spine1:2+spine2:2", Fidelity::kFluid, "spread"), "answered") << "4 of 4 NICs";
  const double expected_us = 4 * static_cast<double>(bytes.count()) / 2 / 2 / 50e3;
  for (const auto& [fidelity, routing] :
       {std::pair{Fidelity::kPacket, "spread"}, {Fidelity::kFluid, "ecmp"}}) {
    EXPECT_GT(time_between_pods("spine1:3+spine2:3", bytes, fidelity, routing), expected_us);
  }
}

// Two pods of two leaves with a node of 4 NICs each, and 8 spines: leaves that have lost the links
// to the last 4 spines reach the 4 uplinks of the others, for 8 NICs.
TEST(FailedUplinks, OfSpinesThatLeavesStillReachSetThePace) {
  const auto time = [](const std::string& failed, Fidelity fidelity) {
    return alltoall_row(
               "hgx-h100-8nic.yaml", 4, Bytes::mib(1),
               {"gpu.count=4", "nic.count=4", "network.kind=fat-tree", "network.ports=16",
                "network.leaf_down=4", "network.leaf_up=8", "network.spines=8",
                "network.spine_down=2", "network.spine_up=4", "network.failed_uplinks=" + failed},
               fidelity)
        .time_us;
  };
  const std::string spines = "spine0:3+spine1:3+spine2:3+spine3:3";
  EXPECT_THAT(refusal([&] { time("leaf0:4+leaf1:4+" + spines, Fidelity::kFluid); }),
              HasSubstr("the pod of spine0 and others send each other at most 200 GB/s"));
  const double healthy = time("none", Fidelity::kFluid);
  for (const std::string& enough : {spines, "leaf0:4+" + spines, std::string("leaf0:4+leaf1:4")}) {
    EXPECT_NEAR(time(enough, Fidelity::kFluid), healthy, 1e-6 * healthy) << enough;
  }
  EXPECT_GT(time("leaf0:4+leaf1:4+" + spines, Fidelity::kPacket),
            1.05 * time(spines, Fidelity::kPacket));
}

// Three pods of two leaves with two nodes each, and eight uplinks from the spines of each.
TEST(FailedUplinks, OfSpinesFoldAsTheyRun) {
  const auto time = [](const std::string& failed, bool folds) {
    return alltoall_row("hgx-h100-8nic.yaml", 12, Bytes::mib(16),
                        {"gpu.count=2", "nic.count=2", "network.kind=fat-tree", "network.ports=8",
                         "network.spines=2", "network.spine_down=4", "network.spine_up=4",
                         "network.failed_uplinks=" + failed},
                        Fidelity::kFluid, folds)
        .time_us;
  };
  const double folded = time("spine0:2+spine2:3+spine3:2", true);
  EXPECT_GT(folded, 1.5 * time("none", true));
  EXPECT_NEAR(time("spine0:2+spine2:3+spine3:2", false), folded, 1e-6 * folded);
}

// 40 nodes of two NICs, of which few run, on the links that limit all of them. Leaves of 8 NICs,
// pods of two leaves and two spines with 8 uplinks each; whole runs (--unfolded), 10 s each, take
// 498.8 and 899.0 us.
TEST(FailedUplinks, OfSpinesHoldUpSamplesAsTheyHoldUpAll) {
  for (const auto& [failed, whole_us] :
       {std::pair{"spine0:4+spine1:4", 498.8}, {"spine0:6+spine1:6", 899.0}}) {
    const ResultRow row =
        alltoall_row("genoa-2p-same-switch.yaml", 40, Bytes::mib(16),
                     {"network.kind=fat-tree", "network.ports=32", "network.leaf_down=8",
                      "network.leaf_up=8", "network.spines=2", "network.spine_down=8",
                      "network.spine_up=8", std::string("network.failed_uplinks=") + failed},
                     Fidelity::kFluid);
    EXPECT_NEAR(row.time_us, whole_us, 0.02 * whole_us) << failed;
    EXPECT_GT(row.extended_from_nodes(), 0U) << failed;
  }
}

}  // namespace
}  // namespace weft::test::models_failed_uplinks
