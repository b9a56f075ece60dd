#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/workload/traffic.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

/// Traffic of shipped machines, run or estimated.
namespace weft::test::models_traffic {

inline TrafficResult predicted(const TrafficSpec& spec, std::uint32_t nodes,
                               std::vector<std::string> memory_paths, const PredictOptions& options,
                               TrafficBy by = TrafficBy::kRun,
                               const std::string& topology = "hgx-h100-8nic") {
  const ParamCatalog catalog = make_catalog();
  Scenario scenario;
  scenario.topology = shipped("topologies/" + topology + ".yaml");
  scenario.nodes = nodes;
  scenario.memory_paths = std::move(memory_paths);
  scenario.traffic = spec;
  return predict_traffic(scenario, read_topology(scenario.topology, catalog), options, catalog, by);
}

inline TrafficRow run(const TrafficSpec& spec, std::uint32_t nodes,
                      const std::vector<std::string>& settings = {}) {
  PredictOptions options;
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  return predicted(spec, nodes, {"gdr"}, options).rows.at(0);
}

inline TrafficSpec permutation(Bytes bytes, std::uint32_t shift) {
  TrafficSpec spec;
  spec.kind = TrafficSpec::Kind::kPermutation;
  spec.bytes = bytes;
  spec.shift = shift;
  return spec;
}

inline TrafficSpec incast(Bytes bytes, std::uint32_t senders, std::uint32_t stride) {
  TrafficSpec spec;
  spec.kind = TrafficSpec::Kind::kIncast;
  spec.bytes = bytes;
  spec.senders = senders;
  spec.stride = stride;
  return spec;
}

inline TrafficSpec dispatch(double skew) {
  TrafficSpec spec;
  spec.kind = TrafficSpec::Kind::kDispatch;
  spec.tokens = 2048;
  spec.experts = 64;
  spec.top_k = 4;
  spec.token_bytes = Bytes::kib(16);
  spec.skew = skew;
  return spec;
}

inline TrafficRow estimated(const TrafficSpec& spec, std::uint32_t nodes) {
  return predicted(spec, nodes, {"gdr"}, {}, TrafficBy::kEstimate).rows.at(0);
}

}  // namespace weft::test::models_traffic
