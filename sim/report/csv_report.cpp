#include "sim/report/csv_report.hpp"

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
          "limited_by_share"};
}

std::vector<std::string> csv_row_cells(const ResultRow& row) {
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
          format_number(top.share)};
}

std::string csv_text(const RunResult& result) {
  std::string out = csv_line(csv_header());
  for (const ResultRow& row : result.rows) out += csv_line(csv_row_cells(row));
  return out;
}

}  // namespace weft
