#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "models/nic/icm.hpp"
#include "models/nic/nic_dma.hpp"
#include "models/nic/slots.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/fifo.hpp"

namespace weft {

/// What waits for a context or a translation, and tries again when that is there.
class IcmWaiter {
 public:
  virtual void on_icm() = 0;

 protected:
  ~IcmWaiter() = default;
};

/// The contexts and translations of one NIC: in its cache, or read from host memory.
///
/// Each is read once, whoever waits for it; so many reads at a time as `icm_fetches` says. Those
/// who wait go on in the order in which they asked.
class IcmReader final : private NicDma {
 public:
  IcmReader(EventQueue& events, const RdmaNicSettings& settings, const RdmaNicHost& host)
      : events_{events}, settings_{settings}, host_{host} {}

  /// The NIC's settings are known.
  void attach() { cache_ = IcmCache(settings_.icm_cache, settings_.seed); }

  /// Whether the queue pair's context is in the NIC. If not it is read, and the waiter told.
  bool has_context(RdmaQpId qp, IcmWaiter& waiter);
  /// The same of the translation of a buffer's first page.
  bool has_page(const RdmaBuffer& buffer, IcmWaiter& waiter);

  /// How many were not in the cache.
  std::uint64_t misses() const { return misses_; }
  /// How long something has waited.
  Duration waited() const;

 private:
  struct Read {
    std::uint64_t key;
    std::int64_t bytes;
  };

  bool has(const Read& what, IcmWaiter& waiter);
  void begin(const Read& read);
  void on_dma_done(std::uint64_t slot) override;

  EventQueue& events_;
  const RdmaNicSettings& settings_;
  const RdmaNicHost& host_;
  IcmCache cache_;
  std::unordered_map<std::uint64_t, std::vector<IcmWaiter*>> missing_;
  Slots<Read> reads_;  ///< under way
  std::uint32_t under_way_{0};
  Fifo<Read> waiting_;
  std::uint64_t misses_{0};
  Time waits_since_{};  ///< as long as something is missing
  Duration waited_{};
};

}  // namespace weft
