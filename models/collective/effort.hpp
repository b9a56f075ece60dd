#pragma once

#include <cstdint>
#include <string>

#include "models/collective/predict.hpp"
#include "models/nccl/execute/collective_plan.hpp"

namespace weft {

/// How long the fluid transport takes for launches of a plan, of which so much is alike, on one
/// switch or on several: seconds of one core, within a factor of three or so; who shows it scales
/// it by what this process has taken so far.
double fluid_seconds(const PlanSize& size, Op op, Algorithm algorithm, bool one_switch,
                     double alike);

/// What so many connections take on shared rates: of plans that run at once, with what folds them.
Bytes fluid_memory(double connections);

/// What is refused beforehand: some minutes on one core where it folds, and some GB.
inline constexpr double kMostTransfers = 2e8;
inline constexpr double kMostConnections = 4e6;
/// Whether all launches of a plan, with so many transfers together, are.
constexpr bool is_too_large(const PlanSize& launched) {
  return launched.transfers > kMostTransfers || launched.connections > kMostConnections;
}

/// What packets of some runs take.
struct PacketEffort {
  double hops{0};  ///< packets over links
  double transfers{0};
  long long connections{0};  ///< at once

  /// A plan's that is run so often.
  void add(const PacketEffort& plan, double times);
  double seconds() const;  ///< of one core
};
/// What those of a plan take that is run once; its connections are left at none.
PacketEffort packet_effort(const Machine& machine, const Plan& plan);
/// Throws TooLarge for packets that take more than kMostRunSeconds or too much memory, unless they
/// are forced.
void refuse_much(const PacketEffort& effort, const PredictOptions& options);
/// Says how long packets will take, to whoever hears of it.
void tell(const PacketEffort& effort, const PredictOptions& options);

/// Jobs and packets that take as long, in seconds, are refused.
inline constexpr double kMostRunSeconds = 600;
/// What takes as long, in seconds, is told beforehand where nothing folds.
inline constexpr double kLongRun = 10;
/// More memory is told beforehand, too.
inline constexpr Bytes kMuchMemory = Bytes{1'000'000'000};
/// "40 s of one core"; with much memory "40 s of one core and 4.8 GB of memory".
std::string of_one_core(double seconds, Bytes memory = {});

/// The least number of nodes with so many GPUs each that whole copies of a step's model fill.
std::uint32_t nodes_of_copies(const StepSpec& step, std::uint32_t gpus);

/// After a TooLarge: what of the same question would be answered within five minutes of one core,
/// the quickest first, such as "--set nodes=64 (40 s of one core) would be answered"; found by
/// asking `predictor`, with fewer and fewer nodes and sizes; of a step with numbers of nodes that
/// it splits over, more and more, with its load spread, or on rings; of jobs with each one's first
/// nodes or smaller sizes. "" if nothing would.
std::string smaller_question(const Scenario& scenario, const TopologySpec& topology,
                             const PredictOptions& options, const Predictor& predictor,
                             const ParamCatalog& catalog);

}  // namespace weft
