#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/workload/task_graph.hpp"
#include "replay/chakra/reader.hpp"

namespace weft {

/// Ranks by the name of their process group (pg_name).
using ChakraGroups = std::map<std::string, std::vector<std::uint32_t>>;

/// Reads groups: a JSON object of lists of ranks, as ASTRA-sim's comm_group.json. Throws
/// InputError: another form, a rank twice, more than 1,048,576 ranks.
ChakraGroups read_chakra_groups(const std::string& file);

/// What traces of all ranks may have together: refuses, before memory fills, what no step has.
struct ChakraLimits {
  std::size_t nodes{20'000'000};
  std::size_t dependencies{100'000'000};
  std::size_t tasks{5'000'000};  ///< what is left of nodes to run, as training_graph's
  /// Of nodes that only join others, all that these stand for, over all that depend on them.
  std::size_t joined{100'000'000};
};

/// PREFIX.RANK.et: a rank's trace.
std::string chakra_file(const std::string& prefix, std::uint32_t rank);
/// How many traces PREFIX.0.et, PREFIX.1.et, ... there are. Throws InputError: none.
std::uint32_t count_chakra_ranks(const std::string& prefix);
/// The traces of so many ranks. Throws InputError as read_chakra(), and for more than `limits`.
std::vector<ChakraTrace> read_chakra_ranks(const std::string& prefix, std::uint32_t ranks,
                                           const ChakraLimits& limits = {});

/// What the ranks of these traces do; replay/chakra/README.md has the rules. `groups_file` is named
/// by messages. Throws InputError: loops of dependencies, unknown groups, ranks that are not there,
/// a group whose ranks do not call the same, sends without receives, more than `limits`.
TaskGraph chakra_graph(const std::vector<ChakraTrace>& traces, const ChakraGroups& groups,
                       const std::string& groups_file, const ChakraLimits& limits = {});

}  // namespace weft
