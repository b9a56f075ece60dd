#include <stdexcept>
#include <string>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/random.hpp"
#include "sim/packet/network.hpp"

namespace weft {
namespace {

[[noreturn]] void refuse_link(const std::string& link, const std::string& why) {
  throw std::logic_error("PacketNetwork: link " + link + ": " + why);
}

}  // namespace

PacketNetwork::PacketNetwork(EventQueue& events, std::uint64_t seed)
    : events_{events},
      marking_{random_stream(seed, "packet marking")},
      losing_{random_stream(seed, "packet loss")} {
  events_.prepare_targets();
}

PacketNodeId PacketNetwork::add_forwarder(const ForwarderSpec& spec) {
  if (spec.router == nullptr) throw std::logic_error("PacketNetwork: " + spec.name + ": no router");
  nodes_.push_back(
      {.endpoint = nullptr,
       .router = spec.router,
       .latency_ps = spec.latency.count_ps(),
       .header_bytes = spec.cut_through ? static_cast<std::int32_t>(spec.cut_through->count()) : -1,
       .inputs = 0,
       .shared_bytes = spec.shared_buffer.count(),
       .used_bytes = 0});
  node_names_.push_back(spec.name);
  return PacketNodeId{nodes_.size() - 1};
}

PacketNodeId PacketNetwork::add_endpoint(std::string name, PacketEndpoint& endpoint) {
  nodes_.push_back({&endpoint, nullptr, 0, -1, 0, 0, 0});
  node_names_.push_back(std::move(name));
  return PacketNodeId{nodes_.size() - 1};
}

PacketLinkId PacketNetwork::add_link(const LinkSpec& spec) {
  if (sealed_) refuse_link(spec.name, "added to a sealed network");
  if (spec.from.index() >= nodes_.size() || spec.to.index() >= nodes_.size()) {
    refuse_link(spec.name, "joins an unknown node");
  }
  if (spec.lanes.empty() || spec.lanes.size() > kMaxLanes) {
    refuse_link(spec.name, "has " + std::to_string(spec.lanes.size()) + " lanes");
  }
  Link link;
  link.rate = spec.rate;
  link.latency_ps = spec.delay.count_ps() + nodes_[spec.from.index()].latency_ps;
  link.lanes = static_cast<std::uint8_t>(spec.lanes.size());
  link.lowest_first = spec.lane_order == LaneOrder::kLowestFirst;
  link.oldest_first = spec.input_order == InputOrder::kOldestFirst;
  link.has_ecn = spec.ecn.has_value();
  link.framing = static_cast<std::uint32_t>(spec.framing.count());
  link.to = spec.to;
  link.from_endpoint = nodes_[spec.from.index()].endpoint;
  Node& receiver = nodes_[spec.to.index()];
  link.to_endpoint = receiver.endpoint;
  link.to_router = receiver.router;
  link.header_bytes = receiver.header_bytes;
  link.input = receiver.inputs++;
  make_lanes(spec.lanes.size());
  const auto all = static_cast<std::uint8_t>((1U << spec.lanes.size()) - 1);
  for (std::size_t lane = 0; lane < spec.lanes.size(); ++lane) {
    const auto others = static_cast<std::uint8_t>(all & ~(1U << lane));
    link.is_ordered = link.is_ordered || (spec.may_pass[lane] & others) != others;
    set_up_lane(spec, lane);
  }
  links_.push_back(link);
  link_rests_.push_back({.delay_ps = spec.delay.count_ps(), .from = spec.from});
  link_names_.push_back(spec.name);
  ecn_.push_back(spec.ecn.value_or(EcnMarking{}));
  may_pass_.push_back(spec.may_pass);
  return PacketLinkId{links_.size() - 1};
}

/// Lanes for one more link, which has so many.
void PacketNetwork::make_lanes(std::size_t count) {
  if (count > lanes_a_link_) {
    std::vector<SendLane> send((links_.size() + 1) * count);
    std::vector<ReceiveLane> receive((links_.size() + 1) * count);
    std::vector<ReceiveLaneRest> rests((links_.size() + 1) * count);
    for (std::size_t i = 0; i < send_lanes_.size(); ++i) {
      const std::size_t place = i / lanes_a_link_ * count + i % lanes_a_link_;
      send[place] = send_lanes_[i];
      receive[place] = receive_lanes_[i];
      rests[place] = receive_lane_rests_[i];
    }
    send_lanes_ = std::move(send);
    receive_lanes_ = std::move(receive);
    receive_lane_rests_ = std::move(rests);
    lanes_a_link_ = count;
  }
  send_lanes_.resize((links_.size() + 1) * lanes_a_link_);
  receive_lanes_.resize((links_.size() + 1) * lanes_a_link_);
  receive_lane_rests_.resize((links_.size() + 1) * lanes_a_link_);
}

void PacketNetwork::set_up_lane(const LinkSpec& spec, std::size_t lane) {
  const std::size_t first = links_.size() * lanes_a_link_;
  SendLane& send = send_lanes_[first + lane];
  ReceiveLane& receive = receive_lanes_[first + lane];
  ReceiveLaneRest& rest = receive_lane_rests_[first + lane];
  send.room_of = static_cast<std::uint8_t>(lane);
  const LaneControl& control = spec.lanes[lane];
  if (const auto* credits = std::get_if<CreditPool>(&control)) {
    if (credits->unit <= Bytes{0}) refuse_link(spec.name, "credit units of no bytes");
    if (credits->packets_per_update == 0 ||
        (credits->packets_per_update > 1 && credits->update_timeout <= Duration{})) {
      refuse_link(spec.name, "several packets share a credit update, but none times out");
    }
    send.control = receive.control = Control::kCredits;
    send.packet_credits = credits->packets;
    send.unit_credits = credits->units;
    send.unit_bytes = receive.unit_bytes = static_cast<std::uint32_t>(credits->unit.count());
    rest.response_ps = credits->return_delay.count_ps();
    rest.update_bytes = credits->update_bytes.count();
    receive.packets_per_update = credits->packets_per_update;
    rest.update_timeout_ps = credits->update_timeout.count_ps();
  } else if (const auto* pause = std::get_if<PauseBuffer>(&control)) {
    if (pause->xon >= pause->xoff) refuse_link(spec.name, "XON is not below XOFF");
    send.control = receive.control = Control::kPause;
    receive.capacity = pause->capacity.count();
    receive.xoff = pause->xoff.count();
    receive.xon = pause->xon.count();
    rest.update_bytes = pause->frame_bytes.count();
    rest.response_ps = pause->response.count_ps();
    receive.share = static_cast<float>(pause->share);
    if (pause->share > 0 && nodes_[spec.to.index()].shared_bytes == 0) {
      refuse_link(spec.name, "has a share of a buffer that its receiver does not have");
    }
  } else if (const auto* shares = std::get_if<SharesRoomOf>(&control)) {
    if (shares->lane >= lane)
      refuse_link(spec.name, "a lane shares the room of an earlier one only");
    send.room_of = send_lanes_[first + shares->lane].room_of;
  }
}

void PacketNetwork::pair(PacketLinkId there, PacketLinkId back) {
  Link& a = links_[there.index()];
  Link& b = links_[back.index()];
  if (sender(there) != b.to || a.to != sender(back))
    refuse_link(name(there), "is not " + name(back) + "'s way back");
  a.back = back;
  b.back = there;
}

void PacketNetwork::seal() {
  if (sealed_) throw std::logic_error("PacketNetwork: sealed twice");
  sealed_ = true;
  std::size_t queues = 0;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    link.first_lane = static_cast<std::uint32_t>(i * lanes_a_link_);
    for (std::size_t lane = 0; lane < link.lanes; ++lane) {
      const ReceiveLane& receive = receive_lanes_[link.first_lane + lane];
      const bool pauses = receive.control == Control::kPause && receive.xoff <= receive.capacity;
      const bool updates = receive.control == Control::kCredits &&
                           receive_lane_rests_[link.first_lane + lane].update_bytes > 0;
      if (link.back == kNoPacketLink && (pauses || updates)) {
        refuse_link(link_names_[i], "its flow control needs a way back");
      }
    }
    // One set of queues for each input of the sender, and one for what it sends itself.
    link.own_input = nodes_[link_rests_[i].from.index()].inputs;
    const std::size_t inputs = link.oldest_first ? 1 : link.own_input + 1;
    link.first_queue = static_cast<std::uint32_t>(queues);
    queues += inputs * link.lanes;
  }
  constexpr std::size_t kMostQueues = 100'000'000;  // 4 GB
  if (queues > kMostQueues) {
    throw InputError("packets: " + std::to_string(queues) +
                     " queues, one for each pair of a switch's ports, are too many; at most " +
                     std::to_string(kMostQueues) + ": take fewer nodes or smaller switches");
  }
  queues_.resize(queues);
  credit_returns_.resize(send_lanes_.size());
  for (const Link& link : links_) {
    const std::size_t inputs = link.oldest_first ? 1 : link.own_input + 1;
    for (std::size_t q = 0; q < inputs * link.lanes; ++q) {
      queues_[link.first_queue + q].lane = static_cast<std::uint32_t>(q % link.lanes);
    }
  }
}

