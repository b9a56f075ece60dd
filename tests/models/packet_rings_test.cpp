// Both transports where a link is full, at sizes that take packets some seconds.
#include <gtest/gtest.h>

#include "tests/models/prediction.hpp"

namespace weft::test::models_packet_rings {
namespace {

struct Case {
  const char* op;
  const char* memory_path;
  Bytes bytes;
  std::uint32_t nodes;
  const char* topology;
  std::vector<std::string> settings;

  double packets_over_fluid() const {
    const auto time = [&](Fidelity fidelity) {
      return predict_one(memory_path, bytes, settings, topology, nodes, op, fidelity).time_us;
    };
    return time(Fidelity::kPacket) / time(Fidelity::kFluid);
  }
};

// Ring all-reduce on 4 hosts of one GPU and one NIC: the wire is full, or the host's uplink.
TEST(PacketRings, FourNodesAgreeWithTheFluidTransport) {
  for (const char* path : {"gdr", "host-staged"}) {
    const Case ring{.op = "allreduce",
                    .memory_path = path,
                    .bytes = Bytes::mib(16),
                    .nodes = 4,
                    .topology = "topologies/genoa-2p-same-switch.yaml",
                    .settings = {"nccl.algo=Ring", "nccl.proto=Simple", "nccl.channels=4"}};
    EXPECT_NEAR(ring.packets_over_fluid(), 1, 0.03) << path;
  }
}

// All-to-all through a leaf-spine network with two ports down for each up: its uplinks are full.
// Packets choose their spine one by one, the fluid shares all uplinks of a leaf.
TEST(PacketRings, AnAllToAllFillsOversubscribedUplinks) {
  const Case all{
      .op = "alltoall",
      .memory_path = "gdr",
      .bytes = Bytes::mib(8),
      .nodes = 4,
      .topology = "topologies/hgx-h100-4nic.yaml",
      .settings = {"network.kind=leaf-spine", "network.ports=8", "network.oversubscription=2"}};
  EXPECT_NEAR(all.packets_over_fluid(), 1, 0.03);
}

}  // namespace
}  // namespace weft::test::models_packet_rings
