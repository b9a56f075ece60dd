#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/machine/machine.hpp"
#include "models/transport/link_times.hpp"
#include "sim/plan/fold.hpp"
#include "sim/result/probes.hpp"
#include "sim/result/timeline.hpp"
#include "sim/run/runner.hpp"

namespace weft {

/// Runs plans at once on a fluid transport of their own; outcomes in their order. `shuffle_ties`:
/// for tests, the seed of an EventQueue that shuffles. Causes are added to `causes`.
/// Throws InputError as the transport does, Stopped as Runner::run.
std::vector<RunOutcome> run_fluid(const Machine& machine, std::span<const Plan> plans,
                                  CauseTable& causes,
                                  std::optional<std::uint64_t> shuffle_ties = {},
                                  const Stop* stop = nullptr);

/// A job run alone, and how many messages each of its NICs sent at once, on average while it sent
/// any (0: it sends none, or its NICs are emulated).
struct JobAlone {
  RunOutcome outcome;
  double messages_at_once;
};
/// `servers`: of a plan that was folded, alone or with others. Throws as above.
JobAlone run_job_alone(const Machine& machine, const Plan& plan, const ServerClasses& servers,
                       CauseTable& causes, std::optional<std::uint64_t> shuffle_ties = {},
                       const Stop* stop = nullptr);

/// Runs jobs at once. What their walks compete for is theirs in proportion to `shares`, one a plan.
/// Throws as above.
std::vector<RunOutcome> run_jobs(const Machine& machine, std::span<const Plan> plans,
                                 const ServerClasses& servers, std::span<const double> shares,
                                 CauseTable& causes, std::optional<std::uint64_t> shuffle_ties = {},
                                 const Stop* stop = nullptr);

/// Runs one plan alone on one; if it `folds`, of what is alike one stands for all (see fold_on()).
/// With a timeline it does not fold, says there what happened (see kMostSlices) and how much of the
/// servers was in use, and runs twice, as it must know for how long. `links`: of the whole run.
RunOutcome run_fluid(const Machine& machine, const Plan& plan, CauseTable& causes, bool folds,
                     std::optional<std::uint64_t> shuffle_ties = {}, const Stop* stop = nullptr,
                     Timeline* timeline = nullptr, LinkTimes* links = nullptr);

/// Runs a plan in which one of each class stands for all, on servers that do (Folded).
RunOutcome run_folded(const Machine& machine, const Plan& plan, const ServerClasses& servers,
                      CauseTable& causes, std::optional<std::uint64_t> shuffle_ties = {},
                      const Stop* stop = nullptr, LinkTimes* links = nullptr);

/// Of a timeline, some 120 MB of a file; later ones are left out, and counted.
inline constexpr std::size_t kMostSlices = 2'000'000;

/// A run of packets, what ports and NICs did until its last plan ended, and whether it depended on
/// the seed.
struct PacketRun {
  std::vector<RunOutcome> outcomes;
  Probes probes;
  bool has_drawn;
};

/// The same on packets of a cluster in which these nodes are built. Throws InputError too where
/// nothing moves any more, with what waits for what. The timeline is the first plan's.
PacketRun run_packets(const Machine& machine, std::span<const Plan> plans,
                      const std::vector<std::uint32_t>& nodes, CauseTable& causes,
                      std::optional<std::uint64_t> shuffle_ties = {}, const Stop* stop = nullptr,
                      Timeline* timeline = nullptr);

}  // namespace weft
