#pragma once

#include <string>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "models/predict/predict.hpp"
#include "models/predict/settings.hpp"

namespace weft {

inline std::string shipped(const std::string& file) {
  return std::string(WEFT_SOURCE_DIR) + "/" + file;
}

/// The rows of the quickstart's scenario, for one size and memory path, with settings "key=value".
inline ResultRow predict_one(const std::string& memory_path, Bytes bytes,
                             const std::vector<std::string>& settings = {},
                             const std::string& topology = "topologies/hgx-h100-8nic.yaml",
                             std::uint32_t nodes = 2) {
  Scenario scenario = read_scenario(shipped("scenarios/quickstart.yaml"));
  scenario.topology = shipped(topology);
  scenario.nodes = nodes;
  scenario.sizes = {bytes};
  scenario.memory_paths = {memory_path};
  PredictOptions options;
  options.threads = 1;
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  return predict(scenario, options, make_catalog()).rows.at(0);
}

}  // namespace weft
