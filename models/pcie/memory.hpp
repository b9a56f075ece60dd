#pragma once

#include <cstdint>
#include <optional>

#include "models/pcie/domain.hpp"
#include "sim/engine/fifo.hpp"

namespace weft {

/// The memory of a device as its PCIe port sees it: takes writes, answers reads.
///
/// Model: a serial server of `rate`. A TLP stays in the port's receive buffer until the server
/// takes it (so a slow memory holds up the link); a write is visible `write_latency` after, a read
/// is answered `read_latency` after, in completions of the routes' size. Of reads no more than
/// `reads` are inside; others stay in the receive buffer, and writes pass them.
/// Not modelled: banks, caches.
class PcieMemory final : public EventTarget {
 public:
  struct Settings {
    std::optional<Bandwidth> rate{};  ///< none: takes everything at once
    double weight{1};                 ///< memory bytes per byte that is read; 0: none reach it
    double write_weight{1};           ///< and per byte that is written
    Duration read_latency{};
    Duration write_latency{};
    std::size_t reads{0};  ///< at a time; 0: any number
  };
  PcieMemory(PcieDomain& domain, const Settings& settings) : domain_{domain}, settings_{settings} {}

  /// A write or a read request that came to its end.
  void take(Packet& tlp);
  /// The device itself moves so much of it; when that is done. It goes before TLPs that wait.
  Time use(Bytes bytes);
  /// How long the server has worked.
  Duration busy() const { return busy_; }
  /// How long reads have waited for others to be answered.
  Duration stalled_for_reads() const;

  void on_event(std::uint64_t what) override;

 private:
  enum Event : std::uint64_t { kServe, kAnswer };
  struct Answer {
    Time at;
    std::uint32_t transaction{0};
    std::uint64_t address{0};
    std::int64_t bytes{0};
  };

  void enter(Packet& tlp);
  void serve(Packet& tlp);
  void answer(const Answer& answer);

  PcieDomain& domain_;
  Settings settings_;
  Time free_at_;
  Duration busy_;
  Fifo<Packet*> waiting_;
  Fifo<Answer> answers_;
  std::size_t reads_{0};         ///< inside
  Fifo<Packet*> waiting_reads_;  ///< for fewer to be
  Time waits_since_;
  Duration waited_;
};

}  // namespace weft
