#pragma once

#include <string>
#include <vector>

#include "models/expect/expect.hpp"
#include "models/registry/registry.hpp"
#include "sim/input/topology_file.hpp"

namespace weft::test {

inline std::string shipped_topology(const std::string& name) {
  return std::string(WEFT_SOURCE_DIR) + "/topologies/" + name;
}

inline Subject subject_with(const std::string& topology, const ParamCatalog& catalog,
                            const std::vector<std::pair<std::string, std::string>>& set = {}) {
  std::vector<ScenarioSetting> settings;
  for (const auto& [key, value] : set) settings.push_back({key, value, {}});
  return subject_of(read_topology(shipped_topology(topology), catalog), settings, catalog);
}

inline ExpectRequest request_for(std::uint32_t nodes, std::vector<Bytes> sizes,
                                 std::vector<std::string> ops = {"allreduce"}) {
  ExpectRequest out;
  out.ops = std::move(ops);
  out.sizes = std::move(sizes);
  out.nodes = nodes;
  return out;
}

}  // namespace weft::test
