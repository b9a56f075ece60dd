#include "models/workload/step_effort.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "models/collective/effort.hpp"
#include "models/transport/footprints.hpp"
#include "models/workload/graph_plan.hpp"
#include "models/workload/graph_run.hpp"
#include "models/workload/replicas.hpp"
#include "models/workload/training.hpp"

namespace weft {
namespace {

/// Steps of more tasks are told by a few layers, and of as many replicas as have about kFewTasks: a
/// second or two.
constexpr double kManyTasks = 2e5;
constexpr double kFewTasks = 2e5;

/// Replicas that fill whole nodes, an odd number of these where all do: rings over an odd number of
/// nodes do not fold. All of them where these are few. none: they do not begin at the same GPU.
std::optional<std::uint32_t> few_of(const StepSpec& step, const Fabric& fabric) {
  const std::optional<std::uint32_t> unit = Replicas::filling_nodes(step, fabric);
  if (!unit) return {};
  const std::uint32_t all = step.degree(Parallel::kData) / *unit;
  auto few = std::max(static_cast<std::uint32_t>(all * kFewTasks / tasks_of(step)), 2U);
  if (few % 2 != all % 2) ++few;
  return (few > all / 2 ? all : few) * *unit;
}

/// Layers of each stage that tell what all take: a bucket of them, or all if these are few.
std::uint32_t telling_layers(const StepSpec& step) {
  const std::uint32_t all = step.layers / step.degree(Parallel::kPipeline);
  return 2 * step.bucket < all ? step.bucket : all;
}

/// How long so many replicas of the step take, in seconds of one core. All buckets of layers are
/// alike: what each adds is told by the second one, and how much is alike by the first.
double seconds_of(std::uint32_t replicas, const StepSpec& step, ScenarioMachine& on,
                  MemoryPath path, const PredictOptions& options) {
  const std::uint32_t stages = step.degree(Parallel::kPipeline);
  const std::uint32_t all = step.layers / stages;
  const auto plan_of = [&](std::uint32_t layers) {
    StepSpec fewer = step;
    fewer.layers = layers * stages;
    std::unique_ptr<Replicas> few =
        Replicas::few(replicas, fewer, on.machine(), on.parts(), on.decisions().asked());
    GraphPlan plan = graph_plan(few->devices(), few->schedules(on.decisions(), path),
                                training_graph(few->step()), options.stop);
    return std::pair{std::move(few), std::move(plan.plan)};
  };
  const std::uint32_t one = telling_layers(step);
  const auto [few, plan] = plan_of(one);
  const std::optional<Folded> folded =
      options.folds ? fold_on(few->machine(), plan, options.stop) : std::nullopt;
  const double seconds = graph_seconds(folded ? folded->plan : plan);
  if (one == all || transfer_count(plan) == 0) return seconds;
  const auto [same, two] = plan_of(2 * one);
  const double adds =
      static_cast<double>(transfer_count(two)) / static_cast<double>(transfer_count(plan)) - 1;
  return seconds * (1 + adds * (all - one) / one);
}

/// Of an estimate without the plan of all, which tells in between.
constexpr double kMargin = 1.25;

void refuse_long(const StepSpec& step, std::string_view how, double seconds) {
  if (seconds <= kMargin * kMostGraphSeconds) return;
  throw TooLarge(step.place,
                 fmt::format("a step of {} GPUs takes {}{}; take fewer nodes, layers or "
                             "micro-batches",
                             step.ranks(), how, of_one_core(seconds)));
}

}  // namespace

std::optional<double> seconds_by_few(const StepSpec& step, ScenarioMachine& on, MemoryPath path,
                                     const PredictOptions& options) {
  refuse_many_tasks(step);
  if (tasks_of(step) <= kManyTasks) return {};
  if (!on.fabric().spec().network.failed_uplinks.empty()) return {};  // few have other leaves
  const std::optional<std::uint32_t> replicas = few_of(step, on.fabric());
  if (!replicas) return {};
  const bool are_all_layers =
      telling_layers(step) == step.layers / step.degree(Parallel::kPipeline);
  if (*replicas == step.degree(Parallel::kData) && are_all_layers) return {};  // it is the step
  const double times = static_cast<double>(step.degree(Parallel::kData)) / *replicas;
  return seconds_of_more(seconds_of(*replicas, step, on, path, options), times);
}

void refuse_two_replicas(const StepSpec& step, ScenarioMachine& on, MemoryPath path,
                         const PredictOptions& options) {
  if (!on.fabric().spec().network.failed_uplinks.empty()) return;  // few have other leaves
  const std::optional<std::uint32_t> unit = Replicas::filling_nodes(step, on.fabric());
  if (!unit || 2 * *unit >= step.degree(Parallel::kData)) return;
  const double share = 2.0 * *unit / step.degree(Parallel::kData);
  if (share * tasks_of(step) <= kManyTasks) return;
  refuse_long(step, "more than ", seconds_of(2 * *unit, step, on, path, options));
}

bool is_surely_answered(const StepSpec& step, const Replicas* run, ScenarioMachine& on,
                        MemoryPath path, const PredictOptions& options) {
  std::optional<double> seconds;
  if (run == nullptr) {
    seconds = seconds_by_few(step, on, path, options);
  } else if (tasks_of(run->step()) > kManyTasks) {
    // They do the same on rings and PAT, so one of two runs for all, however many there are.
    const std::uint32_t two = 2 * Replicas::filling_nodes(step, on.fabric()).value();
    seconds = seconds_of(two, step, on, path, options);
  }
  if (!seconds) return false;
  refuse_long(step, "about ", *seconds);
  const bool is_sure = *seconds < kMostGraphSeconds / kMargin;
  if (is_sure && options.check_only && options.on_estimate && *seconds > kLongRun) {
    options.on_estimate("about " + of_one_core(*seconds), *seconds);
  }
  return is_sure;
}

}  // namespace weft
