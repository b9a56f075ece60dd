#include "models/host/root_complex_node.hpp"

#include <algorithm>

#include "models/pcie/dma_engine.hpp"

namespace weft {

void RootComplexNode::on_packet(Packet& tlp) {
  const PacketLinkId port = domain_.network().came_by(tlp);
  tlp.attributes = 0;  // its sender's
  if (port_of_.size() <= port.index()) port_of_.resize(port.index() + 1);
  if (port_of_[port.index()] == 0) {
    pipes_.resize(pipes_.size() + kPcieVls);
    port_of_[port.index()] = static_cast<std::uint32_t>(pipes_.size() / kPcieVls);
  }
  const std::size_t first = (port_of_[port.index()] - 1) * kPcieVls;
  const std::size_t index = first + tlp.vl;
  Pipe& pipe = pipes_[index];
  pipe.last = std::max(pipe.last, ready_at(tlp, port));
  // What it may not pass emerges before it.
  constexpr auto kMayPass = pcie_ordering();
  for (std::size_t vl = 0; vl < kPcieVls; ++vl) {
    if (vl == tlp.vl || (kMayPass[tlp.vl] >> vl & 1) != 0) continue;
    pipe.last = std::max(pipe.last, pipes_[first + vl].last + Duration::ps(1));
  }
  if (pipe.items.empty()) {
    domain_.network().events().schedule_at(pipe.last, Phase::kDeliver, *this, index);
  }
  pipe.items.push({pipe.last, &tlp});
}

Time RootComplexNode::ready_at(const Packet& tlp, PacketLinkId port) {
  const Time now = domain_.network().now();
  Time at = now + settings_.crossing;
  const PcieRoutes& routes = domain_.routes(domain_.transaction(tlp.flow).routes);
  const TlpKind kind = PcieDomain::kind(tlp);
  if (routes.translates && routes.translated_at == node_ && routes.translated_port == port &&
      kind != TlpKind::kCompletion) {
    Iotlb& iotlb = iotlb_.try_emplace(port, settings_.iotlb).first->second;
    at = std::max(at, iotlb.translate(now, tlp.tag, routes.page) + settings_.crossing);
  }
  for (const PcieRoutes::GateUse& use : routes.gates) {
    if (use.at != node_ || use.of_requests != (kind == TlpKind::kRead)) continue;
    PcieGate& gate = domain_.gate(use.gate);
    const Time through = gate.pass(now, Bytes{tlp.sequence}, use.hold);
    at = std::max(at, gate.is_buffer() ? through + settings_.crossing : through);
  }
  return at;
}

void RootComplexNode::on_event(std::uint64_t index) {
  Packet& tlp = *pipes_[index].items.pop().tlp;
  if (!pipes_[index].items.empty()) {
    domain_.network().events().schedule_at(pipes_[index].items.front().at, Phase::kDeliver, *this,
                                           index);
  }
  emerge(tlp);
}

void RootComplexNode::emerge(Packet& tlp) {
  const PcieRoutes& routes = domain_.routes(domain_.transaction(tlp.flow).routes);
  const TlpKind kind = PcieDomain::kind(tlp);
  if (kind != TlpKind::kCompletion && drops(routes)) {
    domain_.network().release(tlp);
    return;
  }
  const PacketLinkId out = domain_.source_routes().next(tlp, kNoPacketLink);
  if (out == kNoPacketLink) {
    if (kind == TlpKind::kCompletion) {
      domain_.transaction(tlp.flow).engine->on_completion(tlp);  // the CPU's own
    } else {
      memory_.take(tlp);
    }
    return;
  }
  if (routes.cut > 0 && routes.cut_at == node_) {
    if (kind == TlpKind::kCompletion) {
      join(tlp, routes, out);
      return;
    }
    if (tlp.sequence > routes.cut) {
      cut(tlp, routes, out);
      return;
    }
  }
  tlp.link_bytes = domain_.link_bytes(tlp, out);
  domain_.network().forward(tlp, out);
}

/// Sends a request on in pieces; its room is free when the last one leaves.
void RootComplexNode::cut(Packet& tlp, const PcieRoutes& routes, PacketLinkId out) {
  std::uint32_t slot = 0;
  if (free_cut_.empty()) {
    slot = static_cast<std::uint32_t>(cut_.size());
    cut_.push_back(&tlp);
  } else {
    slot = free_cut_.back();
    free_cut_.pop_back();
    cut_[slot] = &tlp;
  }
  std::uint64_t address = tlp.tag;
  const PcieDomain::NewTlp like{.kind = PcieDomain::kind(tlp),
                                .transaction = tlp.flow,
                                .route = {.first = out, .rest = tlp.route}};
  for (std::int64_t left = tlp.sequence; left > 0;) {
    PcieDomain::NewTlp piece = like;
    piece.address = address;
    piece.bytes = std::min(left, routes.cut);
    address += static_cast<std::uint64_t>(piece.bytes);
    left -= piece.bytes;
    Packet& made = domain_.make(piece);
    if (left == 0) {
      made.attributes = pcie_attribute::kLastPiece;
      made.tag = slot;
    }
    domain_.network().send(made, out);
  }
}

void RootComplexNode::on_departure(const Packet& tlp, PacketLinkId /*link*/) {
  if (tlp.attributes == pcie_attribute::kOfEngine) {
    domain_.transaction(tlp.flow).engine->on_departure(tlp);
  }
  if (tlp.attributes != pcie_attribute::kLastPiece) return;
  const auto slot = static_cast<std::uint32_t>(tlp.tag);
  free_cut_.push_back(slot);
  domain_.network().release(*cut_[slot]);
}

/// Collects completions of pieces until they fill one of the requester's, or were the last.
void RootComplexNode::join(Packet& tlp, const PcieRoutes& routes, PacketLinkId out) {
  PcieDomain::Transaction& read = domain_.transaction(tlp.flow);
  read.gathered += tlp.sequence;
  read.at_root -= tlp.sequence;
  const std::uint32_t transaction = tlp.flow;
  const PacketRoute route{.first = out, .rest = tlp.route};
  domain_.network().release(tlp);
  while (read.gathered >= routes.joined_payload || (read.at_root == 0 && read.gathered > 0)) {
    const std::int64_t bytes = std::min(read.gathered, routes.joined_payload);
    read.gathered -= bytes;
    Packet& made = domain_.make(
        {.kind = TlpKind::kCompletion, .transaction = transaction, .bytes = bytes, .route = route});
    domain_.network().send(made, out);
  }
}

std::uint64_t RootComplexNode::walks() const {
  std::uint64_t sum = 0;
  for (const auto& [port, iotlb] : iotlb_) sum += iotlb.walks();
  return sum;
}

}  // namespace weft
