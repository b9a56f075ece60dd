#include "replay/simulate/replay_plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "replay/simulate/emulated_links.hpp"
#include "sim/base/error.hpp"

namespace weft::replay {
namespace {

using trace::Opcode;

bool is_posted(const Operation& o) { return o.left_out == nullptr && !is_receive(o); }
bool is_write(const Operation& o) {
  return o.opcode == Opcode::kWrite || o.opcode == Opcode::kWriteWithImmediate;
}
/// Its arrival gives the receiver's flag of its queue pair a token.
bool is_told(const Operation& o) { return takes_receive(o) || is_write(o); }

Verb verb_of(const Operation& o) {
  return is_write(o) ? Verb::kWrite : o.opcode == Opcode::kRead ? Verb::kRead : Verb::kSend;
}

/// One direction of a recorded queue pair.
struct Direction {
  std::uint32_t index{kNoIndex};   ///< of ReplayBuilder::pairs_
  QueuePairIndex real{kNoIndex};   ///< of the plan, where its NIC is no emulated one
  EmulatedLinks::Link emulated{};  ///< where it is
  std::vector<std::uint32_t> operations;
  /// The n-th token of the receiver's flag is of the n-th that takes a receive, by these.
  std::vector<std::uint64_t> receive_tokens;
  std::uint64_t told{0};  ///< so many tokens does the receiver's flag get in all
  // Tokens of either flag that threads wait for, so far.
  std::uint64_t sends_taken{0};
  std::uint64_t receives_taken{0};
};

class ReplayBuilder {
 public:
  ReplayBuilder(const Machine& machine, const Recorded& recorded, const Ends& ends, Loop loop)
      : machine_{machine},
        recorded_{recorded},
        ends_{ends},
        loop_{loop},
        emulated_links_{machine, out_.plan} {}

  ReplayPlan build() && {
    out_.plan.op = "replay";
    directions_.resize(recorded_.pairs.size());
    tokens_.resize(recorded_.operations.size());
    for (std::uint32_t i = 0; i < recorded_.operations.size(); ++i) sort_in(i);
    for (std::uint32_t i = 0; i < directions_.size(); ++i) {
      if (!directions_[i].operations.empty()) add_queue_pair(i);
    }
    emulated_links_.finish();
    count_completions();
    for (const RecordedThread& thread : recorded_.threads) {
      if (!thread.events.empty()) add_thread(thread);
    }
    if (loop_ == Loop::kOpen) add_pollers();
    out_.told.resize(out_.plan.flags.size());
    return std::move(out_);
  }

 private:
  const Operation& operation(std::uint32_t i) const { return recorded_.operations[i]; }
  const RecordedPair& pair_of(const Operation& o) const { return recorded_.pairs[o.pair]; }
  /// The direction by which its data go; of a receive that of its sender.
  Direction& direction_of(const Operation& o) {
    return directions_[is_receive(o) ? pair_of(o).peer : o.pair];
  }

  void sort_in(std::uint32_t i) {
    const Operation& o = operation(i);
    const bool is_missing = o.left_out != nullptr && takes_receive(o) && o.pair != kNone;
    if (is_missing) directions_[o.pair].receive_tokens.push_back(0);
    if (!is_posted(o)) return;
    Direction& d = directions_[o.pair];
    d.operations.push_back(i);
    tokens_[i] = d.operations.size();
    if (is_told(o)) ++d.told;
    if (takes_receive(o)) d.receive_tokens.push_back(d.told);
  }

  FlagIndex add_flag() {
    out_.plan.flags.emplace_back();
    return static_cast<FlagIndex>(out_.plan.flags.size() - 1);
  }

  LagIndex add_lag(const char* cause, Duration time) {
    const auto [at, is_new] = lags_.try_emplace({cause, time}, out_.plan.lags.size());
    if (is_new) out_.plan.lags.push_back({cause, time});
    return at->second;
  }

