#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "models/wire/link.hpp"
#include "models/wire/packet_network.hpp"
#include "models/wire/queue_pairs.hpp"
#include "models/wire/routing.hpp"

namespace weft::test {

/// Hosts of one NIC each, all links and switches alike.
struct WirePlant {
  NetworkSpec network;
  std::uint32_t hosts{2};
  Bandwidth rate{Bandwidth::gigabits_per_s(400)};
  Duration delay{Duration::ns(115)};
  Duration crossing{Duration::ns(200)};
  std::vector<std::pair<std::string_view, std::string_view>> settings{};

  static NetworkSpec shape(NetworkSpec::Kind kind, std::uint32_t ports) {
    NetworkSpec spec;
    spec.kind = kind;
    spec.name = "net";
    if (kind != NetworkSpec::Kind::kOneSwitch) spec.ports = ports;
    return spec;
  }
};

/// A network of packets with queue pairs, and when each message was delivered.
class WireCluster final : public QueuePairSink {
 public:
  explicit WireCluster(const WirePlant& plant, bool shuffle = false)
      : events_{shuffle ? EventQueue::shuffling_ties(1) : EventQueue()},
        params_{params_of(plant)},
        packets_{params_},
        routing_{params_},
        fabric_{fabric_of(plant)},
        pairs_{network_, packets_, *this},
        wire_{make_wire(plant)} {
    network_.seal();
  }

  EventQueue& events() { return events_; }
  PacketNetwork& network() { return network_; }
  QueuePairs& pairs() { return pairs_; }
  WireNetwork& wire() { return wire_; }
  const Fabric& fabric() const { return fabric_; }
  const WirePackets& packets() const { return packets_; }
  const Params& params() { return params_; }
  DeviceId nic(std::uint32_t host) const { return fabric_.device(host, DeviceKind::kNic, 0); }

  QueuePairId connect(std::uint32_t from, std::uint32_t to) {
    return connect(from, to, routing_.pick(nic(from), nic(to), 0, 0),
                   routing_.pick(nic(to), nic(from), 0, 0));
  }
  QueuePairId connect(std::uint32_t from, std::uint32_t to, std::uint64_t pick_there,
                      std::uint64_t pick_back, std::uint8_t vl = 0) {
    const PacketRoute there = wire_.route(nic(from), nic(to), pick_there);
    const PacketRoute back = wire_.route(nic(to), nic(from), pick_back);
    delivered_.emplace_back();
    return pairs_.connect(ports_[from], there, back, vl);
  }

  /// The last delivery on a queue pair; 0 if there was none.
  Time delivered(QueuePairId pair) const { return delivered_[pair.index()]; }
  std::uint64_t deliveries() const { return deliveries_; }
  std::uint64_t acknowledged() const { return acknowledged_; }
  std::uint64_t failures() const { return failures_; }

  struct Sums {
    std::uint64_t hops{0};
    std::uint64_t pauses{0};
    std::uint64_t dropped{0};
  };
  Sums sums() const {
    Sums sums;
    for (std::size_t l = 0; l < network_.links(); ++l) {
      sums.hops += network_.counters(PacketLinkId{l}).packets;
      for (std::size_t vl = 0; vl < packets_.vls; ++vl) {
        sums.pauses += network_.counters(PacketLinkId{l}, vl).pauses;
        sums.dropped += network_.counters(PacketLinkId{l}, vl).dropped;
      }
    }
    return sums;
  }

  void on_delivered(QueuePairId pair, std::uint64_t /*tag*/) override {
    delivered_[pair.index()] = events_.now();
    ++deliveries_;
  }
  void on_acknowledged(QueuePairId /*pair*/, std::uint64_t /*tag*/) override { ++acknowledged_; }
  void on_failure(QueuePairId /*pair*/) override { ++failures_; }
  /// Receives are posted from then on.
  void receive_from(Time at) { receives_from_ = at; }
  /// Each n-th message that begins to come finds no receive, when it comes for the first time.
  void refuse_each(std::uint64_t n) { refuse_each_ = n; }
  bool is_ready(QueuePairId /*pair*/, std::uint64_t /*tag*/) override {
    if (events_.now() < receives_from_) return false;
    return refuse_each_ == 0 || ++asked_ % refuse_each_ != 0;
  }

 private:
  static Params params_of(const WirePlant& plant) {
    static const std::vector<std::span<const ParamSpec>> kTables{kWireParams, kWirePacketParams,
                                                                 kDcqcnParams};
    static const ParamCatalog kCatalog{kTables};
    Params params(kCatalog);
    for (const auto& [key, text] : plant.settings) {
      const double number = ParamCatalog::parse(kCatalog.require(key), text);
      params.set_by_user(key, "", {number, Origin::kAssumed, "test"});
    }
    return params;
  }
  static Fabric fabric_of(const WirePlant& plant) {
    TopologySpec spec;
    spec.file = "test";
    const auto add = [&spec](const char* name, DeviceKind kind, const char* upstream) {
      DeviceSpec device;
      device.name = name;
      device.kind = kind;
      device.upstream = upstream;
      if (kind == DeviceKind::kNic) device.network = "net";
      spec.node.devices.push_back(std::move(device));
    };
    add("cpu0", DeviceKind::kCpu, "");
    add("gpu0", DeviceKind::kGpu, "cpu0");
    add("nic0", DeviceKind::kNic, "cpu0");
    spec.network = plant.network;
    return {std::move(spec), plant.hosts};
  }
  WireNetwork make_wire(const WirePlant& plant) {
    const WireNumbers numbers{.rate = [&](LinkId) { return plant.rate; },
                              .delay = [&](LinkId) { return plant.delay; },
                              .crossing = [&](DeviceId) { return plant.crossing; }};
    for (std::uint32_t h = 0; h < plant.hosts; ++h) ports_.push_back(pairs_.add_port());
    return {fabric_, numbers, packets_, network_, [this](DeviceId device) -> PacketEndpoint& {
              return pairs_.endpoint(ports_[fabric_.node_of(device).value()]);
            }};
  }

  EventQueue events_;
  Params params_;
  WirePackets packets_;
  Routing routing_;
  Fabric fabric_;
  PacketNetwork network_{events_};
  QueuePairs pairs_;
  std::vector<WirePortId> ports_;
  WireNetwork wire_;
  std::vector<Time> delivered_;
  std::uint64_t deliveries_{0};
  std::uint64_t acknowledged_{0};
  std::uint64_t failures_{0};
  Time receives_from_;
  std::uint64_t refuse_each_{0};
  std::uint64_t asked_{0};
};

}  // namespace weft::test
