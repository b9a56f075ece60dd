#include "models/copies/matrices.hpp"

#include <utility>

#include <fmt/format.h>

#include "models/machine/dma_routes.hpp"
#include "sim/topology/require_gpu.hpp"

namespace weft {
namespace {

using Cells = std::vector<std::vector<std::optional<CopyRow>>>;

class Matrices {
 public:
  Matrices(const Machine& machine, CopyTask task, Bytes size)
      : machine_{machine}, fabric_{machine.fabric()}, task_{std::move(task)}, size_{size} {}

  std::vector<CopyMatrix> all() {
    task_.bidirectional = false;
    add("host_to_device", "CPU(row) -> GPU(column)", hosts(true));
    add("device_to_host", "CPU(row) <- GPU(column)", hosts(false));
    task_.bidirectional = true;
    const Cells both = hosts(true);
    add("host_to_device_bidirectional", "CPU(row) <-> GPU(column)", both);
    add("device_to_host_bidirectional", "CPU(row) <-> GPU(column)", both);
    out_.back().is_back = true;
    task_.bidirectional = false;
    if (gpus() > 1) {
      if (task_.by == CopyBy::kEngine) {
        add("device_to_device", "GPU(row) -> GPU(column)", peers(true), "_read");
      }
      add("device_to_device", "GPU(row) <- GPU(column)", peers(false), "_write");
    }
    return std::move(out_);
  }

 private:
  std::size_t gpus() const { return fabric_.count(DeviceKind::kGpu); }
  DeviceId gpu(std::size_t i) const { return fabric_.device(0, DeviceKind::kGpu, i); }

  void add(const char* what, const char* title, Cells cells, const char* asked = "") {
    const bool by_engine = task_.by == CopyBy::kEngine;
    CopyMatrix matrix{
        .test = fmt::format("{}_memcpy{}_{}", what, asked, by_engine ? "ce" : "sm"),
        .title = fmt::format("memcpy {} {} bandwidth (GB/s)", by_engine ? "CE" : "SM", title),
        .cells = std::move(cells)};
    for (auto& row : matrix.cells) {
      for (auto& cell : row) {
        if (cell) cell->test = matrix.test;
      }
    }
    out_.push_back(std::move(matrix));
  }

  CopyRow run(const CopyPair& pair) {
    task_.pairs = {pair};
    return run_copies(machine_, task_, size_).front();
  }

  Cells hosts(bool to_device) {
    Cells out(1);
    for (std::size_t i = 0; i < gpus(); ++i) {
      const DeviceId cpu = fabric_.root_cpu(gpu(i));
      out[0].push_back(to_device ? run({cpu, gpu(i), gpu(i)}) : run({gpu(i), cpu, gpu(i)}));
    }
    return out;
  }

  /// The column's GPU copies: from the row's, or to it.
  Cells peers(bool reads) {
    Cells out(gpus());
    for (std::size_t row = 0; row < gpus(); ++row) {
      out[row].resize(gpus());
      for (std::size_t column = 0; column < gpus(); ++column) {
        if (row == column) continue;
        const DeviceId copier = gpu(column);
        const CopyPair pair =
            reads ? CopyPair{gpu(row), copier, copier} : CopyPair{copier, gpu(row), copier};
        if (are_joined(pair)) out[row][column] = run(pair);
      }
    }
    return out;
  }

  bool are_joined(const CopyPair& pair) const {
    if (copy_medium(fabric_, pair.from, pair.to) == Leg::Medium::kNvlink) return true;
    const bool pushes = pair.gpu == pair.from;
    const DeviceId beyond = pushes ? pair.to : pair.from;
    const auto reaches = [&](bool is_read) {
      const auto routes = dma_routes(machine_, pair.gpu, beyond, is_read);
      return routes && routes->blocked.empty();
    };
    if (pushes && !reaches(false)) return false;
    return task_.by == CopyBy::kKernel || reaches(true);  // an engine's flush is a read
  }

  const Machine& machine_;
  const Fabric& fabric_;
  CopyTask task_;
  Bytes size_;
  std::vector<CopyMatrix> out_;
};

}  // namespace

std::vector<CopyMatrix> copy_matrices(const Machine& machine, const CopyTask& task, Bytes size) {
  require_gpu(machine.fabric());
  return Matrices(machine, task, size).all();
}

}  // namespace weft
