#pragma once

#include <cstdint>
#include <vector>

#include "models/transport/packet_cluster.hpp"
#include "sim/engine/fifo.hpp"

namespace weft {

/// Where queues are in a memory, and whatever else single threads write: above all buffers.
inline constexpr std::uint64_t kQueuesAt = std::uint64_t{1} << 42;

/// The doorbells that one thread of a GPU rings by itself (GPUDirect Async, IBGDA): stores to the
/// NIC over PCIe. Elements are where `gpu.send_queues` says, in the GPU's memory or its socket's,
/// and there before the doorbell; the NIC reads them, and writes completions to the GPU's memory.
class GpuDoorbells final : private DmaClient {
 public:
  /// Throws InputError if the GPU cannot reach the NIC, or the NIC the memories.
  GpuDoorbells(PacketCluster& cluster, DeviceId gpu, DeviceId nic);

  /// A queue pair of the NIC is posted to by the thread from now on.
  void place(RdmaQpId qp);
  void ring(RdmaQpId qp, std::vector<RdmaRequest> requests);

 private:
  struct Doorbell {
    RdmaQpId qp;
    std::vector<RdmaRequest> requests;
  };

  void on_dma_done(std::uint64_t tag) override;

  RdmaNics& nics_;
  DmaEngine& stores_;
  PcieRoutesId routes_;
  std::uint64_t address_;
  RdmaBuffer elements_;
  RdmaBuffer completions_;
  Fifo<Doorbell> on_the_way_;
};

}  // namespace weft