void PacketNetwork::set_loss(PacketLinkId link, double chance) {
  losses_.resize(links_.size());
  losses_[link.index()].chance = chance;
}

PacketLinkCounters PacketNetwork::counters(PacketLinkId link) const {
  const Link& l = links_[link.index()];
  const std::int64_t control_bytes = link_rests_[link.index()].control_bytes;
  return {.packets = l.packets,
          .bytes = Bytes{l.bytes},
          .control_bytes = Bytes{control_bytes},
          .lost = losses_.empty() ? 0 : losses_[link.index()].lost,
          .busy = serialization(link, Bytes{l.bytes + control_bytes})};
}

Bytes PacketNetwork::queued(PacketLinkId link) const {
  const Link& l = links_[link.index()];
  std::int64_t sum = 0;
  for (std::size_t lane = 0; lane < l.lanes; ++lane) {
    sum += send_lanes_[l.first_lane + lane].queued_bytes;
  }
  return Bytes{sum};
}

PacketLaneCounters PacketNetwork::counters(PacketLinkId link, std::size_t lane) const {
  const Link& l = links_[link.index()];
  const SendLane& send = send_lanes_[l.first_lane + lane];
  const ReceiveLane& receive = receive_lanes_[l.first_lane + lane];
  const ReceiveLaneRest& rest = receive_lane_rests_[l.first_lane + lane];
  const bool is_stalled = send.stalled_since_ps >= 0;
  const std::int64_t running_ps = is_stalled ? now_ps() - send.stalled_since_ps : 0;
  return {.stalled = Duration::ps(send.stalled_ps + running_ps),
          .queued = Bytes{send.queued_bytes},
          .most_queued = Bytes{send.most_queued_bytes},
          .held = Bytes{receive.held_bytes},
          .most_held = Bytes{receive.most_held_bytes},
          .pauses = rest.pauses,
          .dropped = rest.dropped,
          .marked = send.marked};
}

}  // namespace weft
