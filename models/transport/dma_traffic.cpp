#include "models/transport/dma_traffic.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::array<const char*, kPcieVls> kVlWords{"posted", "relaxed posted", "non-posted",
                                                     "completion", "relaxed completion"};

}  // namespace

void UsageMeter::add(Look& out, PacketHost& host, const std::vector<DmaEngine*>& engines) {
  const auto add = [&out](UsedShare::What what, std::string name, Duration time,
                          UsedShare::Behind behind = UsedShare::Behind::kNothing,
                          Duration link = {}) {
    out.push_back({what, std::move(name), time.as_s(), behind, link.as_s()});
  };
  const Machine& machine = host.machine();
  for (const PacketHost::NamedLink& named : host.links()) {
    const Cause cause = machine.cause(named.server);
    const Duration busy = host.network().counters(named.link).busy;
    add(UsedShare::What::kLink, cause.kind + ", " + cause.where, busy);
    for (std::size_t vl = 0; vl < kPcieVls; ++vl) {
      add(UsedShare::What::kWait, fmt::format("{} credits of {}", kVlWords.at(vl), cause.where),
          host.network().counters(named.link, vl).stalled, UsedShare::Behind::kCredits, busy);
    }
  }
  for (const auto& [server, gate] : host.gates()) {
    const PcieGate& limit = host.domain().gate(gate);
    add(UsedShare::What::kWork, limit.name(), std::max(limit.busy(), limit.full()));
  }
  for (const auto& [server, sm] : host.sms()) {
    const Cause cause = machine.cause(server);
    add(UsedShare::What::kWork, cause.kind + ", " + cause.where, sm.worked(host.network().now()));
  }
  for (const auto& [device, memory] : host.memories()) {
    const Cause cause =
        machine.cause(machine.server_of(device, *machine.model(device).memory->server));
    add(UsedShare::What::kWork, cause.kind + ", " + cause.where, memory->busy());
    add(UsedShare::What::kWait, "reads that " + cause.where + " answers at a time",
        memory->stalled_for_reads());
  }
  for (const DmaEngine* engine : engines) {
    add(UsedShare::What::kWait, "read tags of " + engine->name(), engine->tags().stalled(),
        UsedShare::Behind::kTags);
  }
}

std::vector<UsedShare> UsageMeter::between(const Look& before, const Look& after, Duration time) {
  const double seconds = std::max(time, Duration::ps(1)).as_s();
  std::vector<UsedShare> out;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const double share = (after[i].share - before[i].share) / seconds;
    const double link = (after[i].link - before[i].link) / seconds;
    if (share > 0) out.push_back({after[i].what, after[i].name, share, after[i].behind, link});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const UsedShare& a, const UsedShare& b) { return a.share > b.share; });
  return out;
}

namespace {

class TrafficRun;

/// Keeps one stream's transfers under way.
class StreamRunner final : public DmaClient, public EventTarget {
 public:
  StreamRunner(TrafficRun& traffic, PacketHost& host, const DmaStream& stream)
      : traffic_{traffic},
        host_{host},
        stream_{stream},
        routes_{host.routes(stream.initiator, stream.target, stream.is_read)} {
    if (stream.transfers == 0 || stream.at_a_time == 0) {
      throw std::logic_error("run_streams: a stream of nothing");
    }
  }

  void start() {
    began_ = host_.network().now();
    const std::uint64_t first = std::min<std::uint64_t>(stream_.at_a_time, stream_.transfers);
    for (std::uint64_t i = 0; i < first; ++i) next();
  }
  void on_event(std::uint64_t /*what*/) override { submit(); }
  void on_dma_done(std::uint64_t /*tag*/) override { ended(); }
  void on_dma_timeout(std::uint64_t /*tag*/) override {
    ++timeouts_;
    ended();
  }

  bool is_done() const { return done_at_.size() == stream_.transfers; }
  /// Payload rate between its last transfers that were done by these times; over all if none lies
  /// between.
  DmaStreamResult result(Time from, Time to) const {
    auto first = std::upper_bound(done_at_.begin(), done_at_.end(), from);
    const auto last = std::upper_bound(done_at_.begin(), done_at_.end(), to);
    double transfers = static_cast<double>(done_at_.size());
    Duration time = done_at_.back() - began_;
    if (first != done_at_.begin() && last > first) {
      --first;
      transfers = static_cast<double>(last - 1 - first);
      time = *(last - 1) - *first;
    }
    return {.rate = Bandwidth::bytes_per_s(stream_.size.as_double() * transfers /
                                           std::max(time, Duration::ps(1)).as_s()),
            .latency = done_at_.front() - began_,
            .timeouts = timeouts_};
  }

 private:
  void next() {
    ++begun_;
    if (stream_.setup == Duration{}) {
      submit();
    } else {
      host_.network().events().schedule_after(stream_.setup, Phase::kCompute, *this);
    }
  }
  void submit() {
    const Bytes stride = stream_.stride > Bytes{0} ? stream_.stride : stream_.size;
    const std::uint64_t at = submitted_ * static_cast<std::uint64_t>(stride.count()) %
                                 static_cast<std::uint64_t>(stream_.range.count()) +
                             static_cast<std::uint64_t>(stream_.offset.count());
    const std::uint64_t tag = submitted_++;
    stream_.engine->submit({.routes = routes_,
                            .is_read = stream_.is_read,
                            .address = PacketHost::memory_at(stream_.target) + at,
                            .bytes = stream_.size,
                            .tag = tag,
                            .client = this});
  }
  void ended();

