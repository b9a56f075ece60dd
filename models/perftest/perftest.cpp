#include "models/perftest/perftest.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "models/system/gdr_possible.hpp"
#include "models/system/packet_cluster.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

struct Name {
  std::string device;
  std::uint32_t node;
};

constexpr std::uint32_t kMostNodes = 65'536;

/// "gpu0@1".
Name parse_name(const std::string& text, const char* option, std::uint32_t node) {
  const std::size_t at = text.find('@');
  if (at == std::string::npos) return {text, node};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + at + 1, end, node);
  if (error != std::errc{} || rest != end || node >= kMostNodes) {
    throw InputError(
        fmt::format("{} '{}': write a device and its node, such as gpu0@1", option, text));
  }
  return {text.substr(0, at), node};
}

DeviceId find_device(const Fabric& fabric, const Name& name, const char* option) {
  const auto id = fabric.find(name.node, name.device);
  if (id) return *id;
  std::vector<std::string> known;
  for (std::size_t i = 0; i < fabric.devices_per_node(); ++i) {
    const DeviceSpec& device = fabric.device(DeviceId{i});
    if (device.kind == DeviceKind::kGpu || device.kind == DeviceKind::kCpu ||
        device.kind == DeviceKind::kNic) {
      known.push_back(device.name);
    }
  }
  throw InputError(
      fmt::format("{} '{}': no such device; known: {}", option, name.device, known_names(known)));
}

/// The end of a PCIe way that a route over the tree has: a CPU stands for its socket's memory.
PathClass distance(const Fabric& fabric, DeviceId nic, DeviceId memory) {
  if (fabric.device(memory).kind == DeviceKind::kCpu) {
    return fabric.root_cpu(nic) == memory ? PathClass::kPhb : PathClass::kSys;
  }
  return fabric.path_label(nic, memory).path_class;
}

DeviceId nearest_nic(const Fabric& fabric, DeviceId memory) {
  const std::uint32_t node = *fabric.node_of(memory);
  std::optional<DeviceId> best;
  for (std::size_t i = 0; i < fabric.count(DeviceKind::kNic); ++i) {
    const DeviceId nic = fabric.device(node, DeviceKind::kNic, i);
    if (!fabric.wire_link(nic)) continue;
    if (!best || distance(fabric, nic, memory) < distance(fabric, *best, memory)) best = nic;
  }
  if (best) return *best;
  throw InputError(fabric.spec().file + ": no NIC of " +
                   (node == 0 ? "the node" : "node " + std::to_string(node)) +
                   " is cabled to a network");
}

/// Where the memory of one end is, by the option's name and what was asked for.
DeviceId memory_of(const Machine& machine, const Name& name, const char* option,
                   PerftestMemory memory) {
  const Fabric& fabric = machine.fabric();
  const DeviceId id = find_device(fabric, name, option);
  const DeviceKind kind = fabric.device(id).kind;
  if (memory == PerftestMemory::kHost) {
    if (kind == DeviceKind::kCpu) return id;
    if (fabric.upstream(id)) return fabric.root_cpu(id);
  }
  if (kind == DeviceKind::kGpu) return id;
  throw InputError(fmt::format("{} '{}': --mem gpu needs a GPU", option, name.device));
}

DeviceId nic_of(const Machine& machine, const std::string& text, const char* option,
                DeviceId memory) {
  const Fabric& fabric = machine.fabric();
  if (text.empty()) return nearest_nic(fabric, memory);
  const Name name = parse_name(text, option, *fabric.node_of(memory));
  const DeviceId nic = find_device(fabric, name, option);
  if (fabric.device(nic).kind != DeviceKind::kNic || !fabric.wire_link(nic)) {
    throw InputError(fmt::format("{} '{}': not a NIC with a cable", option, text));
  }
  if (fabric.node_of(nic) != fabric.node_of(memory)) {
    throw InputError(
        fmt::format("{} '{}': on another node than {}", option, text, fabric.full_name(memory)));
  }
  return nic;
}

