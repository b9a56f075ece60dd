#include "models/nic/rdma.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"

namespace weft {
namespace {

// Numbers of events and DMAs: kind, index (a message, a side, a NIC, a landing), packet number.
constexpr unsigned kIndexShift = 8;
constexpr unsigned kNumberShift = 32;
/// rdma-core providers/mlx5: a receive of one buffer is one data segment.
constexpr std::int64_t kReceiveElement = 16;
// Translations are 8 B each; a line of 64 B has those of neighbouring pages.
constexpr std::int64_t kTranslationLine = 64;
constexpr std::int64_t kTranslationsInLine = 8;
/// Of the cache's keys, those of contexts; the others are addresses.
constexpr std::uint64_t kIsContext = std::uint64_t{1} << 63;
constexpr std::uint32_t kMostIndices = 1U << (kNumberShift - kIndexShift);

constexpr std::uint64_t pack(std::uint8_t kind, std::uint32_t index, std::uint32_t number) {
  return std::uint64_t{number} << kNumberShift | std::uint64_t{index} << kIndexShift | kind;
}
constexpr std::uint32_t index_of(std::uint64_t what) {
  return static_cast<std::uint32_t>(what >> kIndexShift) % kMostIndices;
}
constexpr std::uint32_t number_of(std::uint64_t what) {
  return static_cast<std::uint32_t>(what >> kNumberShift);
}

/// A place for one more in a vector whose freed places are used again.
template <class T>
std::uint32_t place(std::vector<T>& items, std::vector<std::uint32_t>& free, T item) {
  if (free.empty()) {
    if (items.size() == kMostIndices) throw InputError("too many messages under way");
    items.push_back(std::move(item));
    return static_cast<std::uint32_t>(items.size() - 1);
  }
  const std::uint32_t slot = free.back();
  free.pop_back();
  items[slot] = std::move(item);
  return slot;
}

}  // namespace

RdmaNicId RdmaNics::add_nic() {
  nics_.emplace_back();
  nics_.back().port = pairs_.add_port();
  return RdmaNicId{nics_.size() - 1};
}

void RdmaNics::attach(RdmaNicId nic, Settings settings, const Host& host) {
  nics_[nic.index()].icm = IcmCache(settings.icm_cache);
  nics_[nic.index()].settings = std::move(settings);
  nics_[nic.index()].host = host;
}

RdmaQpId RdmaNics::connect(RdmaNicId from, RdmaNicId to, const QueuePairs::Ways& ways) {
  qps_.emplace_back();
  qps_.back().from = from.value;
  qps_.back().to = to.value;
  const auto port = [this](RdmaNicId nic) { return nics_[nic.index()].port; };
  pairs_.connect(port(from), port(to), ways);
  pairs_.connect(port(to), port(from), {ways.back, ways.rest_back, ways.there, ways.rest_there});
  for (const RdmaNicId nic : {from, to}) {
    sides_.emplace_back();
    sides_.back().nic = nic.value;
  }
  return RdmaQpId{qps_.size() - 1};
}

void RdmaNics::schedule(Time at, Kind kind, std::uint32_t index, std::uint32_t number) {
  network_.events().schedule_at(at, Phase::kDeliver, *this,
                                pack(static_cast<std::uint8_t>(kind), index, number));
}

void RdmaNics::submit(DmaEngine& engine, bool is_read, const RdmaBuffer& where, std::int64_t bytes,
                      Dma kind, std::uint32_t index, std::uint32_t number) {
  engine.submit({.path = where.path,
                 .is_read = is_read,
                 .address = where.address,
                 .bytes = Bytes{bytes},
                 .tag = pack(static_cast<std::uint8_t>(kind), index, number),
                 .client = this});
}

void RdmaNics::post(RdmaQpId qp, std::span<const RdmaRequest> requests) {
  const Settings& nic = nics_[qps_[qp.index()].from].settings;
  schedule(network_.now() + nic.doorbell, Kind::kDoorbell, enqueue(qp, requests));
}

void RdmaNics::place_queues(RdmaQpId qp, const RdmaBuffer& wqes, const RdmaBuffer& cqes) {
  qps_[qp.index()].queues = {wqes, cqes};
}

/// Gives the first; the others follow it.
std::uint32_t RdmaNics::enqueue(RdmaQpId qp, std::span<const RdmaRequest> requests) {
  std::uint32_t first = kNone;
  std::uint32_t last = kNone;
  for (const RdmaRequest& request : requests) {
    Message message{.request = request, .qp = qp.value, .order = posted_++};
    // The data are in memory; its turn among those that come has come; it is acknowledged or its
    // completion written; so is the receive's.
    message.open = 2 + (request.op != RdmaOp::kRead || request.is_signalled ? 1 : 0) +
                   (request.op == RdmaOp::kSend ? 1 : 0);
    const std::uint32_t slot = place(messages_, free_messages_, message);
    (first == kNone ? first : messages_[last].next) = slot;
    last = slot;
  }
  return first;
}

void RdmaNics::post_receives(RdmaQpId qp, std::uint32_t count) {
  Qp& q = qps_[qp.index()];
  q.receives = q.receives.value_or(0) + count;
  const Nic& nic = nics_[q.to];
  submit(*nic.host.queues, true, nic.host.wqes, count * kReceiveElement, Dma::kReceives, qp.value);
}

/// A doorbell is at the NIC: the elements are with it, or are read.
void RdmaNics::ring(std::uint32_t first) {
  const Qp& qp = qps_[messages_[first].qp];
  const Nic& nic = nics_[qp.from];
  if (nic.settings.blueflame && messages_[first].next == kNone && !qp.queues) {
    begin(first);
    return;
  }
  std::int64_t elements = 0;
  for (std::uint32_t i = first; i != kNone; i = messages_[i].next) ++elements;
  submit(*nic.host.queues, true, qp.queues ? qp.queues->wqes : nic.host.wqes,
         elements * nic.settings.wqe.count(), Dma::kWqe, first);
}

void RdmaNics::on_event(std::uint64_t what) {
  const std::uint32_t index = index_of(what);
  switch (static_cast<Kind>(what & 0xff)) {
    case Kind::kDoorbell:
      ring(index);
      return;
    case Kind::kBegin:
      serve(index);
      return;
    case Kind::kWork: {
      const std::uint32_t qp = messages_[index].qp;
      nics_[qps_[qp].from].wqe_busy += nics_[qps_[qp].from].settings.wqe_time;
      qps_[qp].served.push(index);
      if (qps_[qp].served.size() == 1) work(qp);
      return;
    }
    case Kind::kProvide:
      provide(index, number_of(what));
      return;
    case Kind::kArrive: {
      const Arriving item = nics_[index].arriving.pop();
      sides_[item.side].arrived.push(item);
      if (sides_[item.side].arrived.size() == 1) arrive(item.side);
      return;
    }
  }
}

/// Elements that came together are begun one after another.
void RdmaNics::take_wqes(std::uint32_t first) {
  while (first != kNone) first = begin(first);
}

/// A queue pair turns to an element; gives the next one of the same doorbell.
std::uint32_t RdmaNics::begin(std::uint32_t message) {
  Qp& qp = qps_[messages_[message].qp];
  const std::uint32_t next = messages_[message].next;
  const Time at = std::max(qp.next_wqe, network_.now());
  qp.next_wqe = at + nics_[qp.from].settings.qp_wqe_time;
  if (at > network_.now()) {
    schedule(at, Kind::kBegin, message);
  } else {
    serve(message);
  }
  return next;
}

/// All queue pairs' elements pass one server.
void RdmaNics::serve(std::uint32_t message) {
  Nic& nic = nics_[qps_[messages_[message].qp].from];
  nic.wqe_free_at = std::max(nic.wqe_free_at, network_.now()) + nic.settings.wqe_time;
  schedule(nic.wqe_free_at, Kind::kWork, message);
}

/// Elements of a queue pair whose context is there, in order.
void RdmaNics::work(std::uint32_t qp) {
  while (!qps_[qp].served.empty()) {
    if (!has_context(qps_[qp].from, qp, {Gate::Kind::kWork, qp})) return;
    start(qps_[qp].served.pop());
  }
}

void RdmaNics::start(std::uint32_t message) {
  const std::uint32_t index = messages_[message].qp;
  const Nic& nic = nics_[qps_[index].from];
  if (qps_[index].has_failed) {
    give_up(message, RdmaStatus::kFlushed);
    return;
  }
  messages_[message].is_begun = true;
  if (messages_[message].request.op != RdmaOp::kRead) {
    send(pair_of(index, false).value, message, false);
    return;
  }
  Qp& qp = qps_[index];
  if (qp.reads == nic.settings.max_reads || !qp.waiting_reads.empty()) {
    qp.waiting_reads.push(message);
  } else {
    request_read(message);
  }
}

void RdmaNics::request_read(std::uint32_t message) {
  ++qps_[messages_[message].qp].reads;
  send(pair_of(messages_[message].qp, false).value, message, true);
}

/// Puts a message, or the request of a read, into a side's queue.
void RdmaNics::send(std::uint32_t side, std::uint32_t message, bool is_request) {
  const Bytes bytes = is_request ? Bytes{0} : messages_[message].request.bytes;
  pairs_.announce(QueuePairId{side}, bytes, std::uint64_t{message} * 2 + (is_request ? 1 : 0));
  Side& s = sides_[side];
  s.fetches.push({message, is_request});
  s.coming.push(message);
  messages_[message].has_come = false;
  const RdmaRequest& request = messages_[message].request;
  s.leaving.push(
      {bytes.count(), request.tag, request.op == RdmaOp::kRead ? nullptr : request.client});
  if (!std::exchange(s.in_turn, true)) nics_[s.nic].turns.push(side);
  fetch(s.nic);
}

/// Asks for payload, one packet's of each side in turn, as long as there is room.
void RdmaNics::fetch(std::uint32_t index) {
  Nic& nic = nics_[index];
  if (std::exchange(nic.is_fetching, true)) return;  // what it does may come back here
  while (!nic.turns.empty()) {
    const Fetched fetched = fetch_one(nic.turns.front());
    if (fetched == Fetched::kNoRoom) break;
    const std::uint32_t side = nic.turns.pop();
    if (fetched == Fetched::kWaits) continue;  // its turn comes with the translation
    sides_[side].in_turn = !sides_[side].fetches.empty();
    if (sides_[side].in_turn) nic.turns.push(side);
  }
  nic.is_fetching = false;
}

/// One packet's payload.
RdmaNics::Fetched RdmaNics::fetch_one(std::uint32_t index) {
  Side& side = sides_[index];
  if (side.fetches.empty()) return Fetched::kYes;  // it has failed
  Nic& nic = nics_[side.nic];
  const Fetch item = side.fetches.front();
  const RdmaRequest& request = messages_[item.message].request;
  const std::int64_t left = item.is_request ? 0 : request.bytes.count() - side.fetched;
  const std::int64_t payload = std::min(left, mtu_);
  if (payload > 0 && nic.buffered + payload > nic.settings.send_buffer) return Fetched::kNoRoom;
  const bool is_back = index % 2 == 1;
  RdmaBuffer from = is_back ? request.remote : request.local;
  from.address += static_cast<std::uint64_t>(side.fetched);
  const bool is_read = payload > 0 && !request.is_inline;
  if (is_read && !side.has_page && !has_page(side.nic, from, {Gate::Kind::kFetch, index})) {
    return Fetched::kWaits;
  }
  side.has_page = false;
  nic.buffered += payload;
  side.buffered += payload;
  const std::uint32_t number = side.asked++;
  side.is_here.push_back(false);
  side.fetched += payload;
  if (payload == left) {
    side.fetches.pop();
    side.fetched = 0;
  }
  if (is_read) {
    submit(*nic.host.data, true, from, payload, Dma::kPayload, index, number);
  } else {
    schedule(network_.now() + nic.settings.latency, Kind::kProvide, index, number);
  }
  return Fetched::kYes;
}

void RdmaNics::provide(std::uint32_t index, std::uint32_t number) {
  Side& side = sides_[index];
  if (qps_[index / 2].has_failed) return;
  side.is_here[number - side.first] = true;
  while (!side.is_here.empty() && side.is_here.front()) {
    side.is_here.pop_front();
    ++side.first;
    pairs_.provide(QueuePairId{index});
  }
}

void RdmaNics::on_sent(QueuePairId pair, Bytes payload) {
  if (qps_[pair.index() / 2].has_failed) return;  // what it had was given back
  Side& side = sides_[pair.index()];
  const std::uint32_t nic = side.nic;
  nics_[nic].buffered -= payload.count();
  side.buffered -= payload.count();
  Leaving& leaving = side.leaving.at(0);
  leaving.left -= payload.count();
  const Leaving done = leaving.left > 0 ? Leaving{} : side.leaving.pop();
  fetch(nic);
  if (done.client != nullptr) done.client->on_sent(done.tag);
}

bool RdmaNics::keeps(const Arrival& arrival, Packet& packet) {
  const std::uint32_t index = receiver_of(arrival.pair.value);
  const bool has_payload = arrival.payload > Bytes{0};
  Nic& nic = nics_[index];
  nic.arriving.push({.side = arrival.pair.value,
                     .tag = arrival.tag,
                     .payload = arrival.payload.count(),
                     .is_last = arrival.is_last,
                     .packet = has_payload ? &packet : nullptr});
  schedule(network_.now() + nic.settings.latency, Kind::kArrive, index);
  return has_payload;
}

/// Packets that came for a side, in order, as far as what they need is there.
void RdmaNics::arrive(std::uint32_t index) {
  const std::uint32_t nic = receiver_of(index);
  const Gate gate{Gate::Kind::kArrive, index};
  while (!sides_[index].arrived.empty()) {
    Side& side = sides_[index];
    const Arriving& item = side.arrived.front();
    if (!side.has_context && !has_context(nic, index / 2, gate)) return;
    side.has_context = true;
    if (item.packet != nullptr && !has_page(nic, target_of(item), gate)) return;
    side.has_context = false;
    arrived(sides_[index].arrived.pop());
  }
}

/// Where a packet's payload goes.
RdmaBuffer RdmaNics::target_of(const Arriving& item) const {
  const Message& message = messages_[item.tag / 2];
  const bool is_read = message.request.op == RdmaOp::kRead;
  RdmaBuffer to = is_read ? message.request.local : message.request.remote;
  to.address += static_cast<std::uint64_t>(message.arrived);
  return to;
}

void RdmaNics::arrived(const Arriving& item) {
  const std::uint32_t index = receiver_of(item.side);
  const Nic& nic = nics_[index];
  const auto slot = static_cast<std::uint32_t>(item.tag / 2);
  Message& message = messages_[slot];
  const bool is_request = item.tag % 2 == 1;
  if (message.status != RdmaStatus::kSuccess && !is_request) {
    if (item.packet != nullptr) network_.release(*item.packet);
    return;
  }
  const RdmaBuffer to = target_of(item);
  message.arrived += item.payload;
  if (item.packet != nullptr) {
    const std::uint32_t landing =
        place(landings_, free_landings_, Landing{index, slot, item.payload, item.packet});
    submit(*nic.host.data, false, to, item.payload, Dma::kLanding, landing);
  }
  if (!item.is_last) return;
  message.has_come = true;
  // A message that overtook others, where the network lets it, takes its turn after them.
  const auto is_next = [this](const Fifo<std::uint32_t>& coming) {
    return !coming.empty() && messages_[coming.front()].has_come;
  };
  while (is_next(sides_[item.side].coming)) take_turn(item.side, sides_[item.side].coming.pop());
}

/// All of a message has come, and of those before it.
void RdmaNics::take_turn(std::uint32_t side, std::uint32_t slot) {
  const std::uint32_t index = receiver_of(side);
  Message& message = messages_[slot];
  Qp& qp = qps_[message.qp];
  const RdmaOp op = message.request.op;
  const bool is_request = op == RdmaOp::kRead && side % 2 == 0;
  const bool is_empty = message.request.bytes == Bytes{0};
  if (message.status != RdmaStatus::kSuccess || (is_request && qp.has_failed)) return;
  if (is_request) {
    send(side + 1, slot, false);
    return;
  }
  if (op == RdmaOp::kSend) write_cqe(index, slot, Dma::kReceiveCqe);
  if (op == RdmaOp::kRead) {
    message.has_ended = true;
    if (message.request.is_signalled) write_cqe(index, slot, Dma::kCqe);
    --qp.reads;
    if (!qp.waiting_reads.empty()) request_read(qp.waiting_reads.pop());
  }
  close(slot);
  if (is_empty) landed(slot, 0);
}

void RdmaNics::landed(std::uint32_t slot, std::int64_t bytes) {
  Message& message = messages_[slot];
  if (message.status != RdmaStatus::kSuccess) return;
  message.landed += bytes;
  if (message.landed < message.request.bytes.count()) return;
  RdmaClient* client = message.request.client;
  const std::uint64_t tag = message.request.tag;
  close(slot);
  client->on_visible(tag);
}

void RdmaNics::write_cqe(std::uint32_t index, std::uint32_t message, Dma kind) {
  const Nic& nic = nics_[index];
  const Qp& qp = qps_[messages_[message].qp];
  const bool is_placed = qp.queues && kind != Dma::kReceiveCqe;
  submit(*nic.host.data, false, is_placed ? qp.queues->cqes : nic.host.cqes,
         nic.settings.cqe.count(), kind, message);
}

void RdmaNics::on_acknowledged(QueuePairId pair, std::uint64_t tag) {
  if (tag % 2 == 1 || pair.index() % 2 == 1) return;  // a read: it completes with its data
  const auto slot = static_cast<std::uint32_t>(tag / 2);
  messages_[slot].has_ended = true;
  if (messages_[slot].request.is_signalled) {
    write_cqe(sides_[pair.index()].nic, slot, Dma::kCqe);
  } else {
    close(slot);
  }
}

bool RdmaNics::is_ready(QueuePairId pair, std::uint64_t tag) {
  Qp& qp = qps_[pair.index() / 2];
  const bool takes_one =
      pair.index() % 2 == 0 && qp.receives && messages_[tag / 2].request.op == RdmaOp::kSend;
  if (!takes_one) return true;
  if (*qp.receives == 0) return false;
  --*qp.receives;
  return true;
}

void RdmaNics::on_dma_sent(std::uint64_t tag) {
  if (static_cast<Dma>(tag & 0xff) == Dma::kLanding) {
    network_.release(*landings_[index_of(tag)].packet);
  }
}

void RdmaNics::on_dma_done(std::uint64_t tag) {
  const std::uint32_t index = index_of(tag);
  switch (static_cast<Dma>(tag & 0xff)) {
    case Dma::kWqe:
      take_wqes(index);
      return;
    case Dma::kPayload:
      schedule(network_.now() + nics_[sides_[index].nic].settings.latency, Kind::kProvide, index,
               number_of(tag));
      return;
    case Dma::kLanding: {
      const Landing landing = landings_[index];
      free_landings_.push_back(index);
      nics_[landing.nic].landed += landing.bytes;
      landed(landing.message, landing.bytes);
      return;
    }
    case Dma::kReceives:
      return;
    case Dma::kIcm:
      have_read_icm(index);
      return;
    case Dma::kErrorCqe: {
      const Message& message = messages_[index];
      message.request.client->on_error(message.request.tag, message.status);
      return;
    }
    case Dma::kCqe: {
      const RdmaRequest request = messages_[index].request;
      close(index);
      request.client->on_completion(request.tag);
      return;
    }
    case Dma::kReceiveCqe: {
      const RdmaRequest request = messages_[index].request;
      close(index);
      request.client->on_received(request.tag);
      return;
    }
  }
}

bool RdmaNics::has_context(std::uint32_t nic, std::uint32_t qp, Gate gate) {
  return has(nic, kIsContext | qp, nics_[nic].settings.qp_context.count(), gate);
}

/// Translations are read a line at a time.
bool RdmaNics::has_page(std::uint32_t nic, const RdmaBuffer& buffer, Gate gate) {
  const auto line = static_cast<std::uint64_t>(buffer.page.count() * kTranslationsInLine);
  return has(nic, buffer.address / line * line, kTranslationLine, gate);
}

/// Whether the NIC has it; else it reads it, and the gate is opened then.
bool RdmaNics::has(std::uint32_t index, std::uint64_t key, std::int64_t bytes, Gate gate) {
  Nic& nic = nics_[index];
  if (nic.icm.holds(key, bytes)) return true;
  if (nic.missing.empty()) nic.icm_waits_since = network_.now();
  std::vector<Gate>& gates = nic.missing[key];
  gates.push_back(gate);
  if (gates.size() > 1) return false;
  ++nic.icm_misses;
  if (nic.icm_fetches == nic.settings.icm_fetches) {
    nic.icm_waiting.push({key, bytes});
  } else {
    ++nic.icm_fetches;
    read_icm(index, {key, bytes});
  }
  return false;
}

void RdmaNics::read_icm(std::uint32_t index, IcmFetch fetch) {
  const Nic& nic = nics_[index];
  const std::uint32_t slot = place(icm_reads_, free_icm_reads_, std::pair{index, fetch});
  submit(*nic.host.queues, true, nic.host.wqes, fetch.bytes, Dma::kIcm, slot);
}

void RdmaNics::have_read_icm(std::uint32_t slot) {
  const auto [index, fetch] = icm_reads_[slot];
  free_icm_reads_.push_back(slot);
  Nic& nic = nics_[index];
  nic.icm.insert(fetch.key, fetch.bytes);
  if (nic.icm_waiting.empty()) {
    --nic.icm_fetches;
  } else {
    read_icm(index, nic.icm_waiting.pop());
  }
  auto gates = nic.missing.extract(fetch.key);
  if (nic.missing.empty()) nic.icm_waited += network_.now() - nic.icm_waits_since;
  for (const Gate& gate : gates.mapped()) open(gate);
}

/// What waited for a context or a translation tries again.
void RdmaNics::open(Gate gate) {
  switch (gate.kind) {
    case Gate::Kind::kWork:
      work(gate.index);
      return;
    case Gate::Kind::kArrive:
      arrive(gate.index);
      return;
    case Gate::Kind::kFetch:
      sides_[gate.index].has_page = true;
      nics_[sides_[gate.index].nic].turns.push(gate.index);
      fetch(sides_[gate.index].nic);
      return;
  }
}

void RdmaNics::close(std::uint32_t message) {
  if (messages_[message].status != RdmaStatus::kSuccess) return;
  if (--messages_[message].open == 0) free_messages_.push_back(message);
}

}  // namespace weft
