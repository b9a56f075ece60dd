#include "sim/report/table.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "sim/report/text.hpp"

namespace weft {
namespace {

constexpr int kGroupWidth = 78;
constexpr int kIntervalWidth = 22;

/// Within one node no NIC is used, whatever the path is called.
std::string_view path_title(std::string_view memory_path, bool is_one_node) {
  if (is_one_node) return "within the node";
  if (memory_path == "gdr") return "GPUDirect RDMA";
  if (memory_path == "nccl") return "as NCCL decides";
  if (memory_path == "host-staged") return "host-staged";
  return memory_path;
}

std::string limit_text(const ResultRow& row) {
  if (row.limited_by.empty()) return "";
  const CauseShare& top = row.limited_by.front();
  return fmt::format("{:3.0f} % {}", top.share * 100.0, top.cause);
}

/// The columns of one memory path, those of the interval only where any row has one.
std::string group_text(const std::array<std::string, 8>& cells, const std::string& limit,
                       bool intervals) {
  const std::string interval =
      intervals ? fmt::format(" {:>10} {:>10}", cells[4], cells[5]) : std::string();
  return fmt::format("{:>5} {:>6} {:>3} {:>10}{} {:>8} {:>8}  {:<32.32}", cells[0], cells[1],
                     cells[2], cells[3], interval, cells[6], cells[7], limit);
}

std::string group_text(const ResultRow& row, bool intervals) {
  const auto end = [&](double ErrorInterval::*which) {
    return row.interval ? short_number(row.time_us * (*row.interval).*which) : "-";
  };
  return group_text({row.algo, row.proto, std::to_string(row.channels), short_number(row.time_us),
                     end(&ErrorInterval::low), end(&ErrorInterval::high),
                     short_number(row.algbw_gb_per_s), short_number(row.busbw_gb_per_s)},
                    limit_text(row), intervals);
}

/// What several jobs of one fabric came to, each beside itself alone.
std::string jobs_text(const RunResult& result) {
  std::vector<std::vector<std::string>> lines{{"# job", "op", "path", "algo", "limited by",
                                               "size (B)", "nodes", "time (us)", "alone (us)",
                                               "slowdown", "launches", "busbw (GB/s)"}};
  for (const ResultRow& row : result.rows) {
    lines.push_back({row.job, row.op, row.memory_path, row.algo + " " + row.proto, limit_text(row),
                     std::to_string(row.bytes), std::to_string(row.nodes),
                     short_number(row.time_us), short_number(row.alone_us),
                     fmt::format("{:.2f}", row.time_us / row.alone_us),
                     std::to_string(row.launches), short_number(row.busbw_gb_per_s)});
  }
  return aligned(lines, 5);
}

/// What stands below the rows.
std::string remarks_text(const RunResult& result) {
  std::string out;
  if (!result.not_run.empty()) {
    out += fmt::format("#\n# incomplete: {} of {} rows are missing, as the run was stopped\n",
                       result.not_run.size(), result.rows.size() + result.not_run.size());
  }
  if (!result.verdict.empty()) out += "#\n";
  for (const std::string& sentence : result.verdict) out += "# " + sentence + '\n';
  for (const std::string& note : result.notes) out += "# note: " + note + '\n';
  return out;
}

}  // namespace

std::string table_text(const RunResult& result) {
  if (!result.rows.empty() && !result.rows.front().job.empty()) {
    return jobs_text(result) + remarks_text(result);
  }
  std::vector<std::string> paths;
  std::map<std::int64_t, std::map<std::string, const ResultRow*>> by_size;
  for (const ResultRow& row : result.rows) {
    if (std::find(paths.begin(), paths.end(), row.memory_path) == paths.end()) {
      paths.push_back(row.memory_path);
    }
    by_size[row.bytes][row.memory_path] = &row;
  }
  const bool intervals = std::any_of(result.rows.begin(), result.rows.end(),
                                     [](const ResultRow& row) { return row.interval.has_value(); });
  const bool is_one_node = std::all_of(result.rows.begin(), result.rows.end(),
                                       [](const ResultRow& row) { return row.nodes == 1; });
  const int width = kGroupWidth + (intervals ? kIntervalWidth : 0);
  std::string out;
  std::string titles = "#             ";
  std::string names = "#        size ";
  std::string units = "#         (B) ";
  for (const std::string& path : paths) {
    titles += fmt::format(" {:^{}}", path_title(path, is_one_node), width);
    names += " " + group_text({"algo", "proto", "nch", "time", "low", "high", "algbw", "busbw"},
                              "limited by", intervals);
    units += " " + group_text({"", "", "", "(us)", "(us)", "(us)", "(GB/s)", "(GB/s)"},
                              "(share of the time)", intervals);
  }
  const auto line = [&](std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  line(titles);
  line(names);
  line(units);
  for (const auto& [bytes, rows] : by_size) {
    std::string text = fmt::format("{:>13} ", bytes);
    for (const std::string& path : paths) {
      const auto at = rows.find(path);
      text += " " + (at == rows.end() ? std::string(static_cast<std::size_t>(width), ' ')
                                      : group_text(*at->second, intervals));
    }
    line(text);
  }
  if (intervals) {
    out +=
        "#\n# low, high: below low, and above high, a row of a further configuration of the class "
        "that they are of lies in one case of ten at most, by rows held out of the fit of "
        "--params\n";
  }
  return out + remarks_text(result);
}

}  // namespace weft
