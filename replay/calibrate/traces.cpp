#include "replay/calibrate/traces.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "models/collective/settings.hpp"
#include "models/machine/machine.hpp"
#include "models/machine/rooms.hpp"
#include "models/params/parts.hpp"
#include "sim/base/error.hpp"
#include "sim/base/random.hpp"
#include "sim/io/file.hpp"

namespace weft {
namespace {

constexpr std::int64_t kMostTraceBytes = 1LL << 30;  // more than kMostOperations need

/// Those of a round trip come before those of a message, which the same rows hardly tell apart.
constexpr std::array<std::string_view, 13> kTraceKeys{"nic.latency",
                                                      "nic.doorbell_latency",
                                                      "nic.completion_latency",
                                                      "nic.poll_time",
                                                      "nic.post_time",
                                                      "nic.doorbell_time",
                                                      "nic.receive_time",
                                                      "nic.wqe_time",
                                                      "nic.qp_wqe_time",
                                                      "nic.rate",
                                                      "wire.rate",
                                                      "wire.cable_length",
                                                      "netswitch.latency"};

std::string_view verb_of(const replay::Operation& o) {
  using trace::Opcode;
  const bool is_send = o.opcode == Opcode::kSend || o.opcode == Opcode::kSendWithImmediate;
  return is_send ? "send" : o.opcode == Opcode::kRead ? "read" : "write";
}

bool is_in_gpu(const replay::Operation& o) {
  return o.memory == trace::MemoryKind::kGpuDmabuf || o.memory == trace::MemoryKind::kGpuPeer;
}

struct Key {
  std::string_view verb;
  bool in_gpu{false};
  std::uint64_t up_to_bytes{0};
  friend auto operator<=>(const Key&, const Key&) = default;
};

/// What a run shows of the operations of one kind and size, recorded or replayed.
struct Shown {
  std::uint64_t posted{0};
  std::uint64_t bytes{0};
  std::optional<Duration> first_post{};
  Duration last_completion;
  std::vector<Duration> completions;  ///< from post to completion

