#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/fifo.hpp"
#include "sim/packet/credits.hpp"
#include "sim/packet/loss.hpp"
#include "sim/packet/marking.hpp"
#include "sim/packet/output_queues.hpp"
#include "sim/packet/packet.hpp"
#include "sim/packet/packet_pool.hpp"
#include "sim/packet/parts.hpp"
#include "sim/packet/pause.hpp"

namespace weft {

/// What a link has done so far.
struct PacketLinkCounters {
  std::uint64_t packets{0};
  Bytes bytes{};          ///< data packets with framing
  Bytes control_bytes{};  ///< credit updates, pause frames and what else came by send_control
  std::uint64_t lost{0};  ///< by set_loss
  Duration busy{};        ///< sending either; without rounding up every packet's time
};

/// What a virtual lane of a link has done so far.
struct PacketVlCounters {
  Duration stalled{};  ///< a packet waited for credit or was paused (InfiniBand: port_xmit_wait)
  Bytes queued{};      ///< waiting at the sender now
  Bytes most_queued{};
  Bytes held{};  ///< in the receive buffer now
  Bytes most_held{};
  std::uint64_t pauses{0};   ///< pause frames that the receiver sent
  std::uint64_t dropped{0};  ///< packets that the receive buffer had no room for
  std::uint64_t marked{0};
};

/// Why packets are left although nothing more will happen: each link waits for room in the receive
/// buffer at its end, which packets hold that wait for the next link. A loop is a deadlock; else
/// the last one's endpoint releases nothing.
struct PacketStall {
  std::vector<PacketLinkId> links;
  bool is_loop{false};
};

/// A network of serial links, input-buffered forwarders and endpoints: the one engine of PCIe and
/// of wires.
///
/// Build: add nodes and links, `pair` the two directions of each link, then `seal`. An endpoint
/// sends packets from the pool; forwarders pass them on; the endpoint where one arrives releases
/// it.
///
/// Events: one for a packet's arrival at each hop, one more where it had to wait for its link, few
/// for flow control. A link has one arrival pending at a time, whatever is in flight on it.
///
/// Time of a hop, unblocked: (bytes + framing) / rate + delay, plus the forwarder's latency. A
/// cut-through forwarder decides when the head is there; should its output be the faster, the
/// packet leaves no sooner than its last byte can follow without a gap.
///
/// This class moves packets: it takes a packet from its queue (arbitration.cpp: whose turn it is,
/// what may pass, what has room), puts it on the link (network.cpp) and into the receive buffer
/// (flow_control.cpp). What decides is in parts of their own: OutputQueues, SenderCredits and
/// OwedCredits, PauseThresholds, EcnMarker, LinkLosses.
///
/// Not modelled: what happens inside a forwarder (speedup, matching of inputs to outputs); room is
/// freed whole as a packet begins to leave; fairness among inputs counts packets, not bytes.
class PacketNetwork final : private EventTarget {
 public:
  explicit PacketNetwork(EventQueue& events, std::uint64_t seed = 1);
  PacketNetwork(const PacketNetwork&) = delete;
  PacketNetwork& operator=(const PacketNetwork&) = delete;

  /// Throws std::logic_error without a router.
  PacketNodeId add_forwarder(const ForwarderSpec& spec);
  /// `endpoint` must outlive the network's run.
  PacketNodeId add_endpoint(std::string name, PacketEndpoint& endpoint);
  /// Throws std::logic_error: an unknown node, no or too many virtual lanes, a pause that never
  /// ends.
  PacketLinkId add_link(const LinkSpec& spec);
  /// They are the two directions of one link: each carries the other's flow control.
  void pair(PacketLinkId there, PacketLinkId back);
  /// No more parts. Throws std::logic_error where flow control takes room on a direction that is
  /// missing, InputError where switches have so many ports that their queues would fill the memory.
  void seal();

  EventQueue& events() { return events_; }
  Time now() const { return events_.now(); }

