#pragma once

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/collective/compare.hpp"
#include "replay/calibrate/calibrate.hpp"
#include "sim/base/random.hpp"
#include "sim/input/topology_file.hpp"
#include "tests/models/prediction.hpp"

namespace weft::test {

inline const ParamCatalog& catalog() {
  static const ParamCatalog known = make_catalog();
  return known;
}

inline CalibrationRequest request_of(const std::vector<MeasuredTable>& tables,
                                     const std::vector<std::string>& keys) {
  CalibrationRequest request;
  request.tables = tables;
  request.machine = read_topology(shipped("topologies/h200-vm.yaml"), catalog());
  request.keys = keys;
  return request;
}

/// Ring all-reduce and all-gather over NVLink with Simple and LL, some channels and sizes.
inline MeasuredTable skeleton(const std::vector<int>& channels = {1, 2, 3, 4}) {
  std::string text = "transport,ranks,algo,proto,channels,op,bytes,us,launch\n";
  for (const char* op : {"allreduce", "allgather"}) {
    for (const char* proto : {"Simple", "LL"}) {
      for (const int n : channels) {
        for (const char* bytes : {"1024", "131072"}) {
          text += std::string("nvlink,2,Ring,") + proto + ',' + std::to_string(n) + ',' + op + ',' +
                  bytes + ",1,graph\n";
        }
      }
    }
  }
  return parse_measured(text, "made.csv");
}

/// Times that weft predicts with these settings, each off by a factor of exp(noise) and of its own.
inline MeasuredTable synthetic(const std::vector<std::string>& settings, double noise,
                               std::uint64_t seed = 1, MeasuredTable table = skeleton()) {
  PredictOptions options;
  for (const std::string& text : settings) options.set.push_back(parse_setting(text));
  const Comparison predicted = compare(
      table, read_topology(shipped("topologies/h200-vm.yaml"), catalog()), options, catalog());
  std::mt19937_64 stream = random_stream(seed, "noise");
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const double off = noise * std::sqrt(12.0) * (uniform01(stream) - 0.5);
    table.rows[i].us = predicted.rows[i].predicted->time_us * std::exp(off);
  }
  return table;
}

inline const FittedParam& param(const Calibration& calibration, std::string_view key) {
  for (const FittedParam& p : calibration.params) {
    if (p.spec.key == key) return p;
  }
  throw std::logic_error("not fitted: " + std::string(key));
}

inline const std::vector<std::string> kTruth{"nccl.launch_simple=6.5 us", "nccl.launch_ll=5.5 us",
                                             "gpu.sm_peer_store_rate=40 GB/s"};
inline const std::vector<std::string> kKeys{"nccl.launch_simple", "nccl.launch_ll",
                                            "gpu.sm_peer_store_rate"};

}  // namespace weft::test