void check_gdr(const Machine& machine, DeviceId gpu, DeviceId nic) {
  if (machine.fabric().device(gpu).kind != DeviceKind::kGpu) return;
  const GdrPossible gdr = gdr_possible(machine, gpu, nic);
  if (gdr.possible) return;
  throw InputError(fmt::format("no GPUDirect RDMA between {} and {}: {}; --mem host goes without",
                               machine.fabric().full_name(gpu), machine.fabric().full_name(nic),
                               gdr.why));
}

constexpr const char* kPostingThread = "the thread that posts";
constexpr double kNeverIdle = 0.97;
constexpr std::uint64_t kBufferStride = std::uint64_t{1} << 32;  ///< between queue pairs' buffers

/// One program of perftest: posts to its queue pairs in turn, from one thread, as long as fewer
/// than `tx_depth` requests of a queue pair are under way as far as it knows.
class Sender final : public RdmaClient, private EventTarget {
 public:
  struct Plan {
    PerftestEnds ends{};
    RdmaOp op{RdmaOp::kWrite};
    Bytes size{};
    std::uint64_t iterations{1};  ///< of each queue pair
    std::uint32_t qps{1};
    std::uint32_t tx_depth{1};
    std::uint32_t cq_moderation{1};
    bool is_inline{false};
    std::uint64_t offset{0};  ///< of its buffers
  };
  /// Messages that are known to be done at a time.
  struct Step {
    Time at;
    std::uint64_t messages;
  };

  Sender(PacketCluster& cluster, const Plan& plan)
      : cluster_{cluster},
        plan_{plan},
        post_time_{cluster.machine().devices().duration("nic.post_time", plan.ends.from_nic)},
        poll_time_{cluster.machine().devices().duration("nic.poll_time", plan.ends.from_nic)} {
    const bool is_read = plan.op == RdmaOp::kRead;
    for (std::uint32_t i = 0; i < plan.qps; ++i) {
      const std::uint64_t offset = plan.offset + i * kBufferStride;
      qps_.push_back({.id = cluster.connect(plan.ends.from_nic, plan.ends.to_nic, i),
                      .local = cluster.buffer(plan.ends.from_nic, plan.ends.from, !is_read, offset),
                      .remote = cluster.buffer(plan.ends.to_nic, plan.ends.to, is_read, offset)});
    }
  }

  void start() { next(); }
  bool is_done() const { return known_ == plan_.iterations * plan_.qps; }
  /// Every queue pair has had a completion.
  bool has_settled() const {
    return std::all_of(qps_.begin(), qps_.end(), [](const Qp& qp) { return qp.known > 0; });
  }
  std::uint64_t known() const { return known_; }
  const std::vector<Step>& steps() const { return steps_; }
  std::uint64_t messages() const { return plan_.iterations * plan_.qps; }
  Duration posting() const { return posting_; }
  Duration waiting() const {
    return waited_ + (waits_ ? cluster_.events().now() - waits_since_ : Duration{});
  }
  Time visible() const { return visible_; }
  Time received() const { return received_; }
  bool has_posted_all() const { return posted_ == messages(); }
  /// Called with each step, and with the last post.
  void on_step(std::function<void()> call) { on_step_ = std::move(call); }

  void on_completion(std::uint64_t tag) override {
    cluster_.events().schedule_after(poll_time_, Phase::kCompute, *this, 1 + tag);
  }
  void on_visible(std::uint64_t /*tag*/) override { visible_ = cluster_.events().now(); }
  void on_received(std::uint64_t /*tag*/) override { received_ = cluster_.events().now(); }

 private:
  struct Qp {
    RdmaQpId id;
    RdmaBuffer local;
    RdmaBuffer remote;
    std::uint64_t posted{0};
    std::uint64_t known{0};  ///< done, as far as completions told
  };

