#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/machine/machine.hpp"
#include "sim/plan/fold.hpp"

namespace weft {

/// How the fluid transport shares a machine: the contractions of walks (contract()), and what
/// messages pass one after another. Where all nodes are alike, as the SMs of a GPU are, a walk is
/// contracted once for all of them: within one node on any network, between two on one switch. Not
/// for several threads.
class MachineFootprints final : public Footprints {
 public:
  /// The machine must outlive it.
  explicit MachineFootprints(const Machine& machine) : machine_{&machine} {}

  std::uint32_t server_count() const override {
    return static_cast<std::uint32_t>(machine_->server_count());
  }
  std::uint64_t kind(std::uint32_t server) const override;
  bool connections_differ() const override;
  /// Throws InputError if the fabric has no way for it; std::logic_error of copy engines, whose
  /// copies wait for each other.
  Footprint of_walk(std::span<const Leg> walk) const override;
  Footprint of_queue_pair(const QueuePair& queue_pair) const override;

 private:
  const Machine* machine_;
  mutable WalkTable walks_;
  mutable std::vector<std::optional<Footprint>> known_;  ///< by walk
};

/// fold() of a plan on a machine; nullopt too where NICs are emulated: their copy engines' copies
/// wait for each other, and what their ports take at one instant, they take in the order in which
/// it came.
std::optional<Folded> fold_on(const Machine& machine, const Plan& plan, const Stop* stop = nullptr);
std::optional<FoldedPlans> fold_on(const Machine& machine, std::span<const Plan> plans,
                                   const Stop* stop = nullptr);

}  // namespace weft
