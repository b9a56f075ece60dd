#include "models/transport/run_key.hpp"

#include <bit>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/random.hpp"

namespace weft {
namespace {

/// Takes numbers and words in their order.
class Digest {
 public:
  void add(std::uint64_t number) {
    key_.first = combined(key_.first, number);
    key_.second = splitmix64(key_.second ^ (number + kOdd)) + std::rotl(key_.second, 23);
  }
  void add(std::string_view word) {
    add(word.size());
    add(fnv1a(word));
  }
  RunKey key() const { return key_; }

 private:
  static constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
  RunKey key_{1, 2};
};

/// Takes one run.
class RunDigest {
 public:
  RunDigest(const Machine& machine, const Plan& plan, const Footprints& footprints)
      : machine_{machine}, plan_{plan}, footprints_{footprints} {}

  RunKey key() {
    add_names();
    add_plan();
    for (const Program& program : plan_.programs) add(program);
    for (const QueuePair& q : plan_.queue_pairs) add(q);
    return out_.key();
  }

 private:
  void add(DeviceId device) { out_.add(device.index()); }

  void add_names() {
    const Fabric& fabric = machine_.fabric();
    out_.add(fabric.nodes());
    for (const DeviceSpec& device : fabric.spec().node.devices) out_.add(device.name);
  }

  void add_plan() {
    for (const std::string& word : {plan_.op, plan_.algo, plan_.proto}) out_.add(word);
    out_.add(plan_.channels);
    out_.add(static_cast<std::uint64_t>(plan_.bytes.count()));
    for (const Communicator& communicator : plan_.communicators) {
      out_.add(communicator.gpus().size());
      for (const DeviceId gpu : communicator.gpus()) add(gpu);
    }
    for (const Lag& lag : plan_.lags) {
      out_.add(lag.cause);
      out_.add(static_cast<std::uint64_t>(lag.time.count_ps()));
    }
    for (const Flag& flag : plan_.flags) out_.add(flag.tokens);
    for (const Join& join : plan_.joins) {
      out_.add(join.from.size());
      for (const FlagIndex flag : join.from) out_.add(flag);
      out_.add(join.to.size());
      for (const Join::To& to : join.to) {
        out_.add(to.flag);
        out_.add(to.lag);
      }
    }
    for (const NamedFlag& name : plan_.names) {
      out_.add(name.of);
      out_.add(name.what);
      out_.add(name.flag);
    }
    out_.add(plan_.lap);
    for (const Actor& actor : plan_.actors) {
      out_.add(static_cast<std::uint64_t>(actor.kind));
      add(actor.device);
      out_.add(actor.number);
      out_.add(actor.round);
    }
    for (const std::size_t size :
         {plan_.communicators.size(), plan_.lags.size(), plan_.flags.size(), plan_.joins.size(),
          plan_.names.size(), plan_.actors.size(), plan_.programs.size(),
          plan_.queue_pairs.size()}) {
      out_.add(size);
    }
  }

  void add(const Program& program) {
    out_.add(program.actor);
    out_.add(program.serves);
    out_.add(program.channel);
    out_.add(program.copies);
    out_.add(program.code.size());
    for (const Instruction& i : program.code) {
      out_.add(static_cast<std::uint64_t>(i.kind) | (std::uint64_t{i.mode} << 8U) |
               (static_cast<std::uint64_t>(i.verb) << 16U) | (std::uint64_t{i.length} << 32U));
      out_.add(i.index | (std::uint64_t{i.second} << 32U));
      out_.add(static_cast<std::uint64_t>(i.amount));
      if (i.kind == Instruction::Kind::kMove) add_walk(i.index);
    }
  }

  void add_walk(WalkIndex walk) {
    if (!walks_.insert(walk).second) return;
    const std::span<const Leg> legs = plan_.walks[walk];
    for (const Leg& leg : legs) {
      for (const DeviceId device : {leg.initiator, leg.source, leg.sink}) add(device);
    }
    add(footprints_.of_walk(legs));
  }

  void add(const QueuePair& q) {
    for (const DeviceId device : {q.nic, q.peer_nic, q.memory, q.peer_memory}) add(device);
    for (const std::uint64_t number :
         {std::uint64_t{q.connection}, std::uint64_t{q.number}, std::uint64_t{q.parts},
          std::uint64_t{q.writes}, std::uint64_t{q.sends}, std::uint64_t{q.reads}, q.address,
          q.span, std::uint64_t{q.signal_every}, q.requests, std::uint64_t{q.send_cq},
          std::uint64_t{q.receive_cq}, std::uint64_t{q.send_lag}, std::uint64_t{q.receive_lag},
          std::uint64_t{q.context}, std::uint64_t{q.turn}, std::uint64_t{q.copies}}) {
      out_.add(number);
    }
    out_.add(q.posting_gpu.has_value() ? 1 : 0);
    if (q.posting_gpu) add(*q.posting_gpu);
    add(footprints_.of_queue_pair(q));
  }

  void add(const Footprint& footprint) {
    out_.add(footprint.uses.size());
    for (const Footprint::Use& use : footprint.uses) {
      add_server(use.server);
      out_.add(std::bit_cast<std::uint64_t>(use.weight));
    }
    out_.add(footprint.own.size());
    for (const Footprint::Own& own : footprint.own) {
      add_server(own.first);
      out_.add(own.count);
      out_.add(std::bit_cast<std::uint64_t>(own.weight));
    }
    out_.add(footprint.in_turn.size());
    for (const std::uint32_t server : footprint.in_turn) add_server(server);
    out_.add(footprint.alone);
  }

  /// What it serves is said where it is met first.
  void add_server(std::uint32_t server) {
    out_.add(server);
    if (servers_.insert(server).second) {
      out_.add(footprints_.kind(server));
      out_.add(machine_.cause(ServerId{server}).where);
    }
  }

  const Machine& machine_;
  const Plan& plan_;
  const Footprints& footprints_;
  Digest out_;
  std::set<WalkIndex> walks_;
  std::set<std::uint32_t> servers_;
};

}  // namespace

RunKey run_key(const Machine& machine, const Plan& plan, const Footprints& footprints) {
  return RunDigest(machine, plan, footprints).key();
}

}  // namespace weft
