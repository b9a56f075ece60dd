#include "models/transport/packet_transport.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include "models/transport/contraction.hpp"
#include "models/transport/gpu_doorbells.hpp"
#include "models/transport/sm_copier.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

/// What an open walk's buffers span in every memory that it uses.
constexpr std::uint64_t kBufferStride = 16 << 20;

}  // namespace

/// One walk, of a block or of the data of a queue pair's verbs: what is under way on it, and what
/// may limit it.
class PacketTransport::OpenWalk {
 public:
  /// Something that works or makes wait, as one number that grows.
  struct Meter {
    enum class What : std::uint8_t { kLinks, kStalls, kServer, kWait };
    What what;
    CauseId cause;
    std::vector<PacketLinkId> links{};
    std::optional<ServerId> server{};    ///< kServer
    std::function<Duration()> waited{};  ///< kWait
    /// `server` here; a gate is there from the first route through it on.
    std::optional<PacketCluster::Server> found{};
    bool works() const { return what == What::kLinks || what == What::kServer; }
  };

  OpenWalk(PacketTransport& transport, const Walk& walk, bool is_by_nic, std::uint32_t number = 0);
  OpenWalk(const OpenWalk&) = delete;
  OpenWalk& operator=(const OpenWalk&) = delete;

 protected:
  ~OpenWalk() = default;
  /// What will be heard of a transfer: how often each, since one may have several parts.
  struct Parts {
    std::uint32_t unsent{1};
    std::uint32_t invisible{1};
    std::uint32_t incomplete{0};
    std::uint32_t unreceived{0};
    bool is_over() const { return unsent + invisible + incomplete + unreceived == 0; }
  };

  PacketCluster& cluster() { return transport_.cluster_; }
  CauseId cause(const Cause& cause) { return transport_.causes_.intern(cause); }
  void add_server(ServerId server);
  void add_meter(Meter meter) { meters_.push_back(std::move(meter)); }

  /// A transfer begins; its number.
  std::uint64_t add(std::uint64_t tag, const Parts& parts);
  // One part of a transfer. All are sent in order, and visible in order, none before it was sent;
  // of reads, whose parts are never unsent, nobody is told that they were.
  void part_sent(std::uint64_t number);
  void part_visible(std::uint64_t number);
  void part_completed(std::uint64_t number);
  void part_received(std::uint64_t number);
  /// The oldest that was not sent, and that is not visible.
  std::uint64_t next_sent() const { return next_sent_; }
  std::uint64_t next_visible() const { return next_visible_; }

 private:
  using Look = std::vector<std::int64_t>;
  struct Transfer {
    std::uint64_t tag;
    Parts parts;
    Time submitted;
    Time sent_at{};
    Duration tail_used{};
    Look at_submit;
    Look at_sent{};
    bool was_sent{false};
  };

  Transfer& transfer(std::uint64_t number) { return transfers_.at(number - first_); }
  std::uint64_t end() const { return first_ + transfers_.size(); }
  void sent(Transfer& transfer);
  void visible(Transfer& transfer);
  void forget();
  std::span<const Segment> since_sent(const Transfer& transfer);
  Time now() const { return transport_.cluster_.events().now(); }
  Look look();
  std::int64_t read(Meter& meter);
  Duration name_parts(const std::vector<Segment>& parts, Duration skip, Duration left);
  Duration name_part(CauseId cause, Duration most, Duration left);
  Duration name_flow(const Look& before, Time since, Duration left);

  PacketTransport& transport_;
  std::vector<Meter> meters_;
  std::vector<Segment> head_;
  std::vector<Segment> tail_;
  Duration head_time_;
  Duration tail_time_;
  CauseId rest_;        ///< of a flow: what no meter shows
  CauseId completion_;  ///< what comes behind a message
  Fifo<Transfer> transfers_;
  std::uint64_t first_{0};  ///< the number of the first
  std::uint64_t next_sent_{0};
  std::uint64_t next_visible_{0};
  Time last_sent_;
  Look at_last_sent_;
  std::vector<Segment> segments_;
};

