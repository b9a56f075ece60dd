#include "models/transport/packet_transport.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "models/transport/contraction.hpp"
#include "models/transport/sm_copier.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

/// What a lane's buffers span in every memory that it uses.
constexpr std::uint64_t kLaneStride = 16 << 20;

/// [NIC reads] [message] [NIC writes]
bool is_rdma(const Walk& walk) {
  return walk.size() == 3 && walk[0].kind == Leg::Kind::kRead &&
         walk[1].kind == Leg::Kind::kMessage && walk[2].kind == Leg::Kind::kWrite;
}

}  // namespace

/// One walk: what is under way on it, and what may limit it.
class PacketTransport::Lane {
 public:
  /// Something that works or makes wait, as one number that grows.
  struct Meter {
    enum class What : std::uint8_t { kLinks, kStalls, kServer, kWait };
    What what;
    CauseId cause;
    std::vector<PacketLinkId> links{};
    std::optional<PacketCluster::Server> server{};  ///< kServer
    std::function<Duration()> waited{};             ///< kWait
    bool works() const { return what == What::kLinks || what == What::kServer; }
  };

  Lane(PacketTransport& transport, const Walk& walk);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  virtual ~Lane() = default;

  void submit(Bytes bytes, std::uint64_t tag) {
    transfers_.push({.tag = tag, .submitted = now(), .at_submit = look()});
    begin(bytes);
  }

 protected:
  virtual void begin(Bytes bytes) = 0;
  PacketCluster& cluster() { return transport_.cluster_; }
  CauseId cause(const Cause& cause) { return transport_.causes_.intern(cause); }
  void add_meter(Meter meter) { meters_.push_back(std::move(meter)); }
  /// The oldest that was not sent is; the oldest that is not visible is. Nothing is visible before
  /// it was sent.
  void sent();
  void visible();

 private:
  using Look = std::vector<std::int64_t>;
  struct Transfer {
    std::uint64_t tag;
    Time submitted;
    Time sent_at{};
    Duration tail_used{};
    Look at_submit;
    Look at_sent{};
  };

  Time now() const { return transport_.cluster_.events().now(); }
  void add_server(const ServerUse& use);
  Look look();
  std::int64_t read(const Meter& meter);
  Duration name_parts(const std::vector<Segment>& parts, Duration skip, Duration left);
  Duration name_part(CauseId cause, Duration most, Duration left);
  Duration name_flow(const Look& before, Time since, Duration left);

  PacketTransport& transport_;
  std::vector<Meter> meters_;
  std::vector<Segment> head_;
  std::vector<Segment> tail_;
  Duration head_time_;
  Duration tail_time_;
  CauseId rest_;  ///< of a flow: what no meter shows
  Fifo<Transfer> transfers_;
  std::size_t sent_{0};  ///< of these
  Time last_sent_;
  Look at_last_sent_;
  std::vector<Segment> segments_;
};

PacketTransport::Lane::Lane(PacketTransport& transport, const Walk& walk) : transport_{transport} {
  const Contraction contraction = contract(cluster().machine(), walk);
  // Links that carry the data, not those that only carry its requests and acknowledgements.
  const double least = 0.2 / cluster().machine().routing().queue_pairs();
  for (const ServerUse& use : contraction.uses) {
    if (use.weight >= least) add_server(use);
  }
  const auto named = [&](const std::vector<LatencyPart>& parts, Duration& sum) {
    std::vector<Segment> out;
    for (const LatencyPart& part : parts) {
      out.push_back({cause(part.cause), part.time});
      sum += part.time;
    }
    return out;
  };
  head_ = named(contraction.head, head_time_);
  tail_ = named(contraction.tail, tail_time_);
  // A NIC's tags have a meter; a block waits for its loads whenever it does not store.
  rest_ = cause(contraction.cap && !is_rdma(walk) ? contraction.cap->cause
                                                  : Cause{"packets under way", ""});
}

