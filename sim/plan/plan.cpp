#include "sim/plan/plan.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace weft {
namespace {

std::string_view verb(Leg::Kind kind) {
  switch (kind) {
    case Leg::Kind::kCopy:
      return "copy";
    case Leg::Kind::kRead:
      return "read";
    case Leg::Kind::kWrite:
      return "write";
    case Leg::Kind::kMessage:
      return "message";
  }
  return "?";
}

std::string text(std::span<const Leg> walk, const Fabric& fabric) {
  std::string out;
  for (const Leg& leg : walk) {
    out += fmt::format("{}{} {} -> {}", out.empty() ? "" : ", ", verb(leg.kind),
                       fabric.full_name(leg.source), fabric.full_name(leg.sink));
  }
  return "[" + out + "]";
}

std::string text(std::string_view verb, const ConnectionList& connections) {
  std::string out;
  for (const ConnectionIndex c : connections) out += fmt::format("{} c{} ", verb, c);
  return out;
}

std::string text(const Step& step) {
  return fmt::format("{}{}{} B by {} B x{}", text("recv", step.in), text("send", step.out),
                     step.bytes.count(), step.slice.count(), step.repeat);
}

}  // namespace

std::uint64_t transfer_count(const Plan& plan) {
  std::uint64_t count = 0;
  for (const Program& program : plan.programs) {
    for (const Loop& loop : program.loops) {
      for (const Step& step : loop.body) {
        const auto slices =
            static_cast<std::uint64_t>(std::max<std::int64_t>(1, pieces(step.bytes, step.slice)));
        const auto carried = static_cast<std::uint64_t>(std::count_if(
            step.out.begin(), step.out.end(),
            [&](ConnectionIndex c) { return plan.connections[c].carry.has_value(); }));
        count += loop.repeat * step.repeat * slices * (1 + carried);
      }
    }
  }
  return count;
}

std::string dump(const Plan& plan, const Fabric& fabric) {
  std::string out = fmt::format("plan {} {} {}: {} B, {} ranks, {} channels\n", plan.op, plan.algo,
                                plan.proto, plan.bytes.count(), plan.ranks, plan.channels);
  for (std::size_t i = 0; i < plan.connections.size(); ++i) {
    const Connection& c = plan.connections[i];
    out += fmt::format("c{} channel {} rank {} -> {} slots {} push {}", i, c.channel, c.from, c.to,
                       plan.handovers[c.handover].slots, text(plan.walks[c.push], fabric));
    if (c.carry) out += " carry " + text(plan.walks[*c.carry], fabric);
    if (c.pull != WalkTable::kEmpty) out += " pull " + text(plan.walks[c.pull], fabric);
    out += '\n';
  }
  for (const Program& p : plan.programs) {
    out += fmt::format("program rank {} channel {}", p.rank, p.channel);
    if (p.threads != 0) out += fmt::format(" threads {}", p.threads);
    out += ':';
    for (const Loop& loop : p.loops) {
      out += fmt::format(" {} x {{", loop.repeat);
      for (std::size_t s = 0; s < loop.body.size(); ++s) {
        out += (s == 0 ? "" : "; ") + text(loop.body[s]);
      }
      out += "}";
    }
    out += '\n';
  }
  return out;
}

}  // namespace weft