  const Adapter& adapter(DeviceId nic) const { return *machine_.model(nic).adapter; }

  /// The memory in which most bytes of some operations are; the others are counted.
  trace::MemoryKind memory_kind(const std::vector<std::uint32_t>& operations) {
    std::map<trace::MemoryKind, std::uint64_t> bytes;
    for (const std::uint32_t i : operations) bytes[operation(i).memory] += operation(i).bytes + 1;
    const auto most =
        std::max_element(bytes.begin(), bytes.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == bytes.end()) return trace::MemoryKind::kUnknown;
    for (const std::uint32_t i : operations) {
      const bool is_other = operation(i).memory != most->first && operation(i).bytes > 0;
      if (is_other)
        ++out_.notes["operations taken to be in the memory that their queue pair uses most"];
    }
    if (most->first == trace::MemoryKind::kUnknown) {
      out_.notes["operations taken to be in host memory: theirs is not known"] += operations.size();
    }
    return most->first;
  }

  std::vector<std::uint32_t> receives_of(std::uint32_t pair) const {
    std::vector<std::uint32_t> out;
    if (pair == kNone) return out;
    for (std::uint32_t i = 0; i < recorded_.operations.size(); ++i) {
      const Operation& o = operation(i);
      if (o.left_out == nullptr && o.pair == pair && is_receive(o)) out.push_back(i);
    }
    return out;
  }

  void add_queue_pair(std::uint32_t i) {
    const RecordedPair& pair = recorded_.pairs[i];
    Direction& d = directions_[i];
    QueuePair q;
    q.nic = ends_.nic(pair.device);
    q.peer_nic = pair.peer == kNone ? ends_.stand_in(pair.device)
                                    : ends_.nic(recorded_.pairs[pair.peer].device);
    if (q.nic == q.peer_nic) {
      throw InputError(fmt::format("queue pair {}: both its ends are {}; loopback is not modelled",
                                   pair.name, machine_.fabric().full_name(q.nic)));
    }
    const trace::MemoryKind kind = memory_kind(d.operations);
    q.memory = ends_.memory(q.nic, kind);
    q.peer_memory = ends_.memory(q.peer_nic, peer_kind(pair, d, kind));
    // Both directions of one connection take one route through the network.
    q.connection = std::min(i, pair.peer);
    q.number = 0;
    for (const std::uint32_t o : d.operations) {
      q.writes = q.writes || is_write(operation(o));
      q.sends = q.sends || operation(o).opcode == Opcode::kSend ||
                operation(o).opcode == Opcode::kSendWithImmediate;
      q.reads = q.reads || operation(o).opcode == Opcode::kRead;
    }
    q.requests = d.operations.size();
    q.signal_every = signal_every(d);
    for (const DeviceId nic : {q.nic, q.peer_nic})
      out_.nodes.insert(*machine_.fabric().node_of(nic));
    const bool has_receives = !d.receive_tokens.empty() && pair.peer != kNone;
    if (adapter(q.nic).is_emulated != adapter(q.peer_nic).is_emulated) {
      const Fabric& fabric = machine_.fabric();
      throw InputError(fabric.spec().file + ": one of " + fabric.full_name(q.nic) + " and " +
                       fabric.full_name(q.peer_nic) +
                       " is emulated (nic.emulation), the other is not");
    }
    adapter(q.nic).is_emulated ? emulate(pair, d, q) : open(d, q, has_receives);
    d.index = static_cast<std::uint32_t>(pairs_.size());
    pairs_.push_back(q);
  }

  void open(Direction& d, QueuePair& q, bool has_receives) {
    q.send_cq = add_flag();
    q.send_lag = add_lag("poll", adapter(q.nic).poll_time);
    if (has_receives) {
      q.receive_cq = add_flag();
      q.receive_lag = add_lag("poll", adapter(q.peer_nic).poll_time);
    }
    d.real = static_cast<QueuePairIndex>(out_.plan.queue_pairs.size());
    out_.plan.queue_pairs.push_back(q);
  }

