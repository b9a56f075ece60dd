#include "models/collective/tool_rows.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "models/collective/settings.hpp"
#include "models/collective/spares.hpp"
#include "models/copies/matrices.hpp"
#include "models/machine/rooms.hpp"
#include "models/perftest/perftest.hpp"
#include "sim/base/error.hpp"

namespace weft {
namespace {

ResultRow result_of(const MeasuredRow& row, double us) {
  ResultRow out;
  out.op = row.op;
  out.bytes = row.bytes;
  out.ranks = static_cast<std::uint32_t>(row.ranks);
  out.nodes = static_cast<std::uint32_t>(row.hosts);
  out.memory_path = row.memory_path;
  out.time_us = us;
  out.algbw_gb_per_s = out.busbw_gb_per_s = static_cast<double>(row.bytes) / us / 1e3;
  return out;
}

PerftestOptions perftest_options(const MeasuredRow& row) {
  PerftestOptions out;
  out.op = row.op.starts_with("write")  ? RdmaOp::kWrite
           : row.op.starts_with("read") ? RdmaOp::kRead
                                        : RdmaOp::kSend;
  out.memory = row.memory_path == "gdr" ? PerftestMemory::kGpu : PerftestMemory::kHost;
  out.qps = static_cast<std::uint32_t>(row.qps);
  out.tx_depth = static_cast<std::uint32_t>(row.tx_depth);
  out.cq_moderation = static_cast<std::uint32_t>(row.cq_mod);
  out.post_list = static_cast<std::uint32_t>(row.post_list);
  out.bidirectional = row.op.ends_with("_bidirectional");
  return out;
}

ResultRow perftest_row(const Machine& machine, const MeasuredRow& row, const Stop* stop) {
  PerftestOptions asked = perftest_options(row);
  asked.stop = stop;
  const PerftestRow got = perftest(machine, asked, Bytes{row.bytes});
  const bool is_latency = row.op.ends_with("_lat");
  ResultRow out = result_of(
      row, is_latency ? got.latency.as_us()
                      : static_cast<double>(row.bytes) / got.average.as_bytes_per_s() * 1e6);
  if (const UsedShare* const link = busiest_link(got.used)) {
    out.most_gb_per_s = got.average.as_bytes_per_s() / link->share / 1e9;
    out.most_by = link->name;
  }
  if (!is_latency && !got.limited_by.empty()) out.limited_by = {{got.limited_by, "", 1}};
  return out;
}

/// Each row as much work as any.
RunProgress progress_at(std::size_t done, std::size_t all) {
  return {done, all, static_cast<double>(done), static_cast<double>(all)};
}

/// The matrices of a size, each run once.
class Copies {
 public:
  Copies(const Machine& machine, bool on_packets, const Stop* stop)
      : machine_{machine}, on_packets_{on_packets}, stop_{stop} {}

  ResultRow row(const MeasuredRow& row) {
    const std::vector<CopyMatrix>& matrices = of(row);
    const auto matrix = std::find_if(matrices.begin(), matrices.end(),
                                     [&](const CopyMatrix& m) { return m.test == row.op; });
    if (matrix == matrices.end()) throw InputError("the machine has one GPU");
    const auto r = static_cast<std::size_t>(row.row);
    const auto c = static_cast<std::size_t>(row.column);
    const auto& cells = matrix->cells;
    if (r >= cells.size() || c >= cells[r].size() || !cells[r][c]) {
      throw InputError(fmt::format("the machine has no cell in row {}, column {}", r, c));
    }
    const CopyRow& cell = *cells[r][c];
    const Bandwidth rate = matrix->is_back ? *cell.back : cell.forth;
    ResultRow out = result_of(row, static_cast<double>(row.bytes) / rate.as_bytes_per_s() * 1e6);
    out.limited_by = cell.limited_by;
    return out;
  }

 private:
  const std::vector<CopyMatrix>& of(const MeasuredRow& row) {
    const auto [at, is_new] = known_.try_emplace(row.bytes);
    if (!is_new) return at->second;
    CopyTask task;
    task.by = row.op.ends_with("_sm") ? CopyBy::kKernel : CopyBy::kEngine;
    task.on_packets = on_packets_;
    task.stop = stop_;
    at->second = copy_matrices(machine_, task, Bytes{row.bytes});
    return at->second;
  }

  const Machine& machine_;
  bool on_packets_;
  const Stop* stop_;
  std::map<std::int64_t, std::vector<CopyMatrix>> known_;
};

}  // namespace

RunResult predict_tool_rows(const std::vector<const MeasuredRow*>& rows, TopologySpec machine,
                            const std::vector<ScenarioSetting>& settings,
                            const PredictOptions& options, const ParamCatalog& catalog) {
  const MeasuredRow& first = *rows.front();
  if (is_copy(first)) machine = with_large_buffers(std::move(machine), catalog);
  std::vector<ScenarioSetting> all = settings;
  all.insert(all.end(), options.set.begin(), options.set.end());
  refuse_spares(all);
  const PartLibrary parts(catalog);
  Params params(catalog);
  apply_settings(all, machine, params);
  const std::uint32_t nodes =
      is_copy(first) ? 1 : std::max(machine.nodes, perftest_nodes(perftest_options(first)));
  const Fabric fabric(std::move(machine), nodes);
  const DeviceParams devices(fabric, params, parts);
  const Machine assembled(devices);
  Copies copies(assembled, options.fidelity == Fidelity::kPacket, options.stop);
  RunResult result;
  for (const MeasuredRow* const row : rows) {
    try {
      if (options.stop != nullptr) options.stop->check();
      if (options.on_progress) options.on_progress(progress_at(result.rows.size(), rows.size()));
      result.rows.push_back(is_copy(*row) ? copies.row(*row)
                                          : perftest_row(assembled, *row, options.stop));
    } catch (const Stopped&) {
      if (result.rows.empty()) throw;
      break;
    }
  }
  result.provenance.params = provenance_of(used_params(devices), catalog);
  return result;
}

}  // namespace weft
