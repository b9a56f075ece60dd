// Packets in steady state ask for no memory (issue 5): once pools and queues have grown, as many
// packets again pass a switch, with credits and with pauses, without one call of operator new.
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/packet/network.hpp"
#include "sim/packet/source_routes.hpp"
#include "tests/engine/allocation_count.hpp"

namespace weft::test::packet_allocation {
namespace {

/// Sends packets one after another; takes what comes.
class End final : public PacketEndpoint {
 public:
  explicit End(PacketNetwork& network) : network_{network} {}

  void send(PacketLinkId link, std::uint32_t route, std::uint64_t packets) {
    link_ = link;
    route_ = route;
    left_ = packets;
    offer();
  }
  std::uint64_t received() const { return received_; }
  void on_packet(Packet& packet) override {
    ++received_;
    network_.release(packet);
  }
  void on_departure(const Packet& /*packet*/, PacketLinkId /*link*/) override { offer(); }

 private:
  void offer() {
    if (left_ == 0) return;
    --left_;
    Packet& packet = network_.make();
    packet.route = route_;
    packet.link_bytes = packet.buffer_bytes = 1000;
    network_.send(packet, link_);
  }

  PacketNetwork& network_;
  PacketLinkId link_{};
  std::uint32_t route_{0};
  std::uint64_t left_{0};
  std::uint64_t received_{0};
};

TEST(PacketAllocation, NoneInSteadyState) {
  const VlControl credits = CreditPool{.units = 200, .update_bytes = Bytes{8}};
  const VlControl pauses =
      PauseBuffer{.capacity = Bytes{200'000}, .xoff = Bytes{20'000}, .xon = Bytes{10'000}};
  for (const VlControl& control : {credits, pauses}) {
    EventQueue events;
    PacketNetwork network{events};
    SourceRoutes routes;
    const PacketNodeId hub =
        network.add_forwarder({.name = "hub", .latency = Duration::ns(200), .router = &routes});
    std::vector<std::unique_ptr<End>> ends;
    std::vector<PacketLinkId> up;
    std::vector<PacketLinkId> down;
    for (int i = 0; i < 3; ++i) {
      ends.push_back(std::make_unique<End>(network));
      const PacketNodeId node = network.add_endpoint("end", *ends.back());
      LinkSpec spec{.name = "link", .from = node, .to = hub, .delay = Duration::us(1)};
      spec.vls = {control};
      up.push_back(network.add_link(spec));
      std::swap(spec.from, spec.to);
      down.push_back(network.add_link(spec));
      network.pair(up.back(), down.back());
    }
    network.seal();
    const std::uint32_t route = routes.add(std::span{&down[2], 1});
    const auto run = [&] {  // two into one, so that buffers fill
      ends[0]->send(up[0], route, 20'000);
      ends[1]->send(up[1], route, 20'000);
      events.run();
    };
    run();
    const std::size_t before = allocation_count();
    run();
    EXPECT_EQ(allocation_count(), before);
    EXPECT_EQ(ends[2]->received(), 80'000U);
  }
}

}  // namespace
}  // namespace weft::test::packet_allocation
