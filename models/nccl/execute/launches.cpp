#include "models/nccl/execute/launches.hpp"

#include <map>
#include <span>
#include <utility>
#include <vector>

namespace weft {
namespace {

/// Programs of one kernel's block: its groups of warps.
using Groups = std::vector<std::size_t>;

std::vector<Groups> blocks_of(const Plan& plan) {
  std::map<std::pair<DeviceId, std::uint32_t>, std::size_t> place;
  std::vector<Groups> out;
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    const Actor& actor = plan.actors[plan.programs[p].actor];
    if (actor.kind != Actor::Kind::kThreadBlock || plan.programs[p].serves != kNoIndex) continue;
    const auto [at, is_new] = place.try_emplace({actor.device, actor.number}, out.size());
    if (is_new) out.emplace_back();
    out[at->second].push_back(p);
  }
  return out;
}

FlagIndex add_flag(Plan& plan) {
  plan.flags.push_back({});
  return static_cast<FlagIndex>(plan.flags.size() - 1);
}

void append(Program& program, std::span<const Instruction> code) {
  program.code.insert(program.code.end(), code.begin(), code.end());
}

/// The first group ends the kernel and launches the next one; the others wait for it.
void launch_again(Plan& plan, const Groups& groups) {
  Program& first = plan.programs[groups.front()];
  const std::vector<Instruction> code = first.code;
  if (groups.size() > 1) {
    const FlagIndex ended = add_flag(plan);
    first.wait(ended, static_cast<std::int64_t>(groups.size() - 1));
    append(first, std::span{code}.first(1));
    for (std::size_t g = 1; g < groups.size(); ++g) {
      const FlagIndex begun = add_flag(plan);
      Program& other = plan.programs[groups[g]];
      const std::vector<Instruction> its = other.code;
      other.signal(ended);
      other.wait(begun);
      append(other, std::span{its}.subspan(1));
      first.signal(begun);
    }
    append(first, std::span{code}.subspan(1));
  } else {
    append(first, code);
  }
}

}  // namespace

Plan launched_twice(const Plan& plan) {
  Plan out = plan;
  for (const Groups& groups : blocks_of(plan)) launch_again(out, groups);
  return out;
}

}  // namespace weft