  /// What NCCL's plugin does to sends; it has neither writes nor reads, and knows receives.
  void emulate(const RecordedPair& pair, Direction& d, QueuePair& q) {
    const std::string nic = machine_.fabric().full_name(q.nic);
    if (q.writes || q.reads || pair.peer == kNone) {
      throw InputError(
          fmt::format("queue pair {}: {} is emulated (nic.emulation): a plugin of NCCL, "
                      "which sends to receives that are in the trace and does no more",
                      pair.name, nic));
    }
    // What had not ended when the trace did is copied last.
    const auto ended = [](std::uint64_t ns) { return ns == 0 ? UINT64_MAX : ns; };
    std::map<std::uint64_t, std::uint64_t> received_ns;  // by number
    for (const std::uint32_t i : receives_of(pair.peer)) {
      received_ns[operation(i).number] = ended(operation(i).done_ns);
    }
    std::vector<EmulatedLinks::Message> messages;
    for (const std::uint32_t i : d.operations) {
      const Operation& o = operation(i);
      const auto received = received_ns.find(o.number);
      messages.push_back({Bytes{static_cast<std::int64_t>(o.bytes)}, o.posted_ns,
                          received == received_ns.end() ? ended(o.done_ns) : received->second,
                          received != received_ns.end()});
    }
    d.emulated = emulated_links_.add(q, messages);
    q.signal_every = 1;
    q.send_cq = d.emulated.sent;
    q.receive_cq = d.emulated.received;
  }

  trace::MemoryKind peer_kind(const RecordedPair& pair, const Direction& d, trace::MemoryKind own) {
    const std::vector<std::uint32_t> receives = receives_of(pair.peer);
    const bool has_sends = std::any_of(d.operations.begin(), d.operations.end(), [&](auto o) {
      return verb_of(operation(o)) == Verb::kSend;
    });
    if (has_sends && !receives.empty()) return memory_kind(receives);
    out_.notes["operations whose memory at the other end is taken to be of the same kind"] +=
        d.operations.size();
    return own;
  }

  /// Every so many-th request was signalled, if that explains all completions that were taken; else
  /// each is.
  std::uint32_t signal_every(const Direction& d) {
    std::uint64_t every = 0;
    std::uint64_t completions = 0;
    for (std::size_t n = 0; n < d.operations.size(); ++n) {
      if (operation(d.operations[n]).done_ns == 0) continue;
      ++completions;
      const bool is_last = n + 1 == d.operations.size();
      if (!is_last || every == 0) every = std::gcd(every, static_cast<std::uint64_t>(n + 1));
    }
    const bool explains = every > 0 && completions == (d.operations.size() + every - 1) / every;
    if (explains) return static_cast<std::uint32_t>(every);
    out_.notes["unsignaled requests, signaled here: their queue pair has no pattern"] +=
        d.operations.size() - completions;
    return 1;
  }

  /// How many tokens of its flag there are once this one's completion is there.
  void count_completions() {
    for (std::uint32_t i = 0; i < recorded_.operations.size(); ++i) {
      const Operation& o = operation(i);
      if (o.left_out != nullptr) continue;
      const Direction& d = direction_of(o);
      if (d.index == kNoIndex) {
        tokens_[i] = 0;
      } else if (is_receive(o)) {
        tokens_[i] = o.number < d.receive_tokens.size() ? d.receive_tokens[o.number] : 0;
      } else {
        const std::uint64_t every = pairs_[d.index].signal_every;
        tokens_[i] = (tokens_[i] + every - 1) / every;
      }
      if (tokens_[i] == 0 && is_receive(o) && o.done_ns != 0) {
        ++out_.notes["receives whose send is not in the trace: they come when they came"];
      }
    }
  }

