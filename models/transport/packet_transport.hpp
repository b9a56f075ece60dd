#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "models/transport/copier.hpp"
#include "models/transport/packet_cluster.hpp"
#include "sim/run/transport.hpp"

namespace weft {

/// The packet transport: transfers are TLPs and packets of a cluster's devices.
///
/// A walk is passes of a thread block (SmCopier), over PCIe or NVLink; copies of a copy engine
/// (Copier), to its socket's memory or from it; or stores of a CPU thread to a device's memory.
/// NICs move what is posted on queue pairs, so no leg of a message is stored on the way: reads,
/// packets and writes of it stream at once.
///
/// Sent: the last store has left the GPU, the last packet the NIC; a copy has ended. Delivered: the
/// last write is visible. Segments: heads and tails by the names and lengths of the walk's
/// Contraction; of the rest what its busiest link or memory worked, then what it waited for credits
/// or tags; what is left is the loads in flight, or packets under way.
///
/// Completions: of what is between, what the busiest link worked and what was waited for; the rest
/// is the acknowledgement's and the completion's own way.
///
/// Not modelled: completions of the writes that tell their target (their time is the plan's).
class PacketTransport final : public Transport {
 public:
  /// All references must outlive the transport. Causes are added to `causes` as they occur.
  PacketTransport(PacketCluster& cluster, CauseTable& causes);
  ~PacketTransport() override;

  WalkId prepare(const Walk& walk, const Mover& mover) override;
  void submit(WalkId walk, Bytes bytes, std::uint64_t tag) override;
  QpHandle open(const QueuePair& queue_pair) override;
  void post(QpHandle queue_pair, std::span<const VerbRequest> requests) override;
  void post_receives(QpHandle queue_pair, std::uint32_t count) override;
  void set_sink(TransportSink& sink) override { sink_ = &sink; }

 private:
  class OpenWalk;
  class MoveWalk;
  class SmWalk;
  class CopyWalk;
  class DmaWalk;
  class VerbWalk;
  class Verbs;

  Copier& copier(DeviceId gpu);

  PacketCluster& cluster_;
  CauseTable& causes_;
  TransportSink* sink_{nullptr};
  std::map<DeviceId, Copier> copiers_;  ///< by GPU
  std::vector<std::unique_ptr<MoveWalk>> walks_;
  std::vector<std::unique_ptr<Verbs>> verbs_;
};

}  // namespace weft