PacketTransport::OpenWalk::OpenWalk(PacketTransport& transport, const Walk& walk, bool is_by_nic,
                                    std::uint32_t number)
    : transport_{transport} {
  const Contraction contraction = contract(cluster().machine(), walk, number);
  // Links that carry the data, not those that only carry its requests and acknowledgements.
  const double least = 0.2 / cluster().machine().routing().queue_pairs();
  for (const ServerUse& use : contraction.uses) {
    const bool is_work = cluster().machine().unit(use.server) == ServerUnit::kWork;
    if (is_work || use.weight >= least) add_server(use.server);
  }
  const auto named = [&](const std::vector<LatencyPart>& parts, Duration& sum) {
    std::vector<Segment> out;
    for (const LatencyPart& part : parts) {
      out.push_back({cause(part.cause), part.time});
      sum += part.time;
    }
    return out;
  };
  std::vector<LatencyPart> head = contraction.head;
  if (contraction.flush) head.push_back(contraction.flush->alone);
  head_ = named(head, head_time_);
  tail_ = named(contraction.tail, tail_time_);
  // A NIC's tags have a meter; a block waits for its loads whenever it does not store.
  rest_ = cause(contraction.cap && !is_by_nic ? contraction.cap->cause
                                              : Cause{"packets under way", ""});
  completion_ = cause({"acknowledgement and completion", ""});
}

void PacketTransport::OpenWalk::add_server(ServerId server) {
  const Machine& machine = cluster().machine();
  const Cause name = machine.cause(server);
  std::vector<PacketLinkId> links = cluster().links_of(server);
  if (!links.empty()) {
    add_meter({.what = Meter::What::kLinks, .cause = cause(name), .links = links});
    add_meter({.what = Meter::What::kStalls,
               .cause = cause({"credits or pauses of " + name.kind, name.where}),
               .links = std::move(links)});
  } else {
    add_meter({.what = Meter::What::kServer, .cause = cause(name), .server = server});
  }
}

PacketTransport::OpenWalk::Look PacketTransport::OpenWalk::look() {
  Look out;
  out.reserve(meters_.size());
  for (Meter& meter : meters_) out.push_back(read(meter));
  return out;
}

/// Picoseconds; of several links the mean.
std::int64_t PacketTransport::OpenWalk::read(Meter& meter) {
  const PacketNetwork& network = cluster().network();
  Duration sum;
  switch (meter.what) {
    case Meter::What::kLinks:
      for (const PacketLinkId link : meter.links) sum += network.counters(link).busy;
      return sum.count_ps() / static_cast<std::int64_t>(meter.links.size());
    case Meter::What::kStalls:
      for (const PacketLinkId link : meter.links) {
        for (std::size_t vl = 0; vl < network.vls(link); ++vl) {
          sum += network.counters(link, vl).stalled;
        }
      }
      return sum.count_ps() / static_cast<std::int64_t>(meter.links.size());
    case Meter::What::kServer:
      if (!meter.found) meter.found = cluster().server(*meter.server);
      return meter.found ? meter.found->busy().count_ps() : 0;
    case Meter::What::kWait:
      return meter.waited().count_ps();
  }
  return 0;
}

/// Of `left` at most `most` went to `cause`; what is left then.
Duration PacketTransport::OpenWalk::name_part(CauseId cause, Duration most, Duration left) {
  const Duration part = std::min(most, left);
  if (part > Duration{}) segments_.push_back({cause, part});
  return left - std::max(part, Duration{});
}

/// Of `left` as much as the parts behind the first `skip` of their time take.
Duration PacketTransport::OpenWalk::name_parts(const std::vector<Segment>& parts, Duration skip,
                                               Duration left) {
  for (const Segment& part : parts) {
    const Duration skipped = std::min(skip, part.time);
    skip = skip - skipped;
    left = name_part(part.cause, part.time - skipped, left);
  }
  return left;
}