  DeviceId cpu_of(const RecordedThread& thread) const {
    for (const Event& event : thread.events) {
      const Operation& o = operation(event.operation);
      if (o.pair != kNone && pair_of(o).device != kNone) {
        return machine_.fabric().root_cpu(ends_.nic(pair_of(o).device));
      }
    }
    return machine_.fabric().root_cpu(ends_.nic(0));
  }

  Program& add_program(DeviceId cpu) {
    const auto number = static_cast<std::uint32_t>(out_.plan.actors.size());
    out_.plan.actors.push_back({Actor::Kind::kHostThread, cpu, number});
    out_.plan.programs.emplace_back().actor = number;
    out_.nodes.insert(*machine_.fabric().node_of(cpu));
    return out_.plan.programs.back();
  }

  void tell(Program& p, FlagIndex flag, Told told) {
    if (out_.told.size() <= flag) out_.told.resize(flag + 1);
    out_.told[flag].push_back(told);
    p.signal(flag);
  }

  void work(Program& p, const char* cause, Duration time) {
    if (time > Duration{}) p.compute(add_lag(cause, time));
  }

  /// Where a thread is: the recorded time of what it did last, and how long it has worked since.
  struct Clock {
    std::uint64_t at_ns{0};
    Duration worked{};
  };

  /// The thread does nothing until as long after the last event as it was recorded.
  void pass(Program& p, Clock& clock, std::uint64_t to_ns) {
    const Duration gap =
        Duration::ns(static_cast<std::int64_t>(to_ns - std::min(clock.at_ns, to_ns)));
    if (gap > clock.worked) {
      work(p, "recorded gap", gap - clock.worked);
      clock.worked = Duration{};
    } else {
      clock.worked = clock.worked - gap;  // it lags behind the recorded one
    }
    clock.at_ns = to_ns;
  }

  void add_thread(const RecordedThread& thread) {
    Program& p = add_program(cpu_of(thread));
    const FlagIndex flag = add_flag();
    Clock clock;
    const std::vector<Event>& events = thread.events;
    for (std::size_t i = 0; i < events.size();) {
      if (events[i].is_completion) {
        if (loop_ == Loop::kClosed) take_completion(p, clock, flag, events[i]);
        ++i;
        continue;
      }
      std::size_t end = i + 1;  // one list is posted by one call
      while (end < events.size() && !events[end].is_completion &&
             events[end].time_ns == events[i].time_ns &&
             operation(events[end].operation).list_index > 0) {
        ++end;
      }
      pass(p, clock, events[i].time_ns);
      post_list(p, clock, flag, std::span(events).subspan(i, end - i));
      i = end;
    }
  }

  void post_list(Program& p, Clock& clock, FlagIndex flag, std::span<const Event> list) {
    Duration time;
    bool has_requests = false;
    for (const Event& event : list) {
      const Operation& o = operation(event.operation);
      if (o.left_out != nullptr) continue;
      const Adapter& nic = adapter(ends_.nic(pair_of(o).device));
      if (nic.is_emulated) continue;  // a call's time is in the recorded gap behind it
      if (is_posted(o)) {
        time = time + nic.post_time + (has_requests ? Duration{} : nic.doorbell_time);
        has_requests = true;
      } else {
        time = time + nic.receive_time;
      }
    }
    // What is told is the call's begin, as it was recorded.
    for (const Event& event : list) {
      if (is_posted(operation(event.operation))) tell(p, flag, {event.operation, false});
    }
    work(p, "post", time);
    clock.worked = clock.worked + time;
    for (const Event& event : list) {
      const Operation& o = operation(event.operation);
      if (o.left_out != nullptr) continue;
      const Direction& d = direction_of(o);
      if (d.index == kNoIndex) continue;
      if (d.real == kNoIndex) {
        post_emulated(p, d.emulated, o);
      } else if (is_posted(o)) {
        p.post(verb_of(o), d.real, Bytes{static_cast<std::int64_t>(o.bytes)},
               o.is_inline ? Instruction::kInline : 0);
      } else if (o.is_shared) {
        ++out_.notes["receives of shared queues: one is taken to be always at hand"];
      } else if (pairs_[d.index].sends) {
        p.post_receives(d.real, 1);
      }
    }
  }