void PacketTransport::Lane::add_server(const ServerUse& use) {
  const Machine& machine = cluster().machine();
  const Cause name = machine.cause(use.server);
  std::vector<PacketLinkId> links = cluster().links_of(use.server);
  if (!links.empty()) {
    add_meter({.what = Meter::What::kLinks, .cause = cause(name), .links = links});
    add_meter({.what = Meter::What::kStalls,
               .cause = cause({"credits or pauses of " + name.kind, name.where}),
               .links = std::move(links)});
  } else if (const auto server = cluster().server(use.server)) {
    add_meter({.what = Meter::What::kServer, .cause = cause(name), .server = server});
  }
}

PacketTransport::Lane::Look PacketTransport::Lane::look() {
  Look out;
  out.reserve(meters_.size());
  for (const Meter& meter : meters_) out.push_back(read(meter));
  return out;
}

/// Picoseconds; of several links the mean.
std::int64_t PacketTransport::Lane::read(const Meter& meter) {
  const PacketNetwork& network = cluster().network();
  Duration sum;
  switch (meter.what) {
    case Meter::What::kLinks:
      for (const PacketLinkId link : meter.links) sum += network.counters(link).busy;
      return sum.count_ps() / static_cast<std::int64_t>(meter.links.size());
    case Meter::What::kStalls:
      for (const PacketLinkId link : meter.links) {
        for (std::size_t lane = 0; lane < network.vls(link); ++lane) {
          sum += network.counters(link, lane).stalled;
        }
      }
      return sum.count_ps() / static_cast<std::int64_t>(meter.links.size());
    case Meter::What::kServer:
      return meter.server->busy().count_ps();
    case Meter::What::kWait:
      return meter.waited().count_ps();
  }
  return 0;
}

/// Of `left` at most `most` went to `cause`; what is left then.
Duration PacketTransport::Lane::name_part(CauseId cause, Duration most, Duration left) {
  const Duration part = std::min(most, left);
  if (part > Duration{}) segments_.push_back({cause, part});
  return left - std::max(part, Duration{});
}