/// Of `left`, since `before` was taken: all to a link or memory that was never idle; else to what
/// the NIC waited for itself (tags, contexts, timeouts), then to what the busiest link or memory
/// worked, then to credits, which are missing because of something else.
Duration PacketTransport::OpenWalk::name_flow(const Look& before, Time since, Duration left) {
  struct Most {
    const Meter* meter{nullptr};
    std::int64_t time{0};
  };
  Most work;
  Most wait;
  Most stall;
  for (std::size_t i = 0; i < meters_.size(); ++i) {
    const std::int64_t time = read(meters_[i]) - before[i];
    Most& most = meters_[i].works() ? work : meters_[i].what == Meter::What::kStalls ? stall : wait;
    if (time > most.time) most = {&meters_[i], time};
  }
  const bool never_idle =
      work.meter != nullptr && static_cast<double>(work.time) >=
                                   kNeverIdle * static_cast<double>((now() - since).count_ps());
  if (never_idle) return name_part(work.meter->cause, left, left);
  for (const Most& most : {wait, work, stall}) {
    if (most.meter != nullptr) left = name_part(most.meter->cause, Duration::ps(most.time), left);
  }
  return left;
}

std::uint64_t PacketTransport::OpenWalk::add(std::uint64_t tag, const Parts& parts) {
  transfers_.push({.tag = tag, .parts = parts, .submitted = now(), .at_submit = look()});
  return end() - 1;
}

void PacketTransport::OpenWalk::part_sent(std::uint64_t number) {
  --transfer(number).parts.unsent;
  while (next_sent_ < end() && transfer(next_sent_).parts.unsent == 0) {
    sent(transfer(next_sent_++));
  }
}

void PacketTransport::OpenWalk::part_visible(std::uint64_t number) {
  --transfer(number).parts.invisible;
  while (next_visible_ < end()) {
    Transfer& next = transfer(next_visible_);
    if (next.parts.unsent > 0 || next.parts.invisible > 0) break;
    ++next_visible_;
    visible(next);
  }
  forget();
}

void PacketTransport::OpenWalk::part_completed(std::uint64_t number) {
  Transfer& done = transfer(number);
  if (--done.parts.incomplete > 0) return;
  transport_.sink_->on_completed(done.tag, since_sent(done));
  forget();
}

void PacketTransport::OpenWalk::part_received(std::uint64_t number) {
  Transfer& done = transfer(number);
  if (--done.parts.unreceived > 0) return;
  transport_.sink_->on_received(done.tag, since_sent(done));
  forget();
}

void PacketTransport::OpenWalk::forget() {
  while (first_ < next_visible_ && transfers_.front().parts.is_over()) {
    transfers_.pop();
    ++first_;
  }
  next_sent_ = std::max(next_sent_, first_);
}

/// It was queued if the one before was sent after its own head would have passed.
void PacketTransport::OpenWalk::sent(Transfer& transfer) {
  const bool queued = last_sent_ > transfer.submitted + head_time_;
  segments_.clear();
  Duration left = now() - (queued ? last_sent_ : transfer.submitted);
  if (!queued) left = name_parts(head_, Duration{}, left);
  left = queued ? name_flow(at_last_sent_, last_sent_, left)
                : name_flow(transfer.at_submit, transfer.submitted, left);
  if (!queued) {
    const Duration before = left;
    left = name_parts(tail_, Duration{}, left);
    transfer.tail_used = before - left;
  }
  name_part(rest_, left, left);
  transfer.was_sent = true;
  last_sent_ = transfer.sent_at = now();
  at_last_sent_ = transfer.at_sent = look();
  transport_.sink_->on_sent(transfer.tag, queued, segments_);
}

void PacketTransport::OpenWalk::visible(Transfer& transfer) {
  segments_.clear();
  const Time since = transfer.was_sent ? transfer.sent_at : transfer.submitted;
  Duration left = now() - since;
  if (!transfer.was_sent) left = name_parts(head_, Duration{}, left);
  left = name_parts(tail_, transfer.tail_used, left);
  left = name_flow(transfer.was_sent ? transfer.at_sent : transfer.at_submit, since, left);
  name_part(rest_, left, left);
  transport_.sink_->on_delivered(transfer.tag, segments_);
}

std::span<const Segment> PacketTransport::OpenWalk::since_sent(const Transfer& transfer) {
  segments_.clear();
  const Time since = transfer.was_sent ? transfer.sent_at : transfer.submitted;
  Duration left = now() - since;
  left = name_flow(transfer.was_sent ? transfer.at_sent : transfer.at_submit, since, left);
  name_part(completion_, left, left);
  return segments_;
}

/// What an actor moves, one transfer after another.
class PacketTransport::MoveWalk : public OpenWalk {
 public:
  MoveWalk(PacketTransport& transport, const Walk& walk, std::uint32_t number = 0)
      : OpenWalk{transport, walk, false, number} {}
  virtual ~MoveWalk() = default;
  virtual void submit(Bytes bytes, std::uint64_t tag) = 0;
};

