#include "models/perftest/perftest.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "models/machine/by_node.hpp"
#include "models/machine/device_name.hpp"
#include "models/machine/gdr_possible.hpp"
#include "models/perftest/meter.hpp"
#include "models/transport/packet_cluster.hpp"
#include "models/transport/packet_transport.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/run/runner.hpp"

namespace weft {
namespace {

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
DeviceId memory_of(const Machine& machine, const DeviceName& name, const char* option,
                   PerftestMemory memory) {
  const Fabric& fabric = machine.fabric();
  const DeviceId id = find_device(fabric, name, option);
  const DeviceKind kind = fabric.device(id).kind;
  if (memory == PerftestMemory::kHost) {
    if (kind == DeviceKind::kCpu) return id;
    if (fabric.upstream(id)) return fabric.root_cpu(id);
  }
  if (kind == DeviceKind::kGpu) return id;
  throw InputError(
      fmt::format("{} '{}': --mem {} needs a {}", option, name.device,
                  memory == PerftestMemory::kGpu    ? "gpu"
                  : memory == PerftestMemory::kHost ? "host"
                                                    : "staged",
                  memory == PerftestMemory::kHost ? "CPU, or a device below one" : "GPU"));
}

DeviceId nic_of(const Machine& machine, const std::string& text, const char* option,
                DeviceId memory) {
  const Fabric& fabric = machine.fabric();
  if (text.empty()) return nearest_nic(fabric, memory);
  const DeviceName name = parse_device_name(text, option, *fabric.node_of(memory));
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
  throw InputError(fmt::format("no GPUDirect RDMA between {} and {}: {}; --mem staged goes without",
                               machine.fabric().full_name(gpu), machine.fabric().full_name(nic),
                               gdr.why));
}

/// The buffer of one end: for each queue pair a message to send and one to receive, as perftest has
/// it; staged, the pinned buffers of the host.
Registration registered(const Machine& machine, DeviceId memory, DeviceId nic,
                        const PerftestOptions& options, Bytes size) {
  const Params& params = machine.devices().params();
  const bool is_staged = options.memory == PerftestMemory::kStaged;
  const Bytes message = Bytes::kib(4) * pieces(size, Bytes::kib(4));
  const Bytes bytes =
      is_staged ? params.bytes("staging.chunk") * std::llround(params.number("staging.buffers"))
                : message * (2 * std::int64_t{options.qps});
  const DeviceId where = is_staged ? machine.fabric().root_cpu(memory) : memory;
  Registration out = register_memory(machine, where, nic, bytes);
  if (out.error.empty()) return out;
  throw InputError(fmt::format("ibv_reg_mr of {} of {} with {} fails, {}: {}", format_size(bytes),
                               machine.fabric().full_name(where), machine.fabric().full_name(nic),
                               out.error, out.why));
}

constexpr const char* kPostingThread = "the thread that posts";
constexpr const char* kReceivingThread = "the thread that receives";

/// What a run is made of: one sender, or one at each end.
class Run {
 public:
  Run(const Machine& machine, const PerftestTask& task, const PerftestOptions& options,
      bool bidirectional)
      : cluster_{machine,
                 {node(machine, task.ends.from), node(machine, task.ends.to)},
                 options.shuffle_ties},
        transport_{cluster_, causes_},
        runner_{transport_, cluster_.events(), causes_},
        task_{task},
        stop_{options.stop} {
    add(task_);
    if (!bidirectional) return;
    PerftestTask back = task_;
    std::swap(back.ends.from, back.ends.to);
    std::swap(back.ends.from_nic, back.ends.to_nic);
    back.offset = task_.qps * kBufferStride;
    add(back);
  }

  const PerftestMeter& sender() const { return *senders_.front(); }
  const Probes& probes() const { return probes_; }
  std::uint64_t trajectory() const {
    Trajectory out;
    for (const auto& sender : senders_) sender->add_to(out);
    return out.digest();
  }
  bool has_drawn() const { return cluster_.has_drawn(); }

  void run() {
    try {
      runner_.run(stop_);
    } catch (const PlanStuck& e) {
      cluster_.throw_stuck(e.what());
    } catch (const InputError& e) {
      cluster_.throw_timed_out(e);
    }
    for (const auto& sender : senders_) {
      if (!sender->is_done()) cluster_.throw_stuck("perftest: messages are left");
    }
  }

