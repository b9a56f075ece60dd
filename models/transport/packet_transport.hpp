#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/transport/packet_cluster.hpp"
#include "sim/plan/plan.hpp"
#include "sim/run/transport.hpp"

namespace weft {

/// The packet transport: transfers are TLPs and packets of a cluster's devices.
///
/// A walk that a GPU's SMs move is passes of a thread block (SmCopier), over PCIe or NVLink; one
/// that a NIC moves is RDMA writes on queue pairs of its own, `wire.qps_per_connection` of them
/// with equal parts of each message. So no leg is stored on the way: reads, packets and writes of
/// one transfer stream at once.
///
/// Sent: the last store has left the GPU, the last packet the NIC. Delivered: the last write is
/// visible. Segments: heads and tails by the names and lengths of the walk's Contraction; of the
/// rest what its busiest link or memory worked, then what it waited for credits or tags; what is
/// left is the loads in flight, or packets under way.
///
/// Not modelled: receive completions (their time is the plan's).
class PacketTransport final : public Transport {
 public:
  /// All references must outlive the transport. Causes are added to `causes` as they occur.
  PacketTransport(PacketCluster& cluster, CauseTable& causes);
  ~PacketTransport() override;

  WalkId prepare(const Walk& walk, std::uint32_t copies) override;
  void submit(WalkId walk, Bytes bytes, std::uint64_t tag) override;
  void set_sink(TransportSink& sink) override { sink_ = &sink; }

 private:
  class Lane;
  class SmLane;
  class RdmaLane;

  PacketCluster& cluster_;
  CauseTable& causes_;
  TransportSink* sink_{nullptr};
  std::vector<std::unique_ptr<Lane>> lanes_;
};

/// About how many links packets of a plan cross, each counted once a link; acknowledgements are
/// left out. The time of a run is in proportion.
double packet_hops(const Machine& machine, const Plan& plan);

}  // namespace weft