  bool has_room(const Qp& qp) const {
    return qp.posted < plan_.iterations && qp.posted - qp.known < plan_.tx_depth;
  }
  /// Begins to post to the next queue pair that has room; waits for a completion if none has.
  void next() {
    for (std::uint32_t i = 0; i < plan_.qps; ++i) {
      const std::uint32_t at = (turn_ + i) % plan_.qps;
      if (!has_room(qps_[at])) continue;
      turn_ = at;
      if (waits_) waited_ += cluster_.events().now() - waits_since_;
      waits_ = false;
      cluster_.events().schedule_after(post_time_, Phase::kCompute, *this, 0);
      return;
    }
    if (waits_) return;
    waits_ = true;
    waits_since_ = cluster_.events().now();
  }
  void on_event(std::uint64_t what) override {
    if (what == 0) {
      post();
    } else {
      completed(static_cast<std::uint32_t>(what - 1));
    }
  }
  void post() {
    Qp& qp = qps_[turn_];
    ++posted_;
    posting_ += post_time_;
    ++qp.posted;
    const bool is_last = qp.posted == plan_.iterations;
    cluster_.nics().post(qp.id, {.op = plan_.op,
                                 .bytes = plan_.size,
                                 .local = qp.local,
                                 .remote = qp.remote,
                                 .is_inline = plan_.is_inline,
                                 .is_signalled = is_last || qp.posted % plan_.cq_moderation == 0,
                                 .tag = turn_,
                                 .client = this});
    turn_ = (turn_ + 1) % plan_.qps;
    if (on_step_ && has_posted_all()) on_step_();
    next();
  }
  void completed(std::uint32_t index) {
    Qp& qp = qps_[index];
    const std::uint64_t known = std::min(plan_.iterations, qp.known + plan_.cq_moderation);
    known_ += known - qp.known;
    qp.known = known;
    steps_.push_back({cluster_.events().now(), known_});
    if (on_step_) on_step_();
    if (waits_) next();
  }

  PacketCluster& cluster_;
  Plan plan_;
  Duration post_time_;
  Duration poll_time_;
  std::vector<Qp> qps_;
  std::uint32_t turn_{0};
  std::uint64_t posted_{0};
  std::uint64_t known_{0};
  bool waits_{false};
  Time waits_since_;
  Duration waited_;
  Duration posting_;
  Time visible_;
  Time received_;
  std::vector<Step> steps_;
  std::function<void()> on_step_;
};

/// What a run is made of: one sender, or one at each end.
class Run {
 public:
  Run(const Machine& machine, const Sender::Plan& plan, bool bidirectional)
      : cluster_{machine, {node(machine, plan.ends.from), node(machine, plan.ends.to)}},
        plan_{plan} {
    add(plan_);
    if (!bidirectional) return;
    Sender::Plan back = plan_;
    std::swap(back.ends.from, back.ends.to);
    std::swap(back.ends.from_nic, back.ends.to_nic);
    back.offset = plan_.qps * kBufferStride;
    add(back);
  }

  const Sender& sender() const { return *senders_.front(); }
  Duration poll_time() const {
    return cluster_.machine().devices().duration("nic.poll_time", plan_.ends.to_nic);
  }

  void run() {
    for (const auto& sender : senders_) sender->start();
    cluster_.events().run();
    for (const auto& sender : senders_) {
      if (!sender->is_done()) throw std::logic_error("perftest: " + cluster_.why_stuck());
    }
  }

  /// The steady part: from when every queue pair has had a completion until the first sender ends.
  struct Steady {
    double messages_per_s{0};
    double peak_messages_per_s{0};
    std::vector<UsedShare> used;
    double waiting{0};  ///< share of the time that senders waited for completions
    double posting{0};
  };
  Steady steady() const {
    Steady out;
    for (const auto& sender : senders_) {
      out.messages_per_s += rate(sender->steps(), from_, *to_);
      out.peak_messages_per_s += peak(sender->steps());
    }
    out.used = UsageMeter::between(before_, after_, used_to_ - from_);
    const double sender_seconds = (used_to_ - from_).as_s() * static_cast<double>(senders_.size());
    out.waiting = (after_waiting_ - before_waiting_).as_s() / sender_seconds;
    out.posting = (after_posting_ - before_posting_).as_s() / sender_seconds;
    return out;
  }

