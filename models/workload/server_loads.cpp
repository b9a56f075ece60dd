#include "models/workload/server_loads.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "models/transport/contraction.hpp"

namespace weft {
namespace {

/// Adds up what goes along walks; each is contracted once.
class Loads {
 public:
  explicit Loads(const Machine& machine) : machine_{machine} {}

  void add(const Contraction& contraction, double bytes) {
    for (const ServerUse& use : contraction.uses) {
      if (machine_.unit(use.server) != ServerUnit::kBytesPerSecond) continue;
      seconds_[use.server] += bytes * use.weight / machine_.capacity(use.server);
    }
  }
  std::vector<ServerLoad> sorted() const {
    std::vector<ServerLoad> out;
    for (const auto& [server, seconds] : seconds_) out.push_back({server, seconds});
    std::stable_sort(out.begin(), out.end(), [](const ServerLoad& a, const ServerLoad& b) {
      return a.seconds > b.seconds;
    });
    return out;
  }

 private:
  const Machine& machine_;
  std::map<ServerId, double> seconds_;
};

}  // namespace

std::vector<ServerLoad> server_loads(const Machine& machine, const Plan& plan) {
  Loads loads(machine);
  std::vector<double> of_pair(plan.queue_pairs.size(), 0);
  for_each_message(plan, [&](QueuePairIndex q, Bytes bytes, std::uint64_t times) {
    of_pair[q] += bytes.as_double() * static_cast<double>(times);
  });
  for (std::size_t q = 0; q < of_pair.size(); ++q) {
    if (of_pair[q] == 0) continue;
    loads.add(contract(machine, data_walk(plan.queue_pairs[q], false)), of_pair[q]);
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
      loads.add(contract(machine, {legs.begin(), legs.end()}, plan.actors[program.actor].number),
                bytes * program.copies);
    }
  }
  return loads.sorted();
}

}  // namespace weft
