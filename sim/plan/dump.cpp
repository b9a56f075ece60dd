#include <span>
#include <string_view>

#include <fmt/format.h>

#include "sim/plan/plan.hpp"

namespace weft {
namespace {

using Kind = Instruction::Kind;

std::string_view name(Verb verb) {
  switch (verb) {
    case Verb::kWrite:
      return "write";
    case Verb::kRead:
      return "read";
    case Verb::kSend:
      return "send";
  }
  return "?";
}

/// Writes one plan.
class Dump {
 public:
  Dump(const Plan& plan, const Fabric& fabric) : plan_{plan}, fabric_{fabric} {}

  std::string text() && {
    out_ = fmt::format("plan {} {} {}: {} B, {} channels\n", plan_.op, plan_.algo, plan_.proto,
                       plan_.bytes.count(), plan_.channels);
    for (std::size_t i = 0; i < plan_.communicators.size(); ++i) {
      out_ += fmt::format("communicator {}:", i);
      for (const DeviceId gpu : plan_.communicators[i].gpus()) {
        out_ += ' ' + fabric_.full_name(gpu);
      }
      out_ += '\n';
    }
    for (std::size_t i = 0; i < plan_.queue_pairs.size(); ++i) add(i, plan_.queue_pairs[i]);
    for (const Join& join : plan_.joins) add(join);
    for (const NamedFlag& n : plan_.names) {
      out_ += fmt::format("f{} {}: {}\n", n.flag, n.of, n.what);
    }
    if (plan_.lap != kNoIndex) out_ += fmt::format("f{} is the lap\n", plan_.lap);
    for (const Program& program : plan_.programs) add(program);
    return std::move(out_);
  }

 private:
  std::string text(std::span<const Leg> walk) const {
    std::string out;
    for (const Leg& leg : walk) {
      out += fmt::format("{}{} {} -> {}", out.empty() ? "" : ", ", leg_verb(leg.kind),
                         fabric_.full_name(leg.source), fabric_.full_name(leg.sink));
      if (leg.data_only) out += " (data)";
      if (leg.by_bytes) out += " by bytes";
      if (leg.misses != 0) out += fmt::format(" beyond L2 by {} %", leg.misses);
      if (leg.threads != 0) out += fmt::format(" by {} threads", leg.threads);
      if (leg.by_copy_engine) out += " by a copy engine";
    }
    return "[" + out + "]";
  }
  std::string text(LagIndex lag) const {
    return fmt::format("{} ns: {}", plan_.lags[lag].time.as_ns(), plan_.lags[lag].cause);
  }
  std::string after(LagIndex lag) const { return lag == kNoIndex ? "" : " after " + text(lag); }

  void add(std::size_t index, const QueuePair& q) {
    out_ += fmt::format("q{} {} of {} -> {} of {}, connection {}.{}", index,
                        fabric_.full_name(q.memory), fabric_.full_name(q.nic),
                        fabric_.full_name(q.peer_memory), fabric_.full_name(q.peer_nic),
                        q.connection, q.number);
    if (q.posting_gpu) out_ += ", posted by " + fabric_.full_name(*q.posting_gpu);
    if (q.send_cq != kNoIndex)
      out_ += fmt::format(", completions f{}{}", q.send_cq, after(q.send_lag));
    if (q.receive_cq != kNoIndex) {
      out_ += fmt::format(", arrivals f{}{}", q.receive_cq, after(q.receive_lag));
    }
    if (q.context != kNoIndex) out_ += fmt::format(", context f{}", q.context);
    out_ += '\n';
  }

  void add(const Join& join) {
    out_ += "once all of";
    for (const FlagIndex flag : join.from) out_ += fmt::format(" f{}", flag);
    out_ += ":";
    for (const Join::To& to : join.to) out_ += fmt::format(" f{}{}", to.flag, after(to.lag));
    out_ += '\n';
  }

