#pragma once

#include <cstdint>
#include <string>

#include "models/nic/rdma_request.hpp"
#include "models/pcie/dma_engine.hpp"
#include "sim/base/units.hpp"
#include "sim/engine/serial_server.hpp"

namespace weft {

/// What is known of a NIC of the packet transport; the parameters are `kNicPacketParams` and
/// `kIcmParams`.
struct RdmaNicSettings {
  std::string name;
  Duration latency{};  ///< on every pass through it: payload to packet, packet to memory
  Duration doorbell{};
  Duration doorbell_gap{};  ///< of RdmaNicHost::doorbells
  Duration wqe_time{};      ///< of RdmaNicHost::elements
  Duration qp_wqe_time{};
  Bytes wqe{64};
  Bytes cqe{64};
  bool blueflame{true};
  std::int64_t send_buffer{262'144};
  std::uint32_t max_reads{16};
  Bytes icm_cache{Bytes::mib(2)};
  Bytes qp_context{375};
  std::uint32_t icm_fetches{16};
  std::uint64_t seed{0};  ///< of what the context cache throws out
};

/// A NIC's host: `data` moves payload and writes completions, `queues` reads work queue elements.
struct RdmaNicHost {
  DmaEngine* data{nullptr};
  DmaEngine* queues{nullptr};
  SerialServer* elements{nullptr};   ///< of all queue pairs
  SerialServer* doorbells{nullptr};  ///< what lets them through to the NIC; none: all at once
  RdmaBuffer wqes;                   ///< read; contexts too
  RdmaBuffer cqes;                   ///< written
};

/// A part of a NIC that reads or writes its host's or a GPU's memory.
class NicDma : public DmaClient {
 protected:
  ~NicDma() = default;

  void submit(DmaEngine& engine, bool is_read, const RdmaBuffer& where, std::int64_t bytes,
              std::uint64_t tag) {
    engine.submit({.routes = where.routes,
                   .is_read = is_read,
                   .address = where.address,
                   .bytes = Bytes{bytes},
                   .tag = tag,
                   .client = this});
  }

 private:
  /// Throws InputError.
  void on_dma_timeout(std::uint64_t tag) final;
};

}  // namespace weft