/// A GPU's SMs move it.
class PacketTransport::SmWalk final : public MoveWalk, private SmCopier::Client {
 public:
  SmWalk(PacketTransport& transport, const Walk& walk, std::uint32_t number, std::uint64_t address)
      : MoveWalk{transport, walk, number},
        copier_{cluster().host_of(walk.front().initiator), walk, number, address, *this} {}

  void submit(Bytes bytes, std::uint64_t tag) override {
    add(tag, {});
    copier_.begin(bytes);
  }

 private:
  void on_pass_sent() override { part_sent(next_sent()); }
  void on_pass_visible() override { part_visible(next_visible()); }

  SmCopier copier_;
};

/// A GPU's copy engine moves it.
class PacketTransport::CopyWalk final : public MoveWalk, private Copier::Client {
 public:
  /// Throws InputError if there is no way for it.
  CopyWalk(PacketTransport& transport, const Walk& walk, std::uint64_t address)
      : MoveWalk{transport, walk},
        copier_{transport.copier(walk.front().initiator)},
        engine_{copier_.engine(walk.front())},
        address_{address} {}

  void submit(Bytes bytes, std::uint64_t tag) override {
    copier_.copy(
        engine_,
        {.offset = address_ + offset_, .bytes = bytes, .tag = add(tag, {}), .client = this});
    offset_ = next_buffer(offset_ + static_cast<std::uint64_t>(bytes.count()), kSmBuffer);
  }

 private:
  void on_copied(std::uint64_t number) override {
    part_sent(number);
    part_visible(number);
  }

  Copier& copier_;
  std::size_t engine_;
  std::uint64_t address_;
  std::uint64_t offset_{0};
};

/// A CPU thread stores it to a device's memory, or a NIC reads it there (a flush).
class PacketTransport::DmaWalk final : public MoveWalk, private DmaClient {
 public:
  DmaWalk(PacketTransport& transport, const Walk& walk, std::uint64_t address)
      : MoveWalk{transport, walk}, is_read_{walk.front().kind == Leg::Kind::kRead} {
    const DeviceId initiator = walk.front().initiator;
    const DeviceId memory = is_read_ ? walk.front().source : walk.front().sink;
    PacketHost& host = cluster().host_of(initiator);
    const bool is_cpu = cluster().machine().model(initiator).root.has_value();
    engine_ = &host.add_engine(is_cpu ? host.cpu_engine(initiator) : host.nic_engine(initiator));
    routes_ = host.routes(initiator, memory, is_read_);
    address_ = PacketHost::memory_at(memory) + address;
  }

  void submit(Bytes bytes, std::uint64_t tag) override {
    engine_->submit({routes_, is_read_, address_, bytes, add(tag, {}), this});
  }

 private:
  void on_dma_sent(std::uint64_t number) override { part_sent(number); }
  void on_dma_done(std::uint64_t number) override {
    if (is_read_) part_sent(number);
    part_visible(number);
  }
  void on_dma_timeout(std::uint64_t /*number*/) override {
    throw InputError("a flush's read was never completed: a root complex dropped it");
  }

  bool is_read_;
  DmaEngine* engine_;
  PcieRoutesId routes_;
  std::uint64_t address_;
};

/// The writes and sends of a queue pair, or its reads.
class PacketTransport::VerbWalk final : public OpenWalk, private RdmaClient {
 public:
  VerbWalk(PacketTransport& transport, const QueuePair& q, bool is_read,
           const std::vector<RdmaQpId>& qps)
      : OpenWalk{transport, data_walk(q, is_read), true},
        tells_{q.send_cq != kNoIndex},
        is_read_{is_read},
        span_{q.span},
        local_{cluster().buffer(q.nic, q.memory, !is_read, q.address)},
        remote_{cluster().buffer(q.peer_nic, q.peer_memory, is_read, q.address)} {
    add_waits(is_read ? q.peer_nic : q.nic, qps);
    const Machine& machine = cluster().machine();
    add_server(machine.elements_of(q.nic));
    if (const auto doorbells = machine.doorbells_of(q.nic)) add_server(*doorbells);
  }

