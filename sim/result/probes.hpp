#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/io/json.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// What one port (the sender of one direction of a link) did during a run of packets.
struct PortProbe {
  std::string kind;  ///< "PCIe uplink, switch to CPU"
  std::string link;  ///< "pcisw0@0 -> cpu0@0"
  double utilisation{0};
  Duration wait;      ///< packets had no credit or were paused (InfiniBand: port_xmit_wait)
  Bytes most_queued;  ///< of one virtual lane, at the sender
  Bytes most_held;    ///< of one virtual lane, in the receive buffer at the other end
  std::uint64_t pauses{0};
  std::uint64_t dropped{0};  ///< for want of room
  std::uint64_t lost{0};     ///< on a cable that loses packets or is down
  std::uint64_t marked{0};
};

/// What one NIC did.
struct NicProbe {
  std::string nic;
  std::uint32_t tags{0};
  std::uint32_t most_tags_in_use{0};
  Duration tag_wait;
  std::uint64_t packets{0};
  std::uint64_t repeated{0};
  std::uint64_t timeouts{0};
  std::uint64_t naks{0};      ///< that its receivers sent it, as are the next two
  std::uint64_t rnr_naks{0};  ///< no receive was posted
  std::uint64_t cnps{0};
  std::uint64_t icm_misses{0};  ///< contexts and translations that it read from host memory
  Duration icm_wait;            ///< something waited for one
  // What its queue pairs stood still for, on average over those that have sent.
  Duration rnr_wait;
  Duration timeout_wait;
  Duration pacing_wait;  ///< DCQCN's rate
};

/// The probes of a run: the ports that were used most or waited longest, and every NIC.
struct Probes {
  std::vector<PortProbe> ports;
  std::size_t ports_left_out{0};
  // Of all ports, left out or not.
  std::uint64_t pauses{0};
  std::uint64_t dropped{0};
  std::uint64_t lost{0};
  std::uint64_t marked{0};
  std::vector<NicProbe> nics;
};

Json to_json(const Probes& probes);
/// Every object of that JSON with its keys.
std::vector<FormatSection> probes_format();

}  // namespace weft