  /// The steady part: from when every queue pair has had a completion until all have but one.
  struct Steady {
    double bytes_per_s{0};
    double peak_bytes_per_s{0};
    std::vector<UsedShare> used;
    Duration from;      ///< when it begins; of a burst 0, as the whole run counts
    double posting{0};  ///< share of the time that senders worked; else they waited
  };
  /// `latency` is that of one message alone.
  Steady steady(Duration latency) const {
    Steady out;
    // The last completions come when nothing flows any more.
    Time to = *to_;
    for (const auto& sender : senders_) {
      to = std::min(to, sender->steps()[sender->steps().size() - 1 - together()].at);
    }
    const bool is_burst = had_posted_all_ || to <= from_;
    if (!is_burst) out.from = from_ - Time{};
    for (const auto& sender : senders_) {
      out.bytes_per_s += task_.size.as_double() * (is_burst ? burst_rate(*sender, latency)
                                                            : steady_rate(*sender, from_, to));
      out.peak_bytes_per_s += sender->peak() * task_.size.as_double();
    }
    out.used = UsageMeter::between(before_, after_, used_to_ - from_);
    const double sender_seconds = (used_to_ - from_).as_s() * static_cast<double>(senders_.size());
    out.posting = (after_posting_ - before_posting_).as_s() / sender_seconds;
    return out;
  }

 private:
  static std::uint32_t node(const Machine& machine, DeviceId device) {
    return *machine.fabric().node_of(device);
  }
  /// Messages a second of a program that posts while completions come. What lies in buffers between
  /// the ends may grow or drain meanwhile: the slower end is what goes on.
  double steady_rate(const PerftestMeter& sender, Time from, Time to) const {
    const std::vector<PerftestMeter::Step>& steps = sender.steps();
    const auto last_by = [&steps](Time at) {
      return *(
          std::upper_bound(steps.begin(), steps.end(), at,
                           [](Time t, const PerftestMeter::Step& step) { return t < step.at; }) -
          1);
    };
    const PerftestMeter::Step first = last_by(from);
    const PerftestMeter::Step last = last_by(to);
    const double landed = (last.delivered - first.delivered).as_double() / task_.size.as_double();
    const auto known = static_cast<double>(last.messages - first.messages);
    return std::min(landed, known) / (last.at - first.at).as_s();
  }
  /// The same of one that posts all before it takes a completion: after the first message, which
  /// takes at least the latency, come the others.
  static double burst_rate(const PerftestMeter& sender, Duration latency) {
    const Duration rest = (sender.ended() - Time{}) - latency;
    return static_cast<double>(sender.messages() - 1) / rest.as_s();
  }
  /// How many completions come together: one of each queue pair.
  std::size_t together() const { return task_.is_staged ? 1 : task_.qps; }

  void add(const PerftestTask& task) {
    const Machine& machine = cluster_.machine();
    senders_.push_back(std::make_unique<PerftestMeter>(cluster_, runner_, task,
                                                       task.is_staged ? staged_plan(machine, task)
                                                       : task.post == PerftestPost::kCpu
                                                           ? posting_plan(machine, task)
                                                           : gpu_plan(machine, task)));
    senders_.back()->on_step([this] { look(); });
  }
  void look() {
    const auto all = [this](auto&& holds) {
      return std::all_of(senders_.begin(), senders_.end(), holds);
    };
    if (to_) return;
    if (before_.empty() && all([](const auto& s) { return s->has_settled(); })) {
      before_ = take(before_posting_);
      from_ = cluster_.events().now();
      had_posted_all_ = all([](const auto& s) { return s->has_posted_all(); });
      known_before_ = senders_.front()->known();
      return;
    }
    if (before_.empty()) return;
    const auto none = [&all](bool (PerftestMeter::*holds)() const) {
      return all([holds](const auto& s) { return !((*s).*holds)(); });
    };
    const bool is_done = !none(&PerftestMeter::is_done);
    // After the last post everything runs dry, what is nearest to the sender first. But where all
    // is posted at once, only that is left to look at.
    const bool is_over =
        !none(&PerftestMeter::has_posted_all) && senders_.front()->known() >= 2 * known_before_;
    if (after_.empty() && (is_done || is_over)) {
      after_ = take(after_posting_);
      used_to_ = cluster_.events().now();
    }
    if (!is_done) return;
    to_ = cluster_.events().now();
    probes_ = cluster_.probes(to_->since_start());
  }
  UsageMeter::Look take(Duration& posting) {
    UsageMeter::Look out = cluster_.look();
    posting = Duration{};
    for (const auto& sender : senders_) {
      out.push_back({UsedShare::What::kWork, kPostingThread, sender->posting().as_s()});
      out.push_back({UsedShare::What::kWork, kReceivingThread, sender->receiving().as_s()});
      posting += sender->posting();
    }
    return out;
  }

