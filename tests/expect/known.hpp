#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "models/expect/error_band.hpp"

namespace weft::test {

/// A point of 2 nodes of 8 GPUs that took exp(log_ratio) times as long as predicted.
inline KnownError known_error(const std::string& site, double log_ratio,
                              const std::string& op = "allreduce",
                              std::int64_t bytes = std::int64_t{1} << 30, std::int64_t nodes = 2) {
  KnownError out;
  out.site = site;
  out.run = site + "_run";
  out.transport = nodes > 1 ? "net" : "nvlink";
  out.memory_path = nodes > 1 ? "gdr" : "";
  out.nodes = nodes;
  out.ranks = 8 * nodes;
  out.op = op;
  out.bytes = bytes;
  out.measured_us = 100 * std::exp(log_ratio);
  out.predicted_us = 100;
  return out;
}

inline std::vector<const KnownError*> pointers(const std::vector<KnownError>& rows) {
  std::vector<const KnownError*> out;
  for (const KnownError& row : rows) out.push_back(&row);
  return out;
}

}  // namespace weft::test
