#include "sim/report/csv_report.hpp"

#include <utility>

#include "sim/base/quantity.hpp"
#include "sim/io/csv.hpp"

namespace weft {

std::vector<std::string> csv_header() {
  return {"op",
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
}

std::vector<std::string> csv_row_cells(const ResultRow& row) {
  const std::uint32_t extended_from = row.extended_from_nodes();
  const CauseShare top = row.limited_by.empty() ? CauseShare{} : row.limited_by.front();
  return {row.op,
          std::to_string(row.bytes),
          std::to_string(row.ranks),
          std::to_string(row.nodes),
          row.memory_path,
          row.algo,
          row.proto,
          std::to_string(row.channels),
          format_number(row.time_us),
          format_number(row.algbw_gb_per_s),
          format_number(row.busbw_gb_per_s),
          top.cause,
          top.where,
          format_number(top.share),
          extended_from > 0 ? std::to_string(extended_from) : ""};
}

std::string csv_text(const RunResult& result) {
  const bool has_jobs = !result.rows.empty() && !result.rows.front().job.empty();
  const auto line = [has_jobs](std::vector<std::string> cells, const std::string& job,
                               const std::string& alone_us) {
    if (has_jobs) cells.insert(cells.end(), {job, alone_us});
    return csv_line(cells);
  };
  std::string out = line(csv_header(), "job", "alone_us");
  for (const ResultRow& row : result.rows) {
    out += line(csv_row_cells(row), row.job, format_number(row.alone_us));
  }
  for (const RowNotRun& row : result.not_run) {
    std::vector<std::string> cells(csv_header().size());
    cells[0] = row.op;
    cells[1] = std::to_string(row.bytes);
    cells[4] = row.memory_path;
    out += line(std::move(cells), row.job, "");
  }
  return out;
}

}  // namespace weft
