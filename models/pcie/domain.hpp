#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "models/pcie/tlp.hpp"
#include "sim/packet/network.hpp"
#include "sim/packet/source_routes.hpp"

namespace weft {

class DmaEngine;

using PcieRoutesId = Id<struct PcieRoutesTag>;

/// A limit that many streams share inside a device which they cross: a serial server of their
/// payload, or a buffer that holds each byte for a time.
class PcieGate {
 public:
  PcieGate(std::string name, Bandwidth rate) : name_{std::move(name)}, rate_{rate} {}
  PcieGate(std::string name, Bytes room) : name_{std::move(name)}, room_{room} {}

  /// When payload that comes now is through the server, or has room in the buffer; it gives the
  /// room back `hold` later. First come, first served.
  Time pass(Time now, Bytes payload, Duration hold) {
    if (rate_) {
      const Duration takes = serialization_time(payload, *rate_);
      free_at_ = std::max(now, free_at_) + takes;
      busy_ += takes;
      return free_at_;
    }
    free_at_ = std::max(now, free_at_);
    const Time asked = free_at_;
    while (!held_.empty() && (held_.top().until <= free_at_ || used_ + payload > room_)) {
      free_at_ = std::max(free_at_, held_.top().until);
      used_ -= held_.top().bytes;
      held_.pop();
    }
    full_ += free_at_ - asked;
    used_ += payload;
    held_.push({free_at_ + hold, payload});
    busy_ += Duration::from_ns(hold.as_s() * 1e9 * payload.as_double() / room_.as_double());
    return free_at_;
  }
  const std::string& name() const { return name_; }
  bool is_buffer() const { return !rate_; }
  /// How long it has worked; a buffer: its mean filling over the time.
  Duration busy() const { return busy_; }
  /// Of a buffer: how long something has waited for room in it.
  Duration full() const { return full_; }

 private:
  struct Held {
    Time until;
    Bytes bytes;
    bool operator>(const Held& other) const { return until > other.until; }
  };

  std::string name_;
  std::optional<Bandwidth> rate_;
  Bytes room_{0};
  Time free_at_;
  Duration busy_;
  Duration full_;
  std::priority_queue<Held, std::vector<Held>, std::greater<>> held_;  ///< first what ends first
  Bytes used_{0};
};

/// How the TLPs between one initiator and one target travel, for writes or for reads.
struct PcieRoutes {
  /// A gate that data pass at a device.
  struct GateUse {
    PacketNodeId at{};
    std::size_t gate{0};
    Duration hold{};          ///< of a buffer
    bool of_requests{false};  ///< read requests pass it, for the data that they ask for
  };

  PacketRoute request;
  PacketRoute completion;                ///< of reads
  std::int64_t write_payload{256};       ///< Max_Payload_Size of the route
  std::int64_t completion_payload{256};  ///< as the completer sends them
  std::int64_t completion_boundary{64};  ///< RCB of the completer
  bool relaxed{true};                    ///< the TLPs carry the relaxed ordering attribute
  /// From a write's arrival until it is visible, if this route's is not that of the target's
  /// memory.
  std::optional<Duration> write_latency{};
  /// A root complex that passes peer traffic on in TLPs of at most `cut` bytes: where it does so.
  /// 0: nowhere.
  std::int64_t cut{0};
  std::int64_t joined_payload{256};  ///< of completions there, towards the requester
  PacketNodeId cut_at{};
  /// A root complex that translates the requests' addresses, and by which page.
  bool translates{false};
  PacketNodeId translated_at{};
  PacketLinkId translated_port{kNoPacketLink};
  Bytes page{4096};
  std::vector<GateUse> gates;
  /// A root complex that drops the requests (it forwards no peer reads): nobody answers.
  bool dropped{false};
  PacketNodeId dropped_at{};
};

/// Packet::attributes: which of its senders asked for it.
namespace pcie_attribute {
inline constexpr std::uint8_t kOfEngine = 1;  ///< a request as its DMA engine sent it
inline constexpr std::uint8_t kLastPiece =
    2;  ///< of a request that a root complex cut, named in the tag
}  // namespace pcie_attribute

/// What the parts of one host's PCIe share: TLP sizes, routes and what is under way. TLPs name
/// their transaction in Packet::flow, their address in Packet::tag, their payload (or what they ask
/// for) in Packet::sequence.
class PcieDomain {
 public:
  struct Headers {
    std::uint32_t request{16};
    std::uint32_t completion{12};
  };
  /// A write job, or one read request.
  struct Transaction {
    DmaEngine* engine{nullptr};
    PcieRoutesId routes{};
    std::uint32_t job{0};      ///< the engine's
    std::int64_t left{0};      ///< bytes that have not arrived
    std::int64_t gathered{0};  ///< at a root complex that joins completions
    std::int64_t at_root{0};   ///< bytes of the read that have not come to that root complex
  };

