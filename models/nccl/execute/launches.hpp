#pragma once

#include <array>

#include "sim/base/operation.hpp"
#include "sim/base/params.hpp"
#include "sim/plan/plan.hpp"

namespace weft {

/// How a collective is launched again and again; parameters and page as those of NCCL's kernels.
inline constexpr std::array kLaunchParams{
    ParamSpec{"nccl.launch", Unit::kChoice, 0, 0, 2, Origin::kAssumed,
              "nccl-tests launches many times and waits once",
              "back-to-back: time from one to the next of many; graph: the same of one CUDA graph; "
              "single: each waited for",
              "back-to-back graph single"},
    ParamSpec{"nccl.host_launch", Unit::kNanoseconds, 6500, 0, 1e6, Origin::kMeasured,
              "between two H200 machines, NCCL 2.28.9, back to back: the shortest collectives of "
              "tests/data/h200/blocks.csv take 8.8 us, 4.7 in a CUDA graph; another machine's, 2 "
              "GPUs with LL, 6.7",
              "of a host thread, for one collective"},
    ParamSpec{"nccl.gpus_per_thread", Unit::kCount, 1, 1, 1024, Origin::kAssumed,
              "nccl-tests: -g, 1 where mpirun starts a process for each GPU",
              "GPUs whose kernels a host thread launches, one after the other, for one collective"},
    ParamSpec{
        "nccl.host_wait", Unit::kNanoseconds, 12'500, 0, 1e6, Origin::kMeasured,
        "tests/data/h200/blocks.csv: H200, NCCL 2.28.9: single launches less those of CUDA "
        "graphs, 11.6 to 13.8 us",
        "of a host thread, from a kernel's end until the next one begins, if it waits for each"},
};
static_assert(every_param_is_sourced(kLaunchParams));

/// The plan with the thread blocks of each GPU in one kernel: on a stream the next one's blocks
/// begin when all of the last one's have ended, whatever other GPUs do. Of one launch nothing
/// changes.
Plan in_kernels(Plan plan);

/// What is launched again and again: in kernels, but for chains through several nodes. Where rings
/// pass a node's GPUs in unlike orders each launch would then take the way through all nodes, which
/// samples do not know.
Plan as_launched(Plan plan, Op op, std::uint32_t nodes);

/// The plan with every thread block launched so many times, at least twice: it begins again when
/// its groups of warps have ended, and those of its kernel if it is in one. The plan's `lap` is the
/// end of the launch of that number, which is not the last one; 0: it has none.
Plan launched(const Plan& plan, std::uint32_t times, std::uint32_t lap = 1);

}  // namespace weft
