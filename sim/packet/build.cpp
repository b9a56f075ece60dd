#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/packet/network.hpp"

namespace weft {
namespace {

[[noreturn]] void refuse_link(const std::string& link, const std::string& why) {
  throw std::logic_error("PacketNetwork: link " + link + ": " + why);
}

}  // namespace

PacketNetwork::PacketNetwork(EventQueue& events, std::uint64_t seed)
    : events_{events}, marker_{seed}, losses_{seed} {
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
       .shared = {.bytes = spec.shared_buffer.count()}});
  node_names_.push_back(spec.name);
  return PacketNodeId{nodes_.size() - 1};
}

PacketNodeId PacketNetwork::add_endpoint(std::string name, PacketEndpoint& endpoint) {
  nodes_.push_back({&endpoint, nullptr, 0, -1, 0, {}});
  node_names_.push_back(std::move(name));
  return PacketNodeId{nodes_.size() - 1};
}

PacketLinkId PacketNetwork::add_link(const LinkSpec& spec) {
  if (sealed_) refuse_link(spec.name, "added to a sealed network");
  if (spec.from.index() >= nodes_.size() || spec.to.index() >= nodes_.size()) {
    refuse_link(spec.name, "joins an unknown node");
  }
  if (spec.vls.empty() || spec.vls.size() > kMaxVls) {
    refuse_link(spec.name, "has " + std::to_string(spec.vls.size()) + " virtual lanes");
  }
  Link link;
  link.rate = spec.rate;
  link.latency_ps = spec.delay.count_ps() + nodes_[spec.from.index()].latency_ps;
  link.vls = static_cast<std::uint8_t>(spec.vls.size());
  link.lowest_first = spec.vl_order == VlOrder::kLowestFirst;
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
  make_vls(spec.vls.size());
  const auto all = static_cast<std::uint8_t>((1U << spec.vls.size()) - 1);
  for (std::size_t vl = 0; vl < spec.vls.size(); ++vl) {
    const auto others = static_cast<std::uint8_t>(all & ~(1U << vl));
    link.is_ordered = link.is_ordered || (spec.may_pass[vl] & others) != others;
    set_up_vl(spec, vl);
  }
  links_.push_back(link);
  link_rests_.push_back({.delay_ps = spec.delay.count_ps(), .from = spec.from});
  link_names_.push_back(spec.name);
  marker_.add_link(spec.ecn.value_or(EcnMarking{}));
  may_pass_.push_back(spec.may_pass);
  return PacketLinkId{links_.size() - 1};
}

/// A place for each virtual lane of one more link, which has so many.
void PacketNetwork::make_vls(std::size_t count) {
  const auto make = [&](auto& vls) {
    if (count > vls_a_link_) {
      std::decay_t<decltype(vls)> wider((links_.size() + 1) * count);
      for (std::size_t i = 0; i < vls.size(); ++i) {
        wider[i / vls_a_link_ * count + i % vls_a_link_] = std::move(vls[i]);
      }
      vls = std::move(wider);
    }
    vls.resize((links_.size() + 1) * std::max(count, vls_a_link_));
  };
  make(send_vls_);
  make(send_vl_rests_);
  make(receive_vls_);
  make(receive_vl_rests_);
  vls_a_link_ = std::max(count, vls_a_link_);
}

void PacketNetwork::set_up_vl(const LinkSpec& spec, std::size_t vl) {
  const std::size_t first = links_.size() * vls_a_link_;
  SendVl& send = send_vls_[first + vl];
  ReceiveVl& receive = receive_vls_[first + vl];
  ReceiveVlRest& rest = receive_vl_rests_[first + vl];
  send.room_of = static_cast<std::uint8_t>(vl);
  const VlControl& control = spec.vls[vl];
  if (const auto* credits = std::get_if<CreditPool>(&control)) {
    if (credits->unit <= Bytes{0}) refuse_link(spec.name, "credit units of no bytes");
    if (credits->packets_per_update == 0 ||
        (credits->packets_per_update > 1 && credits->update_timeout <= Duration{})) {
      refuse_link(spec.name, "several packets share a credit update, but none times out");
    }
    send.control = SenderCredits(*credits);
    receive.control = OwedCredits(*credits);
    rest.response_ps = credits->return_delay.count_ps();
    rest.update_bytes = credits->update_bytes.count();
    rest.update_timeout_ps = credits->update_timeout.count_ps();
  } else if (const auto* pause = std::get_if<PauseBuffer>(&control)) {
    if (pause->xon >= pause->xoff) refuse_link(spec.name, "XON is not below XOFF");
    if (pause->share > 0 && nodes_[spec.to.index()].shared.bytes == 0) {
      refuse_link(spec.name, "has a share of a buffer that its receiver does not have");
    }
    send.control = PausedBy{};
    receive.control = PauseThresholds(*pause);
    rest.update_bytes = pause->frame_bytes.count();
    rest.response_ps = pause->response.count_ps();
  } else if (const auto* shares = std::get_if<SharesRoomOf>(&control)) {
    if (shares->vl >= vl)
      refuse_link(spec.name, "a virtual lane shares the room of an earlier one only");
    send.room_of = send_vls_[first + shares->vl].room_of;
  }
}

void PacketNetwork::pair(PacketLinkId there, PacketLinkId back) {
  Link& a = links_[there.index()];
  Link& b = links_[back.index()];
  if (sender(there) != b.to || a.to != sender(back))
    refuse_link(name(there), "is not " + name(back) + "'s other direction");
  a.back = back;
  b.back = there;
}

/// Flow control that puts bytes on the wire puts them on the other direction.
void PacketNetwork::check_way_back(std::size_t link) const {
  if (links_[link].back != kNoPacketLink) return;
  for (std::size_t vl = links_[link].first_vl; vl < links_[link].first_vl + links_[link].vls;
       ++vl) {
    const auto* const pause = std::get_if<PauseThresholds>(&receive_vls_[vl].control);
    const bool updates = std::holds_alternative<OwedCredits>(receive_vls_[vl].control) &&
                         receive_vl_rests_[vl].update_bytes > 0;
    if ((pause != nullptr && pause->ever_pauses()) || updates) {
      refuse_link(link_names_[link], "its flow control needs a way back");
    }
  }
}

void PacketNetwork::seal() {
  if (sealed_) throw std::logic_error("PacketNetwork: sealed twice");
  sealed_ = true;
  std::size_t queues = 0;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    link.first_vl = static_cast<std::uint32_t>(i * vls_a_link_);
    check_way_back(i);
    // One set of queues for each input of the sender, and one for what it sends itself.
    link.own_input = nodes_[link_rests_[i].from.index()].inputs;
    link.first_queue = static_cast<std::uint32_t>(queues);
    queues += queues_of(link);
  }
  constexpr std::size_t kMostQueues = 100'000'000;  // 4 GB
  if (queues > kMostQueues) {
    throw InputError("packets: " + std::to_string(queues) +
                     " queues, one for each pair of a switch's ports, are too many; at most " +
                     std::to_string(kMostQueues) + ": take fewer nodes or smaller switches");
  }
  queues_.resize(queues);
  for (const Link& link : links_) {
    for (std::size_t q = 0; q < queues_of(link); ++q) {
      queues_.set_vl(link.first_queue + q, static_cast<std::uint32_t>(q % link.vls));
    }
  }
}

}  // namespace weft
