#include "models/workload/server_loads.hpp"

#include <algorithm>

namespace weft {

void ServerLoads::add(const Contraction& contraction, double bytes) {
  for (const ServerUse& use : contraction.uses) {
    if (machine_->unit(use.server) != ServerUnit::kBytesPerSecond) continue;
    seconds_[use.server] += bytes * use.weight / machine_->capacity(use.server);
  }
}

void ServerLoads::add(const Plan& plan) {
  std::vector<double> of_pair(plan.queue_pairs.size(), 0);
  for_each_message(plan, [&](QueuePairIndex q, Bytes bytes, std::uint64_t times) {
    of_pair[q] += bytes.as_double() * static_cast<double>(times);
  });
  for (std::size_t q = 0; q < of_pair.size(); ++q) {
    if (of_pair[q] == 0) continue;
    add(contract(*machine_, data_walk(plan.queue_pairs[q], false)), of_pair[q]);
  }
  const std::vector<std::uint64_t> runs = program_runs(plan);
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    const Program& program = plan.programs[p];
    std::map<WalkIndex, double> moved;
    for_each_instruction(program, [&](const Instruction& i, std::uint64_t times) {
      if (i.kind != Instruction::Kind::kMove) return;
      moved[i.index] += static_cast<double>(i.amount) * static_cast<double>(runs[p] * times);
    });
    for (const auto& [index, bytes] : moved) {
      const std::span<const Leg> legs = plan.walks[index];
      add(contract(*machine_, {legs.begin(), legs.end()}, plan.actors[program.actor].number),
          bytes * program.copies);
    }
  }
}

std::vector<ServerLoad> ServerLoads::sorted() const {
  std::vector<ServerLoad> out;
  for (const auto& [server, seconds] : seconds_) out.push_back({server, seconds});
  std::ranges::stable_sort(out, std::ranges::greater{}, &ServerLoad::seconds);
  return out;
}

}  // namespace weft
