#pragma once

#include <cstdint>
#include <string_view>

#include "models/workload/task_graph.hpp"
#include "sim/input/step.hpp"

namespace weft {

/// Groups of the ranks that hold the same part of the model, or of its experts.
inline constexpr std::string_view kDataGroup = "data";
inline constexpr std::string_view kExpertDataGroup = "expert data";

/// How far apart the ranks are whose coordinates differ by one.
std::uint32_t stride_of(const StepSpec& step, Parallel p);

/// About how many tasks all ranks of a step have.
double tasks_of(const StepSpec& step);
/// Throws TooLarge for more than about five million tasks.
void refuse_many_tasks(const StepSpec& step);

/// What each rank does in one training step; models/workload/README.md has the rules. Precondition:
/// read_step() made the step, or what it checks holds. Throws as refuse_many_tasks().
TaskGraph training_graph(const StepSpec& step);

}  // namespace weft