/// Of `left` as much as the parts behind the first `skip` of their time take.
Duration PacketTransport::Lane::name_parts(const std::vector<Segment>& parts, Duration skip,
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
Duration PacketTransport::Lane::name_flow(const Look& before, Time since, Duration left) {
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

/// It was queued if the one before was sent after its own head would have passed.
void PacketTransport::Lane::sent() {
  Transfer& transfer = transfers_.at(sent_++);
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
  last_sent_ = transfer.sent_at = now();
  at_last_sent_ = transfer.at_sent = look();
  transport_.sink_->on_sent(transfer.tag, queued, segments_);
}

void PacketTransport::Lane::visible() {
  const Transfer transfer = transfers_.pop();
  --sent_;
  segments_.clear();
  Duration left = name_parts(tail_, transfer.tail_used, now() - transfer.sent_at);
  left = name_flow(transfer.at_sent, transfer.sent_at, left);
  name_part(rest_, left, left);
  transport_.sink_->on_delivered(transfer.tag, segments_);
}

/// A GPU's SMs move it.
class PacketTransport::SmLane final : public Lane, private SmCopier::Client {
 public:
  SmLane(PacketTransport& transport, const Walk& walk, std::uint64_t address)
      : Lane{transport, walk},
        copier_{cluster().host_of(walk.front().initiator), walk, address, *this} {}

 private:
  void begin(Bytes bytes) override { copier_.begin(bytes); }
  void on_pass_sent() override { sent(); }
  void on_pass_visible() override { visible(); }

  SmCopier copier_;
};

/// NICs move it.
class PacketTransport::RdmaLane final : public Lane, private RdmaClient {
 public:
  RdmaLane(PacketTransport& transport, const Walk& walk, std::uint64_t address)
      : Lane{transport, walk} {
    const Leg& read = walk[0];
    const Leg& message = walk[1];
    const Leg& write = walk[2];
    for (std::uint32_t i = 0; i < cluster().machine().routing().queue_pairs(); ++i) {
      qps_.push_back(cluster().connect(message.source, message.sink, i, message.connection));
    }
    local_ = cluster().buffer(read.sink, read.source, true, address);
    remote_ = cluster().buffer(write.source, write.sink, false, address);
    add_waits(message.source);
  }

 private:
  struct Parts {
    std::uint32_t unsent;
    std::uint32_t invisible;
  };

  void add_waits(DeviceId nic) {
    const auto add = [&](const char* what, std::function<Duration()> waited) {
      add_meter({.what = Meter::What::kWait,
                 .cause = cause({what, cluster().machine().fabric().full_name(nic)}),
                 .waited = std::move(waited)});
    };
    const RdmaNicId id = cluster().nic(nic);
    add("NIC read tags in flight",
        [&engine = cluster().data_engine(nic)] { return engine.tags().stalled(); });
    add("NIC contexts and translations", [this, id] { return cluster().nics().icm_waited(id); });
    add("retransmission timeouts", [this] { return waited(&QueuePairs::Waits::timeouts); });
    add("DCQCN's rate", [this] { return waited(&QueuePairs::Waits::pacing); });
  }
  /// On average over its queue pairs.
  Duration waited(Duration QueuePairs::Waits::*what) {
    Duration sum;
    for (const RdmaQpId qp : qps_) sum += cluster().nics().waits(qp).*what;
    return Duration::ps(sum.count_ps() / static_cast<std::int64_t>(qps_.size()));
  }

  /// Equal parts on all queue pairs, the first of all if there is nothing to carry.
  void begin(Bytes bytes) override {
    const std::int64_t part = pieces(bytes, Bytes{static_cast<std::int64_t>(qps_.size())});
    const auto used = part == 0 ? 1 : static_cast<std::uint32_t>(pieces(bytes, Bytes{part}));
    const std::uint64_t number = first_ + parts_.size();
    parts_.push({used, used});
    for (std::uint32_t i = 0; i < used; ++i) {
      const std::int64_t offset = part * i;
      RdmaRequest request{.op = RdmaOp::kWrite,
                          .bytes = Bytes{std::min(part, bytes.count() - offset)},
                          .local = local_,
                          .remote = remote_,
                          .tag = number,
                          .client = this};
      request.local.address += offset_ + static_cast<std::uint64_t>(offset);
      request.remote.address += offset_ + static_cast<std::uint64_t>(offset);
      cluster().nics().post(qps_[i], request);
    }
    offset_ = next_buffer(offset_ + static_cast<std::uint64_t>(bytes.count()));
  }
  void on_sent(std::uint64_t number) override {
    --parts_.at(number - first_).unsent;
    while (unsent_ < parts_.size() && parts_.at(unsent_).unsent == 0) {
      ++unsent_;
      sent();
    }
  }
  void on_visible(std::uint64_t number) override {
    --parts_.at(number - first_).invisible;
    while (unsent_ > 0 && parts_.front().invisible == 0) {
      parts_.pop();
      ++first_;
      --unsent_;
      visible();
    }
  }

  std::vector<RdmaQpId> qps_;
  RdmaBuffer local_;
  RdmaBuffer remote_;
  std::uint64_t offset_{0};
  Fifo<Parts> parts_;       ///< of transfers that are not visible
  std::uint64_t first_{0};  ///< the number of the first
  std::size_t unsent_{0};   ///< the first of them that was not sent
};

PacketTransport::PacketTransport(PacketCluster& cluster, CauseTable& causes)
    : cluster_{cluster}, causes_{causes} {}

PacketTransport::~PacketTransport() = default;

WalkId PacketTransport::prepare(const Walk& walk, std::uint32_t copies) {
  if (copies != 1) throw std::logic_error("PacketTransport: every packet has one lane");
  const std::uint64_t address = lanes_.size() * kLaneStride;
  if (is_rdma(walk)) {
    lanes_.push_back(std::make_unique<RdmaLane>(*this, walk, address));
  } else {
    lanes_.push_back(std::make_unique<SmLane>(*this, walk, address));
  }
  return WalkId{lanes_.size() - 1};
}

void PacketTransport::submit(WalkId walk, Bytes bytes, std::uint64_t tag) {
  lanes_[walk.index()]->submit(bytes, tag);
}

namespace {

/// The packets of a leg: how many links each crosses and what it carries at most.
struct LegPackets {
  double links{0};
  double payload{1};
  double request_links{0};  ///< of reads
  double request{1};        ///< what one asks for

  double hops(double bytes, double transfers) const {
    return links * std::max(bytes / payload, transfers) +
           request_links * std::max(bytes / request, transfers);
  }
};

class HopCounter {
 public:
  explicit HopCounter(const Machine& machine) : machine_{machine} {}

  const LegPackets& packets(Leg leg) {
    leg.branch = 0;
    leg.threads = 0;
    leg.connection = 0;  // all connections of two NICs cross as many links
    const auto [at, is_new] = known_.try_emplace(leg);
    if (is_new) at->second = count(leg);
    return at->second;
  }

 private:
  LegPackets count(const Leg& leg) const {
    const Fabric& fabric = machine_.fabric();
    const auto over = [](const std::optional<Route>& route, double payload) {
      return LegPackets{.links = route ? static_cast<double>(route->size()) : 0,
                        .payload = payload};
    };
    switch (leg.medium) {
      case Leg::Medium::kLocal:
        return {};
      case Leg::Medium::kNvlink:
        return over(fabric.nvlink_route(leg.source, leg.sink),
                    machine_.model(leg.source).blocks->line.as_double());
      case Leg::Medium::kWire:
        return over(fabric.wire_route(leg.source, leg.sink),
                    static_cast<double>(machine_.packets().mtu));
      case Leg::Medium::kPcie:
        return count_pcie(leg);
    }
    return {};
  }

  /// A root complex may cut peer traffic smaller; this is an estimate.
  LegPackets count_pcie(const Leg& leg) const {
    const bool is_read = leg.kind == Leg::Kind::kRead;
    const DeviceId target = is_read ? leg.source : leg.sink;
    const auto path = dma_path(machine_, leg.initiator, target, is_read);
    if (!path) return {};
    const Requester& requester = *machine_.model(leg.initiator).requester;
    const double request = requester.read_request;
    const auto there = static_cast<double>(path->request.size());
    if (!is_read) {
      const double mps = path_mps(machine_, leg.initiator, path->request);
      return {.links = there, .payload = std::min(mps, requester.write_payload)};
    }
    return {.links = static_cast<double>(path->completion.size()),
            .payload = std::min(request, completion_payload(machine_, target, path->completion)),
            .request_links = there,
            .request = request};
  }

  const Machine& machine_;
  std::map<Leg, LegPackets> known_;
};

}  // namespace

double packet_hops(const Machine& machine, const Plan& plan) {
  HopCounter counter(machine);
  double sum = 0;
  for (const Program& program : plan.programs) {
    for (const Loop& loop : program.loops) {
      for (const Step& step : loop.body) {
        const double times = static_cast<double>(loop.repeat) * step.repeat;
        const double bytes = times * step.bytes.as_double();
        const double transfers =
            times * static_cast<double>(std::max<std::int64_t>(1, pieces(step.bytes, step.slice)));
        const auto add = [&](WalkIndex walk) {
          for (const Leg& leg : plan.walks[walk]) {
            sum += counter.packets(leg).hops(bytes, transfers);
          }
        };
        for (const ConnectionIndex c : step.in) add(plan.connections[c].pull);
        for (const ConnectionIndex c : step.out) {
          const Connection& connection = plan.connections[c];
          add(connection.push);
          if (connection.carry) add(*connection.carry);
        }
      }
    }
  }
  return sum;
}

}  // namespace weft