  PcieDomain(PacketNetwork& network, Headers headers) : network_{network}, headers_{headers} {}

  PacketNetwork& network() { return network_; }
  SourceRoutes& source_routes() { return source_routes_; }

  PcieRoutesId add_routes(const PcieRoutes& routes) {
    routes_.push_back(routes);
    return PcieRoutesId{routes_.size() - 1};
  }
  const PcieRoutes& routes(PcieRoutesId id) const { return routes_[id.index()]; }

  std::size_t add_gate(PcieGate gate) {
    gates_.push_back(std::move(gate));
    return gates_.size() - 1;
  }
  PcieGate& gate(std::size_t i) { return gates_[i]; }
  const PcieGate& gate(std::size_t i) const { return gates_[i]; }

  std::uint32_t begin(const Transaction& transaction) {
    if (free_.empty()) {
      transactions_.push_back(transaction);
      return static_cast<std::uint32_t>(transactions_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    transactions_[slot] = transaction;
    return slot;
  }
  Transaction& transaction(std::uint32_t slot) { return transactions_[slot]; }
  void end(std::uint32_t slot) { free_.push_back(slot); }

  /// Links that have a header of their own in place of PCIe's: none between sockets, whose rate is
  /// one of payload; NVLink's flits.
  void has_header(PacketLinkId link, Bytes header) {
    if (own_header_.size() <= link.index()) own_header_.resize(link.index() + 1);
    own_header_[link.index()] = static_cast<std::uint32_t>(header.count());
  }
  static TlpKind kind(const Packet& tlp) { return static_cast<TlpKind>(tlp.kind); }
  /// What a TLP takes on a link, without framing.
  std::uint32_t link_bytes(const Packet& tlp, PacketLinkId link) const {
    const std::uint32_t payload = kind(tlp) == TlpKind::kRead ? 0 : tlp.sequence;
    if (link.index() < own_header_.size() && own_header_[link.index()]) {
      return payload + *own_header_[link.index()];
    }
    return payload + (kind(tlp) == TlpKind::kCompletion ? headers_.completion : headers_.request);
  }

  struct NewTlp {
    TlpKind kind{TlpKind::kWrite};
    std::uint32_t transaction{0};
    std::uint64_t address{0};
    std::int64_t bytes{0};
    PacketRoute route;
  };
  Packet& make(const NewTlp& what) {
    Packet& tlp = network_.make();
    tlp.kind = static_cast<std::uint8_t>(what.kind);
    tlp.flow = what.transaction;
    tlp.tag = what.address;
    tlp.sequence = static_cast<std::uint32_t>(what.bytes);
    tlp.buffer_bytes = what.kind == TlpKind::kRead ? 0 : tlp.sequence;
    tlp.route = what.route.rest;
    tlp.vl = vl_of(what.kind, routes(transactions_[what.transaction].routes).relaxed);
    tlp.link_bytes = link_bytes(tlp, what.route.first);
    return tlp;
  }

 private:
  PacketNetwork& network_;
  Headers headers_;
  SourceRoutes source_routes_;
  std::vector<PcieRoutes> routes_;
  std::vector<PcieGate> gates_;
  std::vector<Transaction> transactions_;
  std::vector<std::uint32_t> free_;
  std::vector<std::optional<std::uint32_t>> own_header_;  ///< by link
};

}  // namespace weft
