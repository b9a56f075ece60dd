#pragma once

#include <array>
#include <cstdint>

#include "models/transport/packet_host.hpp"
#include "sim/engine/fifo.hpp"

namespace weft {

/// A GPU's copy engines, one to its socket's memory and one from it. Each works off copies, one
/// after another, whoever asked for them.
///
/// A copy begins `gpu.copy_start` after it was asked for or the one before it ended, to the host
/// another `gpu.hbm_latency` later. It ends with a flush: once its last data have left the GPU, or
/// are here, a small read of the memory beyond, which passes no write on the way out and no
/// completion on the way back. So traffic the other way delays every copy, also a small one. Both
/// engines have one unit for flushes, which has one read in flight.
class Copier final : private DmaClient, private EventTarget {
 public:
  class Client {
   public:
    virtual void on_copied(std::uint64_t tag) = 0;

   protected:
    ~Client() = default;
  };
  struct Copy {
    std::uint64_t offset;  ///< in the socket's memory
    Bytes bytes;
    std::uint64_t tag;
    Client* client;
  };
  Copier(PacketHost& host, DeviceId gpu);

  void copy(bool from_host, const Copy& copy);

 private:
  struct Engine {
    DmaEngine* dma;
    PcieRoutesId routes;
    Duration start;
    Fifo<Copy> copies{};
  };
  void begin(bool from_host);
  void flush(bool from_host);
  void offer_flush();
  void on_event(std::uint64_t what) override;
  void on_dma_sent(std::uint64_t what) override;
  void on_dma_done(std::uint64_t what) override;

  EventQueue& events_;
  std::uint64_t memory_;
  std::array<Engine, 2> engines_;  ///< to the host, from it
  Fifo<std::uint64_t> flushes_;    ///< of which engine; the first is in flight
};

}  // namespace weft