 private:
  static std::uint32_t node(const Machine& machine, DeviceId device) {
    return *machine.fabric().node_of(device);
  }
  static double per_s(const Sender::Step& a, const Sender::Step& b) {
    return static_cast<double>(b.messages - a.messages) / (b.at - a.at).as_s();
  }
  static double rate(const std::vector<Sender::Step>& steps, Time from, Time to) {
    const auto last_by = [&steps](Time at) {
      return *(std::upper_bound(steps.begin(), steps.end(), at,
                                [](Time t, const Sender::Step& step) { return t < step.at; }) -
               1);
    };
    return per_s(last_by(from), last_by(to));
  }
  /// Best of any completions in a row, one of each queue pair: those come together.
  double peak(const std::vector<Sender::Step>& steps) const {
    double best = 0;
    for (std::size_t i = plan_.qps - 1; i + plan_.qps < steps.size(); ++i) {
      if (steps[i + plan_.qps].at == steps[i].at) continue;
      best = std::max(best, per_s(steps[i], steps[i + plan_.qps]));
    }
    return best;
  }

  void add(const Sender::Plan& plan) {
    senders_.push_back(std::make_unique<Sender>(cluster_, plan));
    senders_.back()->on_step([this] { look(); });
  }
  void look() {
    const auto all = [this](auto&& holds) {
      return std::all_of(senders_.begin(), senders_.end(), holds);
    };
    if (to_) return;
    if (before_.empty() && all([](const auto& s) { return s->has_settled(); })) {
      before_ = take(before_waiting_, before_posting_);
      from_ = cluster_.events().now();
      known_before_ = senders_.front()->known();
      return;
    }
    if (before_.empty()) return;
    const auto none = [&all](bool (Sender::*holds)() const) {
      return all([holds](const auto& s) { return !((*s).*holds)(); });
    };
    const bool is_done = !none(&Sender::is_done);
    // After the last post everything runs dry, what is nearest to the sender first. But where all
    // is posted at once, only that is left to look at.
    const bool is_over =
        !none(&Sender::has_posted_all) && senders_.front()->known() >= 2 * known_before_;
    if (after_.empty() && (is_done || is_over)) {
      after_ = take(after_waiting_, after_posting_);
      used_to_ = cluster_.events().now();
    }
    if (is_done) to_ = cluster_.events().now();
  }
  UsageMeter::Look take(Duration& waiting, Duration& posting) {
    UsageMeter::Look out = cluster_.look();
    waiting = posting = Duration{};
    for (const auto& sender : senders_) {
      out.push_back({UsedShare::What::kWork, kPostingThread, sender->posting().as_s()});
      waiting += sender->waiting();
      posting += sender->posting();
    }
    return out;
  }

  PacketCluster cluster_;
  Sender::Plan plan_;
  std::vector<std::unique_ptr<Sender>> senders_;
  UsageMeter::Look before_;
  UsageMeter::Look after_;
  Time from_;
  std::optional<Time> to_;
  Time used_to_;  ///< when `after_` was taken
  std::uint64_t known_before_{0};
  Duration before_waiting_;
  Duration before_posting_;
  Duration after_waiting_;
  Duration after_posting_;
};