  static void post_emulated(Program& p, const EmulatedLinks::Link& link, const Operation& o) {
    if (is_receive(o)) return p.signal(link.receives);
    if (o.bytes > 0) p.signal(link.copies);
    p.signal(link.paced);
  }

  /// A closed loop's: what is not predicted comes when it came.
  void take_completion(Program& p, Clock& clock, FlagIndex flag, const Event& event) {
    if (!wait_for(p, flag, event.operation)) {
      pass(p, clock, event.time_ns);
      return;
    }
    clock = {event.time_ns, {}};
  }

  bool wait_for(Program& p, FlagIndex flag, std::uint32_t i) {
    const Operation& o = operation(i);
    if (o.left_out != nullptr || tokens_[i] == 0) return false;
    Direction& d = direction_of(o);
    const QueuePair& q = pairs_[d.index];
    const FlagIndex cq = is_receive(o) ? q.receive_cq : q.send_cq;
    if (cq == kNoIndex) return false;
    if (taker_.emplace(cq, p.actor).first->second != p.actor) {
      ++out_.notes
            ["completions that a second thread takes of a queue pair: they come when they came"];
      return false;
    }
    std::uint64_t& taken = is_receive(o) ? d.receives_taken : d.sends_taken;
    if (tokens_[i] > taken) p.wait(cq, static_cast<std::int64_t>(tokens_[i] - taken));
    taken = std::max(taken, tokens_[i]);
    tell(p, flag, {i, true});
    return true;
  }

  /// An open loop's: somebody looks at each completion queue all the time.
  void add_pollers() {
    std::vector<std::vector<std::uint32_t>> sends(directions_.size());
    std::vector<std::vector<std::uint32_t>> receives(directions_.size());
    for (std::uint32_t i = 0; i < recorded_.operations.size(); ++i) {
      const Operation& o = operation(i);
      if (o.left_out != nullptr || o.done_ns == 0) continue;
      const std::uint32_t pair = is_receive(o) ? pair_of(o).peer : o.pair;
      (is_receive(o) ? receives : sends)[pair].push_back(i);
    }
    for (std::uint32_t pair = 0; pair < directions_.size(); ++pair) {
      const Direction& d = directions_[pair];
      if (d.index == kNoIndex) continue;
      const QueuePair q = pairs_[d.index];
      add_poller(sends[pair], q.nic);
      add_poller(receives[pair], q.peer_nic);
    }
  }

  void add_poller(std::vector<std::uint32_t>& operations, DeviceId nic) {
    if (operations.empty()) return;
    std::stable_sort(operations.begin(), operations.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return tokens_[a] < tokens_[b]; });
    Program& p = add_program(machine_.fabric().root_cpu(nic));
    const FlagIndex flag = add_flag();
    for (const std::uint32_t i : operations) wait_for(p, flag, i);
  }

  const Machine& machine_;
  const Recorded& recorded_;
  const Ends& ends_;
  Loop loop_;
  ReplayPlan out_;
  EmulatedLinks emulated_links_;
  std::vector<QueuePair> pairs_;
  std::vector<Direction> directions_;  ///< by recorded pair: what its end posts
  std::map<FlagIndex, ActorIndex> taker_;
  std::vector<std::uint64_t> tokens_;  ///< by operation
  std::map<std::pair<std::string, Duration>, LagIndex> lags_;
};

}  // namespace

ReplayPlan replay_plan(const Machine& machine, const Recorded& recorded, const Ends& ends,
                       Loop loop) {
  return ReplayBuilder(machine, recorded, ends, loop).build();
}

}  // namespace weft::replay
