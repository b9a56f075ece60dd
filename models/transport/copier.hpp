#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/transport/packet_host.hpp"
#include "sim/engine/fifo.hpp"
#include "sim/plan/walk.hpp"

namespace weft {

/// A GPU's copy engines: one for each memory that it copies to, and one for each that it copies
/// from. Each works off copies, one after another, whoever asked for them.
///
/// A copy begins `gpu.copy_start` after it was asked for or the one before it ended; out of the
/// GPU's own memory another `gpu.hbm_latency` later. It ends with a flush: once its last data have
/// left the GPU, or are here, a small read of the memory beyond, which passes no write on the way
/// out and no completion on the way back. So traffic the other way delays every copy, also a small
/// one. All engines have one unit for flushes over PCIe, which has one read in flight.
///
/// Over NVLink requests and answers take `gpu.nvlink_latency` each and no room.
class Copier final : private DmaClient, private EventTarget {
 public:
  class Client {
   public:
    virtual void on_copied(std::uint64_t tag) = 0;

   protected:
    ~Client() = default;
  };
  struct Copy {
    std::uint64_t offset;  ///< in the memory beyond the GPU
    Bytes bytes;
    std::uint64_t tag;
    Client* client;
  };
  Copier(PacketHost& host, DeviceId gpu) : host_{host}, gpu_{gpu} {}

  /// The engine of a leg that a copy engine of this GPU asks for. Throws InputError if there is no
  /// way for it.
  std::size_t engine(const Leg& leg);
  void copy(std::size_t engine, const Copy& copy);

 private:
  struct Engine {
    DmaEngine* dma;
    PcieRoutesId routes;
    PcieRoutesId flush{};  ///< of PCIe
    std::uint64_t memory;
    Duration start;
    bool is_read;            ///< its requests are: over NVLink data are pushed either way
    Duration last_answer{};  ///< over NVLink: from the last data's arrival until it is known
    Fifo<Copy> copies{};
  };
  Engine over_pcie(const Leg& leg);
  Engine over_nvlink(const Leg& leg);
  void begin(std::size_t engine);
  void flush(std::size_t engine);
  void offer_flush();
  void end(std::size_t engine);
  void on_event(std::uint64_t what) override;
  void on_dma_sent(std::uint64_t what) override;
  void on_dma_done(std::uint64_t what) override;
  void on_dma_timeout(std::uint64_t what) override;

  PacketHost& host_;
  DeviceId gpu_;
  std::map<std::pair<DeviceId, Leg::Kind>, std::size_t> engine_of_;
  std::vector<Engine> engines_;
  Fifo<std::size_t> flushes_;  ///< of which engine; the first is in flight
};

}  // namespace weft