/// One message after another; the second finds all caches warm and the machine idle.
Duration lone_latency(const Machine& machine, const PerftestEnds& ends,
                      const PerftestOptions& options, Bytes size) {
  const bool is_inline = options.op != RdmaOp::kRead && options.memory == PerftestMemory::kHost &&
                         size <= machine.devices().bytes("nic.inline_max", ends.from_nic);
  Run run(machine,
          {.ends = ends,
           .op = options.op,
           .size = size,
           .iterations = 2,
           .qps = 1,
           .tx_depth = 1,
           .cq_moderation = 1,
           .is_inline = is_inline},
          false);
  run.run();
  const Sender& sender = run.sender();
  const Time began = sender.steps().front().at;
  switch (options.op) {
    case RdmaOp::kRead:
      return sender.steps().back().at - began;
    case RdmaOp::kSend:
      return sender.received() + run.poll_time() - began;
    case RdmaOp::kWrite:
      return sender.visible() + run.poll_time() - began;
  }
  throw std::logic_error("perftest: unknown operation");
}

// As many messages as show a steady rate, and no more.
constexpr std::int64_t kSteadyBytes = 32 << 20;
constexpr std::uint64_t kSteadyCompletions = 5;
constexpr std::uint64_t kFewestIterations = 8;

}  // namespace

std::uint32_t perftest_nodes(const PerftestOptions& options) {
  return std::max(parse_name(options.from, "--from", 0).node,
                  parse_name(options.to, "--to", 1).node) +
         1;
}

PerftestEnds perftest_ends(const Machine& machine, const PerftestOptions& options) {
  PerftestEnds out;
  out.from = memory_of(machine, parse_name(options.from, "--from", 0), "--from", options.memory);
  out.to = memory_of(machine, parse_name(options.to, "--to", 1), "--to", options.memory);
  out.from_nic = nic_of(machine, options.from_nic, "--from-nic", out.from);
  out.to_nic = nic_of(machine, options.to_nic, "--to-nic", out.to);
  if (out.from_nic == out.to_nic) {
    throw InputError("--from and --to use one NIC, " + machine.fabric().full_name(out.from_nic) +
                     ": loopback is not modelled");
  }
  check_gdr(machine, out.from, out.from_nic);
  check_gdr(machine, out.to, out.to_nic);
  return out;
}

PerftestRow perftest(const Machine& machine, const PerftestOptions& options, Bytes size) {
  const PerftestEnds ends = perftest_ends(machine, options);
  std::uint64_t together = std::min(options.cq_moderation, options.tx_depth);
  std::uint64_t iterations = options.iterations;
  if (iterations == 0) {
    const auto steady = static_cast<std::uint64_t>(kSteadyBytes / size.count()) / options.qps;
    iterations = std::clamp(steady, kFewestIterations,
                            std::max(kFewestIterations, kSteadyCompletions * together));
  }
  // Too few for some completions each: then completions come oftener.
  if (iterations < 3 * together) together = std::max<std::uint64_t>(1, iterations / 4);
  Run run(machine,
          {.ends = ends,
           .op = options.op,
           .size = size,
           .iterations = iterations,
           .qps = options.qps,
           .tx_depth = options.tx_depth,
           .cq_moderation = static_cast<std::uint32_t>(together)},
          options.bidirectional);
  run.run();
  const Run::Steady steady = run.steady();
  PerftestRow row;
  row.bytes = size;
  row.iterations = iterations * options.qps;
  row.messages_per_s = steady.messages_per_s;
  row.average = Bandwidth::bytes_per_s(steady.messages_per_s * size.as_double());
  row.peak = Bandwidth::bytes_per_s(std::max(steady.messages_per_s, steady.peak_messages_per_s) *
                                    size.as_double());
  row.latency = lone_latency(machine, ends, options, size);
  row.used = steady.used;
  row.limited_by = limited_by(steady.used);
  // The machine idled: the thread posted and waited for completions in turn.
  if (row.limited_by == "latency" && steady.waiting + steady.posting >= kNeverIdle) {
    row.limited_by = steady.posting > steady.waiting
                         ? kPostingThread
                         : fmt::format("{} requests in flight", options.tx_depth * options.qps);
  }
  return row;
}

}  // namespace weft
