#include "models/nccl/execute/launches.hpp"

#include <map>
#include <span>
#include <utility>
#include <vector>

namespace weft {
namespace {

FlagIndex add_flag(Plan& plan, std::uint32_t tokens = 0) {
  plan.flags.push_back({tokens});
  return static_cast<FlagIndex>(plan.flags.size() - 1);
}

void append(Program& program, std::span<const Instruction> code) {
  program.code.insert(program.code.end(), code.begin(), code.end());
}

/// A block's program: what tells the proxies of the operation, the launch, the kernel.
struct Parts {
  explicit Parts(std::span<const Instruction> code) {
    std::size_t at = 0;
    while (code[at].kind != Instruction::Kind::kCompute) ++at;
    operations = code.first(at);
    launch = code.subspan(at, 1);
    kernel = code.subspan(at + 1);
  }
  std::span<const Instruction> operations;
  std::span<const Instruction> launch;
  std::span<const Instruction> kernel;
};

/// Of a block's programs, its groups of warps, the first ends the kernel and launches the next one;
/// the others wait for it.
void launch_again(Plan& plan, const std::vector<std::uint32_t>& groups, std::uint32_t times,
                  std::uint32_t lap) {
  Program& first = plan.programs[groups.front()];
  const std::vector<Instruction> code = first.code;
  const Parts parts(code);
  const auto others = std::span(groups).subspan(1);
  const FlagIndex ended = others.empty() ? kNoIndex : add_flag(plan);
  std::vector<FlagIndex> begun;
  for ([[maybe_unused]] const std::uint32_t group : others) begun.push_back(add_flag(plan));
  for (std::uint32_t launch = 1; launch <= times; ++launch) {
    if (!others.empty()) first.wait(ended, static_cast<std::int64_t>(others.size()));
    if (launch == lap) first.signal(plan.lap);
    append(first, parts.operations);
    append(first, parts.launch);
    for (const FlagIndex flag : begun) first.signal(flag);
    append(first, parts.kernel);
  }
  for (std::size_t g = 0; g < others.size(); ++g) {
    Program& other = plan.programs[others[g]];
    const std::vector<Instruction> its = other.code;
    const Parts its_parts(its);
    for (std::uint32_t launch = 1; launch <= times; ++launch) {
      other.signal(ended);
      append(other, its_parts.operations);
      other.wait(begun[g]);
      append(other, its_parts.kernel);
    }
  }
}

}  // namespace

Plan in_kernels(Plan plan) {
  std::map<DeviceId, Join> ends;  // by GPU
  for (const std::vector<std::uint32_t>& groups : programs_by_block(plan)) {
    Join& end = ends[plan.actors[plan.programs[groups.front()].actor].device];
    const FlagIndex begins = add_flag(plan, 1);
    end.to.push_back({begins});
    Program& first = plan.programs[groups.front()];
    const std::vector<Instruction> code = std::exchange(first.code, {});
    const Parts parts(code);
    append(first, parts.operations);
    first.wait(begins);
    append(first, parts.launch);
    append(first, parts.kernel);
    for (const std::uint32_t group : groups) {
      end.from.push_back(add_flag(plan));
      plan.programs[group].signal(end.from.back());
    }
  }
  for (auto& [gpu, end] : ends) plan.joins.push_back(std::move(end));
  return plan;
}

Plan as_launched(Plan plan, Op op, std::uint32_t nodes) {
  return is_chain(op) && nodes > 1 ? plan : in_kernels(std::move(plan));
}

Plan launched(const Plan& plan, std::uint32_t times, std::uint32_t lap) {
  Plan out = plan;
  if (lap > 0) out.lap = add_flag(out);
  for (const auto& groups : programs_by_block(plan)) launch_again(out, groups, times - 1, lap);
  return out;
}

}  // namespace weft