  TrafficRun& traffic_;
  PacketHost& host_;
  DmaStream stream_;
  PcieRoutesId routes_;
  Time began_;
  std::uint64_t begun_{0};
  std::uint64_t submitted_{0};
  std::uint64_t timeouts_{0};
  std::vector<Time> done_at_;
};

/// All streams of one run, and what was in use from when all had settled until the first ended.
class TrafficRun {
 public:
  TrafficRun(PacketHost& host, const std::vector<DmaStream>& streams) : host_{host} {
    for (const DmaStream& stream : streams) {
      runners_.push_back(std::make_unique<StreamRunner>(*this, host, stream));
      if (std::find(engines_.begin(), engines_.end(), stream.engine) == engines_.end()) {
        engines_.push_back(stream.engine);
      }
    }
  }

  DmaTrafficResult run() {
    before_ = look();
    from_ = host_.network().now();
    const Time began = from_;
    for (const auto& runner : runners_) runner->start();
    host_.network().events().run();
    DmaTrafficResult out;
    for (const auto& runner : runners_) {
      if (!runner->is_done()) throw std::logic_error("run_streams: " + why_stuck());
      out.streams.push_back(runner->result(from_, *to_));
    }
    out.elapsed = host_.network().now() - began;
    out.used = UsageMeter::between(before_, after_, *to_ - from_);
    return out;
  }

  void settled() {
    if (++settled_ < runners_.size() || to_) return;
    before_ = look();
    from_ = host_.network().now();
  }
  void ended() {
    if (to_) return;
    after_ = look();
    to_ = host_.network().now();
  }

 private:
  UsageMeter::Look look() {
    UsageMeter::Look out;
    UsageMeter::add(out, host_, engines_);
    return out;
  }
  std::string why_stuck() const {
    const auto stall = host_.network().find_stall();
    return stall ? host_.network().describe(*stall) : "transfers that never end";
  }

  PacketHost& host_;
  std::vector<std::unique_ptr<StreamRunner>> runners_;
  std::vector<DmaEngine*> engines_;
  std::size_t settled_{0};
  Time from_;
  std::optional<Time> to_;
  std::vector<UsedShare> before_;
  std::vector<UsedShare> after_;
};

void StreamRunner::ended() {
  done_at_.push_back(host_.network().now());
  // All done: its first transfers found an empty machine, its last ones leave one.
  if (done_at_.size() == stream_.at_a_time && stream_.transfers > stream_.at_a_time) {
    traffic_.settled();
  }
  if (begun_ < stream_.transfers) {
    next();
  } else {
    traffic_.ended();
  }
}

constexpr double kAsLong = 0.9;

/// Whether one wait is why there is the other: it lasts as long. One for credits ends while its
/// link works, and must be most of what that idles.
bool keeps_waiting(const UsedShare& wait, const UsedShare& other) {
  if (wait.behind >= other.behind) return false;
  if (wait.share + wait.link < kAsLong * other.share) return false;
  return wait.behind != UsedShare::Behind::kCredits || wait.share >= (1 - wait.link) / 2;
}

}  // namespace

std::string limited_by(const std::vector<UsedShare>& used) {
  const UsedShare* busiest = nullptr;
  const UsedShare* waited_for = nullptr;
  for (const UsedShare& use : used) {
    const UsedShare*& first = use.what == UsedShare::What::kWait ? waited_for : busiest;
    if (first == nullptr) first = &use;
    if (use.what == UsedShare::What::kWait && keeps_waiting(use, *waited_for)) waited_for = &use;
  }
  const double worked = busiest == nullptr ? 0 : busiest->share;
  if (worked >= kNeverIdle) return busiest->name;
  // Whatever idled then: most of that time something waited, or nothing was asked for.
  if (waited_for != nullptr && waited_for->share >= (1 - worked) / 2) return waited_for->name;
  return "latency";
}

const UsedShare* busiest_link(const std::vector<UsedShare>& used) {
  const auto at = std::find_if(used.begin(), used.end(), [](const UsedShare& use) {
    return use.what == UsedShare::What::kLink;
  });
  return at == used.end() ? nullptr : &*at;
}

double DmaTrafficResult::share_of(std::string_view name) const {
  for (const UsedShare& use : used) {
    if (use.name.find(name) != std::string::npos) return use.share;
  }
  return 0;
}

Bandwidth DmaTrafficResult::total() const {
  double sum = 0;
  for (const DmaStreamResult& stream : streams) sum += stream.rate.as_bytes_per_s();
  return Bandwidth::bytes_per_s(sum);
}

DmaTrafficResult run_streams(PacketHost& host, const std::vector<DmaStream>& streams) {
  return TrafficRun(host, streams).run();
}

DmaTestbed::DmaTestbed(const Machine& machine, std::optional<std::uint64_t> shuffle_ties)
    : events_{shuffle_ties ? EventQueue::shuffling_ties(*shuffle_ties) : EventQueue()},
      network_{events_},
      host_{machine, 0, network_} {
  network_.seal();
}

}  // namespace weft