  /// Equal parts for all queue pairs, the first of all if there is nothing to carry.
  void add(const VerbRequest& request, std::vector<std::vector<RdmaRequest>>& by_qp) {
    const std::int64_t part = pieces(request.bytes, Bytes{static_cast<std::int64_t>(by_qp.size())});
    const auto used =
        part == 0 ? 1 : static_cast<std::uint32_t>(pieces(request.bytes, Bytes{part}));
    const std::uint64_t number =
        OpenWalk::add(request.tag, {.unsent = is_read_ ? 0 : used,
                                    .invisible = used,
                                    .incomplete = request.is_signalled && tells_ ? used : 0,
                                    .unreceived = request.verb == Verb::kSend ? used : 0});
    for (std::uint32_t i = 0; i < used; ++i) {
      const std::int64_t offset = part * i;
      RdmaRequest out{.op = op(request.verb),
                      .bytes = Bytes{std::min(part, request.bytes.count() - offset)},
                      .local = local_,
                      .remote = remote_,
                      .is_inline = request.is_inline,
                      .is_signalled = request.is_signalled,
                      .tag = number,
                      .client = this};
      out.local.address += offset_ + static_cast<std::uint64_t>(offset);
      out.remote.address += offset_ + static_cast<std::uint64_t>(offset);
      by_qp[i].push_back(out);
    }
    const auto bytes = static_cast<std::uint64_t>(request.bytes.count());
    if (span_ > 0) offset_ = next_buffer(offset_ + bytes, span_);
  }

 private:
  static RdmaOp op(Verb verb) {
    return verb == Verb::kWrite  ? RdmaOp::kWrite
           : verb == Verb::kRead ? RdmaOp::kRead
                                 : RdmaOp::kSend;
  }

  /// `nic`: that sends the data.
  void add_waits(DeviceId nic, const std::vector<RdmaQpId>& qps) {
    const auto add = [&](const char* what, std::function<Duration()> waited) {
      add_meter({.what = Meter::What::kWait,
                 .cause = cause({what, cluster().machine().fabric().full_name(nic)}),
                 .waited = std::move(waited)});
    };
    const auto waits = [this, &qps](Duration QueuePairs::Waits::*what) {
      return [this, &qps, what] { return waited(qps, what); };
    };
    const RdmaNicId id = cluster().nic(nic);
    add("NIC read tags in flight",
        [&engine = cluster().data_engine(nic)] { return engine.tags().stalled(); });
    add("NIC contexts and translations", [this, id] { return cluster().nics().icm_waited(id); });
    add("receiver not ready", waits(&QueuePairs::Waits::receives));
    add("retransmission timeouts", waits(&QueuePairs::Waits::timeouts));
    add("DCQCN's rate", waits(&QueuePairs::Waits::pacing));
  }
  /// On average over its queue pairs.
  Duration waited(const std::vector<RdmaQpId>& qps, Duration QueuePairs::Waits::*what) {
    Duration sum;
    for (const RdmaQpId qp : qps) sum += cluster().nics().waits(qp).*what;
    return Duration::ps(sum.count_ps() / static_cast<std::int64_t>(qps.size()));
  }

  void on_sent(std::uint64_t number) override { part_sent(number); }
  void on_visible(std::uint64_t number) override { part_visible(number); }
  void on_received(std::uint64_t number) override { part_received(number); }
  void on_completion(std::uint64_t number) override {
    if (tells_) part_completed(number);
  }

  bool tells_;
  bool is_read_;
  std::uint64_t span_;
  std::uint64_t offset_{0};
  RdmaBuffer local_;
  RdmaBuffer remote_;
};

/// An open queue pair: in life one or several.
class PacketTransport::Verbs {
 public:
  Verbs(PacketTransport& transport, const QueuePair& q) : nics_{transport.cluster_.nics()} {
    PacketCluster& cluster = transport.cluster_;
    const std::uint32_t parts = q.parts > 0 ? q.parts : cluster.machine().routing().queue_pairs();
    for (std::uint32_t i = 0; i < parts; ++i) {
      qps_.push_back(cluster.connect(q.nic, q.peer_nic, q.number + i, q.connection));
    }
    by_qp_.resize(parts);
    if (q.posting_gpu) {
      doorbells_ = std::make_unique<GpuDoorbells>(cluster, *q.posting_gpu, q.nic);
      for (const RdmaQpId qp : qps_) doorbells_->place(qp);
    }
    if (q.writes || q.sends) writes_ = std::make_unique<VerbWalk>(transport, q, false, qps_);
    if (q.reads) reads_ = std::make_unique<VerbWalk>(transport, q, true, qps_);
  }
  Verbs(const Verbs&) = delete;
  Verbs& operator=(const Verbs&) = delete;

