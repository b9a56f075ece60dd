#include "sim/report/csv_report.hpp"

#include <vector>

#include "sim/base/quantity.hpp"
#include "sim/io/csv.hpp"

namespace weft {

std::string csv_text(const RunResult& result) {
  const std::vector<std::string> header{"op",
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
  std::string out = csv_line(header);
  for (const ResultRow& row : result.rows) {
    const CauseShare top = row.limited_by.empty() ? CauseShare{} : row.limited_by.front();
    const std::vector<std::string> cells{row.op,
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
    out += csv_line(cells);
  }
  return out;
}

}  // namespace weft