  /// A packet of zeros from the pool.
  Packet& make() { return pool_.take(); }
  /// Puts a packet of make() into the queue of a link that leaves an endpoint.
  void send(Packet& packet, PacketLinkId link);
  /// Likewise a packet that came; its room at this endpoint is free when it leaves.
  void forward(Packet& packet, PacketLinkId link);
  /// Ends a packet that came (its room is free now) or one that was made but not sent.
  void release(Packet& packet);
  /// The link by which a packet came that is at an endpoint.
  PacketLinkId came_by(const Packet& packet) const { return packet.holds_; }
  /// Sends bytes that are no packet (an acknowledging DLLP) ahead of all that waits; when they are
  /// there.
  Time send_control(PacketLinkId link, Bytes bytes);

  /// From now on each packet that arrives by the link is lost with this chance (bit errors). 1: the
  /// link is down. Its room is free at once: credit counts are resynchronised by the hardware.
  void set_loss(PacketLinkId link, double chance) { losses_.set(link.index(), chance); }
  /// Whether any loss or mark was drawn so far: what the seed decides.
  bool has_drawn() const { return marker_.has_drawn() || losses_.has_drawn(); }

  std::size_t links() const { return links_.size(); }
  const std::string& name(PacketLinkId link) const { return link_names_[link.index()]; }
  const std::string& name(PacketNodeId node) const { return node_names_[node.index()]; }
  PacketNodeId sender(PacketLinkId link) const { return link_rests_[link.index()].from; }
  PacketNodeId receiver(PacketLinkId link) const { return links_[link.index()].to; }
  Bandwidth rate(PacketLinkId link) const { return links_[link.index()].rate; }
  std::size_t vls(PacketLinkId link) const { return links_[link.index()].vls; }
  Duration serialization(PacketLinkId link, Bytes bytes) const;
  /// What waits for a link, all virtual lanes: for routers that choose.
  Bytes queued(PacketLinkId link) const;
  /// Nothing waits and nothing is being sent.
  bool is_idle(PacketLinkId link) const;

  PacketLinkCounters counters(PacketLinkId link) const;
  PacketVlCounters counters(PacketLinkId link, std::size_t vl) const;
  /// Packets made and not released, wherever they are.
  std::size_t packets_alive() const { return pool_.alive(); }
  /// One loop of waiting links, or else one chain; none if nothing waits for room. Right when no
  /// event is pending that would free some. O(n log n) in the waiting packets.
  std::optional<PacketStall> find_stall() const;
  /// "deadlock: a->b waits for b->c waits for a->b".
  std::string describe(const PacketStall& stall) const;

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  struct Node {
    PacketEndpoint* endpoint;
    PacketRouter* router;
    std::int64_t latency_ps;
    std::int32_t header_bytes;  ///< cut-through; -1: the whole packet
    std::uint32_t inputs;
    SharedBuffer shared;
  };

  // What follows is laid out by the cache line: an arrival needs a link's first, a departure its
  // second.
  struct alignas(64) Link {
    // In flight, in order of arrival, and the receiver.
    Packet* first{nullptr};
    Packet* last{nullptr};
    PacketEndpoint* to_endpoint{nullptr};  ///< of the node; or else
    PacketRouter* to_router{nullptr};
    PacketNodeId to{};
    std::int32_t header_bytes{-1};  ///< of the receiver
    std::uint32_t input{0};         ///< its number among the receiver's inputs
    std::uint32_t first_vl{0};
    std::uint64_t packets{0};
    std::int64_t bytes{0};
    // The sender.
    std::int64_t busy_until_ps{0};
    std::int64_t wake_ps{kNever};  ///< when a pending event will look again
    std::int64_t latency_ps{0};    ///< delay and the forwarder's latency
    Bandwidth rate{Bandwidth::bytes_per_s(1)};
    PacketEndpoint* from_endpoint{nullptr};
    std::uint32_t first_queue{0};
    std::uint32_t framing{0};
    std::uint32_t own_input{0};  ///< the sender's, of packets that begin there
    PacketLinkId back{kNoPacketLink};
    std::uint8_t vls{1};
    std::uint8_t waiting{0};  ///< bit v: virtual lane v has a queue
    std::uint8_t next_vl{0};  ///< whose turn it is
    bool lowest_first{false};
    bool oldest_first{false};
    bool is_ordered{false};  ///< some virtual lane may not pass another
    bool has_ecn{false};
  };
  static_assert(sizeof(Link) == 128);
  /// What is seldom wanted of it.
  struct LinkRest {
    std::int64_t delay_ps{0};
    std::int64_t control_bytes{0};
    PacketNodeId from{};
  };

