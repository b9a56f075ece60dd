#include "models/transport/fluid_transport.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/base/error.hpp"

namespace weft {
namespace {

/// Kinds of event, in the low bits of `what`; the rest is the queue pair, the open walk, or the
/// number among verbs.
enum Kind : std::uint64_t {
  kElement,
  kHeadDone,
  kDeliver,
  kChange,
  kSolve,
  kComplete,
  kReceive,
  kFlushed
};
constexpr std::uint64_t kKindBits = 3;

std::uint64_t event_code(Kind kind, std::size_t opened = 0) {
  return (static_cast<std::uint64_t>(opened) << kKindBits) | kind;
}

Duration total(const std::vector<Segment>& segments) {
  Duration sum;
  for (const Segment& s : segments) sum += s.time;
  return sum;
}

}  // namespace

FluidTransport::FluidTransport(const Machine& machine, EventQueue& events, CauseTable& causes,
                               ServerClasses classes)
    : machine_{&machine},
      events_{&events},
      causes_{&causes},
      classes_{std::move(classes)},
      not_ready_{causes.intern({"receiver not ready", ""})},
      flow_server_(machine.server_count()) {}

FlowServerIndex FluidTransport::flow_server(ServerId server) {
  std::optional<FlowServerIndex>& known = flow_server_[server.index()];
  if (!known) {
    known = fluid_.add_server(Bandwidth::bytes_per_s(machine_->capacity(server)));
    server_.push_back(server);
    server_cause_.emplace_back();
  }
  return *known;
}

std::vector<Segment> FluidTransport::segments(const std::vector<LatencyPart>& parts) {
  std::vector<Segment> out;
  for (const LatencyPart& part : parts) out.push_back({causes_->intern(part.cause), part.time});
  return out;
}

WalkId FluidTransport::prepare(const Walk& walk, const Mover& mover) {
  return WalkId{open_walk(contract(*machine_, walk, mover.number), mover.copies)};
}

std::size_t FluidTransport::open_walk(const Contraction& contraction, double copies) {
  std::vector<Use> uses;
  for (const ServerUse& u : contraction.uses) {
    // So many copies meet on each of the servers that one stands for.
    uses.push_back({flow_server(first_of(u.server)), copies / alike(u.server) * u.weight});
  }
  OpenWalk opened;
  std::optional<Bandwidth> cap;
  if (contraction.cap) {
    cap = contraction.cap->rate;
    opened.cap = causes_->intern(contraction.cap->cause);
  }
  opened.route = fluid_.add_route(uses, cap, share_ * contraction.share);
  opened.head = segments(contraction.head);
  opened.tail = segments(contraction.tail);
  opened.head_time = total(opened.head);
  opened.tail_time = total(opened.tail);
  if (const auto& flush = contraction.flush) {
    opened.flush = flushes_.size();
    flushes_.push_back(
        {causes_->intern(flush->alone.cause), flush->alone.time, flush->gpu, flush->is_read,
         flush->window.as_double(),
         causes_->intern({"writes before a copy's reads", flush->alone.cause.where})});
    copies_[flush->gpu].walks.push_back(walks_.size());
  }
  walks_.push_back(std::move(opened));
  return walks_.size() - 1;
}

double FluidTransport::messages_at_once() const {
  double messages = 0;
  double in_use = 0;
  for (const auto& [nic, sends] : sends_) {
    messages += sends.nics * sends.message_s;
    in_use += sends.nics * sends.in_use_s;
  }
  return in_use > 0 ? messages / in_use : 0;
}

QpHandle FluidTransport::open(const QueuePair& queue_pair) {
  if (queue_pair.posting_gpu) {
    throw InputError("the fluid transport does not model posting by threads of " +
                     machine_->fabric().full_name(*queue_pair.posting_gpu) + "; packets do");
  }
  Qp qp;
  std::optional<Contraction> written;
  if (queue_pair.writes || queue_pair.sends) {
    written = contract(*machine_, data_walk(queue_pair, false));
    qp.write = add_verbs(queue_pair, *written, false);
  }
  if (queue_pair.reads) {
    qp.read = add_verbs(queue_pair, contract(*machine_, data_walk(queue_pair, true)), true);
  }
  qp.tells = queue_pair.send_cq != kNoIndex;
  const DeviceId nic = queue_pair.nic;
  if (const auto doorbells = machine_->doorbells_of(nic)) qp.doorbells = serial(*doorbells);
  qp.elements = serial(machine_->elements_of(nic));
  if (written) qp.reads = reads(queue_pair, *written);
  qp.element_gap = machine_->model(nic).adapter->qp_wqe_time;
  queue_pairs_.push_back(std::move(qp));
  return QpHandle{queue_pairs_.size() - 1};
}

FluidTransport::Serial FluidTransport::serial(ServerId of) {
  const ServerId server = first_of(of);
  return {&serial_[server], machine_->service_time(server),
          causes_->intern(machine_->cause(server))};
}

FluidTransport::Reads FluidTransport::reads(const QueuePair& q, const Contraction& data) {
  const Contraction read = contract(*machine_, {data_walk(q, false).front()});
  const Bandwidth alone = solo_rate(*machine_, read);
  const double ns_per_byte = 1e9 / alone.as_bytes_per_s();
  const Bytes buffer = machine_->model(q.nic).adapter->send_buffer;
  return {&all_read_[first_of(machine_->elements_of(q.nic))], ns_per_byte,
          Duration::from_ns(ns_per_byte * buffer.as_double()),
          causes_->intern(solo_limit(*machine_, data).cause)};
}

WalkId FluidTransport::add_verbs(const QueuePair& q, const Contraction& data, bool is_read) {
  const std::size_t opened = open_walk(data, q.copies);
  const ServerId sender = machine_->elements_of(is_read ? q.peer_nic : q.nic);
  walks_[opened].sends = &sends_.try_emplace(first_of(sender), Sends{alike(sender)}).first->second;
  walks_[opened].messages = q.copies / alike(sender);
  if (!is_read && !q.sends && q.send_cq == kNoIndex) return WalkId{opened};  // nobody is told
  const Contraction there = contract(*machine_, {message_leg(q, false)});
  const Contraction back = contract(*machine_, {message_leg(q, true)});
  if (is_read) set_read_head(walks_[opened], data, there, back);
  walks_[opened].verbs = verbs_.size();
  verbs_.push_back(
      {telling(walks_[opened].tail, is_read ? std::vector<LatencyPart>{} : back.tail, q.nic),
       telling(walks_[opened].tail, {}, q.peer_nic)});
  return WalkId{opened};
}

/// The request rings its own doorbell and travels; then what the data wait for, but for the
/// doorbell of the one who answers.
void FluidTransport::set_read_head(OpenWalk& opened, const Contraction& data,
                                   const Contraction& there, const Contraction& back) {
  std::vector<LatencyPart> head = there.head;
  head.insert(head.end(), there.tail.begin(), there.tail.end());
  for (const LatencyPart& part : data.head) {
    const bool is_doorbell = std::ranges::any_of(back.head, [&part](const LatencyPart& other) {
      return other.cause.kind == part.cause.kind && other.cause.where == part.cause.where;
    });
    if (!is_doorbell) head.push_back(part);
  }
  opened.head = segments(head);
  opened.head_time = total(opened.head);
}

/// Told after a message's tail and `parts`, and the completion's own way into memory.
FluidTransport::Telling FluidTransport::telling(const std::vector<Segment>& tail,
                                                std::vector<LatencyPart> parts, DeviceId nic) {
  parts.push_back({{"completion in memory", machine_->fabric().full_name(nic)},
                   machine_->model(nic).adapter->completion_latency});
  Telling out;
  const std::vector<Segment> more = segments(parts);
  out.after_tail = total(more);
  out.segments = tail;
  out.segments.insert(out.segments.end(), more.begin(), more.end());
  return out;
}

void FluidTransport::post(QpHandle queue_pair, std::span<const VerbRequest> requests) {
  Qp& qp = queue_pairs_[queue_pair.index()];
  Time rung = events_->now();
  if (qp.doorbells) {
    rung = qp.doorbells->server->begin(rung);
    qp.doorbells->server->pass(rung, qp.doorbells->takes);
  }
  for (const VerbRequest& request : requests) qp.held.push({request, events_->now(), rung});
  begin_held(queue_pair.index());
}

void FluidTransport::post_receives(QpHandle queue_pair, std::uint32_t count) {
  Qp& qp = queue_pairs_[queue_pair.index()];
  qp.receives = qp.receives.value_or(0) + count;
  begin_held(queue_pair.index());
}

/// Requests go on in order, as far as sends have receives; each when its doorbell has passed and
/// its queue pair is done with the element before.
void FluidTransport::begin_held(std::size_t index) {
  Qp& qp = queue_pairs_[index];
  while (!qp.held.empty()) {
    const bool is_send = qp.held.front().request.verb == Verb::kSend;
    if (is_send && qp.receives) {
      if (*qp.receives == 0) return;
      --*qp.receives;
    }
    const auto [request, posted, rung] = qp.held.pop();
    const std::optional<WalkId>& walk = request.verb == Verb::kRead ? qp.read : qp.write;
    if (!walk) throw std::logic_error("FluidTransport: a verb that its queue pair does not have");
    const Time ready = std::max(rung, events_->now());
    qp.beginning.push({*walk,
                       {.bytes = request.bytes,
                        .tag = request.tag,
                        .completes = request.is_signalled && qp.tells,
                        .is_send = is_send,
                        .waits = {Segment{qp.doorbell_cause(), rung - posted},
                                  {not_ready_, ready - rung},
                                  {},
                                  {}}},
                       ready});
    const Time begins = std::max(ready, qp.next_element);
    qp.next_element = begins + qp.element_gap;
    if (begins == events_->now() && qp.beginning.size() == 1) {
      take_element(index);
    } else {
      events_->schedule_at(begins, Phase::kDeliver, *this, event_code(kElement, index));
    }
  }
}

void FluidTransport::take_element(std::size_t index) {
  Qp& qp = queue_pairs_[index];
  Beginning next = qp.beginning.pop();
  const Time taken = qp.elements.server->pass(events_->now(), qp.elements.takes);
  next.transfer.waits[2] = {qp.elements.cause, taken - next.ready};
  Duration wait = taken - events_->now();
  const Bytes to_read = next.walk == qp.write ? next.transfer.bytes : Bytes{0};
  next.transfer.waits[3] = {qp.reads.cause, qp.reads.wait(taken, to_read)};
  wait += next.transfer.waits[3].time;
  begin(next.walk, next.transfer, wait);
}

void FluidTransport::submit(WalkId walk, Bytes bytes, std::uint64_t tag) {
  Transfer transfer{.bytes = bytes, .tag = tag};
  Duration wait;
  if (walks_[walk.index()].flush && flush_of(walk.index()).is_read) {
    if (fluid_.now() < events_->now()) sync_clock();
    wait = ahead_of(walk.index()).writes;
    transfer.waits.front() = {flush_of(walk.index()).behind, wait};
  }
  begin(walk, transfer, wait);
}

/// `wait`: before its head.
void FluidTransport::begin(WalkId walk, const Transfer& transfer, Duration wait) {
  OpenWalk& opened = walks_[walk.index()];
  opened.heading.push(transfer);
  wait += opened.head_time;
  if (wait == Duration{}) {
    head_done(walk.index());
    return;
  }
  events_->schedule_after(wait, Phase::kDeliver, *this, event_code(kHeadDone, walk.index()));
}

void FluidTransport::on_event(std::uint64_t what) {
  const auto opened = static_cast<std::size_t>(what >> kKindBits);
  switch (static_cast<Kind>(what & ((1U << kKindBits) - 1))) {
    case kElement:
      take_element(opened);
      return;
    case kHeadDone:
      head_done(opened);
      return;
    case kDeliver:
      deliver(opened);
      return;
    case kChange:
      advance();
      return;
    case kSolve:
      plan_next_change();
      return;
    case kComplete:
      tell_completed(opened);
      return;
    case kReceive:
      tell_received(opened);
      return;
    case kFlushed:
      flushed(opened);
      return;
  }
}

/// The list that the next transfer of a walk is in.
void FluidTransport::prefetch(std::uint64_t what, unsigned round) {
  const auto kind = static_cast<Kind>(what & ((1U << kKindBits) - 1));
  if (round > 0 || (kind != kHeadDone && kind != kDeliver)) return;
  const OpenWalk& opened = walks_[what >> kKindBits];
  __builtin_prefetch(kind == kHeadDone ? &opened.heading : &opened.tailing);
}

void FluidTransport::head_done(std::size_t index) {
  OpenWalk& opened = walks_[index];
  const Transfer transfer = opened.heading.pop();
  if (opened.flowing || (opened.flush && flush_of(index).running)) {
    opened.waiting.push(transfer);
  } else {
    start(index, transfer, false);
  }
}

void FluidTransport::start(std::size_t index, Transfer transfer, bool queued) {
  OpenWalk& opened = walks_[index];
  opened.flowing = transfer;
  opened.flowing_was_queued = queued;
  if (fluid_.now() < events_->now()) sync_clock();
  fluid_.start(opened.route, transfer.bytes, index);
  if (opened.sends != nullptr) opened.sends->change(events_->now(), opened.messages);
  plan_solve();
}

void FluidTransport::plan_next_change() {
  solve_planned_ = false;
  if (next_change_) events_->cancel(*next_change_);
  next_change_.reset();
  const std::optional<Time> next = fluid_.next_change();
  if (next) {
    next_change_ = events_->schedule_at(*next, Phase::kDeliver, *this, event_code(kChange));
  }
}

void FluidTransport::advance() {
  next_change_.reset();
  sync_clock();
  plan_solve();
}

void FluidTransport::sync_clock() {
  fluid_.advance(events_->now(), finished_);
  for (const Finished& flow : finished_) finish(flow);
}

void FluidTransport::plan_solve() {
  if (std::exchange(solve_planned_, true)) return;
  events_->schedule_after(Duration{}, Phase::kObserve, *this, event_code(kSolve));
}

void FluidTransport::finish(const Finished& flow) {
  const auto index = static_cast<std::size_t>(flow.tag);
  OpenWalk& opened = walks_[index];
  const Transfer transfer = *std::exchange(opened.flowing, std::nullopt);
  const bool queued = opened.flowing_was_queued;
  if (opened.sends != nullptr) opened.sends->change(events_->now(), -opened.messages);
  scratch_.clear();
  if (!queued) {
    scratch_ = opened.head;
    for (const Segment& wait : transfer.waits) {
      if (wait.time > Duration{}) scratch_.push_back(wait);
    }
  }
  for (const LimitedFor& limit : flow.limits) {
    const CauseId cause =
        limit.limiter.is_own_cap() ? *opened.cap : server_cause(limit.limiter.server());
    scratch_.push_back({cause, limit.duration});
  }
  if (opened.flush) {
    flush(index, transfer);
  } else {
    sent(index, transfer, queued, scratch_);
  }
}

/// The segments so far are in `scratch_`.
void FluidTransport::flush(std::size_t index, const Transfer& transfer) {
  Flush& flush = flush_of(index);
  const Ahead ahead = ahead_of(index);
  const Duration takes = std::max(flush.alone + ahead.writes, ahead.reads);
  const Time done = copies_[flush.gpu].flushes.pass(events_->now(), takes);
  flush.running = transfer;
  flush.segments = scratch_;
  flush.segments.push_back({flush.cause, done - events_->now()});
  events_->schedule_at(done, Phase::kDeliver, *this, event_code(kFlushed, index));
}

/// What the GPU's other copies have before a read that is sent now: writes, which begin with a
/// whole window at once and then come as they are acknowledged, and data that reads have asked for.
FluidTransport::Ahead FluidTransport::ahead_of(std::size_t index) {
  const std::vector<std::size_t>& copies = copies_[flush_of(index).gpu].walks;
  const auto is_other = [&](std::size_t other) { return other != index && walks_[other].flowing; };
  Ahead out;
  if (std::none_of(copies.begin(), copies.end(), is_other)) return out;
  for (const FlowInProgress& flow : fluid_.in_progress()) {
    const bool is_copy = std::find(copies.begin(), copies.end(), flow.tag) != copies.end();
    if (!is_copy || flow.tag == index || flow.rate_bytes_per_s <= 0) continue;
    const OpenWalk& other = walks_[flow.tag];
    const Flush& its = flush_of(flow.tag);
    const double sent = other.flowing->bytes.as_double() - flow.remaining_bytes;
    const double window = its.window - (its.is_read ? 0 : sent);
    const Duration ahead = Duration::from_ns(1e9 * std::clamp(window, 0.0, flow.remaining_bytes) /
                                             flow.rate_bytes_per_s);
    Duration& longest = its.is_read ? out.reads : out.writes;
    longest = std::max(longest, ahead);
  }
  return out;
}

void FluidTransport::flushed(std::size_t index) {
  const Transfer transfer = *std::exchange(flush_of(index).running, std::nullopt);
  const std::vector<Segment> segments = std::move(flush_of(index).segments);
  sent(index, transfer, walks_[index].flowing_was_queued, segments);
}

void FluidTransport::sent(std::size_t index, const Transfer& transfer, bool queued,
                          std::span<const Segment> segments) {
  OpenWalk& opened = walks_[index];
  if (!opened.waiting.empty()) start(index, opened.waiting.pop(), true);
  opened.tailing.push(transfer);
  sink_->on_sent(transfer.tag, queued, segments);
  if (walks_[index].tail_time == Duration{}) {
    deliver(index);
  } else {
    events_->schedule_after(walks_[index].tail_time, Phase::kDeliver, *this,
                            event_code(kDeliver, index));
  }
}

void FluidTransport::deliver(std::size_t index) {
  const Transfer transfer = walks_[index].tailing.pop();
  if (walks_[index].verbs) tell_later(*walks_[index].verbs, transfer);
  sink_->on_delivered(transfer.tag, walks_[index].tail);
}

void FluidTransport::tell_later(std::size_t index, const Transfer& transfer) {
  Verbs& verbs = verbs_[index];
  if (transfer.is_send) {
    verbs.received.tags.push(transfer.tag);
    events_->schedule_after(verbs.received.after_tail, Phase::kDeliver, *this,
                            event_code(kReceive, index));
  }
  if (transfer.completes) {
    verbs.completed.tags.push(transfer.tag);
    events_->schedule_after(verbs.completed.after_tail, Phase::kDeliver, *this,
                            event_code(kComplete, index));
  }
}

void FluidTransport::tell_completed(std::size_t index) {
  Telling& completed = verbs_[index].completed;
  sink_->on_completed(completed.tags.pop(), completed.segments);
}

void FluidTransport::tell_received(std::size_t index) {
  Telling& received = verbs_[index].received;
  sink_->on_received(received.tags.pop(), received.segments);
}

std::vector<std::string> FluidTransport::servers() const {
  std::vector<std::string> out;
  for (const ServerId server : server_) out.push_back(cause_text(machine_->cause(server)));
  return out;
}

CauseId FluidTransport::server_cause(FlowServerIndex server) {
  std::optional<CauseId>& known = server_cause_[server.index()];
  if (!known) known = causes_->intern(machine_->cause(server_[server.index()]));
  return *known;
}

}  // namespace weft