  PacketCluster cluster_;
  CauseTable causes_;
  PacketTransport transport_;
  std::vector<std::unique_ptr<PerftestMeter>> senders_;  // before what runs their plans
  Runner runner_;
  PerftestTask task_;
  const Stop* stop_;
  UsageMeter::Look before_;
  UsageMeter::Look after_;
  Time from_;
  std::optional<Time> to_;
  Probes probes_;
  Time used_to_;                ///< when `after_` was taken
  bool had_posted_all_{false};  ///< by `from_`
  std::uint64_t known_before_{0};
  Duration before_posting_;
  Duration after_posting_;
};

/// One message, and another once it is where it went, as in ping-pong: the second finds all caches
/// warm and the machine idle.
Duration lone_latency(const Machine& machine, const PerftestEnds& ends,
                      const PerftestOptions& options, Bytes size) {
  const bool is_staged = options.memory == PerftestMemory::kStaged;
  const bool is_inline = options.op != RdmaOp::kRead && options.memory == PerftestMemory::kHost &&
                         size <= machine.model(ends.from_nic).adapter->inline_max;
  Run run(machine,
          {.ends = ends,
           .op = options.op,
           .size = size,
           .iterations = is_staged ? std::uint64_t{1} : 2,
           .qps = 1,
           .tx_depth = 1,
           .cq_moderation = 1,
           .post = options.post,
           .is_inline = is_inline,
           .is_one_at_a_time = true,
           .is_staged = is_staged},
          options, false);
  run.run();
  return run.sender().last_latency();
}

// As many messages as show a steady rate, and no more.
constexpr std::int64_t kSteadyBytes = 32 << 20;
constexpr std::uint64_t kSteadyCompletions = 5;
constexpr std::uint64_t kFewestIterations = 8;
// Beyond either a run takes seconds to minutes, and so long lies between two completions that it
// does not matter how many requests one is for.
constexpr std::uint64_t kMostMessages = 1 << 16;
constexpr std::int64_t kMostBytes = 512 << 20;

/// Staged, twice what fills the buffers.
std::uint64_t fewest_iterations(const Machine& machine, const PerftestOptions& options,
                                Bytes size) {
  if (options.memory != PerftestMemory::kStaged) return kFewestIterations;
  const Params& params = machine.devices().params();
  const std::int64_t chunks = pieces(size, params.bytes("staging.chunk"));
  const auto buffers = std::llround(params.number("staging.buffers"));
  return std::max(kFewestIterations, static_cast<std::uint64_t>(2 * buffers / chunks));
}

}  // namespace

std::string outage_before_rates(const Machine& machine, const PerftestEnds& ends,
                                const std::vector<PerftestRow>& rows) {
  for (const DeviceId nic : {ends.from_nic, ends.to_nic}) {
    const Adapter& adapter = *machine.model(nic).adapter;
    if (adapter.flap_time == Duration{}) continue;
    const Duration ends_at = adapter.flap_at + adapter.flap_time;
    for (const PerftestRow& row : rows) {
      if (ends_at > row.steady_from) continue;
      return fmt::format(
          "the outage of {} (nic.flap_at, nic.flap_time) is over after {:.1f} us; rates of {} are "
          "taken from {:.1f} us on and do not have it: let it begin later",
          machine.fabric().full_name(nic), ends_at.as_us(), format_size(row.bytes),
          row.steady_from.as_us());
    }
  }
  return "";
}

std::uint32_t perftest_nodes(const PerftestOptions& options) {
  return std::max(parse_device_name(options.from, "--from", 0).node,
                  parse_device_name(options.to, "--to", 1).node) +
         1;
}

PerftestEnds perftest_ends(const Machine& machine, const PerftestOptions& options) {
  PerftestEnds out;
  out.from =
      memory_of(machine, parse_device_name(options.from, "--from", 0), "--from", options.memory);
  out.to = memory_of(machine, parse_device_name(options.to, "--to", 1), "--to", options.memory);
  out.from_nic = nic_of(machine, options.from_nic, "--from-nic", out.from);
  out.to_nic = nic_of(machine, options.to_nic, "--to-nic", out.to);
  const Fabric& fabric = machine.fabric();
  refuse_idle_nodes(machine.devices(), {*fabric.node_of(out.from), *fabric.node_of(out.to)});
  for (const DeviceId nic : {out.from_nic, out.to_nic}) {
    if (!machine.model(nic).adapter->is_emulated) continue;
    throw InputError(machine.fabric().full_name(nic) +
                     " is emulated (nic.emulation): a plugin of NCCL has no verbs");
  }
  if (out.from_nic == out.to_nic) {
    throw InputError("--from and --to use one NIC, " + machine.fabric().full_name(out.from_nic) +
                     ": loopback is not modelled");
  }
  if (options.memory == PerftestMemory::kGpu) {
    check_gdr(machine, out.from, out.from_nic);
    check_gdr(machine, out.to, out.to_nic);
  }
  if (options.post_list > options.tx_depth) {
    throw InputError(fmt::format("--post-list {}: more than --tx-depth {}", options.post_list,
                                 options.tx_depth));
  }
  // As perftest has it. Else a list may wait for room that no completion makes.
  if (options.post_list > 1 && options.cq_moderation > 0 &&
      options.post_list % options.cq_moderation != 0) {
    throw InputError(fmt::format("--cq-mod {}: not a divisor of --post-list {}",
                                 options.cq_moderation, options.post_list));
  }
  if (options.iterations % options.post_list != 0) {
    throw InputError(fmt::format("--iters {}: not a multiple of --post-list {}", options.iterations,
                                 options.post_list));
  }
  if (options.post != PerftestPost::kCpu &&
      (options.memory != PerftestMemory::kGpu || options.op == RdmaOp::kSend)) {
    throw InputError("--post gpu and proxy go with --mem gpu and --op write or read only");
  }
  if (options.memory == PerftestMemory::kStaged && options.op != RdmaOp::kWrite) {
    throw InputError("--mem staged goes with --op write only");
  }
  return out;
}

namespace {

// linux-rdma/perftest src/perftest_parameters.h: DEF_CQ_MOD, MSG_SIZE_CQ_MOD_LIMIT.
constexpr std::uint32_t kModeration = 100;
constexpr Bytes kModerated = Bytes::kib(8);

}  // namespace

std::uint32_t cq_moderation(const PerftestOptions& options, Bytes size) {
  const bool is_large = size > kModerated && !options.all_sizes;
  const std::uint32_t asked = options.cq_moderation > 0 ? options.cq_moderation
                              : options.post_list > 1   ? options.post_list
                              : is_large                ? 1
                                                        : kModeration;
  return std::min(asked, options.tx_depth);
}

PerftestRow perftest(const Machine& machine, const PerftestOptions& options, Bytes size) {
  const PerftestEnds ends = perftest_ends(machine, options);
  PerftestRow row;
  row.from_registration = registered(machine, ends.from, ends.from_nic, options, size);
  row.to_registration = registered(machine, ends.to, ends.to_nic, options, size);
  std::uint64_t together = cq_moderation(options, size);
  std::uint64_t iterations = options.iterations;
  if (iterations == 0) {
    const auto steady = static_cast<std::uint64_t>(kSteadyBytes / size.count()) / options.qps;
    const std::uint64_t fewest = fewest_iterations(machine, options, size);
    const std::uint64_t most = kSteadyCompletions * std::min(options.tx_depth, kModeration);
    iterations = std::clamp(steady, fewest, std::max(fewest, most));
    // Of few completions a queue pair the last ones' bursts would be most of the steady part.
    const std::uint64_t enough = kSteadyCompletions * together;
    const std::uint64_t messages = enough * options.qps;
    const auto most_messages = static_cast<std::uint64_t>(kMostBytes / size.count());
    if (messages <= std::min(kMostMessages, most_messages))
      iterations = std::max(iterations, enough);
    iterations += options.post_list - 1 - (iterations - 1) % options.post_list;  // whole lists
  }
  // Too few for some completions each: then completions come oftener.
  if (iterations < 3 * together) together = std::max<std::uint64_t>(1, iterations / 4);
  while (options.post_list > 1 && options.post_list % together != 0) --together;
  Run run(machine,
          {.ends = ends,
           .op = options.op,
           .size = size,
           .iterations = iterations,
           .qps = options.qps,
           .tx_depth = options.tx_depth,
           .cq_moderation = static_cast<std::uint32_t>(together),
           .rx_depth = options.rx_depth,
           .post_list = options.post_list,
           .post = options.post,
           .is_staged = options.memory == PerftestMemory::kStaged},
          options, options.bidirectional);
  run.run();
  row.latency = lone_latency(machine, ends, options, size);
  const Run::Steady steady = run.steady(row.latency);
  row.bytes = size;
  row.iterations = iterations * options.qps;
  row.cq_moderation = together;
  row.messages_per_s = steady.bytes_per_s / size.as_double();
  row.average = Bandwidth::bytes_per_s(steady.bytes_per_s);
  row.peak = Bandwidth::bytes_per_s(std::max(steady.bytes_per_s, steady.peak_bytes_per_s));
  row.used = steady.used;
  row.steady_from = steady.from;
  row.probes = run.probes();
  row.trajectory = run.trajectory();
  row.has_drawn = run.has_drawn();
  row.limited_by = limited_by(steady.used);
  // The machine idled: the thread posted and waited for completions in turn.
  if (row.limited_by == "latency") {
    row.limited_by =
        options.memory == PerftestMemory::kStaged ? "copies and their buffers"
        : steady.posting > 0.5
            ? kPostingThread
            : fmt::format("{} requests in flight",
                          std::min<std::uint64_t>(options.tx_depth, iterations) * options.qps);
  }
  return row;
}

}  // namespace weft