  void add(const Program& p) {
    out_ += "program of " + actor_name(plan_.actors[p.actor], fabric_);
    if (p.channel != kNoIndex) out_ += fmt::format(", channel {}", p.channel);
    if (p.copies != 1) out_ += fmt::format(", {} copies", p.copies);
    if (p.serves != kNoIndex) out_ += fmt::format(", for each token of f{}", p.serves);
    out_ += ":\n";
    std::vector<std::size_t> ends;  // of loops
    for (std::size_t i = 0; i < p.code.size(); ++i) {
      while (!ends.empty() && ends.back() == i) ends.pop_back();
      out_ += std::string(2 * (ends.size() + 1), ' ') + text(p.code[i]) + '\n';
      const bool is_loop = p.code[i].kind == Kind::kRepeat || p.code[i].kind == Kind::kWhile;
      if (is_loop) ends.push_back(i + 1 + p.code[i].length);
    }
  }

  std::string text(const Instruction& i) const {
    const auto has = [&i](Instruction::Mode mode) { return (i.mode & mode) != 0; };
    const std::string queue_pair =
        has(Instruction::kOfToken) ? "the token's queue pair" : fmt::format("q{}", i.index);
    const std::string bytes =
        has(Instruction::kBytesOfToken) ? "the token's bytes" : fmt::format("{} B", i.amount);
    switch (i.kind) {
      case Kind::kMove:
        return fmt::format("move {} {}", bytes, text(plan_.walks[i.index]));
      case Kind::kRaise:
        return fmt::format("  then f{} tag {}{}", i.index, i.amount, after(i.second));
      case Kind::kPost:
        return fmt::format("post {}, {}, on {}{}", name(i.verb), bytes, queue_pair,
                           has(Instruction::kInline) ? " inline" : "");
      case Kind::kPostReceives:
        return fmt::format("post {} receives on {}", i.amount, queue_pair);
      case Kind::kWait:
        return fmt::format("wait f{}{}", i.index,
                           i.amount == 1 ? "" : fmt::format(" x{}", i.amount));
      case Kind::kSignal:
        return fmt::format("signal {}{}{}",
                           has(Instruction::kOfToken)
                               ? fmt::format("flag {} of the token's queue pair", i.index)
                               : fmt::format("f{} tag {}", i.index, i.amount),
                           has(Instruction::kForEach) ? " for each request"
                           : i.length != 1            ? fmt::format(" x{}", i.length)
                                                      : "",
                           after(i.second));
      case Kind::kCompute:
        return "compute " + text(i.index) +
               (i.second == kNoIndex ? "" : ", and for each " + text(i.second));
      case Kind::kRepeat:
        return has(Instruction::kBytesOfToken) ? "if the token has bytes"
                                               : fmt::format("repeat {}", i.amount);
      case Kind::kWhile:
        return fmt::format(
            "while f{} has {}{}", i.index, i.amount,
            i.second == kNoIndex ? "" : fmt::format(" or all left of f{}", i.second));
    }
    return "?";
  }

  const Plan& plan_;
  const Fabric& fabric_;
  std::string out_;
};

}  // namespace

std::string actor_name(const Actor& actor) {
  switch (actor.kind) {
    case Actor::Kind::kThreadBlock:
      return fmt::format("thread block {}", actor.number);
    case Actor::Kind::kProxyThread:
      return "proxy thread";
    case Actor::Kind::kHostThread:
      return fmt::format("host thread {}", actor.number);
    case Actor::Kind::kCopyEngine:
      return fmt::format("copy engine {}", actor.number);
    case Actor::Kind::kPort:
      return "port";
    case Actor::Kind::kStream:
      return fmt::format("stream {}", actor.number);
  }
  return "?";
}

std::string actor_name(const Actor& actor, const Fabric& fabric) {
  return actor_name(actor) + " of " + fabric.full_name(actor.device);
}

std::string dump(const Plan& plan, const Fabric& fabric) { return Dump(plan, fabric).text(); }

}  // namespace weft
