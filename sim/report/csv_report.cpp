#include "sim/report/csv_report.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/base/quantity.hpp"
#include "sim/io/csv.hpp"

namespace weft {
namespace {

constexpr std::array kNames{"op",
                            "bytes",
                            "ranks",
                            "nodes",
                            "memory_path",
                            "algo",
                            "proto",
                            "channels",
                            "time_us",
                            "algbw_GBps",
                            "busbw_GBps",
                            "limited_by",
                            "limited_by_where",
                            "limited_by_share",
                            "extended_from_nodes"};

std::string number_if(bool is_there, double value) { return is_there ? format_number(value) : ""; }

std::string whole_if_any(std::int64_t value) { return value > 0 ? std::to_string(value) : ""; }

}  // namespace

std::vector<std::string> csv_header(RowsOf of) {
  std::vector<std::string> out(kNames.begin(), kNames.end());
  if (of == RowsOf::kJobs) out.insert(out.end(), {"job", "alone_us"});
  if (of == RowsOf::kStep) out.insert(out.end(), {"computing_us", "exposed_us"});
  return out;
}

std::vector<std::string> csv_row_cells(const ResultRow& row, RowsOf of) {
  const bool has_bytes = row.bytes > 0;
  const CauseShare top = row.limited_by.empty() ? CauseShare{} : row.limited_by.front();
  std::vector<std::string> out{
      row.op,
      whole_if_any(row.bytes),
      std::to_string(row.ranks),
      std::to_string(row.nodes),
      row.memory_path,
      row.algo,
      row.proto,
      has_bytes ? std::to_string(row.channels) : whole_if_any(row.channels),
      format_number(row.time_us),
      number_if(has_bytes, row.algbw_gb_per_s),
      number_if(has_bytes, row.busbw_gb_per_s),
      top.cause,
      top.where,
      format_number(top.share),
      whole_if_any(row.extended_from_nodes())};
  if (of == RowsOf::kJobs) out.insert(out.end(), {row.job, format_number(row.alone_us)});
  if (of == RowsOf::kStep) {
    out.insert(out.end(), {format_number(row.computing_us), format_number(row.exposed_us)});
  }
  return out;
}

std::vector<std::string> csv_row_cells(const RowNotRun& row, RowsOf of) {
  const std::vector<std::string> names = csv_header(of);
  std::vector<std::string> out(names.size());
  const auto set = [&](std::string_view name, const std::string& cell) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at != names.end()) out[static_cast<std::size_t>(at - names.begin())] = cell;
  };
  set("op", row.op);
  set("bytes", whole_if_any(row.bytes));
  set("memory_path", row.memory_path);
  set("job", row.job);
  return out;
}

std::string csv_text(const RunResult& result) {
  const bool has_jobs = !result.rows.empty() && !result.rows.front().job.empty();
  const RowsOf of = has_jobs ? RowsOf::kJobs : RowsOf::kCollective;
  const bool any_interval = std::ranges::any_of(
      result.rows, [](const ResultRow& row) { return row.interval.has_value(); });
  std::string out;
  const auto add = [&](std::vector<std::string> cells, std::array<std::string, 2> interval) {
    if (any_interval) cells.insert(cells.end(), interval.begin(), interval.end());
    out += csv_line(cells);
  };
  add(csv_header(of), {"low_us", "high_us"});
  for (const ResultRow& row : result.rows) {
    std::array<std::string, 2> interval;
    if (row.interval) {
      interval = {format_number(row.time_us * row.interval->low),
                  format_number(row.time_us * row.interval->high)};
    }
    add(csv_row_cells(row, of), interval);
  }
  for (const RowNotRun& row : result.not_run) add(csv_row_cells(row, of), {});
  return out;
}

}  // namespace weft