  Duration median_completion() {
    const auto middle =
        completions.begin() + static_cast<std::ptrdiff_t>((completions.size() - 1) / 2);
    std::nth_element(completions.begin(), middle, completions.end());
    return *middle;
  }
};

/// `times(i)`: when operation i was posted and done, each if it was.
template <typename Times>
std::map<Key, Shown> shown_by(const replay::Recorded& run, Times times) {
  std::map<Key, Shown> out;
  for (std::uint32_t i = 0; i < run.operations.size(); ++i) {
    const replay::Operation& o = run.operations[i];
    if (o.left_out != nullptr || replay::is_receive(o)) continue;
    const replay::Predicted at = times(i);
    if (!at.posted) continue;
    Shown& shown = out[{verb_of(o), is_in_gpu(o), std::bit_ceil(o.bytes)}];
    ++shown.posted;
    shown.bytes += o.bytes;
    shown.first_post = std::min(shown.first_post.value_or(*at.posted), *at.posted);
    if (!at.done) continue;
    shown.completions.push_back(*at.done - *at.posted);
    shown.last_completion = std::max(shown.last_completion, *at.done);
  }
  std::erase_if(out, [](const auto& entry) { return entry.second.completions.empty(); });
  return out;
}

std::map<Key, Shown> recorded_by(const replay::Recorded& run) {
  return shown_by(run, [&](std::uint32_t i) {
    const auto at = [](std::uint64_t ns) { return Duration::ns(static_cast<std::int64_t>(ns)); };
    const replay::Operation& o = run.operations[i];
    replay::Predicted out{.posted = at(o.posted_ns)};
    if (o.done_ns != 0) out.done = at(o.done_ns);
    return out;
  });
}

/// The two times of a kind and size, in microseconds; none below the recorder's nanosecond.
std::array<std::pair<const char*, double>, 2> times_of(Shown& shown) {
  constexpr double kLeastUs = 1e-3;
  const Duration span = shown.last_completion - *shown.first_post;
  return {{{"completion", std::max(shown.median_completion().as_us(), kLeastUs)},
           {"interval", std::max(span.as_us() / static_cast<double>(shown.posted), kLeastUs)}}};
}

std::string op_of(const Key& key, const char* what) { return fmt::format("{}_{}", key.verb, what); }

double gigabytes_per_s(std::int64_t bytes, double us) {
  return static_cast<double>(bytes) / us / 1e3;
}

std::vector<MeasuredRow> rows_of(const replay::Recorded& run) {
  std::vector<MeasuredRow> rows;
  for (auto& [key, shown] : recorded_by(run)) {
    for (const auto& [what, us] : times_of(shown)) {
      MeasuredRow row;
      row.transport = "net";
      row.memory_path = key.in_gpu ? "gdr" : "host";
      row.hosts = run.hosts;
      row.ranks = static_cast<std::int64_t>(run.devices.size());
      row.op = op_of(key, what);
      row.bytes = static_cast<std::int64_t>(key.up_to_bytes);
      row.us = us;
      row.algbw_gb_per_s = row.busbw_gb_per_s =
          gigabytes_per_s(static_cast<std::int64_t>(shown.bytes / shown.posted), us);
      row.run = run.file;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

/// The rows of a table with what a replay shows of them.
std::vector<ComparedRow> compared_with(const MeasuredTable& rows, const replay::Recorded& run,
                                       const replay::Replay& replayed) {
  auto recorded = recorded_by(run);
  auto predicted = shown_by(run, [&](std::uint32_t i) { return replayed.operations[i]; });
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::pair<Key, double>> found;
  for (auto& [key, shown] : predicted) {
    for (const auto& [what, us] : times_of(shown)) {
      const auto bytes = static_cast<std::int64_t>(key.up_to_bytes);
      found[{op_of(key, what), key.in_gpu ? "gdr" : "host", bytes}] = {key, us};
    }
  }
  std::vector<ComparedRow> out;
  for (const MeasuredRow& row : rows.rows) {
    ComparedRow& compared = out.emplace_back(ComparedRow{.measured = row});
    const auto at = found.find({row.op, row.memory_path, row.bytes});
    const std::size_t n = at == found.end() ? 0 : predicted[at->second.first].completions.size();
    if (at == found.end() || n != recorded[at->second.first].completions.size()) {
      compared.not_predicted = fmt::format("only {} of its operations are predicted", n);
      continue;
    }
    ResultRow result;
    result.op = row.op;
    result.bytes = row.bytes;
    result.ranks = static_cast<std::uint32_t>(row.ranks);
    result.nodes = static_cast<std::uint32_t>(row.hosts);
    result.memory_path = row.memory_path;
    result.time_us = at->second.second;
    result.algbw_gb_per_s = result.busbw_gb_per_s = row.algbw_gb_per_s * row.us / result.time_us;
    compared.predicted = std::move(result);
  }
  return out;
}

}  // namespace

TraceRuns::TraceRuns(const std::vector<std::string>& files, std::vector<std::string> map)
    : map_{std::move(map)} {
  for (const std::string& file : files) {
    runs_.push_back(replay::read_recorded(file));
    tables_.push_back({file, fnv1a(read_text_file(file, kMostTraceBytes)), rows_of(runs_.back())});
  }
}

std::vector<std::string> TraceRuns::notes() const {
  std::vector<std::string> out;
  for (const replay::Recorded& run : runs_) {
    for (const auto& [what, n] : run.left_out) {
      out.push_back(fmt::format("{}: not replayed: {} {}", run.file, n, what));
    }
  }
  return out;
}

const replay::Recorded& TraceRuns::run_of(const MeasuredTable& rows) const {
  const auto at = std::find_if(tables_.begin(), tables_.end(),
                               [&](const MeasuredTable& table) { return table.file == rows.file; });
  return runs_.at(static_cast<std::size_t>(at - tables_.begin()));
}

Comparison TraceRuns::compare(const MeasuredTable& rows, const TopologySpec& machine,
                              const PredictOptions& options, const ParamCatalog& catalog) const {
  Comparison out;
  out.measured = rows.file;
  out.measured_digest = fmt::format("{:016x}", rows.digest);
  if (rows.rows.empty()) return out;
  const replay::Recorded& run = run_of(rows);
  const PartLibrary parts(catalog);
  Params params(catalog);
  TopologySpec spec = machine;
  apply_settings(options.set, spec, params);
  const std::uint32_t nodes = std::max(spec.nodes, replay::nodes_needed(run, map_));
  const Fabric fabric(std::move(spec), nodes);
  const DeviceParams devices(fabric, params, parts);
  const Machine assembled(devices);
  const replay::Ends ends(assembled, run, map_);
  out.provenance.params = provenance_of(used_params(devices), catalog);
  const auto fidelity = options.fidelity == Fidelity::kPacket ? replay::ReplayFidelity::kPackets
                                                              : replay::ReplayFidelity::kFluid;
  try {
    out.rows = compared_with(
        rows, run, replay::simulate(assembled, run, ends, replay::Loop::kClosed, fidelity));
  } catch (const InputError& e) {
    for (const MeasuredRow& row : rows.rows) {
      out.rows.push_back({.measured = row, .not_predicted = e.what()});
    }
  }
  return out;
}

Comparison compared_rows(const replay::Recorded& run, const replay::Replay& replayed) {
  Comparison out;
  out.measured = run.file;
  out.rows = compared_with({.file = run.file, .rows = rows_of(run)}, run, replayed);
  return out;
}

std::span<const std::string_view> trace_keys() { return kTraceKeys; }

}  // namespace weft
