#include "tools/copies_report.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "models/collective/predict.hpp"
#include "models/collective/unused.hpp"
#include "models/copies/pairs.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/csv.hpp"
#include "tools/copies_json.hpp"
#include "tools/predict_asked.hpp"

namespace weft {
namespace {

constexpr Bytes kSmallestOfAll{64};
constexpr Bytes kLargestOfAll = Bytes::gib(1);
constexpr Bytes kLargest = Bytes::gib(64);
constexpr Bytes kNvbandwidthBuffer = Bytes::mib(512);
constexpr Bytes kPacketBuffer = Bytes::mib(4);

constexpr const char* kColumns =
    "# bytes       from     to       kind           time[usec]     bandwidth[GB/s]  limited by\n";

CopyBy copy_by(const std::string& word) {
  if (word == "engine") return CopyBy::kEngine;
  if (word == "kernel") return CopyBy::kKernel;
  throw InputError(fmt::format("--by '{}': unknown; known: engine, kernel", word));
}

void check_size(Bytes size) {
  if (size >= Bytes{1} && size <= kLargest) return;
  throw InputError(
      fmt::format("--size {}: allowed are 1 B to {}", format_size(size), format_size(kLargest)));
}

std::string row_text(const CopyRow& row) {
  return fmt::format("  {:<11} {:<8} {:<8} {:<14} {:<14.3f} {:<16.2f} {}\n", row.bytes.count(),
                     row.from, row.to, row.kind, row.time.as_us(), row.rate.as_gigabytes_per_s(),
                     limit_text(row));
}

/// The cell of a matrix.
double shown(const CopyMatrix& matrix, const CopyRow& cell) {
  return (matrix.is_back ? *cell.back : cell.forth).as_gigabytes_per_s();
}

double sum_of(const CopyMatrix& matrix) {
  double sum = 0;
  for (const auto& row : matrix.cells) {
    for (const auto& cell : row) sum += cell ? shown(matrix, *cell) : 0;
  }
  return sum;
}

/// As nvbandwidth prints it.
std::string matrix_text(const CopyMatrix& matrix, double sum) {
  std::string out = fmt::format("Running {}.\n{}\n  ", matrix.test, matrix.title);
  for (std::size_t i = 0; i < matrix.cells.front().size(); ++i) out += fmt::format("{:>10}", i);
  for (std::size_t i = 0; i < matrix.cells.size(); ++i) {
    out += fmt::format("\n{:>2}", i);
    for (const auto& cell : matrix.cells[i]) {
      out += cell ? fmt::format("{:>10.2f}", shown(matrix, *cell)) : fmt::format("{:>10}", "N/A");
    }
  }
  return out + fmt::format("\n\nSUM {} {:.2f}\n\n", matrix.test, sum);
}

std::vector<Bytes> all_copy_sizes() {
  std::vector<Bytes> out;
  for (Bytes size = kSmallestOfAll; size <= kLargestOfAll; size = size * 2) out.push_back(size);
  return out;
}

}  // namespace

CopiesRun::CopiesRun(const Assembled& on, CopiesRequest request, std::vector<Bytes> sizes)
    : on_{on}, sizes_{std::move(sizes)} {
  task_.by = copy_by(request.by);
  task_.on_packets = parse_fidelity(request.fidelity) == Fidelity::kPacket;
  task_.bidirectional = request.bidirectional;
  task_.blocks = request.blocks;
  task_.stop = request.stop;
  check_at_most("--blocks", request.blocks, kMostBlocks);
  if (!request.wants_matrices()) task_.pairs = copy_pairs(on.fabric, request.from, request.to);
  if (request.all && !sizes_.empty()) throw InputError("--all and --size: give one");
  if (request.all) sizes_ = all_copy_sizes();
  if (sizes_.empty()) sizes_ = {task_.on_packets ? kPacketBuffer : kNvbandwidthBuffer};
  CopyTask most = task_;  // of what runs at once
  if (request.wants_matrices()) most.bidirectional = true;
  for (const Bytes size : sizes_) {
    check_size(size);
    check_packets(most, size);
  }
  report_.provenance = on.provenance(request.fidelity);
  report_.request = std::move(request);
}

std::string CopiesRun::note() const {
  if (report_.request.blocks > 0 && task_.by == CopyBy::kEngine) {
    return "no effect with --by engine: --blocks";
  }
  if (task_.bidirectional && report_.request.wants_matrices()) {
    return "no effect without --from and --to: --bidirectional";
  }
  return {};
}

std::string CopiesRun::head() const {
  std::string out =
      fmt::format("# weft copies: {} by {}, {}\n", on_.fabric.spec().name,
                  task_.by == CopyBy::kEngine ? "copy engines (cudaMemcpyAsync), back to back"
                                              : "kernels of 512 threads a block, 16 B accesses",
                  task_.on_packets ? "TLP by TLP" : "shared rates");
  if (!report_.request.wants_matrices()) out += kColumns;
  return out;
}

std::string CopiesRun::run(Bytes size) {
  return report_.request.wants_matrices() ? run_matrices(size) : run_pairs(size);
}

std::string CopiesRun::run_matrices(Bytes size) {
  std::string out = fmt::format("# {} at a time, one pair after another\n\n", format_size(size));
  for (const CopyMatrix& matrix : copy_matrices(on_.machine, task_, size)) {
    const double sum = sum_of(matrix);
    out += matrix_text(matrix, sum);
    if (sum > 0) {
      report_.sums.push_back({matrix.test, size, Bandwidth::gigabytes_per_s(sum)});
    }
    if (matrix.is_back) continue;  // the same copies as in the matrix before
    for (const auto& row : matrix.cells) {
      for (const auto& cell : row) {
        if (cell) report_.rows.push_back(*cell);
      }
    }
  }
  return out;
}

std::string CopiesRun::run_pairs(Bytes size) {
  std::string out;
  double sum = 0;
  const std::vector<CopyRow> rows = run_copies(on_.machine, task_, size);
  for (const CopyRow& row : rows) {
    out += row_text(row);
    sum += row.rate.as_gigabytes_per_s();
    report_.rows.push_back(row);
  }
  report_.sums.push_back({"", size, Bandwidth::gigabytes_per_s(sum)});
  if (rows.size() == 1) return out;
  return out + fmt::format("# sum of {} copies of {} at once: {:.2f} GB/s\n", rows.size(),
                           format_size(size), sum);
}

std::string no_effect_on_copies(const std::vector<ScenarioSetting>& set, const Machine& machine) {
  return no_effect_on("copies", set, machine,
                      {"dcqcn", "explain", "nccl", "netswitch", "network", "nic", "nodes", "wire"});
}

std::string copies_csv(const CopiesReport& report) {
  const std::array<std::string, 12> head{"test", "from",       "to",        "kind",
                                         "by",   "bytes",      "copies",    "time_us",
                                         "GBps", "forth_GBps", "back_GBps", "limited_by"};
  const auto rate = [](Bandwidth bandwidth) {
    return fmt::format("{}", bandwidth.as_gigabytes_per_s());
  };
  std::string out = csv_line(head);
  for (const CopyRow& row : report.rows) {
    const std::array<std::string, 12> cells{row.test,
                                            row.from,
                                            row.to,
                                            row.kind,
                                            report.request.by,
                                            fmt::format("{}", row.bytes.count()),
                                            fmt::format("{}", row.copies),
                                            fmt::format("{}", row.time.as_us()),
                                            rate(row.rate),
                                            rate(row.forth),
                                            row.back ? rate(*row.back) : "",
                                            limit_text(row)};
    out += csv_line(cells);
  }
  return out;
}

}  // namespace weft