  /// A sender with flow control by pause.
  struct PausedBy {
    bool is_paused{false};
  };

  /// A virtual lane of a link, at its sender.
  struct alignas(64) SendVl {
    std::variant<Unlimited, SenderCredits, PausedBy> control{};
    OutputQueues::Turns turns{};
    std::uint8_t room_of{0};  ///< the one with the room that it shares; itself as a rule
    std::int64_t stalled_since_ps{-1};
    std::int64_t stalled_ps{0};
    std::int64_t queued_bytes{0};
    std::int64_t most_queued_bytes{0};
  };
  static_assert(sizeof(SendVl) == 64);
  /// What is seldom wanted of it.
  struct SendVlRest {
    Fifo<CreditReturn> returns{};
    std::uint64_t marked{0};
  };

  /// The same virtual lane's buffer at the receiver.
  struct alignas(64) ReceiveVl {
    std::variant<Unlimited, OwedCredits, PauseThresholds> control{};
    std::int64_t held_bytes{0};
    std::int64_t most_held_bytes{0};
  };
  static_assert(sizeof(ReceiveVl) == 64);
  /// What is seldom wanted of it.
  struct ReceiveVlRest {
    std::int64_t update_bytes{0};
    std::int64_t update_timeout_ps{0};
    std::int64_t response_ps{0};  ///< of a pause; of credits the delay until they set out
    std::uint64_t pauses{0};
    std::uint64_t dropped{0};
    SharedPart shared{};
  };

  enum class Event : std::uint8_t { kArrive, kLook, kPause, kResume, kUpdate };

  void on_event(std::uint64_t what) override;
  void prefetch(std::uint64_t what, unsigned round) override;
  void schedule(std::int64_t at_ps, Phase phase, Event event, std::uint32_t link,
                std::uint32_t vl = 0);
  std::int64_t now_ps() const { return events_.now().since_start().count_ps(); }
  std::int64_t serialization_ps(const Link& link, std::int64_t bytes) const {
    return serialization_time(Bytes{bytes}, link.rate).count_ps();
  }
  std::size_t place(const Link& link) const {
    return static_cast<std::size_t>(&link - links_.data());
  }
  /// The place of the virtual lane whose room one uses.
  std::size_t room(const Link& link, std::uint32_t vl) const {
    return link.first_vl + send_vls_[link.first_vl + vl].room_of;
  }

  // Links: network.cpp.
  void arrive(std::uint32_t link);
  void transmit(std::uint32_t link, Packet& packet);

  // Whose packet leaves next: arbitration.cpp.
  void enqueue(Packet& packet, std::uint32_t link, std::uint32_t input);
  void look(std::uint32_t link);
  void look_at(std::uint32_t link, std::int64_t when_ps);
  Packet* pick(Link& link);
  Packet* pick_of_vl(Link& link, std::uint32_t vl);
  Packet& take(Link& link, SendVl& vl, std::uint32_t before, std::uint32_t queue);
  /// Whether flow control lets it go now.
  bool has_room(const Link& link, const Packet& packet) {
    const std::size_t place = room(link, packet.vl);
    SendVl& vl = send_vls_[place];
    if (const auto* const pause = std::get_if<PausedBy>(&vl.control)) return !pause->is_paused;
    auto* const credits = std::get_if<SenderCredits>(&vl.control);
    if (credits == nullptr) return true;
    credits->collect(send_vl_rests_[place].returns, now_ps());
    return credits->cover(packet);
  }
  bool may_leave(const Link& link, std::uint32_t queue, const Packet& packet) const;

