#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/copies/copies.hpp"

namespace weft {

/// One of nvbandwidth's tests: every pair alone.
struct CopyMatrix {
  std::string test;   ///< "host_to_device_memcpy_ce"
  std::string title;  ///< "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"
  /// By row and column; none where no way joins the two. A GPU's host is its own socket.
  std::vector<std::vector<std::optional<CopyRow>>> cells;
  bool is_back{false};  ///< shows the rates from column to row of copies both ways
};

/// The tests that nvbandwidth runs of host to device, device to host, both at once (a run for two
/// matrices: each shows one way's rate), and between GPUs, where the column's GPU reads the row's
/// memory, or writes to it. Kernels that read over NVLink are not modelled: then the matrix of
/// reads is left out. `task`: all but the pairs and ways.
std::vector<CopyMatrix> copy_matrices(const Machine& machine, const CopyTask& task, Bytes size);

}  // namespace weft
