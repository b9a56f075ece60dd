#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/params.hpp"
#include "sim/base/units.hpp"
#include "sim/input/step.hpp"
#include "sim/input/traffic.hpp"
#include "sim/io/keys.hpp"

namespace weft {

/// Of an operation; beyond any GPU's memory.
inline constexpr Bytes kLargestSize = Bytes::gib(4096);

/// One `key: value` of a scenario's `set`, as written: which keys and values there are is known to
/// whoever holds the parameters.
struct ScenarioSetting {
  std::string key;
  std::string value;
  Place place;
  Origin origin{Origin::kAssumed};
  std::string source{};  ///< "": whoever set it
};

/// One of several jobs that share a cluster, each with nodes of its own.
struct ScenarioJob {
  std::string name;
  std::vector<std::uint32_t> nodes;  ///< of the topology, in the order of their ranks; at least one
  std::string op;
  Bytes size;
  Place place;
};

/// Execution traces of MLCommons Chakra.
struct ChakraFiles {
  std::string prefix;  ///< PREFIX.0.et is rank 0's; resolved from the scenario's folder
  std::string groups;  ///< a file, likewise; "": none
  Place place;
};

/// What to run on which topology.
struct Scenario {
  std::string name;
  std::string file;
  std::uint64_t digest{0};              ///< FNV-1a of the text that was read
  std::string topology;                 ///< path; relative ones are resolved from the file's folder
  std::optional<std::uint32_t> nodes;   ///< absent: the topology's own number
  std::optional<StepSpec> step{};       ///< a training step, in place of `op` and `sizes`
  std::optional<ChakraFiles> chakra{};  ///< traces, likewise
  std::optional<TrafficSpec> traffic{};  ///< irregular traffic, likewise
  std::string op;                        ///< "allreduce"; "": another workload, or jobs
  std::vector<Bytes> sizes;              ///< positive, ascending, none twice; none: no `op`
  std::vector<ScenarioJob> jobs;         ///< that run at once; none: the one workload
  std::vector<std::string>
      memory_paths;  ///< of "gdr", "host-staged", "nccl"; at least one, none twice
  std::map<std::string, std::string> env;  ///< NCCL's environment variables
  std::map<std::string, Place> env_place;  ///< where each of them stands
  std::string nccl_version;                ///< whose decisions to follow, as written; "": not said
  Place nccl_version_place;
  std::vector<ScenarioSetting> set;  ///< workload's algo, then `set` in the file's order
};

/// Reads a scenario; `scenarios/*.yaml` are examples. Throws InputError with file, line, column and
/// what is allowed. The topology file is not opened.
Scenario read_scenario(const std::string& file);
/// The same from text; `file` is the name that messages use, and its folder the topology's base.
Scenario parse_scenario(const std::string& text, const std::string& file);

/// The files that it names, as they are opened: its topology, what its workload is read from; of
/// Chakra's traces not the ranks' own, which whoever reads them counts.
std::vector<std::string> files_of(const Scenario& scenario);

/// Every map of a scenario with its keys, as the reader takes them.
std::vector<FormatSection> scenario_format();

}  // namespace weft