  void post(std::span<const VerbRequest> requests) {
    for (auto& list : by_qp_) list.clear();
    for (const VerbRequest& request : requests) {
      const auto& walk = request.verb == Verb::kRead ? reads_ : writes_;
      if (!walk) throw std::logic_error("PacketTransport: a verb that its queue pair has not");
      walk->add(request, by_qp_);
    }
    for (std::size_t i = 0; i < qps_.size(); ++i) {
      if (by_qp_[i].empty()) continue;
      if (doorbells_) {
        doorbells_->ring(qps_[i], by_qp_[i]);
      } else {
        nics_.post(qps_[i], by_qp_[i]);
      }
    }
  }
  void post_receives(std::uint32_t count) {
    for (const RdmaQpId qp : qps_) nics_.post_receives(qp, count);
  }

 private:
  RdmaNics& nics_;
  std::vector<RdmaQpId> qps_;
  std::unique_ptr<GpuDoorbells> doorbells_;  ///< none: a CPU thread rings them
  std::unique_ptr<VerbWalk> writes_;
  std::unique_ptr<VerbWalk> reads_;
  std::vector<std::vector<RdmaRequest>> by_qp_;  ///< of one post
};

PacketTransport::PacketTransport(PacketCluster& cluster, CauseTable& causes)
    : cluster_{cluster}, causes_{causes} {}

PacketTransport::~PacketTransport() = default;

/// Queue pairs have the addresses that the plan gives them, open walks those behind as many; what
/// is only stored lies with the queues, a page each.
WalkId PacketTransport::prepare(const Walk& walk, const Mover& mover) {
  if (mover.copies != 1) throw std::logic_error("PacketTransport: a walk stands for one");
  const Leg& first = walk.front();
  const Fabric& fabric = cluster_.machine().fabric();
  if (first.medium == Leg::Medium::kWire ||
      (first.medium == Leg::Medium::kLocal && cluster_.machine().model(first.initiator).root)) {
    throw InputError(
        "the packet transport does not model emulated NICs (nic.emulation), whose data " +
        fabric.full_name(first.initiator) + " moves; --fidelity fluid does");
  }
  const bool is_stored = walk.size() == 1 && walk.front().kind == Leg::Kind::kWrite;
  const std::uint64_t address = is_stored && !walk.front().by_copy_engine
                                    ? kQueuesAt + walks_.size() * kPciePage
                                    : (verbs_.size() + walks_.size()) * kBufferStride;
  if (walk.front().by_copy_engine) {
    walks_.push_back(std::make_unique<CopyWalk>(*this, walk, address));
  } else if (!cluster_.machine().model(walk.front().initiator).blocks) {
    walks_.push_back(std::make_unique<DmaWalk>(*this, walk, address));
  } else {
    walks_.push_back(std::make_unique<SmWalk>(*this, walk, mover.number, address));
  }
  return WalkId{walks_.size() - 1};
}

Copier& PacketTransport::copier(DeviceId gpu) {
  return copiers_.try_emplace(gpu, cluster_.host_of(gpu), gpu).first->second;
}

void PacketTransport::submit(WalkId walk, Bytes bytes, std::uint64_t tag) {
  walks_[walk.index()]->submit(bytes, tag);
}

QpHandle PacketTransport::open(const QueuePair& queue_pair) {
  verbs_.push_back(std::make_unique<Verbs>(*this, queue_pair));
  return QpHandle{verbs_.size() - 1};
}

void PacketTransport::post(QpHandle queue_pair, std::span<const VerbRequest> requests) {
  verbs_[queue_pair.index()]->post(requests);
}

void PacketTransport::post_receives(QpHandle queue_pair, std::uint32_t count) {
  verbs_[queue_pair.index()]->post_receives(count);
}

}  // namespace weft
