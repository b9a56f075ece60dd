#pragma once

#include <cstdint>
#include <utility>

#include "models/nic/completions.hpp"
#include "models/nic/icm_reader.hpp"
#include "models/nic/nic_dma.hpp"
#include "models/nic/work_requests.hpp"
#include "models/wire/queue_pairs.hpp"
#include "sim/engine/fifo.hpp"
#include "sim/engine/serial_server.hpp"
#include "sim/packet/network.hpp"

namespace weft {

class SendStream;

/// What all NICs of a network share.
struct RdmaNetwork {
  PacketNetwork& packets;
  QueuePairs& pairs;
  std::int64_t mtu;
  WorkRequests requests{};

  Time now() const { return packets.now(); }
  EventQueue& events() { return packets.events(); }
};

/// A NIC's send buffer: payload that is asked for or here and has not left. The streams that have
/// payload to fetch take turns, one packet a turn, as long as there is room.
class SendBuffer {
 public:
  explicit SendBuffer(const RdmaNicSettings& settings) : settings_{settings} {}

  bool has_room(std::int64_t bytes) const { return used_ + bytes <= settings_.send_buffer; }
  void take(std::int64_t bytes) { used_ += bytes; }
  void give_back(std::int64_t bytes) { used_ -= bytes; }

  void add_turn(SendStream& stream) { turns_.push(&stream); }
  /// Gives turns until there is no room, or nothing to fetch.
  void fill();

 private:
  const RdmaNicSettings& settings_;
  std::int64_t used_{0};
  Fifo<SendStream*> turns_;
  bool is_filling_{false};
};

/// What the queue pairs of one NIC share.
struct RdmaNic {
  RdmaNic(RdmaNetwork& network, WirePortId wire_port)
      : port{wire_port},
        icm{network.events(), settings, host},
        completions{network.requests, settings, host},
        buffer{settings} {}
  RdmaNic(const RdmaNic&) = delete;
  RdmaNic& operator=(const RdmaNic&) = delete;

  WirePortId port;
  RdmaNicSettings settings;
  RdmaNicHost host;
  IcmReader icm;
  Completions completions;
  SendBuffer buffer;
  Bytes landed{};  ///< payload that came over the network and is in memory
};

}  // namespace weft
