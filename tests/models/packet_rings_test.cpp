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

  ResultRow run(Fidelity fidelity) const {
    return predict_one(memory_path, bytes, settings, topology, nodes, op, fidelity);
  }
  double packets_over_fluid() const {
    return run(Fidelity::kPacket).time_us / run(Fidelity::kFluid).time_us;
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
    EXPECT_NEAR(ring.packets_over_fluid(), 1, 0.043) << path;
  }
}

// A NIC's read tags are one server for all its channels' walks, and one pool for its engines. With
// requests of 128 B packets also wait for the link on which requests and written data take turns,
// so there only the time is held.
TEST(PacketRings, ChannelsShareTheReadTagsOfANic) {
  struct Tags {
    std::vector<std::string> settings;
    bool same_limiter;
  };
  for (const Tags& tags : {Tags{{"nic.read_tags=32", "nccl.channels=1"}, true},
                           Tags{{"nic.read_tags=32", "nccl.channels=4"}, true},
                           Tags{{"nic.read_tags=16", "nccl.channels=8"}, true},
                           Tags{{"nic.mrrs=128 B", "nccl.channels=4"}, false}}) {
    Case ring{.op = "allreduce",
              .memory_path = "gdr",
              .bytes = Bytes::mib(16),
              .nodes = 2,
              .topology = "topologies/genoa-2p-same-switch.yaml",
              .settings = {"nccl.algo=Ring", "nccl.proto=Simple", "nccl.decisions=simple"}};
    ring.settings.insert(ring.settings.end(), tags.settings.begin(), tags.settings.end());
    const ResultRow fluid = ring.run(Fidelity::kFluid);
    const ResultRow packets = ring.run(Fidelity::kPacket);
    EXPECT_NEAR(packets.time_us / fluid.time_us, 1, tags.same_limiter ? 0.031 : 0.036)
        << tags.settings.at(0);
    EXPECT_EQ(fluid.limited_by.at(0).cause, "NIC read tags in flight");
    if (tags.same_limiter) {
      EXPECT_EQ(packets.limited_by.at(0).cause, fluid.limited_by.at(0).cause);
    }
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
