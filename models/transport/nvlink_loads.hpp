#pragma once

#include <cstdint>
#include <vector>

#include "models/transport/packet_host.hpp"

namespace weft {

/// Loads of a GPU's SMs from another GPU's memory over NVLink: a request of header flits for each
/// line goes there, that memory answers as its own SMs' loads are answered, and the data come back.
/// Of a piece the requests go as one, as large as all of them, and so do the data.
class NvlinkLoads final : private DmaClient, private EventTarget {
 public:
  /// One load at a time for each of so many `loaders`. Throws InputError if no NVLink joins them.
  NvlinkLoads(PacketHost& host, DeviceId gpu, DeviceId from, std::size_t loaders,
              DmaClient& client);

  /// The client's on_dma_done(tag) comes when all of it is here.
  void load(std::size_t loader, Bytes bytes, std::uint64_t tag);

 private:
  void on_event(std::uint64_t loader) override;
  void on_dma_done(std::uint64_t what) override;

  struct Load {
    Bytes bytes;
    std::uint64_t tag;
  };
  EventQueue& events_;
  PcieMemory& memory_;  ///< that answers
  Duration latency_;    ///< of its own SMs' loads
  DmaEngine& asks_;
  DmaEngine& answers_;
  PcieRoutesId there_;
  PcieRoutesId back_;
  Bytes line_;
  Bytes overhead_;
  std::vector<Load> loads_;  // by loader
  DmaClient& client_;
};

}  // namespace weft
