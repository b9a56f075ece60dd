#include "models/workload/step_effort.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>

#include <fmt/format.h>

#include "models/collective/effort.hpp"
#include "models/transport/footprints.hpp"
#include "models/workload/graph_plan.hpp"
#include "models/workload/graph_run.hpp"
#include "models/workload/replicas.hpp"
#include "models/workload/training.hpp"

namespace weft {
namespace {

/// Steps of more tasks are told by a few replicas, of about kFewTasks: a second or two.
constexpr double kManyTasks = 5e5;
constexpr double kFewTasks = 2e5;

/// Replicas that fill whole nodes, an odd number of these where all do: rings over an odd number of
/// nodes do not fold. none: they are most of all.
std::optional<std::uint32_t> few_of(const StepSpec& step, const Fabric& fabric) {
  const std::optional<std::uint32_t> unit = Replicas::filling_nodes(step, fabric);
  if (!unit) return {};
  const std::uint32_t all = step.degree(Parallel::kData) / *unit;
  auto few = std::max(static_cast<std::uint32_t>(all * kFewTasks / tasks_of(step)), 2U);
  if (few % 2 != all % 2) ++few;
  if (few > all / 2) return {};
  return few * *unit;
}

}  // namespace

std::optional<double> seconds_by_few(const StepSpec& step, ScenarioMachine& on, MemoryPath path,
                                     const PredictOptions& options) {
  refuse_many_tasks(step);
  if (tasks_of(step) <= kManyTasks) return {};
  if (!on.fabric().spec().network.failed_uplinks.empty()) return {};  // few have other leaves
  const std::optional<std::uint32_t> replicas = few_of(step, on.fabric());
  if (!replicas) return {};
  const std::unique_ptr<Replicas> few =
      Replicas::few(*replicas, step, on.machine(), on.parts(), on.decisions().asked());
  const GraphPlan plan = graph_plan(few->devices(), few->schedules(on.decisions(), path),
                                    training_graph(few->step()), options.stop);
  const std::optional<Folded> folded =
      options.folds ? fold_on(few->machine(), plan.plan, options.stop) : std::nullopt;
  const double times = static_cast<double>(few->stand_for()) / *replicas;
  return seconds_of_more(graph_seconds(folded ? folded->plan : plan.plan), times);
}

bool is_surely_answered(const StepSpec& step, ScenarioMachine& on, MemoryPath path,
                        const PredictOptions& options) {
  const std::optional<double> seconds = seconds_by_few(step, on, path, options);
  if (!seconds) return false;
  constexpr double kMargin = 1.25;  // between, the plan of all tells
  if (*seconds > kMargin * kMostGraphSeconds) {
    throw TooLarge(step.place,
                   fmt::format("a step of {} GPUs takes about {}; take fewer nodes, layers or "
                               "micro-batches",
                               step.ranks(), of_one_core(*seconds)));
  }
  return *seconds < kMostGraphSeconds / kMargin;
}

}  // namespace weft
