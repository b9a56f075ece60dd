#pragma once

#include <cstdint>

#include "models/nic/nic_dma.hpp"
#include "models/nic/work_requests.hpp"

namespace weft {

/// One NIC's completion queues: writes elements into its host's memory, and tells who posted the
/// request when they are there. They go through the engine that writes payload, strictly ordered
/// behind it.
class Completions final : private NicDma {
 public:
  enum class Kind : std::uint8_t { kRequest, kReceive, kError };

  Completions(WorkRequests& requests, const RdmaNicSettings& settings, const RdmaNicHost& host)
      : requests_{requests}, settings_{settings}, host_{host} {}

  /// A completion of a work request, to `where`.
  void write(std::uint32_t slot, Kind kind, const RdmaBuffer& where);

 private:
  void on_dma_done(std::uint64_t tag) override;

  WorkRequests& requests_;
  const RdmaNicSettings& settings_;
  const RdmaNicHost& host_;
};

}  // namespace weft
