#include "models/copies/copies.hpp"

#include <algorithm>
#include <map>
#include <span>

#include <fmt/format.h>

#include "models/machine/by_node.hpp"
#include "models/transport/run_plans.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace weft {
namespace {

// Enough copies that begin and end of the run do not count, and no more.
constexpr std::int64_t kEnough = 8 << 20;
constexpr std::int64_t kMostCopies = 20;

std::uint64_t copies_of(Bytes size) {
  return static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(kEnough / size.count(), 1, kMostCopies));
}

/// The same pair the other way. Who pushed pushes, who pulled pulls.
CopyPair reversed(const Fabric& fabric, const CopyPair& pair) {
  const DeviceId other = pair.gpu == pair.from ? pair.to : pair.from;
  const bool is_peer = fabric.device(other).kind == DeviceKind::kGpu;
  return {pair.to, pair.from, is_peer ? other : pair.gpu};
}

/// The plans of a task, of each pair one, or one for each way.
std::vector<Plan> plans_of(const Machine& machine, const CopyTask& task, Bytes size) {
  std::vector<Plan> out;
  std::map<DeviceId, std::uint32_t> blocks;  // so far, by GPU
  const auto add = [&](const CopyPair& pair) {
    CopyOrder order{.pair = pair, .by = task.by, .bytes = size, .times = copies_of(size)};
    order.uses_own_memory = task.uses_own_memory;
    if (task.by == CopyBy::kKernel) {
      order.blocks = task.blocks > 0 ? task.blocks : machine.model(pair.gpu).blocks->sms;
      order.first_block = blocks[pair.gpu];
      blocks[pair.gpu] += order.blocks;
    }
    out.push_back(copy_plan(machine, order));
  };
  for (const CopyPair& pair : task.pairs) {
    add(pair);
    if (task.bidirectional) add(reversed(machine.fabric(), pair));
  }
  return out;
}

std::string kind_of(const Fabric& fabric, const CopyPair& pair) {
  if (fabric.device(pair.from).kind == DeviceKind::kCpu) return "h2d";
  return fabric.device(pair.to).kind == DeviceKind::kCpu ? "d2h" : "d2d";
}

CopyRow row_of(const Fabric& fabric, const CopyTask& task, const CopyPair& pair, Bytes size) {
  CopyRow row;
  row.from = fabric.device(pair.from).name;
  row.to = fabric.device(pair.to).name;
  row.kind = task.bidirectional ? "bidirectional" : kind_of(fabric, pair);
  row.by = task.by;
  row.gpu = fabric.device(pair.gpu).name;
  row.bytes = size;
  row.copies = copies_of(size);
  return row;
}

Bandwidth rate_over(Bytes bytes, Duration time) {
  return Bandwidth::bytes_per_s(bytes.as_double() / time.as_s());
}

/// `ways`: the outcome of a pair's plan, or of its two.
void measure(CopyRow& row, std::span<const RunOutcome> ways, const CauseTable& causes) {
  const RunOutcome& slower = ways.size() == 1 || ways[0].time >= ways[1].time ? ways[0] : ways[1];
  const Bytes all = row.bytes * static_cast<std::int64_t>(row.copies);
  row.time = Duration::ps(slower.time.count_ps() / static_cast<std::int64_t>(row.copies));
  row.forth = rate_over(all, ways[0].time);
  if (ways.size() > 1) row.back = rate_over(all, ways[1].time);
  row.rate = rate_over(all * static_cast<std::int64_t>(ways.size()), slower.time);
  row.limited_by = shares_of(slower, causes);
  for (const RunOutcome& way : ways) row.trajectory += way.trajectory;
}

}  // namespace

TopologySpec with_large_buffers(TopologySpec spec, const ParamCatalog& catalog) {
  constexpr const char* kKey = "cpu.dma_buffers";
  spec.defaults.try_emplace(kKey, ParamValue{ParamCatalog::parse(catalog.require(kKey), "large"),
                                             Origin::kAssumed, "weft copies"});
  return spec;
}

void check_packets(const CopyTask& task, Bytes size) {
  if (!task.on_packets) return;
  const std::size_t pairs = std::max<std::size_t>(1, task.pairs.size());
  const double bytes = size.as_double() * static_cast<double>(pairs * copies_of(size)) *
                       (task.bidirectional ? 2 : 1);
  if (bytes <= kMostOnPackets.as_double()) return;
  throw InputError(
      fmt::format("--size {}: all copies of one run are more than the {} that packets carry",
                  format_size(size), format_size(kMostOnPackets)));
}

std::vector<CopyRow> run_copies(const Machine& machine, const CopyTask& task, Bytes size) {
  check_packets(task, size);
  refuse_idle_nodes(machine.devices(), {0});
  CauseTable causes;
  const std::vector<Plan> plans = plans_of(machine, task, size);
  const std::vector<RunOutcome> outcomes =
      task.on_packets ? run_packets(machine, plans, {0}, causes, {}, task.stop).outcomes
                      : run_fluid(machine, plans, causes, {}, task.stop);
  const std::size_t ways = task.bidirectional ? 2 : 1;
  std::vector<CopyRow> rows;
  for (std::size_t i = 0; i < task.pairs.size(); ++i) {
    rows.push_back(row_of(machine.fabric(), task, task.pairs[i], size));
    measure(rows.back(), std::span(outcomes).subspan(i * ways, ways), causes);
  }
  return rows;
}

}  // namespace weft
