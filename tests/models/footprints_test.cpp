#include "models/transport/footprints.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/transport/contraction.hpp"
#include "tests/models/machine_under_test.hpp"

namespace weft::test::models_footprints {
namespace {

std::map<std::uint32_t, double> uses_of(const Footprint& footprint, std::uint32_t mover) {
  std::map<std::uint32_t, double> out;
  for (const Footprint::Use& use : footprint.uses) out[use.server] = use.weight;
  for (const Footprint::Own& own : footprint.own) out[own.of(mover).server] = own.weight;
  return out;
}

std::map<std::uint32_t, double> uses_of(const Contraction& contraction) {
  std::map<std::uint32_t, double> out;
  for (const ServerUse& use : contraction.uses) out[use.server.value] = use.weight;
  return out;
}

/// Within a node, and from one to the other.
std::vector<Walk> walks(const Fabric& fabric, std::uint32_t a, std::uint32_t b) {
  const auto gpu = [&](std::uint32_t node, std::size_t i) {
    return fabric.device(node, DeviceKind::kGpu, i);
  };
  const DeviceId nic = fabric.device(a, DeviceKind::kNic, 0);
  const DeviceId peer = fabric.device(b, DeviceKind::kNic, 1);
  const Leg message{Leg::Kind::kMessage, Leg::Medium::kWire, nic, nic, peer, 3};
  return {
      {write_leg(gpu(a, 0), gpu(a, 0), Leg::Medium::kLocal)},
      {write_leg(gpu(b, 1), gpu(b, 2), Leg::Medium::kNvlink)},
      {read_leg(gpu(b, 5), fabric.root_cpu(gpu(b, 5)))},
      {read_leg(nic, gpu(a, 3)), message, write_leg(peer, gpu(b, 1))},
      {message, write_leg(peer, fabric.root_cpu(peer))},
      {read_leg(nic, gpu(a, 0))},
  };
}

// What is contracted once stands for all nodes: the servers are those of the walk itself.
TEST(Footprints, AreOfTheWalksOwnServersOnWhicheverNodes) {
  for (const std::vector<std::string>& network :
       {std::vector<std::string>{},
        {"network.kind=leaf-spine", "network.ports=32", "network.oversubscription=2"}}) {
    MachineUnderTest m("hgx-h100-8nic.yaml", network, 6);
    const MachineFootprints footprints(m.machine());
    constexpr std::uint32_t kPairs[][2] = {{0, 1}, {3, 1}, {4, 5}, {5, 4}, {2, 2}, {1, 0}};
    for (const auto& [a, b] : kPairs) {
      for (const Walk& walk : walks(m.machine().fabric(), a, b)) {
        for (const std::uint32_t mover : {0U, 2U, 140U}) {  // there are 132 SMs
          EXPECT_EQ(uses_of(footprints.of_walk(walk), mover),
                    uses_of(contract(m.machine(), walk, mover)));
        }
      }
    }
  }
}

// Over routes that the load is spread over all connections of two NICs take the same; ECMP gives
// each a route of its own.
TEST(Footprints, AreThoseOfTheConnection) {
  for (const bool ecmp : {false, true}) {
    std::vector<std::string> network{"network.kind=leaf-spine", "network.ports=16",
                                     "network.placement=round-robin"};
    if (ecmp) network.push_back("wire.routing=ecmp");
    MachineUnderTest m("hgx-h100-8nic.yaml", network, 6);
    const MachineFootprints footprints(m.machine());
    const Fabric& fabric = m.machine().fabric();
    const DeviceId nic = fabric.device(0, DeviceKind::kNic, 0);
    const DeviceId peer = fabric.device(5, DeviceKind::kNic, 1);
    std::set<std::map<std::uint32_t, double>> all;
    std::set<std::uint64_t> alone;
    for (std::uint32_t connection = 0; connection < 8; ++connection) {
      const Walk walk{{Leg::Kind::kMessage, Leg::Medium::kWire, nic, nic, peer, connection}};
      const Footprint footprint = footprints.of_walk(walk);
      EXPECT_EQ(uses_of(footprint, 0), uses_of(contract(m.machine(), walk)));
      all.insert(uses_of(footprint, 0));
      alone.insert(footprint.alone);
    }
    EXPECT_EQ(all.size() > 1, ecmp);
    EXPECT_EQ(alone.size(), 1u);
  }
}

}  // namespace
}  // namespace weft::test::models_footprints