  // Receive buffers: flow_control.cpp.
  /// Into the receive buffer; false if it is lost, as there is no room.
  bool take_in(std::uint32_t link, const Packet& packet) {
    ReceiveVl& buffer = receive_vls_[link * vls_a_link_ + packet.holds_vl_];
    const std::int64_t held = buffer.held_bytes + packet.buffer_bytes;
    if (const auto* const pause = std::get_if<PauseThresholds>(&buffer.control)) {
      const PauseThresholds::Verdict verdict =
          pause->is_dynamic() ? take_in_shared(link, packet, *pause, held) : pause->take_in(held);
      if (verdict != PauseThresholds::Verdict::kTaken && !pause_or_drop(link, packet, verdict)) {
        return false;
      }
    }
    buffer.held_bytes = held;
    buffer.most_held_bytes = std::max(buffer.most_held_bytes, held);
    return true;
  }
  /// The packet leaves the receive buffer of a link.
  void free_room(const Packet& packet, PacketLinkId holds, std::uint32_t vl) {
    ReceiveVl& buffer = receive_vls_[holds.index() * vls_a_link_ + vl];
    buffer.held_bytes -= packet.buffer_bytes;
    if (const auto* const pause = std::get_if<PauseThresholds>(&buffer.control)) {
      const bool resumes = pause->is_dynamic() ? resumes_shared(packet, *pause, holds.value, vl)
                                               : pause->resumes(buffer.held_bytes);
      if (resumes) send_pause(holds.value, vl, false);
    } else if (auto* const owed = std::get_if<OwedCredits>(&buffer.control)) {
      owe(*owed, packet, holds.value, vl);
    }
  }
  PauseThresholds::Verdict take_in_shared(std::uint32_t link, const Packet& packet,
                                          const PauseThresholds& pause, std::int64_t held);
  bool pause_or_drop(std::uint32_t link, const Packet& packet, PauseThresholds::Verdict verdict);
  bool resumes_shared(const Packet& packet, const PauseThresholds& pause, std::uint32_t link,
                      std::uint32_t vl);
  void owe(OwedCredits& owed, const Packet& packet, std::uint32_t link, std::uint32_t vl);
  void send_update(std::uint32_t link, std::uint32_t vl);
  void end_update_wait(std::uint32_t link, std::uint32_t vl);
  void send_pause(std::uint32_t link, std::uint32_t vl, bool pause);
  void set_paused(std::uint32_t link, std::uint32_t vl, bool paused);

  // Building: build.cpp.
  void make_vls(std::size_t count);
  void set_up_vl(const LinkSpec& spec, std::size_t vl);
  void check_way_back(std::size_t link) const;
  std::size_t queues_of(const Link& link) const {
    return (link.oldest_first ? 1 : link.own_input + std::size_t{1}) * link.vls;
  }

  EventQueue& events_;
  PacketPool pool_;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<LinkRest> link_rests_;
  std::size_t vls_a_link_{1};  ///< places for a link's virtual lanes, so that none is looked up
  std::vector<SendVl> send_vls_;
  std::vector<SendVlRest> send_vl_rests_;
  std::vector<ReceiveVl> receive_vls_;
  std::vector<ReceiveVlRest> receive_vl_rests_;
  OutputQueues queues_;
  EcnMarker marker_;
  LinkLosses losses_;
  bool sealed_{false};

  // Seldom looked at.
  std::vector<std::string> node_names_;
  std::vector<std::string> link_names_;
  std::vector<std::array<std::uint8_t, kMaxVls>> may_pass_;  ///< of each link
};

}  // namespace weft
